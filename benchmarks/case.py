"""What a case of the benchmark is: contenders that are timed in turn, and the targets their ratios are held to."""

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.measure import Run, matmul
from rtx.nn.kernels.dispatch import OPERATIONS, implementation

PUBLISHED, OURS, UNCOMPILED, PLAIN = "published", "rtx", "rtx, no compiler", "rtx, plain torch"


@dataclass(frozen=True)
class Options:
    """What is asked for.

    Args:
        device: "cpu" or "cuda".
        quick: short sequences and two rounds, to see that everything runs: its ratios say nothing.
        setting: "medium" if the machine's products are as exact with it, else "plain".
        compiled: whether the kernels in C++ can be made here.
    """

    device: str = "cpu"
    quick: bool = False
    setting: str = "plain"
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
        setting: of float32 products, "plain" or "medium".
        times: of such runs make what is compared: 100 where a hundredth of a long work is measured.
        multiply_adds: of a forward pass, if counted.
        memory: whether the run's peak is measured, too.
    """

    name: str
    run: Run
    setting: str = "plain"
    times: float = 1.0
    multiply_adds: int | None = None
    memory: bool = False

    def __call__(self) -> float | None:
        """Run under the setting."""
        with matmul(self.setting):
            return self.run()

    @property
    def key(self) -> str:
        """The name that targets use."""
        return f"{self.name}, medium" if self.setting == "medium" else self.name


@dataclass(frozen=True)
class Target:
    """A quantity of one contender over that of another, and its bound.

    Args:
        text: what it is.
        over, under: keys of contenders, numerator and denominator; without `under` it is the quantity itself.
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
    if options.compiled and having("native", *operations):
        found[UNCOMPILED] = using("fused", run, *operations)
    if having("torch", *operations):
        found[PLAIN] = using("torch", run, *operations)
    return found


def having(name: str, *operations: str) -> list[str]:
    """Those of the operations that have an implementation of that name."""
    return [one for one in operations if one in OPERATIONS and name in OPERATIONS[one].kernels]


def using(name: str, run: Run, *operations: str) -> Run:
    """The run with those of the operations that have an implementation of that name using it."""

    def chosen() -> float | None:
        with implementation(name, *having(name, *operations)):
            return run()

    return chosen


CaseMaker = Callable[[Options], Case]
