"""The notebooks' exercises.

`exercises.windows(mine)` says whether an answer is right, or what is wrong. `exercises.yours(mine, "windows")` says so,
too, and returns the function that the rest of a notebook uses.
"""

# ruff: noqa: F401

from collections.abc import Callable
from typing import Any

from rtx.lab.exercises.after import cache_bytes, compose_steps, gradient_back, half_life
from rtx.lab.exercises.attention import causal_attention, induction
from rtx.lab.exercises.block import contributions, notices_order, residual
from rtx.lab.exercises.channels import block_input, in_degree, longest_path
from rtx.lab.exercises.convolution import delay_kernels, dilated_convolution, tcn_reach
from rtx.lab.exercises.digits import paired_p, reordered, wilson
from rtx.lab.exercises.evidence import holm, permutation_p, reported
from rtx.lab.exercises.exercise import Exercise, Verdict
from rtx.lab.exercises.fast import back_through_gate, hoisted_local_rnn, softmax_in_pieces
from rtx.lab.exercises.framing import gradient_by_distance, next_tokens, unigram_bits
from rtx.lab.exercises.language import backed_off, bigram_bits, bits_per_character, nucleus
from rtx.lab.exercises.memory import next_memory, with_memory, xl_reach
from rtx.lab.exercises.music import independence_gap, markov_per_key, nll_per_frame
from rtx.lab.exercises.pooling import attention_pool, largest_share, mean_ablated
from rtx.lab.exercises.position import rotated, shaw_scores, xl_score
from rtx.lab.exercises.start import dependencies, is_causal, span
from rtx.lab.exercises.translation import beam_translation, greedy_translation, source_weights
from rtx.lab.exercises.window import local_rnn, stacked_reach, windows, without_pads
from rtx.nn.validate import check_choice


def yours(mine: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `mine` if it passes the exercise of this name, otherwise the project's own solution. Print which one.

    Raises:
        ValueError: if there is no exercise of this name.
    """
    names = sorted(key for key, value in globals().items() if isinstance(value, Exercise))
    exercise: Exercise = globals()[check_choice("name", name, names)]
    verdict = exercise(mine)
    print(verdict)
    print(f"From here on, this notebook uses {'your' if verdict.passed else 'our'} version of `{name}`.")
    return mine if verdict.passed else exercise.solution
