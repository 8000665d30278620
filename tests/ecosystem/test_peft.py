"""LoRA of peft on every brick, in a process of its own: `lora_cases.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PEFT = Path(sys.prefix, "peft")  # `make test` installs peft there: see the Makefile


@pytest.mark.slow
def test_lora_wraps_every_brick() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PEFT), os.environ.get("PYTHONPATH", "")])}
    cases = Path(__file__).with_name("lora_cases.py")
    command = [sys.executable, *["-m", "pytest", "-q", "-p", "no:cacheprovider"], str(cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
