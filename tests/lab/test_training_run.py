"""A run beside the notebook gives the numbers of `rtx train`, leaves the notebook's draws alone, can be looked into."""

import itertools
import threading
from pathlib import Path

import pytest
import torch

from rtx import build
from rtx.lab import background, trace
from rtx.lab.choice import BUNDLED, Choice, rows
from rtx.lab.learning import learn
from rtx.lab.look import look
from rtx.lab.training_run import LOOKS, TrainingRun
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Task

SHORT = {"epochs": 2, "limit": 96, "limit_evaluation": 40}
DROPPED = Choice("mnist", "r-transformer", overrides={**SHORT, "dropout": 0.3}, seed=3)


def trained(choice: Choice) -> TrainingRun:
    run = TrainingRun(choice)
    run.start()
    run.wait()
    assert run.state == "finished", run.error
    return run


@pytest.fixture(scope="module")
def undisturbed() -> TrainingRun:
    return trained(DROPPED)


@pytest.mark.slow
def test_the_numbers_are_those_of_rtx_train(undisturbed: TrainingRun, tmp_path: Path) -> None:
    from rtx.training.fit import fit

    run = undisturbed
    done = fit(DROPPED.plan(), DROPPED.seed, tmp_path, enable_progress_bar=False)
    best = max if run.task.best == "max" else min
    assert best(score for _, score in run.validations) == done.validation
    for mine, theirs in zip(run.model.state_dict().values(), done.trainee.model.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert len(run.losses) == run.steps == 6


def test_a_pause_changes_no_number_and_the_run_leaves_the_notebooks_draws_alone(undisturbed: TrainingRun) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    run = TrainingRun(DROPPED)
    run.watch = lambda: run.pause() if run.losses and run.state == "running" else run.resume()
    run.start()
    run.wait()
    assert run.losses == undisturbed.losses
    assert torch.equal(torch.get_rng_state(), before)


def test_of_many_looks_some_are_kept_from_the_first_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "EVERY", 0.0)
    run = trained(Choice("mnist", "gru", overrides={**SHORT, "epochs": 1}))
    for _ in range(19):
        run.losses += [1.0] * 10
        run.look()
    kept = [update for update, _ in run.looks]
    assert len(kept) == LOOKS and kept == sorted(kept)
    assert (kept[0], kept[-1]) == (0, len(run.losses))
    assert max(b - a for a, b in itertools.pairwise(kept)) < 100


def test_a_stopped_run_leaves_no_thread_and_keeps_its_model() -> None:
    run = TrainingRun(Choice("ffa-add", "attention-50"))
    grown = threading.Event()
    run.watch = lambda: grown.set() if run.losses else None
    run.start()
    assert grown.wait(60)
    run.stop()
    assert run.state == "stopped" and 0 < len(run.losses) < run.steps
    assert run.model is not None and [t for t in threading.enumerate() if t.name.startswith("rtx")] == []


def test_the_probe_is_scored_as_validation_is() -> None:
    overrides = {**SHORT, "limit_evaluation": 32}
    run = trained(Choice("mnist", "gru", overrides=overrides))
    run.look()
    updates, score = run.probes[-1]
    assert updates == 6 and score == pytest.approx(max(s for _, s in run.validations))


def test_batches_that_are_learned_go_where_the_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(_: Task, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        raise LookupError(*(part.device.type for part in batch))

    monkeypatch.setattr(Task, "predict", predict)
    with pytest.raises(LookupError) as read:
        next(learn(task_by_name("add", length=20, size=300), torch.nn.Linear(1, 1, device="meta"), 0.01))
    assert read.value.args == ("meta",) * 3


def test_learning_by_hand_gives_the_same_losses() -> None:
    task = task_by_name("add", length=20, size=300)

    def model() -> torch.nn.Module:
        torch.manual_seed(0)
        return build(task, "feed-forward-attention", leak="coded")

    mine, found = model(), []
    optimizer = torch.optim.Adam(mine.parameters(), lr=0.01)
    batches = loader(task, "train", 100, seed=4)
    for epoch in range(2):
        batches.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]
        for inputs, targets, lengths in batches:
            loss = (mine(inputs, lengths) - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norm = torch.sqrt(sum(p.grad.square().sum() for p in mine.parameters()))
            for p in mine.parameters():
                p.grad *= min(1.0, 0.1 / norm)
            optimizer.step()
            found.append(loss.item())
    theirs = learn(task, model(), 0.01, 100, clip=0.1, seed=4)
    assert [next(theirs) for _ in range(6)] == pytest.approx(found, rel=1e-4)
    with pytest.raises(ValueError, match="loss: became .* learning_rate"):
        list(learn(task, model(), 1e30))
    with pytest.raises(ValueError, match="clip: .* -1"):  # it would lead uphill
        next(learn(task, model(), 0.01, clip=-1.0))


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_row_can_be_looked_into(name: str) -> None:
    plans = [Choice(BUNDLED[name], row).plan() for row in rows(BUNDLED[name], "quick")]
    task = task_by_name(plans[0].task, **plans[0].task_arguments)
    batch = next(iter(loader(task, "validation", 2)))
    for plan in plans:
        model = build(task, plan.model, **plan.hyperparameters)
        seen = look(task, model, batch)
        assert seen.values.ndim == 2 and bool(seen.values.isfinite().all()) and seen.title
        if "attention" in seen.title or "where it looks" in seen.title or "share" in seen.title:
            torch.testing.assert_close(seen.values.sum(1), torch.ones(len(seen.values)), rtol=1e-4, atol=1e-4)


def test_what_is_seen_of_a_transformer_is_its_last_attention() -> None:
    task = task_by_name("digits")
    torch.manual_seed(0)
    model = build(task, "transformer", d_model=8, layers=2, heads=2)
    batch = next(iter(loader(task, "validation", 2)))
    seen = look(task, model, batch)
    assert seen.values.shape == (64, 64)
    assert bool((seen.values.triu(1) == 0).all())
    heads = [v for k, v in trace(model, batch.inputs[:1]).items() if k.endswith("weights")]
    torch.testing.assert_close(seen.values, (heads[-1][0, 0] + heads[-1][0, 1]) / 2)
