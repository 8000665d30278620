"""The R-Transformer's training step, forward and backward, at the four sizes of the paper, beside its peers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from benchmarks import counting
from benchmarks.case import OURS, PLAIN, PUBLISHED, UNCOMPILED, Case, Contender, Options, Target, ways
from benchmarks.measure import Run
from benchmarks.published import PublishedModel, PublishedRTransformer, take_weights
from rtx import LanguageModel, build
from rtx.models import CausalModel
from rtx.tasks import task_by_name
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import IGNORED, Batch, Task
from rtx.training.recipe import load_recipe

ENCODER = "TransformerEncoder"


@dataclass(frozen=True)
class Step:
    """A row of the paper's tables as a training step.

    Args:
        recipe: of the sizes.
        batch: sequences.
        length: T.
        scored: positions whose prediction counts; of a text, the last ones.
        published: bound of the published code's time over ours.
        memory: bound of our peak over the published code's, if there is one.
    """

    recipe: str
    batch: int
    length: int
    scored: int
    published: float
    memory: float | None = None


STEPS = {
    "mnist": Step("mnist", 8, 784, 1, 4.0, memory=0.2),
    "nottingham": Step("nottingham", 1, 256, 256, 1.4),
    "characters": Step("ptb-char", 2, 400, 320, 1.8),
    "words": Step("ptb-word", 16, 80, 40, 2.2),
}
OPERATIONS = ("local_rnn", "causal_attention")
EAGER = 0.6  # share of each bound that must be reached without a compiler
OVERHEAD = 1.2  # over the ratio of multiply-adds


class CausalEncoder(CausalModel):
    """torch's own encoder, causal, as a backbone; positions, which cost next to nothing, are left out."""

    def __init__(self, d_model: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.d_model = d_model
        layer = nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: Float[Tensor, "B T D"], state: object = None) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device, x.dtype)
        return self.encoder(x, mask, is_causal=True)


