"""Every case of the benchmark by its name, in the order of the table."""

from functools import partial

from benchmarks import layers, serving
from benchmarks.case import CaseMaker
from benchmarks.training import STEPS, training_case

CASES: dict[str, CaseMaker] = {
    **{name: partial(training_case, name) for name in STEPS},
    "memory": layers.memory,
    "pooling": layers.pooling,
    "pooling-lengths": layers.pooling_lengths,
    "mc-rnn": layers.mc_rnn,
    "streaming": serving.streaming,
    "generation": serving.generation,
    "evaluation": serving.evaluation,
    "import": serving.importing,
}
