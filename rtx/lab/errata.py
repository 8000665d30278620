"""Where the papers disagree with each other, with their code or with arithmetic: each as a question with evidence.

An erratum's evidence is computed when it is asked for, by the models of this package; nothing in it is typed in.
"""

from rtx.lab.errata_counted import COUNTED
from rtx.lab.errata_measured import MEASURED
from rtx.lab.evidence import Erratum


def errata() -> list[Erratum]:
    """All of them, in the order of the papers."""
    return [*MEASURED, *COUNTED]
