"""What a case of the benchmark is: contenders that are timed in turn, and the targets their ratios are held to."""

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.measure import Run
from rtx.nn.ops import OPERATIONS, implementation
from rtx.training.precision import float32_cudnn

PUBLISHED, OURS, UNCOMPILED, PLAIN = "published", "rtx", "rtx, no compiler", "rtx, plain torch"


@dataclass(frozen=True)
class Options:
    """What is asked for.

    Args:
        device: "cpu" or "cuda".
        quick: short sequences and two rounds, to see that everything runs: its ratios say nothing.
        compiled: whether the operations in C++ can be compiled here.
    """

    device: str = "cpu"
    quick: bool = False
    compiled: bool = True

    def size(self, full: int, quick: int) -> int:
        """A size of a case."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Contender:
    """One of the things that a case times.

    Args:
        name: in the table.
        run: once.
        times: of such runs make what is compared: 100 where a hundredth of a long work is measured.
        multiply_adds: of a forward pass, if counted.
        memory: whether the run's peak is measured, too.
    """

    name: str
    run: Run
    times: float = 1.0
    multiply_adds: int | None = None
    memory: bool = False

    def __call__(self) -> float | None:
        """Run, on a GPU in float32 that cuDNN does not round to tf32."""
        with float32_cudnn():
            return self.run()


@dataclass(frozen=True)
class Target:
    """A quantity of one contender over that of another, and its bound.

    Args:
        text: what it is.
        over, under: names of contenders, numerator and denominator; without `under` it is the quantity itself.
        bound: of the ratio; None: shown, not judged.
        sense: ">=" or "<=".
        quantity: "time" in milliseconds, "peak" in MiB, or "multiply_adds".
        difference: what one has more than the other, in place of the ratio.
    """

    text: str
    over: str
    under: str | None
    bound: float | None
    sense: str = ">="
    quantity: str = "time"
    difference: bool = False


@dataclass
class Case:
    """What is compared.

    Args:
        title: with the sizes.
        contenders: in the order of the table.
        targets: those whose contenders are missing are left out.
        notes: sentences for the reader.
        rounds: at least; the benchmark's own number if not given.
    """

    title: str
    contenders: list[Contender]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rounds: int | None = None


def ways(run: Run, options: Options, *operations: str) -> dict[str, Run]:
    """A run with these operations as rtx itself chooses; as it does without a compiler; and in plain torch."""
    found = {OURS: run}
    if options.compiled and _having("native", operations):
        found[UNCOMPILED] = using("torch", using("blocks", run, *operations), *operations)
    if _having("torch", operations):
        found[PLAIN] = using("torch", run, *operations)
    return found


def using(name: str, run: Run, *operations: str) -> Run:
    """The run with those of the operations that have an implementation of that name using it, unless `run` chooses."""
    chosen = _having(name, operations)

    def run_with_it() -> float | None:
        with implementation(name, *chosen):
            return run()

    return run_with_it if chosen else run


def _having(name: str, operations: tuple[str, ...]) -> list[str]:
    return [one for one in operations if one in OPERATIONS and name in OPERATIONS[one].implementations]


CaseMaker = Callable[[Options], Case]
