"""Whole training runs on a tiny task: chosen by validation, resumed exactly, refused where they do not fit."""

import csv
import signal
from dataclasses import replace
from typing import ClassVar

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only
from run_tiny import InLastValidation
from tiny_recipe import CPU, tiny_text_recipe
from tiny_recipe import TASKS as TINY_TASKS
from torchmetrics import MeanMetric

from rtx.evidence import ledger
from rtx.evidence.ledger import read_result
from rtx.nn import implementation
from rtx.tasks import TASKS, Example, build
from rtx.tasks.losses import perplexity, tokens_measured
from rtx.tasks.task import collate
from rtx.training.checkpoint import load_checkpoint
from rtx.training.evaluate import evaluate
from rtx.training.fit import new_trainee, run_folder
from rtx.training.lock import lock_folder
from rtx.training.recipe import load_recipe
from rtx.training.states import CannotGoOn, Exploded
from rtx.training.survival import Stopped, Survival


def checkpoint(tmp_path, plan, name="a", seed=0):
    return tmp_path / name / "tiny" / f"{plan.model}-{plan.variant}-s{seed}" / "best.safetensors"


def test_a_run_ends_in_the_ledger_with_the_score_of_the_epoch_that_validation_chose(recipe, tiny_task, run, tmp_path):
    plan = recipe.plan("r-transformer")
    result = read_result(run(plan, command="rtx train tiny r-transformer"))
    network = load_checkpoint(checkpoint(tmp_path, plan))
    for split, recorded in (("validation", result.validation), ("test", result.test)):
        batch = collate(tiny_task.split(split), tiny_task.per)
        score = tiny_task.score(tiny_task.predict(network, batch), batch)
        assert score == pytest.approx(recorded, rel=1e-5)
        assert evaluate(checkpoint(tmp_path, plan), split) == {"squared error": pytest.approx(recorded, rel=1e-5)}
    log = (tmp_path / "a/tiny/r-transformer-plain-s0/log/version_0/metrics.csv").read_text().splitlines()
    column = log[0].split(",").index("validation")
    epochs = [float(cell) for line in log[1:] if (cell := line.split(",")[column])]
    assert len(epochs) == 4
    assert result.validation == pytest.approx(min(epochs)) and epochs[result.epoch - 1] == min(epochs)
    assert result.parameters == sum(p.numel() for p in network.parameters())
    assert result.budget is None and result.command == "rtx train tiny r-transformer"


def test_the_same_seed_gives_the_same_run_and_another_seed_another(recipe, run):
    plan = recipe.plan("r-transformer")
    first, again, other = (read_result(run(plan, name, seed=s)) for name, s in (("a", 0), ("b", 0), ("c", 1)))
    assert first.test == again.test != other.test


@pytest.mark.parametrize("best", ["min", "max"])
def test_of_epochs_that_validate_equally_the_first_is_chosen(recipe, tiny_task, run, monkeypatch, best):
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, best=best))
    plan = recipe.plan("gru", overrides={"optimizer": "sgd", "learning_rate": 1e-30})  # nothing is learned
    assert read_result(run(plan)).epoch == 1


