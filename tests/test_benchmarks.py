"""The benchmark: its peers are the same functions as ours, its measures measure, its table and figure read its file."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import rtx
from benchmarks import counting, layers, report, training
from benchmarks.__main__ import main
from benchmarks.case import Case, Contender, Options, Target, ways
from benchmarks.cases import CASES
from benchmarks.measure import MIB, interleaved, paired_ratio, peak_memory
from benchmarks.published import PlainFeedForwardAttention, take_weights
from benchmarks.training import CausalEncoder, published_twin, random_batch
from rtx.nn.ops import OPERATIONS, implementation
from rtx.nn.ops.dispatch import Implementation, Operation
from rtx.tasks import task_by_name

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "cpu.json"
SIZES = {"d_model": 12, "layers": 2, "heads": 3}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Runs the command in this process, whose threads it changes."""
    threads = torch.get_num_threads()

    def run(*flags: str | Path) -> None:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, flags)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, f"exit code {ended.value.code}"

    yield run
    torch.set_num_threads(threads)


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


# The peers


@pytest.mark.parametrize(
    ("task", "cell", "window", "local_layers", "norm"),
    [("digits", "gru", 7, 2, "pre"), ("nottingham", "rnn", 1, 1, "post"), ("characters", "lstm", 9, 1, "post")],
)
def test_the_published_code_is_the_same_function(
    task: str, cell: str, window: int, local_layers: int, norm: str
) -> None:
    torch.manual_seed(0)
    sizes = SIZES | {"cell": cell, "window": window, "local_layers": local_layers, "norm": norm}
    drawn_as = task_by_name(task)
    ours = rtx.build(drawn_as, "r-transformer", **sizes).double()
    published = published_twin(drawn_as, sizes, ours).double()
    batch = random_batch(drawn_as, 3, 7, 4)
    if batch.inputs.is_floating_point():
        batch = batch._replace(inputs=batch.inputs.double())
    if drawn_as.per == "step":
        batch = batch._replace(targets=batch.targets.double())
    expected = drawn_as.loss(drawn_as.predict(ours, batch), batch).total
    found = published.loss(batch)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    expected.backward(), found.backward()
    theirs = {name.replace(".rnn.", ".").replace("decoder.", "head."): g for name, g in gradients(published).items()}
    mine = {name.replace("decoder.", "head."): g for name, g in gradients(ours).items()}
    assert len(mine) == len(gradients(ours)) > 20
    for name, gradient in mine.items():
        torch.testing.assert_close(theirs[name], gradient, rtol=1e-9, atol=1e-10)


def test_plain_feed_forward_attention_is_the_same_function() -> None:
    torch.manual_seed(0)
    ours, plain = rtx.FeedForwardAttention(d_hidden=5, leak="coded").double(), PlainFeedForwardAttention(d_hidden=5)
    take_weights(plain.double(), ours)
    x, lengths = torch.randn(3, 11, 2, dtype=torch.float64), torch.tensor([11, 1, 6])
    for given in (None, lengths):
        torch.testing.assert_close(plain(x, given), ours(x, given), rtol=1e-10, atol=1e-10)


def test_torchs_encoder_is_causal() -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(12, 2, 3, 0.0).eval()
    x = torch.randn(1, 9, 12)
    changed = torch.cat([x[:, :5], torch.randn(1, 4, 12)], 1)
    torch.testing.assert_close(encoder(changed)[:, :5], encoder(x)[:, :5])
    assert not torch.allclose(encoder(changed)[:, 5:], encoder(x)[:, 5:])


def test_ours_runs_in_each_way_that_an_operation_of_the_case_has() -> None:
    def operation(name: str, *implementations: str) -> Operation:
        return Operation(name, {impl: Implementation(lambda impl=impl: impl) for impl in implementations})

    three, two = operation("three", "native", "blocks", "torch"), operation("two", "native", "torch")
    seen = []
    try:
        for compiled in (True, False):
            found = ways(lambda: seen.append((three(), two())), Options(compiled=compiled), "three", "two", "unknown")
            for run in found.values():
                run()
        assert list(ways(print, Options())) == ["rtx"]
    finally:
        del OPERATIONS["three"], OPERATIONS["two"]
    plain = ("torch", "torch")
    assert seen == [("native", "native"), ("blocks", "torch"), plain, ("native", "native"), plain]


