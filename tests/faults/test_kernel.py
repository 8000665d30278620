"""In a real kernel a cell is run again and again; the kernel is interrupted, restarted and killed while it trains."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from jupyter_client import KernelManager

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
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(extra_arguments=["--HistoryManager.enabled=False"])
    clients: list[Any] = []

    def run(code: str, until: str = "", cell: str | None = None) -> str:
        if not clients:
            clients.append(manager.client())
            clients[0].start_channels()
            clients[0].wait_for_ready(timeout=120)
        message = clients[0].session.msg("execute_request", {"code": code, "silent": False, "stop_on_error": False})
        message["metadata"] = {"cellId": cell}  # as JupyterLab sends it
        clients[0].shell_channel.send(message)
        return answer(clients[0], message["header"]["msg_id"], until)

    def forget() -> None:  # or the old client would reconnect under the new one's identity, which is then refused
        clients.pop().stop_channels()

    run.forget = forget  # type: ignore[attr-defined]
    yield manager, run
    for client in clients:
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


COUNT = """
import gc
from ipywidgets.widgets.widget import _instances
from rtx.lab import explore
gc.collect()
print(len(_instances), sum(issubclass(type(one), explore.Page) for one in gc.get_objects()))
"""


def test_a_cell_that_is_run_again_frees_its_earlier_explorers(kernel) -> None:
    _, run = kernel
    counts = []
    for _ in range(3):
        run("kept = explore.errata(); explore.positions(); explore.depends()" if counts else COUNT, cell="a")
        counts.append([int(number) for number in run(COUNT).split()])
    (none, _), (once, alive), again = counts
    assert once > none and alive == 3 and again == [once, alive]
    run("explore.errata()", cell="b")  # the explorers of another cell stay
    assert int(run(COUNT).split()[1]) == 4


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


def test_restarted_and_killed_while_it_trains_it_leaves_no_process(kernel) -> None:
    manager, run = kernel
    assert run(START) == "Running 1"
    before = psutil.Process(int(run("import os; print(os.getpid())")))
    family = [before, *before.children(recursive=True)]
    began = time.monotonic()
    manager.restart_kernel(now=False)
    assert time.monotonic() - began < 30 and not any(one.is_running() for one in family)
    run.forget()
    assert run("import threading; print([t.name for t in threading.enumerate() if t.name.startswith('rtx')])") == "[]"
    assert run(START) == "Running 1"
    after = psutil.Process(int(run("import os; print(os.getpid())")))
    family = [after, *after.children(recursive=True)]
    manager.shutdown_kernel(now=True)
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family)
