"""The dispatcher runs the first implementation that can handle the arguments, or the one that was asked for."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from rtx.nn.ops import OPERATIONS, implementation
from rtx.nn.ops.dispatch import Implementation, Operation


@pytest.fixture
def double(monkeypatch):
    monkeypatch.setattr("rtx.nn.ops.dispatch._logged", set())
    implementations = {
        "slow": Implementation(lambda x: ("slow", 2 * x), opt_in=True),
        "small": Implementation(lambda x: ("small", 2 * x), lambda x: f"up to 9, got {x}" if x > 9 else None),
        "plain": Implementation(lambda x: ("plain", 2 * x)),
    }
    yield Operation("double", implementations)
    del OPERATIONS["double"]


def test_the_first_implementation_without_an_obstacle_runs(double):
    assert double(3) == ("small", 6)
    assert double(30) == ("plain", 60)


def test_a_drawback_counts_only_if_there_is_a_choice(double):
    small = double.implementations["small"]._replace(drawback=lambda x: "odd" if x % 2 else None)
    double.implementations["small"] = small
    assert double(2) == ("small", 4)
    assert double(3) == ("plain", 6)
    assert double(3, impl="small") == ("small", 6)


def test_an_implementation_is_chosen_by_argument_or_by_context(double):
    assert double(3, impl="slow") == ("slow", 6)
    with implementation("plain"):
        assert double(3) == ("plain", 6)
        with implementation("slow", "double"), ThreadPoolExecutor(1) as pool:
            assert double(3) == pool.submit(double, 3).result() == ("slow", 6)  # the choice holds for all threads
        assert double(3) == ("plain", 6)
        assert double(3, impl="small") == ("small", 6)
    assert double(3) == ("small", 6)


def test_a_choice_ends_with_an_error_inside_the_block(double):
    with pytest.raises(RuntimeError), implementation("plain"):
        raise RuntimeError
    assert double(3) == ("small", 6)


def test_the_log_names_each_choice_and_its_reason_once(double, caplog):
    caplog.set_level(logging.DEBUG, logger="rtx.nn.ops.dispatch")
    for x in (3, 3, 30):
        double(x)
    first, second = caplog.messages
    assert "small" in first and "plain" in second and "up to 9, got 30" in second


def test_a_choice_that_is_impossible_or_unknown_is_refused(double):
    with pytest.raises(ValueError, match=r"^impl: double .*'small'.*up to 9, got 30"):
        double(30, impl="small")
    with pytest.raises(ValueError, match="^impl: 'fast'"):
        double(3, impl="fast")
    with pytest.raises(ValueError, match="^impl: 'fast'"), implementation("fast"):
        pass
    with pytest.raises(ValueError, match="^operation: 'treble'"), implementation("slow", "treble"):
        pass