def test_the_cases_name_operations_that_there_are() -> None:
    assert {*training.OPERATIONS, *layers.POOLING} <= set(OPERATIONS)


# What is counted


def counted(model: nn.Module, x: torch.Tensor) -> float:
    """Multiply-adds by torch's counter, which sees torch's products only, and not those of oneDNN's float32 LSTM."""
    counter = FlopCounterMode(display=False)
    model, x = model.double(), x.double() if x.is_floating_point() else x
    with counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH), implementation("torch"):
        model(x)
    return counter.get_total_flops() / 2


def test_the_formulas_of_the_models_are_what_torch_counts() -> None:
    x = torch.randn(1, 10, 12)
    for cell, window, local_layers in (("gru", 7, 2), ("lstm", 9, 1), ("rnn", 1, 1)):
        sizes = SIZES | {"cell": cell, "window": window, "local_layers": local_layers}
        assert counting.r_transformer(sizes, 10, causal=False) == counted(rtx.RTransformer(**sizes), x)  # type: ignore[arg-type]
    assert counting.transformer(SIZES, 10, causal=False) == counted(CausalEncoder(12, 2, 3, 0.0), x)
    assert counting.lstm(12, 10) == counted(rtx.RNN(12, cell="lstm"), x)
    assert counting.mc_rnn(12, 10, 4) == counted(rtx.MCRNN(12, block=4), x)
    saved = counting.attention(12, 10, causal=False) - counting.attention(12, 10)
    assert saved == 2 * 12 * sum(range(10))  # a causal query has 9 … 0 keys behind it


@pytest.mark.parametrize(("name", "cell"), [("digits", "gru"), ("nottingham", "lstm"), ("characters", "gru")])
def test_the_formulas_of_embedding_and_head_and_of_the_published_code_are_what_torch_counts(
    name: str, cell: str
) -> None:
    task, sizes = task_by_name(name), SIZES | {"cell": cell, "window": 3}
    model, batch = rtx.build(task, "r-transformer", **sizes), random_batch(task, 1, 10, 10)
    around = counting.around(12, task.inputs, task.outputs, task.per, 10, 10)
    assert counting.r_transformer(sizes, 10, causal=False) + around == counted(model, batch.inputs)
    published = published_twin(task, sizes, rtx.build(task, "r-transformer", **sizes))
    assert counting.published(sizes, 10) + around == counted(published, batch.inputs)


def test_the_bound_of_the_ratio_is_the_published_codes_time_over_that_of_our_products() -> None:
    published = {"name": "published", "processor_ms": 60.0, "multiply_adds_g": 9.0}
    ours = {"name": "rtx", "processor_ms": 30.0, "multiply_adds_g": 1.0}
    case = {"rows": [published, ours], "targets": []}
    best = {"products, GFLOP/s": 300.0}  # 6 GFLOP take 20 ms
    counting.add_bound(case, best, "processor")
    assert [t["value"] for t in case["targets"]] == [pytest.approx(3.0)]
    assert report.verdict(case["targets"][0]) == "" and "20 ms at 300 GFLOP/s" in case["targets"][0]["text"]
    other = {"rows": [ours], "targets": []}
    counting.add_bound(other, best, "processor")
    assert other["targets"] == []


# What is measured


