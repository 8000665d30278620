"""Work in the background is paused, resumed and stopped; one works at a time; nothing outlives the kernel."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from rtx.lab.background import Background, Stop, end

SOON = 30  # seconds after which a wait is a failure


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    end()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("rtx")] == []


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
    assert counting.background.stop()
    assert counting.background.state == "stopped" == counting.states[-1] and not counting.background.alive


def test_what_is_paused_can_be_stopped_and_a_stop_is_for_good() -> None:
    counting = Counting()
    counting.background.start()
    counting.background.pause()
    counting.until(state="paused")
    assert counting.background.stop()
    counting.background.resume()
    assert counting.background.state == "stopped" and not counting.background.alive


def test_what_has_come_to_its_end_is_finished() -> None:
    done: list[str] = []
    background = Background(lambda _: done.append("work"), lambda: done.append(background.state))
    background.start()
    background.wait()
    assert done == ["running", "work", "finished"] and not background.alive


def test_an_error_becomes_a_sentence() -> None:
    def fail(error: Exception) -> str:
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


def test_who_starts_stops_who_works() -> None:
    first, second = Counting(), Counting()
    first.background.start()
    first.until(steps=5)
    first.background.pause()
    second.background.start()
    second.until(steps=5)
    assert not first.background.alive and first.background.state == "stopped"
    assert second.background.alive


def test_only_work_of_that_name_is_ended() -> None:
    counting = Counting("toy")
    counting.background.start()
    counting.until(steps=5)
    end("race")
    assert counting.background.alive
    end("toy")
    assert not counting.background.alive


def test_work_is_started_once() -> None:
    background = Background(lambda _: None)
    background.start()
    background.wait()
    with pytest.raises(RuntimeError, match="start: expected work that is new, this is finished"):
        background.start()
    stopped = Background(lambda _: None)
    assert stopped.stop()
    with pytest.raises(RuntimeError, match="this is stopped"):
        stopped.start()


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
from rtx.lab.background import Background

faulthandler.dump_traceback_later(60, exit=True)  # if the wait does not end, its place is told
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
"""
LEFT_ALONE = """
import time
from rtx.lab.background import Background

def deaf(background):
    time.sleep(3600)

background = Background({work})
background.start()
time.sleep(0.2)
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=4 * SOON)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_interrupting_the_wait_stops_the_work() -> None:
    assert run(INTERRUPTED) == "stopped False\n"


def test_who_waits_takes_no_lock_that_an_interrupt_could_leave_taken() -> None:
    """Python may raise KeyboardInterrupt when a lock is taken, and before the `with` that would release it."""
    waiting = threading.get_ident()

    class NotHere(threading.Condition):
        def __enter__(self) -> bool:
            assert threading.get_ident() != waiting
            return super().__enter__()

    for wait in (Background.wait, Background.stop):
        background = Background(lambda background: [background.breathe() or time.sleep(0.01) for _ in range(20)])
        background._ended._cond = NotHere(threading.Lock())  # type: ignore[attr-defined]
        background.start()
        wait(background)
        assert background.state in ("finished", "stopped") and not background.alive


@pytest.mark.parametrize("work", ["deaf", "lambda b: [b.breathe() or time.sleep(0.001) for _ in iter(int, 1)]"])
def test_the_end_of_the_kernel_is_not_delayed(work: str) -> None:
    assert run(LEFT_ALONE.format(work=work)) == ""


def test_a_stop_is_no_error_of_the_work() -> None:
    with pytest.raises(Stop):
        background = Background(lambda _: None)
        background.stop()
        background.breathe()


def test_work_that_ends_itself_as_a_script_does_has_failed_and_the_next_can_begin() -> None:
    background = Background(lambda _: sys.exit("enough"))
    background.start()
    assert background.stop(SOON) and (background.state, background.error) == ("failed", "SystemExit: enough")
