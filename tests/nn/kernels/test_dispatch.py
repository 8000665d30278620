"""The dispatcher takes the first implementation that fits, the one that was asked for, and says why."""

import logging

import pytest

from rtx.nn.kernels.dispatch import OPERATIONS, Kernel, Operation, implementation


@pytest.fixture
def double(monkeypatch):
    monkeypatch.setattr("rtx.nn.kernels.dispatch._told", set())
    kernels = {
        "slow": Kernel(lambda x: ("slow", 2 * x)),
        "small": Kernel(lambda x: ("small", 2 * x), lambda x: f"takes up to 9, got {x}" if x > 9 else None),
        "plain": Kernel(lambda x: ("plain", 2 * x)),
    }
    yield Operation("double", kernels, optional=("slow",))
    del OPERATIONS["double"]


def test_the_first_that_fits_runs(double):
    assert double(3) == ("small", 6)
    assert double(30) == ("plain", 60)


def test_a_drawback_counts_only_where_there_is_a_choice(double):
    double.kernels["small"] = double.kernels["small"]._replace(drawback=lambda x: "odd" if x % 2 else None)
    assert double(2) == ("small", 4)
    assert double(3) == ("plain", 6)
    assert double(3, impl="small") == ("small", 6)


def test_a_choice_by_argument_or_by_context(double):
    assert double(3, impl="slow") == ("slow", 6)
    with implementation("plain"):
        assert double(3) == ("plain", 6)
        with implementation("slow", "double"):
            assert double(3) == ("slow", 6)
        assert double(3) == ("plain", 6)
    assert double(3) == ("small", 6)


def test_choices_that_overlap_end_in_any_order(double):
    """As those of two threads do."""
    first, second, third = (implementation(name, "double") for name in ("plain", "slow", "plain"))
    for one in (first, second, third):
        one.__enter__()
    first.__exit__(None, None, None)
    assert double(3) == ("plain", 6)  # the third
    third.__exit__(None, None, None)
    assert double(3) == ("slow", 6)
    second.__exit__(None, None, None)
    assert double(3) == ("small", 6)


def test_a_choice_ends_with_an_error_inside(double):
    with pytest.raises(RuntimeError), implementation("plain"):
        raise RuntimeError
    assert double(3) == ("small", 6)


def test_the_log_says_what_was_chosen_and_why_once(double, caplog):
    caplog.set_level(logging.DEBUG, logger="rtx.nn.kernels.dispatch")
    for x in (3, 3, 30):
        double(x)
    assert caplog.messages == [
        "double: small (nothing stands in its way)",
        "double: plain (not small: takes up to 9, got 30)",
    ]


def test_a_choice_that_cannot_be_is_one_clear_error(double):
    with pytest.raises(ValueError, match=r"impl: double cannot be 'small' here: takes up to 9, got 30"):
        double(30, impl="small")
    with pytest.raises(ValueError, match=r"impl: 'fast' is unknown, allowed are slow, small, plain"):
        double(3, impl="fast")
    with pytest.raises(ValueError, match="impl: 'fast' is unknown"), implementation("fast"):
        pass
    with pytest.raises(ValueError, match="operation: 'treble' is unknown"), implementation("slow", "treble"):
        pass