def test_parameters_without_a_gradient_are_not_counted(recipe):
    class Unused(Callback):
        def setup(self, trainer, pl_module, stage):
            pl_module.model.unused = torch.nn.Linear(3, 3)

    trainee = new_trainee(recipe.plan("gru"), 0)
    live = sum(p.numel() for p in trainee.model.parameters())
    quiet = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False, **CPU}
    lightning.Trainer(max_epochs=1, callbacks=[Unused()], **quiet).fit(trainee)
    assert trainee.live_parameters == live < sum(p.numel() for p in trainee.model.parameters())


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({"anneal": 0.5, "anneal_every": 1}, [1.0, 0.5, 0.25, 0.125]),
        ({"anneal": 0.5, "patience": 1}, [1.0, 1.0, 1.0, 0.5]),  # epoch 0 sets the mark, 1 is patience, 2 anneals
        ({}, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_the_rate_is_annealed_by_epochs_or_on_a_plateau(recipe, tiny_task, monkeypatch, run, schedule, rates):
    class Rates(Callback):
        seen: ClassVar[list[float]] = []

        def on_train_epoch_start(self, trainer, pl_module):
            self.seen.append(trainer.optimizers[0].param_groups[0]["lr"] / 1e-6)

    Rates.seen = []
    # a rate so small that validation stays where it is
    plan = recipe.plan("gru", overrides={"optimizer": "sgd", "learning_rate": 1e-6, **schedule})
    run(plan, callbacks=[Rates()])
    assert Rates.seen == pytest.approx(rates)


def test_clipping_acts_after_the_backward_pass(recipe, run, tmp_path):
    """One SGD step of rate 1 with clip 0.1 moves the parameters by 0.1, whatever the gradient."""
    moved = {}
    for clip in (0.1, None):
        clipped = {"clip": clip} if clip else {}
        settings = {"optimizer": "sgd", "learning_rate": 1.0, "batch_size": 16, "epochs": 1, **clipped}
        plan = recipe.plan("gru", overrides=settings)
        run(plan, str(clip))
        after = load_checkpoint(checkpoint(tmp_path, plan, str(clip))).state_dict()
        lightning.seed_everything(0, verbose=False)
        before = build("tiny", "gru", d_model=8).state_dict()
        moved[clip] = torch.cat([(after[k] - before[k]).flatten() for k in after]).norm().item()
    assert moved[0.1] == pytest.approx(0.1, rel=1e-3)
    assert moved[None] > 0.2


@pytest.mark.parametrize(
    ("changes", "budget"),
    [
        ({"epochs": 1}, "1 of 4 epochs"),
        ({"limit": 4, "epochs": 1}, "1 of 4 epochs, 4 sequences"),
        ({"limit": 1000}, None),  # there are 16
        ({"seconds": 0.001, "batch_size": 1}, "0.001 seconds, 0 of 4 epochs"),
        ({"epochs": 50, "learning_rate": 3.0, "stop_after": 1}, None),  # an early stop is the recipe's own
    ],
)
def test_the_budget_says_what_cut_a_run_short(recipe, run, changes, budget):
    result = read_result(run(recipe.plan("gru", overrides=changes)))
    assert result.budget == budget and result.epoch >= 1


def test_a_run_that_stops_itself_in_its_last_allowed_epoch_is_not_cut(recipe, run):
    plan = recipe.plan("gru", overrides={"stop_at": 1e9})  # any score is good enough
    assert read_result(run(plan, epochs=1)).budget is None
    assert read_result(run(plan, epochs=1, resume=True)).budget is None


def test_a_run_does_not_go_on_with_other_data(recipe, tiny_task, run, monkeypatch):
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, sha256=lambda: "a" * 64))
    run(recipe.plan("gru"), epochs=1)
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, sha256=lambda: "b" * 64))
    with pytest.raises(CannotGoOn, match="^resume: .*tiny"):
        run(recipe.plan("gru"), resume=True)


@pytest.mark.parametrize(("best", "epochs"), [("min", 5), ("max", 3)])
def test_a_run_ends_after_so_many_epochs_without_a_better_score(
    recipe, tiny_task, run, monkeypatch, tmp_path, best, epochs
):
    """It learns, so the error falls in each epoch: who wants it low goes on, who wants it high has had the best."""
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, best=best))
    plan = recipe.plan("gru", overrides={"epochs": 5, "stop_after": 2})
    run(plan)
    last = torch.load(checkpoint(tmp_path, plan).with_name("last.ckpt"), weights_only=True)
    assert last["epoch"] == epochs  # epochs done


class Interrupted(Callback):
    """Types Ctrl-C, or sends another signal."""

    def __init__(self, where, number=signal.SIGINT):
        setattr(self, where, lambda *_, **__: signal.raise_signal(number))


