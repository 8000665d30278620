"""Explorer of look-up: pairs and a question; a trained Transformer answers, and arcs show where its heads look.

Olsson et al. (2022), In-context Learning and Induction Heads.
"""

from rtx.lab.explore.network import described
from rtx.lab.explore.page import Page
from rtx.lab.pretrained import pretrained, weights
from rtx.tasks.toy.look_up import SYMBOLS


def lookup(text: str = "c7 a2 h9 f0 d4 b3 f?") -> Page:
    """Type pairs such as a1 b7 c3 and a question b?, and see how the heads of a trained Transformer find the answer.

    The state has `text`, `off` (the heads that are switched off, such as "1.0": layer, head, from 0) and `chosen` (the
    token whose arcs are drawn strongly, from 1; 0 is the last).
    """
    return Page(
        "lookup.js",
        {"symbols": SYMBOLS, "network": described(pretrained("lookup"))},
        "ask for another letter; then switch off one head after the other. Which head is not needed?",
        title="Which head finds the answer?",
        presets={
            "Eight pairs": {"text": "e4 b8 j1 c5 a0 h3 d6 g9 c?", "off": [], "chosen": 0},
            "One letter twice": {"text": "a1 b7 c3 b5 b?", "off": [], "chosen": 0},
        },
        weights=weights("lookup"),
        text=text,
        off=[],
        chosen=0,
    )
