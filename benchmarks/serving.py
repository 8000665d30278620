"""What a user waits for besides training: streams, generated text, evaluation, and the import."""

import subprocess
import sys
from functools import partial

import torch
from torch import nn

from benchmarks.case import Case, Contender, Options, Target
from rtx import LanguageModel, build
from rtx.nn.streaming import State
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader
from rtx.tasks.music import piano_roll_task
from rtx.training.recipe import load_recipe

IMPORT = "import sys, time, torch; t = time.process_time(); import rtx; print(1000 * (time.process_time() - t))"
STEPS = 10  # of a stream, in one run
PARTS = 10  # prefixes that stand for all


def streaming(options: Options) -> Case:
    """A step of the character model late in a stream beside an early one."""
    early, late = options.size(100, 10), options.size(5000, 100)
    model = _character_model(options)
    contenders = [Contender(f"{STEPS} steps at t = {t}", _Stream(model, t, options.device)) for t in (early, late)]
    first, second = (c.name for c in contenders)
    target = Target(f"a step at t = {late} / at t = {early}", second, first, None, "<=")
    return Case("streaming: R-Transformer 3/512, one step", contenders, [target], [_bytes_read(model, early, late)])


def _bytes_read(model: LanguageModel, early: int, late: int) -> str:
    """What a step of one stream cannot do without: every weight, and the keys and values of all that it has read."""
    weights = sum(p.nbytes for p in model.parameters())
    layers, D = load_recipe("ptb-char").plan("r-transformer").hyperparameters["layers"], model.embedding.embedding_dim
    first, second = (weights + 2 * t * layers * D * 4 for t in (early, late))  # float32
    return (
        f"A step of the stream reads each weight once, and the keys and values of its past: {first / 1e6:.3g} MB at "
        f"t = {early}, {second / 1e6:.3g} MB at t = {late}, {second / first:.3g} times as much. Where memory is the "
        "bound, that is the ratio of the times."
    )


def generation(options: Options) -> Case:
    """1,000 characters from the stream beside reading the whole prefix for each."""
    tokens = options.size(1000, 50)
    model = _character_model(options)
    prompt = torch.zeros(1, 1, dtype=torch.long, device=options.device)

    def stream() -> None:
        model.generate(prompt, tokens)

    # the middle one of each tenth of the prefixes
    prefixes = [prompt.expand(1, tokens * (2 * i + 1) // (2 * PARTS)) for i in range(PARTS)]

    @torch.no_grad()
    def recompute() -> None:
        for prefix in prefixes:
            model(prefix)

    again = Contender("the prefix for each", recompute, times=tokens / PARTS)
    target = Target("the prefix for each / stream", again.name, "stream", 20)
    note = f"The prefix for each: {PARTS} prefixes, evenly spread, are measured and counted {tokens // PARTS} times."
    title = f"generation: R-Transformer 3/512, {tokens:,} characters"
    return Case(title, [Contender("stream", stream), again], [target], [note], rounds=3)


def evaluation(options: Options) -> Case:
    """Scoring tunes of many lengths in batches of about one length, beside batches as they come."""
    tunes = options.size(96, 8)
    draws = torch.Generator().manual_seed(0)
    lengths = torch.empty(tunes).log_normal_(5.3, 0.6, generator=draws).long().clamp(2, options.size(1800, 60))
    rolls = [torch.rand(int(n), 88, generator=draws).lt(0.05).numpy() for n in lengths]
    task = piano_roll_task("drawn", lambda: {"test": rolls})
    sizes = load_recipe("nottingham").plan("r-transformer").hyperparameters
    model = build(task, "r-transformer", **sizes).eval().to(options.device)

    @torch.no_grad()
    def score(order: str) -> None:
        for batch in loader(task, "test", 16, order=order):
            model(batch.inputs.to(options.device), batch.lengths.to(options.device))

    contenders = [
        Contender(name, partial(score, order))
        for name, order in (("by length", "by length"), ("as they come", "as it is"))
    ]
    target = Target("as they come / by length", "as they come", "by length", 1.0)
    title = f"evaluation: R-Transformer 3/160 on {tunes} drawn tunes, {int(lengths.min())}-{int(lengths.max())} frames"
    return Case(title, contenders, [target], rounds=3)


def importing(options: Options) -> Case:
    """`import rtx` behind `import torch`, in new processes."""

    def run() -> float:
        done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        return float(done.stdout)

    target = Target("import rtx, ms beyond import torch", "import rtx", None, 300, "<=")
    return Case("import: rtx beyond torch", [Contender("import rtx", run)], [target])


class _Stream:
    """A stream that has read `start` tokens; each call reads ten more, as streams do."""

    def __init__(self, model: LanguageModel, start: int, device: str) -> None:
        self.model, self.token = model, torch.zeros(1, dtype=torch.long, device=device)
        self.state: State | None = None
        self._read(start)

    def __call__(self) -> None:
        self._read(STEPS)

    @torch.no_grad()
    def _read(self, steps: int) -> None:
        for _ in range(steps):
            _, self.state = self.model.step(self.token, self.state)


def _character_model(options: Options) -> LanguageModel:
    torch.manual_seed(0)
    sizes = load_recipe("ptb-char").plan("r-transformer").hyperparameters
    if options.quick:
        sizes = sizes | {"d_model": 64}
    model: nn.Module = build(task_by_name("ptb-char"), "r-transformer", **sizes)
    assert isinstance(model, LanguageModel)
    return model.eval().to(options.device)
