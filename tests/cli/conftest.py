"""The command in the process of the tests."""

import signal
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from typing import NamedTuple

import pytest

from rtx.cli import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Done]]:
    """Runs the command in this process: starting Python and torch for each line would take seconds."""

    def run(*words: object, width: int = 120, text: str = "") -> Done:
        monkeypatch.setattr("sys.argv", ["rtx", *map(str, words)])
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
        monkeypatch.setenv("COLUMNS", str(width))
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
        return Done(code, *capsys.readouterr())

    handler = signal.getsignal(signal.SIGINT)
    yield run
    signal.signal(signal.SIGINT, handler)
