"""Find each student's notebooks in a folder, or in the zip file that a learning platform exports."""

import re
import zipfile
from pathlib import Path

# Moodle: "Lovelace Ada_12345_assignsubmission_file_/a.ipynb"; Canvas: "lovelaceada_12345_67890_a.ipynb"
PLATFORM = re.compile(r"([^_/]+)_(?:LATE_)?(\d+)_(?:assignsubmission_|\d+_)")
HIDDEN = re.compile(r"(^|/)(\.|__MACOSX/)")  # what systems add

Notebook = Path | zipfile.Path


def handed_in(place: Path) -> dict[str, list[Notebook]]:
    """Return the notebooks of each student; raise ValueError if there are none. A zip file is read, never unpacked.

    `place` is a folder or a zip file, with a folder for each student, a platform's files, or one student's notebooks.
    """
    files = {name: file for name, file in _files(place).items() if not HIDDEN.search(name)}
    notebooks = {name: file for name, file in files.items() if name.endswith(".ipynb")}
    if not notebooks:
        raise ValueError(f"folder: expected a folder or a zip file with notebooks, got {str(place)!r}")
    if any(name.startswith("notebooks/") or ("/" not in name and not PLATFORM.match(name)) for name in notebooks):
        return {place.resolve().stem: list(notebooks.values())}
    found: dict[str, list[Notebook]] = {_student(name): [] for name in files if "/" in name}
    for name, file in notebooks.items():
        found.setdefault(_student(name), []).append(file)
    return dict(sorted(found.items()))


def _files(place: Path) -> dict[str, Notebook]:
    """Return all files and folders by their names below `place`. The name of a folder ends with a slash."""
    if zipfile.is_zipfile(place):
        archive = zipfile.ZipFile(place)
        return {name: zipfile.Path(archive, name) for name in sorted(archive.namelist())}
    inside = [path for path in sorted(place.rglob("*")) if path.resolve().is_relative_to(place.resolve())]
    return {path.relative_to(place).as_posix() + "/" * path.is_dir(): path for path in inside}


def _student(name: str) -> str:
    platform = PLATFORM.match(name)
    return f"{platform[1]} {platform[2]}" if platform else name.split("/")[0]
