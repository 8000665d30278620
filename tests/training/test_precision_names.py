"""A precision has one name, whichever of Lightning's is typed."""

import pytest

from rtx.training.precision import PRECISIONS, check_taken, parse_precision


@pytest.mark.parametrize(
    ("typed", "name"), [("32", "32-true"), ("16", "16-mixed"), ("bf16", "bf16-mixed"), ("64", "64-true")]
)
def test_a_short_name_is_the_one_that_lightning_takes_it_for(typed, name):
    assert parse_precision(typed) == name


def test_each_name_stands_for_itself_and_another_is_refused():
    assert [parse_precision(name) for name in PRECISIONS] == list(PRECISIONS)
    with pytest.raises(ValueError, match="precision: 'bf16-mixd' is unknown.*did you mean 'bf16-mixed'"):
        parse_precision("bf16-mixd")
    check_taken("bf16-mixed", "bf16-mixed", "cpu")
    with pytest.raises(ValueError, match="precision: there is no 16-mixed on this cpu; bf16-mixed is what comes"):
        check_taken("16-mixed", "bf16-mixed", "cpu")
