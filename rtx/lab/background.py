"""Work beside the notebook: a thread that is paused, resumed and stopped, and that no one forgets.

One works at a time in a process: two would share its cores, and torch's random numbers.
"""

import atexit
import math
import threading
import time
from collections.abc import Callable
from typing import Literal

State = Literal["new", "running", "paused", "stopped", "finished", "failed"]
EVERY = 0.4  # seconds between two looks, at least
SHARE = 5  # a look may take this part of the time


class Stop(Exception):
    """Raised inside the work, where it breathes, when it is to end."""


class Background:
    """A function at work in a daemon thread, which ends with the kernel and delays nothing.

    The work calls `breathe` between its steps. There it waits while it is paused, ends when it is stopped, and `watch`
    is called, in the same thread, so nothing changes meanwhile. What the work raises becomes the sentence `error`.

    Args:
        work: what is done; called with this object.
        watch: called now and then while it works, and whenever its `state` has changed.
        name: of who owns it, for `end`.
    """

    def __init__(
        self, work: Callable[["Background"], object], watch: Callable[[], object] = lambda: None, name: str = ""
    ) -> None:
        self.work, self.watch, self.name = work, watch, name
        self.state: State = "new"
        self.error = ""
        self._stopped = False  # or is to be
        self._may_go, self._ended = threading.Event(), threading.Event()
        self._may_go.set()
        self._thread = threading.Thread(target=self._run, name=f"rtx {name}".strip(), daemon=True)
        self._before: Background | None = None
        self._next_look = 0.0

    @property
    def alive(self) -> bool:
        """Whether its thread is at work or paused."""
        return self.state != "new" and not self._ended.is_set()

    def start(self) -> None:
        """Begin, once. Whatever works in this process is stopped first; nobody waits for that here.

        Raises:
            RuntimeError: if it has been started before.
        """
        global _current
        if self.state != "new":
            raise RuntimeError(f"start: expected work that is new, this is {self.state}")
        with _taking_turns:
            self._before, _current = _current, self
            if self._before is not None:
                self._before.stop(seconds=0)
            self.state = "running"
            self._thread.start()

    def pause(self) -> None:
        """Wait at the next breath, until `resume` or `stop`."""
        if not self._stopped:  # a stop is for good
            self._may_go.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._may_go.set()

    def stop(self, seconds: float = math.inf) -> bool:
        """End at the next breath, wait for that at most so many seconds, and return whether it has ended."""
        self._stopped = True
        self._may_go.set()
        if self.state == "new":
            self.state = "stopped"
            self._ended.set()
        elif threading.current_thread() is not self._thread:
            self._wait(seconds)
        return not self.alive

    def wait(self) -> None:
        """Until it has ended by itself. Interrupting the waiting, as by the kernel's ■, stops the work."""
        try:
            self._wait()
        except KeyboardInterrupt:
            self.stop()
            raise

    def breathe(self) -> None:
        """For the work, between two of its steps.

        Raises:
            Stop: if it is to end.
        """
        if resumed := not self._may_go.is_set():
            self.state = "paused"
            self.watch()
            self._may_go.wait()
        if self._stopped:
            raise Stop
        self.state = "running"
        if resumed or time.monotonic() >= self._next_look:
            began = time.monotonic()
            self.watch()
            now = time.monotonic()
            self._next_look = now + max(EVERY, (SHARE - 1) * (now - began))

    def _wait(self, seconds: float = math.inf) -> None:
        """Until it has ended. An interrupt of `Event.wait` may leave its lock taken for ever, so this asks instead."""
        last = time.monotonic() + seconds
        while not self._ended.is_set() and time.monotonic() < last:
            time.sleep(0.01)
        if self._ended.is_set():
            self._thread.join()

    def _run(self) -> None:
        try:
            if self._before is not None:
                self._before._ended.wait()
            self._before = None
            self.breathe()
            self.work(self)
            self.state = "finished"
        except Stop:
            self.state = "stopped"
        except BaseException as error:  # whatever it is, SystemExit, too: its reader is at the notebook
            self.state, self.error = "failed", sentence(error)
        try:
            self.watch()
        finally:
            self._ended.set()


_current: Background | None = None
_taking_turns = threading.Lock()


def end(name: str | None = None, seconds: float = math.inf) -> None:
    """Stop what works, if it is of that name, or whatever its name; a cell that runs again ends its own thread so."""
    if _current is not None and name in (None, _current.name):
        _current.stop(seconds)


def sentence(error: BaseException) -> str:
    """An error in one line; of a ValueError, whose text says all, without its type."""
    text = str(error).strip().split("\n")[0]
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}".removesuffix(": ")


atexit.register(end, seconds=1.0)
