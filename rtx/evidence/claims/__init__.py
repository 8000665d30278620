"""The papers' claims, each with how it is judged and what would settle it."""

from pathlib import Path

from rtx.evidence.claims import ff_attention, mc_rnn, r_transformer
from rtx.evidence.claims.claim import Claim
from rtx.evidence.ledger import LEDGER
from rtx.evidence.verdicts import Finding

CLAIMS = (*r_transformer.CLAIMS, *mc_rnn.CLAIMS, *ff_attention.CLAIMS)


def judged(results: str | Path = LEDGER) -> list[tuple[Claim, Finding]]:
    """Every claim with what the ledger in a folder says of it.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    return [(claim, claim.judge(Path(results).absolute())) for claim in CLAIMS]
