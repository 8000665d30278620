"""Work in the background is paused, resumed and stopped; one works at a time; nothing outlives the kernel."""

import subprocess
import sys
import threading

import pytest

from rtx.lab.background import Background, end

SOON = 30  # seconds after which a wait is a failure
pytestmark = pytest.mark.usefixtures("nothing_is_left")


class Counting:
    """Work that counts for ever, and says when it has come to a number."""

    def __init__(self, name: str = "") -> None:
        self.steps, self.states = 0, []
        self.seen = threading.Condition()
        self.background = Background(self.work, self.watch, name)

    def work(self, background: Background) -> None:
        while True:
            with self.seen:
                self.steps += 1
                self.seen.notify_all()
            background.breathe()

    def watch(self) -> None:
        with self.seen:
            self.states.append(self.background.state)
            self.seen.notify_all()

    def until(self, steps: int = 0, state: str | None = None) -> None:
        with self.seen:
            reached = self.seen.wait_for(
                lambda: self.steps >= steps and state in (None, *self.states[-1:]), timeout=SOON
            )
            assert reached


def test_it_pauses_goes_on_and_stops() -> None:
    counting = Counting()
    assert counting.background.state == "new" and not counting.background.alive
    counting.background.start()
    counting.until(steps=10)
    counting.background.pause()
    counting.until(state="paused")
    stood = counting.steps
    with counting.seen:
        assert not counting.seen.wait_for(lambda: counting.steps != stood, timeout=0.2)
    counting.background.resume()
    counting.until(steps=stood + 10, state="running")
    counting.background.pause()
    counting.until(state="paused")
    assert counting.background.stop()
    counting.background.resume()  # a stop is for good
    assert counting.background.state == "stopped" == counting.states[-1] and not counting.background.alive


def test_what_has_come_to_its_end_is_finished() -> None:
    done: list[str] = []
    background = Background(lambda _: done.append("work"), lambda: done.append(background.state))
    background.start()
    background.wait()
    assert done == ["running", "work", "finished"] and not background.alive


def test_an_error_becomes_a_sentence() -> None:
    def fail(error: BaseException) -> str:
        def work(_: Background) -> None:
            raise error

        background = Background(work)
        background.start()
        background.wait()
        assert background.state == "failed"
        return background.error

    assert fail(ValueError("loss: became nan at step 3\nand more")) == "loss: became nan at step 3"
    assert fail(KeyError("x")) == "KeyError: 'x'"
    assert fail(ValueError()) == "ValueError"
    assert fail(SystemExit("enough")) == "SystemExit: enough"  # a script may end itself


def test_a_start_stops_what_works_and_an_end_only_work_of_its_name() -> None:
    first, second = Counting(), Counting("toy")
    first.background.start()
    first.until(steps=5)
    first.background.pause()
    second.background.start()
    second.until(steps=5)
    assert not first.background.alive and first.background.state == "stopped"
    end("race")
    assert second.background.alive
    end("toy")
    assert not second.background.alive


def test_work_is_started_once() -> None:
    background = Background(lambda _: None)
    background.start()
    background.wait()
    with pytest.raises(RuntimeError, match="start: .* finished"):
        background.start()


def test_a_watch_comes_seldom() -> None:
    def work(background: Background) -> None:
        for _ in range(10_000):
            background.breathe()

    looks: list[int] = []
    background = Background(work, lambda: looks.append(1))
    background.start()
    background.wait()
    assert 2 <= len(looks) < 500


INTERRUPTED = """
import faulthandler, os, signal, sys, threading, time
from rtx.lab.background import Background, end

faulthandler.dump_traceback_later(60, exit=True)  # shows the place of a wait that does not end
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process is born deaf to it if its parent is

def work(background):
    while True:
        background.breathe()

def waits():
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code is not Background.wait.__code__:
        frame = frame.f_back
    return frame is not None

def interrupt():
    while not waits():
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

background = Background(work)
background.start()
threading.Thread(target=interrupt).start()
try:
    background.wait()
except KeyboardInterrupt:
    print(background.state, background.alive)
Background(work).start()
time.sleep(0.2)
"""
LEFT_ALONE = """
import time
from rtx.lab.background import Background, end

Background(lambda _: time.sleep(3600)).start()
time.sleep(0.2)
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=4 * SOON)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_an_interrupt_stops_the_work_and_the_kernel_can_end_while_other_work_goes_on() -> None:
    assert run(INTERRUPTED) == "stopped False\n"


def test_work_that_never_looks_up_does_not_delay_the_end_of_the_kernel() -> None:
    assert run(LEFT_ALONE) == ""