def test_peak_memory_is_what_is_held_at_once() -> None:
    kept = torch.zeros(MIB)

    def run() -> None:
        first = kept + 1  # 4 MiB
        second = first * 2  # 8
        del first
        second.add_(1)
        third = second[: MIB // 2] + 1  # 4 + 2
        del third

    assert peak_memory(run) == pytest.approx(8, abs=0.01)


def test_contenders_run_in_turn_and_the_first_run_does_not_count() -> None:
    seen: list[str] = []

    def runs() -> Iterator[None]:
        for name in "abc":
            yield lambda name=name: seen.append(name)  # type: ignore[misc]

    timings = interleaved(list(runs()), rounds=3, seconds=0)  # type: ignore[arg-type]
    assert "".join(seen) == "abc" + "abc" + "cba" + "abc"
    assert all(len(t.wall) == len(t.processor) == 3 for t in timings)
    (timing,) = interleaved([lambda: 12.5], rounds=2, seconds=0)  # a run may time itself
    assert timing.processor == timing.wall == [12.5, 12.5] and timing.first == 0.0125
    assert paired_ratio([2, 20, 2], [1, 10, 8]) == 2  # the median of the rounds: two of them were disturbed


def test_a_contender_runs_in_float32_that_cudnn_does_not_round() -> None:
    seen = []
    Contender("one", lambda: seen.append(torch.backends.cudnn.allow_tf32))()
    assert seen == [False] and torch.backends.cudnn.allow_tf32


# The table and the figure


def test_targets_are_ratios_differences_and_values_and_need_their_contenders() -> None:
    def contender(name: str, milliseconds: float) -> Contender:
        return Contender(name, lambda: milliseconds, times=10, multiply_adds=int(milliseconds))

    targets = [
        Target("ratio", "slow", "fast", 2),
        Target("difference", "slow", "fast", 2, difference=True),
        Target("value", "slow", None, 50, "<="),
        Target("counts", "slow", "fast", None, quantity="multiply_adds"),
        Target("left out", "slow", "compiled", 2),
    ]
    case = Case("two", [contender("slow", 6), contender("fast", 2)], targets)
    found = report.measured(case, "processor", 2, 0.0, "cpu")
    assert {t["text"]: t["value"] for t in found["targets"]} == {"ratio": 3, "difference": 40, "value": 60, "counts": 3}
    assert [report.verdict(t) for t in found["targets"]] == ["met", "met", "not met", ""]
    assert [row["processor_ms"] for row in found["rows"]] == [60, 20]


@pytest.mark.slow
def test_a_quick_run_writes_a_file_and_the_table_shows_what_it_holds(
    bench: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cpu.json"
    names = ("mc-rnn", "memory")
    bench("--quick", *(part for name in names for part in ("--only", name)), "--out", out)
    result = json.loads(out.read_text())
    assert list(result["cases"]) == list(names) and result["quick"] and result["threads"] == 1
    assert all(row["processor_ms"] > 0 for case in result["cases"].values() for row in case["rows"])
    assert " met" not in capsys.readouterr().out  # no verdicts on short sequences
    for case in result["cases"].values():
        case["targets"][0] |= {"value": 9.87, "bound": 1.23, "sense": ">="}
    out.write_text(json.dumps(result | {"quick": False}))
    bench("--show", out)
    shown = capsys.readouterr().out
    assert shown.count("9.87") == shown.count("≥ 1.23") == len(names)
    assert shown.count(" met") >= len(names) and result["hardware"].split()[0] in shown


def test_only_a_whole_run_takes_the_place_of_the_committed_result(
    bench: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.__main__._measured", lambda *_: report.read(RESULT))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    bench("--quick"), bench("--only", "memory")
    assert list(tmp_path.iterdir()) == []
    bench()
    assert report.read(tmp_path / "cpu.json") == report.read(RESULT)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--only", "mnits"], "only: "),
        (["--show", "pyproject.toml"], "pyproject"),
        (["--out", "nowhere/a.json"], "out: "),
        pytest.param(["--device", "cuda"], "device: ", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="")),
    ],
)
def test_bad_input_is_one_line(
    flags: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *flags])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr().err
    assert said.startswith("benchmarks: ") and message in said and said.count("\n") == 1


def test_make_bench_hands_its_flags_on() -> None:
    command = ["make", "--dry-run", "bench", "flags=--quick --only memory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "-m benchmarks --quick --only memory" in done.stdout


def test_the_committed_result_is_whole() -> None:
    result = report.read(RESULT)
    assert list(result["cases"]) == list(CASES) and report.targets(result).row_count > len(CASES)


def test_the_figure_is_drawn_from_the_committed_result() -> None:
    from speed import PANELS, speed_cpu

    figure, result = speed_cpu(), report.read(RESULT)
    source = "".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert result["date"] in source and result["hardware"] in source
    for ax, name in zip(figure.axes, PANELS, strict=True):
        drawn = [bar.get_width() for bar in ax.patches]  # type: ignore[attr-defined]
        assert drawn == [row["processor_ms"] for row in result["cases"][name]["rows"]]
