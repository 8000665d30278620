"""Controls of explorers, moved from code."""

import ipywidgets as widgets
import numpy as np
import pytest
from matplotlib.figure import Figure

from rtx.lab.explore.explorer import Explorer


@pytest.fixture
def explorer() -> Explorer:
    return Explorer(
        Figure((2, 1)),
        lambda **values: str(values),
        "a caption",
        steps=widgets.IntSlider(2, 1, 4),
        cell=widgets.Dropdown(options=[("GRU", "gru"), ("LSTM", "lstm")]),
        rate=widgets.FloatSlider(0.5, min=0.0, max=1.0),
    )


def test_a_value_that_a_hand_could_choose_is_shown(explorer: Explorer) -> None:
    shown = explorer.set(steps=np.int64(4), cell="lstm", rate=1)
    assert shown == explorer.text == str({"steps": 4, "cell": "lstm", "rate": 1.0})


@pytest.mark.parametrize(
    "values, told",
    (
        ({"steps": 99}, "steps: .* 1 to 4, got 99"),
        ({"steps": 2.5}, "steps: .* 1 to 4, got 2.5"),
        ({"rate": -0.1}, "rate: .* 0.0 to 1.0, got -0.1"),
        ({"cell": "GRU"}, "cell: .* gru, lstm, got 'GRU'"),
        ({"step": 2}, "'step' .*'steps'"),
    ),
)
def test_any_other_is_an_error_that_names_the_control(explorer: Explorer, values: dict[str, object], told: str) -> None:
    before = explorer.text
    with pytest.raises(ValueError, match=told):
        explorer.set(**values)
    assert explorer.text == before


def test_a_slider_of_one_value_stays_where_it_is() -> None:
    single = Explorer(Figure((2, 1)), lambda step: str(step), "a caption", step=widgets.IntSlider(1, 1, 1))
    assert single.set(step=1) == "1"
    with pytest.raises(ValueError, match="step: .* 1 to 1, got 2"):
        single.set(step=2)


def test_a_slider_of_powers_and_a_checkbox_are_moved_too() -> None:
    controls = {"rate": widgets.FloatLogSlider(0.01, min=-4, max=0), "causal": widgets.Checkbox(True)}
    explorer = Explorer(Figure((2, 1)), lambda **values: str(values), "a caption", **controls)
    assert explorer.set(rate=0.1, causal=False) == str({"rate": 0.1, "causal": False})
