"""In a real kernel figures are stored, and the kernel is interrupted and shut down."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

pytestmark = pytest.mark.slow

START = """
import threading
from rtx.lab import explore
lab = explore.training("digits", "gru", d_model=8, layers=1, epochs=5000)
lab.press("train")
def alive():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rtx")]
def settled(wanted, seconds=60):
    import time
    end = time.monotonic() + seconds
    while not lab.data["status"].startswith(wanted) and time.monotonic() < end:
        time.sleep(0.05)
    return lab.data["status"].partition(":")[0]
print(settled("Running: update"), len(alive()))
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[tuple[KernelManager, Callable[[str], str]]]:
    tools = str(Path(__file__).parents[2] / "tools")  # of the extension that stores figures
    paths = os.pathsep.join([tools, *filter(None, [os.environ.get("PYTHONPATH")])])
    arguments = ["--HistoryManager.enabled=False"]
    manager, client = start_new_kernel(120, extra_arguments=arguments, env=os.environ | {"PYTHONPATH": paths})

    def run(code: str, until: str = "") -> str:
        return answer(client, client.execute(code, stop_on_error=False), until)

    yield manager, run
    client.stop_channels()
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)


def answer(client: Any, request: str, until: str) -> str:
    """What a cell printed, to its end or until it has printed this; or its error's name."""
    text, end = "", time.monotonic() + 180
    while time.monotonic() < end:
        message = client.get_iopub_msg(timeout=180)
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            text += content["text"]
        if until and until in text:
            return text
        if kind == "error":
            text += content["ename"]
        if kind == "status" and content["execution_state"] == "idle":
            return text.strip()
    raise AssertionError("the kernel does not answer")


def test_interrupted_while_it_trains_the_kernel_goes_on_and_while_a_cell_waits_the_training_stops(kernel) -> None:
    manager, run = kernel
    assert run(START) == "Running 1"
    manager.interrupt_kernel()  # no cell runs: the thread is none of the interrupt's business
    assert run("print(settled('Running: update'), len(alive()))") == "Running 1"
    run("print('now', flush=True); lab.runs[-1].wait()", until="now")
    time.sleep(1)  # it is in the next call by now
    manager.interrupt_kernel()
    printed = run("print(lab.runs[-1].state, lab.runs[-1].alive, alive())")
    assert printed.removeprefix("KeyboardInterrupt") == "stopped False []"
    assert run("print(settled('Stopped: update'))") == "Stopped"


FIGURES = """
from base64 import b64decode
from io import BytesIO
from IPython.utils.capture import capture_output
from PIL import Image
%load_ext figure_extension
from rtx.lab import plots
import matplotlib.pyplot as plt
plots.style()
with capture_output() as kept:
    fig, ax = plt.subplots()
    ax.set(title="a band", xlabel="position")
    plt.show()
    plt.subplots()
    plt.show()
for one in kept.outputs:
    print(Image.open(BytesIO(b64decode(one.data["image/png"]))).mode, one.metadata.get("image/png"))
"""


def test_figures_are_stored_in_few_colours_with_alt_text_if_they_say_something(kernel) -> None:
    _, run = kernel
    named, bare = run(FIGURES).splitlines()
    assert named == "P {'alt': 'a band; across: position'}"  # P: its colours are looked up in a palette
    assert bare == "P None"


def test_shut_down_while_it_trains_it_leaves_no_process(kernel) -> None:
    manager, run = kernel
    assert run(START) == "Running 1"
    process = psutil.Process(int(run("import os; print(os.getpid())")))
    assert process.children(recursive=True) == []  # therefore a kill leaves none, either
    began = time.monotonic()
    manager.shutdown_kernel()
    assert time.monotonic() - began < 30 and not process.is_running()