@pytest.fixture
def not_deaf():
    """A process that a shell put in the background without job control was born deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def end_time(trainer):
    next(one for one in trainer.callbacks if isinstance(one, Survival)).stop_at = 0.0


class Late(Callback):
    """The time is over in the last validation."""

    def on_validation_start(self, trainer, *_):
        if trainer.current_epoch == trainer.max_epochs - 1:
            end_time(trainer)


@pytest.mark.usefixtures("not_deaf")
@pytest.mark.parametrize(
    ("callback", "code"),
    [
        (lambda: Interrupted("setup"), 130),
        (lambda: Interrupted("on_train_end", signal.SIGTERM), 143),
        (lambda: Interrupted("on_test_batch_start", signal.SIGTERM), 143),
        (InLastValidation, 143),
        (Late, 124),
    ],
)
def test_a_run_that_is_stopped_anywhere_can_be_resumed(recipe, run, monkeypatch, callback, code):
    monkeypatch.setattr("rtx.training.evaluate.AT_ONCE", 4)  # Lightning looks for signals between batches
    plan, before = recipe.plan("gru", overrides={"epochs": 2}), signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped, match="gru-plain.*-s0") as stop:
        run(plan, callbacks=[callback()], max_seconds=3600)
    assert stop.value.code == code and signal.getsignal(signal.SIGINT) is before
    assert score(run(plan, resume=True)) == score(run(plan, "b"))


def test_a_run_holds_its_folder_until_the_ledger_has_it(recipe, run, tmp_path, monkeypatch):
    def write(*arguments):
        with pytest.raises(CannotGoOn, match="gru-plain-s0"), lock_folder(run_folder(plan, 0, tmp_path / "a")):
            pass
        return write_result(*arguments)

    plan, write_result = recipe.plan("gru"), ledger.write_result
    monkeypatch.setattr(ledger, "write_result", write)
    assert run(plan).exists()


def test_a_run_that_could_not_be_entered_is_not_begun_afresh(recipe, run, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    plan = recipe.plan("gru")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(ledger, "write_result", full)
        run(plan)
    with pytest.raises(ValueError, match="gru-plain-s0 .*--resume"):
        run(plan)
    assert run(plan, resume=True).exists()


@pytest.mark.usefixtures("not_deaf")
def test_an_interrupt_while_a_task_measures_stops_the_run_so_that_it_can_go_on(recipe, tiny_task, run, monkeypatch):
    def examine(model, split, limit):
        heard.append(split)
        if len(heard) == 1:
            signal.raise_signal(signal.SIGINT)
        return {"squared error": 1.0}

    heard: list[str] = []
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examine=examine))
    with pytest.raises(Stopped, match="gru-plain-s0") as stop:
        run(recipe.plan("gru"))
    assert stop.value.code == 130
    assert read_result(run(recipe.plan("gru"), resume=True)).details == {"squared error": 1.0}


@pytest.mark.parametrize(
    ("precision", "autocast", "weights"),
    [
        ("32-true", False, torch.float32),
        ("bf16-mixed", True, torch.float32),
        ("bf16-true", False, torch.bfloat16),
    ],
)
def test_a_task_measures_as_the_training_computed(recipe, tiny_task, run, monkeypatch, precision, autocast, weights):
    def examine(model, split, limit):
        x = next(model.parameters())
        seen.append((x.dtype, str(x.device), torch.is_autocast_enabled("cpu"), model.training, torch.is_grad_enabled()))
        read.append((split, limit))
        return {"squared error": 1.0}

    seen: list[tuple[object, ...]] = []
    read: list[tuple[str, int | None]] = []
    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examine=examine))
    run(recipe.plan("gru", overrides={"limit_evaluation": 5}), precision=precision)
    assert seen == [(weights, "cpu", autocast, False, False)] and read == [("test", 5)]


def score(path):
    found = read_result(path)
    return found.epoch, found.validation, found.test


@pytest.mark.parametrize(
    ("name", "value"), [("epochs", 0), ("epochs", 1.5), ("epochs", True), ("seed", 2**70), ("seed", -1), ("seed", 0.5)]
)
def test_a_bad_number_is_refused_by_its_name(recipe, run, name, value):
    with pytest.raises(ValueError, match=f"^{name}: .*{value}"):
        run(recipe.plan("gru"), **{name: value}, max_seconds=0.0)


@pytest.mark.parametrize("sizes", [{"d_model": -3}, {"d_model": "abc"}, {"heads": 7}])
def test_a_model_that_cannot_be_built_leaves_no_folder(recipe, run, tmp_path, sizes):
    plan = recipe.plan("r-transformer", overrides=sizes)
    with pytest.raises(ValueError, match="d_model: expected|heads: expected"):
        run(plan)
    assert [*(tmp_path / "a" / "tiny").iterdir()] == []


class StopInEpoch2(Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.current_epoch, batch_idx) == (1, 1):
            end_time(trainer)


def test_a_finished_run_that_went_on_and_was_stopped_is_not_begun_afresh(recipe, run):
    plan = recipe.plan("gru")
    run(plan, epochs=1)
    with pytest.raises(Stopped, match="of epoch 2"):
        run(plan, resume=True, callbacks=[StopInEpoch2()])
    with pytest.raises(ValueError, match="gru-plain-s0 .*--resume"):
        run(plan)
    assert score(run(plan, resume=True)) == score(run(plan, "b"))


def test_the_epoch_that_a_run_was_stopped_in_counts(recipe, run):
    plan = recipe.plan("gru", overrides={"epochs": 4})
    with pytest.raises(Stopped, match="of epoch 2"):
        run(plan, callbacks=[StopInEpoch2()])
    with pytest.raises(ValueError, match="^epochs: .*2.*1"):
        run(plan, epochs=1, resume=True)
    assert read_result(run(plan, epochs=2, resume=True)).budget == "2 of 4 epochs"


def test_a_run_cannot_go_on_as_another_model_to_fewer_epochs_or_in_another_precision(recipe, run, tmp_path):
    plan = recipe.plan("gru", overrides={"epochs": 5})
    run(plan, epochs=4)
    last = checkpoint(tmp_path, plan).with_name("last.ckpt")
    before = last.read_bytes()
    with pytest.raises(ValueError, match="^epochs: .*4.*3"):
        run(plan, epochs=3, resume=True)
    with pytest.raises(ValueError, match="^resume: .*precision.*32-true.*bf16-mixed"):
        run(plan, resume=True, precision="bf16-mixed")
    with pytest.raises(ValueError, match="^resume: d_model: 8 .*16 "):
        run(replace(plan, hyperparameters={"d_model": 16}), resume=True)
    assert last.read_bytes() == before
    assert read_result(run(plan, epochs=4, resume=True)).budget == "4 of 5 epochs"
    assert read_result(run(plan, resume=True)).budget is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_in_the_data_stops_the_run_and_writes_nothing(recipe, tiny_task, run, monkeypatch, tmp_path, bad):
    def broken(split):
        return [Example(torch.full_like(e.inputs, bad), e.target) for e in tiny_task.split(split)]

    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=broken))
    with pytest.raises(ValueError, match=r"inputs: expected finite numbers, got 24 NaN or infinite, the first at \(0,"):
        run(recipe.plan("gru"))
    assert not (tmp_path / "a" / "results").exists()


def test_predictions_that_are_nan_end_the_run_where_they_would_count_as_wrong_answers(run, tmp_path):
    """The last update's weights are finite, what they predict is not: no later step would show it."""
    settings = {"optimizer": "sgd", "learning_rate": 1e30, "limit": 32, "epochs": 1}
    plan = load_recipe("mnist").plan("tcn", overrides=settings, scale="quick")
    with pytest.raises(ValueError, match="^validation: .*nan.* 1"):
        run(plan)
    assert not (tmp_path / "a" / "results").exists()


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize(("split", "message"), [("validation", r" 4.*last\.ckpt"), ("test", "")])
def test_a_score_that_is_not_finite_in_one_batch_ends_the_run_without_a_result(
    recipe, tiny_task, run, monkeypatch, tmp_path, split, message, bad
):
    def broken(asked):
        first, *others = tiny_task.split(asked)
        return [Example(first.inputs, first.target.clone().fill_(float(bad))) if asked == split else first, *others]

    monkeypatch.setitem(TASKS, "tiny", lambda: replace(tiny_task, examples=broken))
    with pytest.raises(Exploded, match=f"^{split}: .*{bad}.*{message}"):
        run(recipe.plan("gru", overrides={"stop_after": 1}))
    assert not (tmp_path / "a" / "results").exists()


