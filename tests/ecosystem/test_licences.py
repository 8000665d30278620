"""Every package that rtx needs has a licence that allows this use."""

from email.message import Message

import licences


def test_every_needed_package_has_an_allowed_licence() -> None:
    found = licences.licences()
    assert {"torch", "numpy", "jupyterlab", "lightning", "music21"} <= set(found) and len(found) > 100
    assert {name: text for name, text in found.items() if not licences.allowed(text)} == {}


def test_a_long_licence_is_read_to_its_end() -> None:
    class Package:
        metadata = Message()

    Package.metadata["License-Expression"] = " AND ".join(["MIT"] * 20 + ["GPL-3.0"])
    assert not licences.allowed(licences.licence(Package))


def test_permissive_licences_are_allowed_and_others_refused() -> None:
    good = ["MIT", "BSD 3-Clause License", "Apache-2.0", "MPL-2.0 AND MIT", "GPL-3.0 OR MIT", "BSD License, GPL"]
    bad = ["GPL-3.0", "GNU General Public License v3", "Proprietary", "none is named", "MIT AND LGPL-3.0"]
    assert all(map(licences.allowed, good)) and not any(map(licences.allowed, bad))