def training_case(name: str, options: Options) -> Case:
    """The step of that name in `STEPS`, by everyone."""
    step = STEPS[name]
    task = task_by_name(load_recipe(step.recipe).task)
    T, scored = (n if n == 1 else options.size(n, -(-n // 8)) for n in (step.length, step.scored))
    batch = random_batch(task, options.size(step.batch, min(step.batch, 2)), T, scored, options.device)
    contenders = list(_contenders(step, task, batch, options))
    title = f"{name}: training step, R-Transformer {_size(step)}, B = {len(batch.inputs)}, T = {T}"
    counts = {c.name: c.multiply_adds for c in contenders if c.multiply_adds}
    eager = UNCOMPILED if UNCOMPILED in counts else OURS
    return Case(title, contenders, _targets(step, eager, counts[OURS] / counts[ENCODER]))


def random_batch(task: Task, size: int, length: int, scored: int, device: str = "cpu") -> Batch:
    """Sequences of one length as a task's, drawn: what they hold changes no time."""
    draws = torch.Generator().manual_seed(0)
    lengths = torch.full((size,), length)
    if task.per == "token":
        tokens = torch.randint(task.inputs, (size, length + 1), generator=draws)
        targets = tokens[:, 1:].clone()
        targets[:, : length - scored] = IGNORED
        batch = Batch(tokens[:, :-1], targets, lengths)
    elif task.per == "step":
        frames = torch.rand(size, length + 1, task.inputs, generator=draws).lt(0.05).float()
        batch = Batch(frames[:, :-1], frames[:, 1:], lengths)
    else:
        numbers = torch.randn(size, length, task.inputs, generator=draws)
        batch = Batch(numbers, torch.randint(task.outputs, (size,), generator=draws), lengths)
    return Batch(*(part.to(device) for part in batch))


def training_step(task: Task, model: nn.Module, batch: Batch) -> Run:
    """Forward and backward; the gradients are let go, so that each run begins with as much memory."""
    model.train()

    def run() -> None:
        loss = (
            model.loss(batch)
            if isinstance(model, PublishedModel)
            else task.loss(task.predict(model, batch), batch).total
        )
        loss.backward()
        model.zero_grad(set_to_none=True)

    return run


def published_twin(task: Task, sizes: dict[str, Any], ours: nn.Module) -> PublishedModel:
    """The published code of a model from `build`, with its weights."""
    around = {k: sizes[k] for k in ("input_dropout",) if k in sizes}
    backbone = PublishedRTransformer(**{k: v for k, v in sizes.items() if k not in around})
    published = PublishedModel(backbone, task.inputs, task.outputs, task.per, **around)
    take_weights(published, ours)
    return published


def encoder_twin(task: Task, sizes: dict[str, Any]) -> nn.Module:
    """torch's encoder of that size as the task's model."""
    backbone = CausalEncoder(*(sizes[k] for k in ("d_model", "layers", "heads", "dropout")))
    if task.per == "token":
        return LanguageModel(backbone, task.inputs, input_dropout=sizes.get("input_dropout", 0.0))
    return SequenceModel(backbone, task.inputs, task.outputs, task.per)


def _contenders(step: Step, task: Task, batch: Batch, options: Options) -> Iterator[Contender]:
    torch.manual_seed(0)
    sizes, T = _sizes(step, "r-transformer") | {"norm": "pre"}, batch.inputs.shape[1]
    ours = build(task, "r-transformer", **sizes)
    scored = int((batch.targets[0] != IGNORED).sum()) if task.per == "token" else T
    around = counting.around(sizes["d_model"], task.inputs, task.outputs, task.per, T, scored)
    B = len(batch.inputs)
    ours_count, encoders = (B * (count(sizes, T) + around) for count in (counting.r_transformer, counting.transformer))
    whole = counting.around(sizes["d_model"], task.inputs, task.outputs, task.per, T, T)  # decodes every position
    counts = {PUBLISHED: B * (counting.published(sizes, T) + whole), ENCODER: encoders}
    published = published_twin(task, sizes, ours).to(options.device)
    runs = {PUBLISHED: training_step(task, published, batch)}
    runs |= ways(training_step(task, ours.to(options.device), batch), options, *OPERATIONS)
    runs[ENCODER] = training_step(task, encoder_twin(task, sizes).to(options.device), batch)
    for name, run in runs.items():
        yield Contender(name, run, multiply_adds=counts.get(name, ours_count), memory=True)
    for row in ("tcn", "lstm"):
        peer = build(task, row, **_sizes(step, row)).to(options.device)
        name = f"{'TCN' if row == 'tcn' else 'nn.LSTM'} {_layers_and_width(_sizes(step, row))}"
        yield Contender(name, training_step(task, peer, batch), memory=True)


def _targets(step: Step, eager: str, multiply_adds: float) -> list[Target]:
    """Ours, as fast as it can be, and without a compiler."""
    found = [
        Target(f"{OURS} / {ENCODER}", OURS, ENCODER, None, "<=", "multiply_adds"),
        Target(f"{PUBLISHED} / {OURS}", PUBLISHED, OURS, None, ">=", "multiply_adds"),
    ]
    for ours, share, end in ((OURS, 1.0, ""), (eager, EAGER, f" ({EAGER:.0%})")):
        found += [
            Target(f"{PUBLISHED} / {ours}{end}", PUBLISHED, ours, share * step.published),
            Target(f"{ours} / {ENCODER}{end}", ours, ENCODER, OVERHEAD / share * multiply_adds, "<="),
        ]
    if step.memory:
        found += [
            Target(f"{ours} / published", ours, PUBLISHED, step.memory, "<=", "peak") for ours in {OURS: 0, eager: 0}
        ]
    return [*found, Target(f"{PLAIN} / {OURS}", PLAIN, OURS, None)]


def _sizes(step: Step, row: str) -> dict[str, Any]:
    return load_recipe(step.recipe).plan(row).hyperparameters


def _size(step: Step) -> str:
    return _layers_and_width(_sizes(step, "r-transformer"))


def _layers_and_width(sizes: dict[str, Any]) -> str:
    return f"{sizes['layers']}/{sizes['d_model']}"
