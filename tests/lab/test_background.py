"""Work in the background is paused, resumed and stopped; one works at a time; nothing outlives the kernel."""

import threading
from collections.abc import Callable

import pytest

from rtx.lab.background import Background, end

SOON = 30  # seconds after which a wait is a failure
pytestmark = pytest.mark.usefixtures("nothing_is_left")


class Counting(Background):
    """Work that counts for ever, and says when it has come to a number."""

    told = "counting"

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name, self.watch = name, self.note
        self.steps, self.states = 0, []
        self.seen = threading.Condition()

    def work(self) -> None:
        while True:
            with self.seen:
                self.steps += 1
                self.seen.notify_all()
            self.breathe()

    def note(self) -> None:
        with self.seen:
            self.states.append(self.state)
            self.seen.notify_all()

    def until(self, steps: int = 0, state: str | None = None) -> None:
        with self.seen:
            reached = self.seen.wait_for(
                lambda: self.steps >= steps and state in (None, *self.states[-1:]), timeout=SOON
            )
            assert reached


class Doing(Background):
    """A function as work."""

    told = ""

    def __init__(self, do: Callable[[Background], object], watch: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.do, self.watch = do, watch

    def work(self) -> None:
        self.do(self)


def test_it_pauses_goes_on_and_stops() -> None:
    counting = Counting()
    assert counting.state == "new" and not counting.alive
    counting.start()
    counting.until(steps=10)
    counting.pause()
    counting.until(state="paused")
    stood = counting.steps
    with counting.seen:
        assert not counting.seen.wait_for(lambda: counting.steps != stood, timeout=0.2)
    counting.resume()
    counting.until(steps=stood + 10, state="running")
    counting.pause()
    counting.until(state="paused")
    counting.stop()
    assert counting.state == "stopped" == counting.states[-1] and not counting.alive


def test_what_has_come_to_its_end_is_finished() -> None:
    done: list[str] = []
    work = Doing(lambda _: done.append("work"), lambda: done.append(work.state))
    work.start()
    work.wait()
    assert done == ["running", "work", "finished"] and not work.alive


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("loss: became nan at step 3\nand more"), "loss: became nan at step 3"),
        (KeyError("x"), "KeyError: 'x'"),
        (SystemExit("enough"), "SystemExit: enough"),  # a script may end itself
    ],
)
def test_an_error_becomes_a_sentence(error: BaseException, sentence: str) -> None:
    def fail(_: Background) -> None:
        raise error

    work = Doing(fail)
    work.start()
    work.wait()
    assert (work.state, work.error) == ("failed", sentence)


def test_a_start_stops_what_works_and_an_end_only_work_of_its_name() -> None:
    first, second = Counting(), Counting("toy")
    first.start()
    first.until(steps=5)
    first.pause()
    second.start()
    second.until(steps=5)
    assert not first.alive and first.state == "stopped"
    end("race")
    assert second.alive
    end("toy")
    assert not second.alive


def test_a_watch_comes_seldom() -> None:
    looks: list[int] = []
    work = Doing(lambda work: [work.breathe() for _ in range(10_000)], lambda: looks.append(1))
    work.start()
    work.wait()
    assert 2 <= len(looks) < 500
