"""Fixtures for every test."""

import os
from pathlib import Path

import pytest

NAMED = os.environ.get("RTX_DATA")  # as the tests began: some of them change it


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder RTX_DATA names, else ../shared/data beside the checkout; RTX_DATA is set to it."""
    folder = Path(NAMED) if NAMED else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not NAMED and not folder.is_dir():
        pytest.skip("needs real data: set RTX_DATA to a folder that holds poly_music/ and mnist/")
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder
