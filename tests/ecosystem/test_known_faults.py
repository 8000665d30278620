"""`make audit` tells known faults of the pinned packages from packages that could not be looked up."""

from typing import Any

import audit
import pytest

GOOD: dict[str, Any] = {"name": "a", "version": "1.0", "vulns": []}
BAD: dict[str, Any] = {"name": "b", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1", "3.0"]}]}
SKIPPED: dict[str, Any] = {"name": "c", "version": "3.0", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code", "text"),
    [
        ([GOOD, SKIPPED], 0, "1 of 2 "),
        ([GOOD, BAD], 1, "b 2.0: CVE-1, mended in 2.1, 3.0"),
        ([SKIPPED], 3, "none of 1 "),
    ],
)
def test_a_package_that_was_not_looked_up_does_not_count_as_good(
    packages: list[dict[str, Any]], code: int, text: str
) -> None:
    found, said = audit.verdict(packages)
    assert found == code and text in said


def test_a_database_without_an_answer_is_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "PINS", audit.PINS.with_name("no such file"))
    assert audit.main() == audit.NOT_ASKED
    assert "no answer: " in capfd.readouterr().err
