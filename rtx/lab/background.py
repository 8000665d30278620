"""Training beside the notebook: a thread that can be paused, resumed and stopped.

Only one trains at a time in a process: two would share its cores and torch's random numbers.
"""

import atexit
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

State = Literal["new", "running", "paused", "stopped", "finished", "failed"]
EVERY = 0.4  # seconds between two looks, at least
SHARE = 5  # a look may take this part of the time
_turn = threading.Lock()  # whoever works has it


class Stop(Exception):
    """Raised inside the work, where it breathes, when the work should end."""


class Background(ABC):
    """Work in a daemon thread. The thread ends with the kernel.

    `work` calls `breathe` between its steps. There it waits while it is paused, and ends when it is stopped. An error
    of the work becomes the sentence `error`. The thread calls `watch` now and then, and whenever `state` has changed.
    """

    name = ""  # of the owner, for `end`
    title = group = ""  # of one run among others, and of the runs that are shown together

    def __init__(self) -> None:
        self.watch: Callable[[], object] = lambda: None
        self.state: State = "new"
        self.error = ""
        self._stopped = False  # or asked to stop
        self._may_go = threading.Event()
        self._may_go.set()
        self._thread = threading.Thread(target=self._run, name="rtx", daemon=True)
        self._next_look = 0.0

    @abstractmethod
    def work(self) -> None:
        """Do all steps, with a `breathe` between them."""

    @property
    @abstractmethod
    def told(self) -> str:
        """How far the work is; empty while there is nothing to see."""

    @property
    def alive(self) -> bool:
        """Whether the thread works or is paused."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin. Other work in this process is asked to stop, and this thread waits for its end."""
        global _current
        end(seconds=0)
        _current, self.state = self, "running"
        self._thread.start()

    def pause(self) -> None:
        """Wait at the next breath, until `resume` or `stop`."""
        if not self._stopped:
            self._may_go.clear()

    def resume(self) -> None:
        """Continue after `pause`."""
        self._may_go.set()

    def stop(self, seconds: float = 1.0) -> None:
        """End at the next breath, and wait for that at most so many seconds."""
        self._stopped = True
        self._may_go.set()
        self.wait(seconds)

    def wait(self, seconds: float = math.inf) -> None:
        """Wait until the work has ended, or so many seconds. An interrupt of the cell stops the work."""
        last = time.monotonic() + seconds
        try:
            while self.alive and time.monotonic() < last:
                time.sleep(0.01)  # an interrupt of `Thread.join` can leave its lock taken
        except KeyboardInterrupt:
            self.stop()
            raise

    def breathe(self) -> None:
        """Pause, stop or look, if it is time for that. `work` calls this between two steps.

        Raises:
            Stop: if the work should end.
        """
        if not self._may_go.is_set():
            self.state, self._next_look = "paused", 0.0
            self.look()
            self._may_go.wait()
        if self._stopped:
            raise Stop
        self.state = "running"
        if (began := time.monotonic()) >= self._next_look:
            self.look()
            now = time.monotonic()
            self._next_look = now + max(EVERY, (SHARE - 1) * (now - began))

    def facts(self) -> dict[str, str]:
        """The row of a table of runs; its field "more" is a text behind it."""
        return {}

    def look(self) -> None:
        """Show how far the work is."""
        self.watch()

    def _run(self) -> None:
        with _turn:
            try:
                self.breathe()
                self.work()
                self.state = "finished"
            except Stop:
                self.state = "stopped"
            except BaseException as error:  # also SystemExit: the reader is at the notebook, not at a terminal
                self.state, self.error = "failed", sentence(error)
            self.look()


_current: Background | None = None


def end(name: str | None = None, seconds: float = math.inf) -> None:
    """Stop the current work if it has this name; without a name, stop it whatever its name is."""
    if _current is not None and name in (None, _current.name):
        _current.stop(seconds)


def sentence(error: BaseException) -> str:
    """Return the first line of an error, with the error's type unless it is a ValueError."""
    text = str(error).strip().split("\n")[0]
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}".removesuffix(": ")


atexit.register(end, seconds=1.0)
