"""List the licences of the packages that rtx needs, from what is installed; fail on one that is not allowed.

    python tools/licences.py [--list]

Needed is what pyproject.toml names, and what that needs in turn. A licence is allowed if it lets everybody use, change
and pass on the software, also as a part of something else: MIT, BSD, Apache, ISC, PSF, MPL, and their kin.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ALLOWED = re.compile(
    r"\b(MIT|MIT-0|MIT-CMU|BSD|[0-3]BSD|BSD-\d-Clause|Apache|ISC|PSF|Python-2\.0|PSF-2\.0|Python Software Foundation|"
    r"MPL|Mozilla|Unlicense|CC0|HPND|Zlib|ZPL|CNRI-Python|Boost|BSL-1\.0|Public Domain|3-Clause|2-Clause)\b",
    re.IGNORECASE,
)
REFUSED = re.compile(
    r"\b(A?GPL|GPLv?\d|AGPLv?\d|GNU (Affero )?General Public|SSPL|Commercial|Proprietary)\b", re.IGNORECASE
)
LOOKED_UP = {"axe-playwright-python": "MIT"}
"""Of packages whose metadata name no licence: what their own licence file says, looked at by hand."""


def needed(name: str = "rtx", extras: frozenset[str] = frozenset({"all"})) -> set[str]:
    """The names of what a package needs here, and of what that needs."""
    found: set[str] = set()
    left = [(name, extras)]
    seen = set(left)
    while left:
        one, asked = left.pop()
        for requirement in _requirements(one, asked):
            after = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if after not in seen:
                seen.add(after)
                left.append(after)
                found.add(after[0])
    return found - {canonicalize_name(name)}


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:  # of another platform or Python
        return
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def licence(package: Distribution) -> str:
    """What a package's metadata say of its licence, in one line."""
    metadata: Any = package.metadata
    classifiers = metadata.get_all("Classifier") or []
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    told = metadata.get("License-Expression") or ", ".join(named) or (metadata.get("License") or "").strip()
    return told.splitlines()[0] if told else LOOKED_UP.get(canonicalize_name(metadata["Name"]), "none is named")


def allowed(text: str) -> bool:
    """Whether a licence is one of those above: one of "A OR B", or of several classifiers; both of "A AND B"."""
    return any(all(map(_allowed, one.split(" AND "))) for one in re.split(r"\s+OR\s+|, ", text))


def _allowed(text: str) -> bool:
    return bool(ALLOWED.search(text)) and not REFUSED.search(text)


def licences() -> dict[str, str]:
    """The licence of each package that is needed and installed, by its name."""
    found = {}
    for name in sorted(needed()):
        try:
            found[name] = licence(distribution(name))
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    """Print the list, or what is wrong with it; return how many are not allowed."""
    found = licences()
    wrong = [name for name, text in found.items() if not allowed(text)]
    for name, text in found.items():
        if "--list" in sys.argv or name in wrong:
            print(f"{name:32} {text[:60]}{'  <- not allowed' if name in wrong else ''}")
    print(f"{len(found)} packages, {len(wrong)} with a licence that is not allowed")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