def test_a_sum_is_as_many_times_the_mean_as_frames_are_scored(recipe, run, tmp_path):
    weights = []
    for reduction, rate in (("mean", 0.01), ("sum", 0.01 / 96)):  # 16 sequences of 6 numbers
        settings = {"optimizer": "sgd", "batch_size": 16, "reduction": reduction, "learning_rate": rate}
        plan = recipe.plan("gru", overrides=settings)
        run(plan)
        weights.append(load_checkpoint(checkpoint(tmp_path, plan)).state_dict())
    torch.testing.assert_close(*weights)


@pytest.mark.filterwarnings("ignore:.*fp16 is not supported on CPU")
def test_a_precision_that_the_device_has_not_is_refused_and_not_replaced(recipe, run, tmp_path):
    with pytest.raises(ValueError, match="^precision: 16-mixed .*cpu.*bf16-mixed"):
        run(recipe.plan("r-transformer"), precision="16-mixed")
    assert not (tmp_path / "a" / "results").exists()


@pytest.mark.parametrize("precision", ["bf16-true", "64-true"])
def test_scores_are_summed_in_float32_whatever_the_model_computes_in(run, monkeypatch, precision):
    """In bfloat16 a sum of batches would stop growing after a few hundred."""
    task = replace(TINY_TASKS["tiny-text"](), scorer=perplexity, measured=tokens_measured)
    monkeypatch.setitem(TASKS, "tiny-text", lambda: task)
    summed = []

    class Watch(Callback):
        def on_test_batch_end(self, trainer, pl_module, *_):
            inside = [one for one in pl_module.test.modules() if isinstance(one, MeanMetric)]  # e to its power
            summed.extend(one.mean_value.dtype for one in inside)

    plan = tiny_text_recipe().plan("lstm")
    run(plan, precision=precision, callbacks=[Watch()])
    assert set(summed) == {torch.float32}


