"""The benchmark's cases for a GPU run, here on a CPU and without Triton, and its shares are what they say."""

import math

import pytest
import torch

import rtx
from benchmarks import gpu, report
from benchmarks.case import Options
from benchmarks.cases import CASES
from benchmarks.training import random_batch
from rtx.tasks import task_by_name

QUICK = Options(device="cpu", quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", gpu.CASES)
def test_a_case_runs_and_its_targets_name_its_contenders(name):
    case = gpu.CASES[name](QUICK)
    assert len({one.name for one in case.contenders}) == len(case.contenders)
    for one in case.contenders:
        try:
            assert one() is None
        except RuntimeError as error:  # of the published code's nn.LSTM in bfloat16, on a processor without it
            if "could not create a primitive" not in str(error):
                raise
            pytest.skip(f"torch cannot run {one.name} on this processor")
    missing = {name for t in case.targets for name in (t.over, t.under) if name} - {one.name for one in case.contenders}
    assert all("triton" in name.lower() for name in missing)  # what only a GPU can do


@pytest.mark.parametrize("name", ["digits", "nottingham", "characters"])
def test_the_loss_that_asks_the_gpu_for_no_number_is_the_tasks_mean(name):
    task = task_by_name(name)
    batch = random_batch(task, 2, 9, 9)
    model = rtx.build(task, "gru", d_model=4)
    loss = task.loss(task.predict(model, batch), batch)
    mean = loss.total / batch.targets.numel()
    torch.testing.assert_close(gpu.plain_loss(task, model(batch.inputs), batch), mean)


def test_a_share_is_the_time_of_the_products_alone_over_the_time():
    row = {"name": "rtx", "multiply_adds_g": 2.0, "wall_ms": 4.0}
    case = {"rows": [row, row | {"multiply_adds_g": None}], "targets": []}
    gpu.add_shares(case, {"bfloat16 products, GFLOP/s": 6000.0})  # 12 GFLOP take 2 ms
    assert [t["value"] for t in case["targets"]] == [pytest.approx(0.5)]
    assert report.verdict(case["targets"][0]) == ""


def test_the_ceiling_is_positive():
    found = gpu.ceiling("cpu", quick=True)
    assert len(found) == 2 and all(0 < value < math.inf for value in found.values())


def test_names_of_the_gpus_cases_are_its_own():
    assert not set(gpu.CASES) & set(CASES)
