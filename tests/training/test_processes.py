"""A process knows whether it is the first, whichever program started it."""

import pytest

from rtx.training.processes import RANKS, first


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"])
def test_only_the_first_of_several_processes_is_the_first(monkeypatch, name):
    for one in RANKS:
        monkeypatch.delenv(one, raising=False)
    assert first()  # alone
    for rank, expected in (("0", True), ("1", False)):
        monkeypatch.setenv(name, rank)
        assert first() is expected