def test_a_run_that_other_code_began_is_not_of_a_clean_commit(recipe, run, monkeypatch):
    plan = recipe.plan("gru")
    for commit, epochs in (("a-dirty", 2), ("b", 3), ("c", 4)):
        monkeypatch.setattr("rtx.training.fit.commit", lambda found=commit: found)
        path = run(plan, epochs=epochs, resume=epochs > 2)
    assert read_result(path).commit == "c-dirty"


@pytest.mark.slow
def test_without_a_compiler_a_run_goes_on_and_says_so(recipe, run, caplog):
    from torch._inductor import config

    plan = recipe.plan("gru", overrides={"epochs": 1})
    torch._dynamo.reset()
    with config.patch({"cpp.cxx": (None, "/no/compiler")}):
        compiled = read_result(run(plan, "a", compiled=True))
    assert compiled.test == read_result(run(plan, "b")).test
    assert "/no/compiler" in caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_a_compiled_run_gets_the_same_numbers(recipe, run, tmp_path, caplog):
    torch._dynamo.reset()
    plan = recipe.plan("gru", overrides={"epochs": 1})
    compiled, plain = read_result(run(plan, "a", compiled=True)), read_result(run(plan, "b"))
    assert compiled.test == pytest.approx(plain.test, rel=1e-4)
    assert "compiler" not in caplog.text
    assert torch._dynamo.utils.counters["frames"]["ok"] > 0
    load_checkpoint(checkpoint(tmp_path, plan, "a"))  # its names are those of an uncompiled model


def test_the_logs_hold_every_epochs_validation_also_of_a_resumed_run(recipe, run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    plan = recipe.plan("gru")
    run(plan, epochs=2)
    run(plan, resume=True)
    logs = checkpoint(tmp_path, plan).parent
    seen = EventAccumulator(str(logs / "tensorboard")).Reload().Scalars("validation")
    seen.sort(key=lambda event: event.step)  # files of one second are read in the order of their names
    table = []
    for part in ("version_0", "version_1"):
        rows = list(csv.DictReader((logs / "log" / part / "metrics.csv").open()))
        table += [float(row["validation"]) for row in rows if row["validation"]]
    assert len(table) == 4
    assert [event.value for event in seen] == pytest.approx(table)
    assert [event.step for event in seen] == [3, 7, 11, 15]


def test_a_run_that_a_cluster_numbered_is_one_process_and_writes_its_logs(recipe, run, tmp_path, monkeypatch):
    for name, value in {"NTASKS": 4, "NTASKS_PER_NODE": 4, "PROCID": 1, "LOCALID": 1, "NODEID": 0, "JOB_ID": 7}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    monkeypatch.setattr(rank_zero_only, "rank", 1)  # as Lightning reads it from these variables when it is imported
    run(recipe.plan("r-transformer"))
    assert (tmp_path / "a/tiny/r-transformer-plain-s0/log/version_0/metrics.csv").exists()


def test_fewer_seconds_than_the_recipe_has_are_a_budget(recipe, run):
    asked = replace(recipe, variants=recipe.variants | {"plain": recipe.variants["plain"] | {"seconds": 60}})
    cut = asked.plan("gru", overrides={"seconds": 0.5, "epochs": 100_000})
    assert read_result(run(cut, "a")).budget == "0.5 of 60 seconds"
    assert read_result(run(asked.plan("gru"), "b")).budget is None  # four epochs end it before


def test_bfloat16_trains_float32_weights(recipe, run, tmp_path):
    plan = recipe.plan("r-transformer")
    with implementation("blocks"):  # the C++ attention is for float32 only, and draws other dropout masks
        full, half = read_result(run(plan, "full")), read_result(run(plan, "half", precision="bf16-mixed"))
    assert half.test == pytest.approx(full.test, rel=0.1) and half.test != full.test
    network = load_checkpoint(checkpoint(tmp_path, plan, "half"))
    assert {p.dtype for p in network.parameters()} == {torch.float32}
