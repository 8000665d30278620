"""Find each student's notebooks in a folder, or in the zip file that a learning platform exports."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile, is_zipfile

# Moodle: "Lovelace Ada_12345_assignsubmission_file_/a.ipynb"; Canvas: "lovelaceada_12345_67890_a.ipynb"
PLATFORM = re.compile(r"([^_]+)_(?:LATE_)?(\d+)_(?:assignsubmission_|\d+_)")
HIDDEN = re.compile(r"(^|/)(\.|__MACOSX)")  # what systems add
LARGEST, MOST = 1_000_000_000, 10_000  # bytes of an archive's notebooks, and their number


@contextmanager
def handed_in(place: Path) -> Iterator[dict[str, list[Path]]]:
    """Yield the notebooks of each student in `place`; raise ValueError if it has none, or is an unsafe archive.

    It is a folder or a zip file, with a folder for each student, a platform's files, or one student's notebooks.
    """
    with TemporaryDirectory() as scratch:
        folder = _unpack(place, Path(scratch, place.stem)) if is_zipfile(place) else place
        if not any(folder.rglob("*.ipynb")):
            raise ValueError(f"folder: expected a folder or a zip file with notebooks, got {str(place)!r}")
        yield _by_student(folder)


def _unpack(archive: Path, target: Path) -> Path:
    try:
        with ZipFile(archive) as opened:
            entries = [one for one in opened.infolist() if one.is_dir() or one.filename.endswith(".ipynb")]
            size = sum(one.file_size for one in entries)
            if size > LARGEST or len(entries) > MOST or any(".." in Path(one.filename).parts for one in entries):
                raise ValueError(f"folder: {archive.name} has {len(entries)} entries, {size} bytes, or a name with ..")
            opened.extractall(target, entries)
    except (BadZipFile, RuntimeError) as error:  # damaged, or with a password
        raise ValueError(f"folder: {archive.name} cannot be unpacked ({error})") from None
    return target


def _by_student(folder: Path) -> dict[str, list[Path]]:
    """Group notebooks by the first part of their path, or take all as one student's."""
    inside = [path for path in sorted(folder.rglob("*")) if not HIDDEN.search(path.relative_to(folder).as_posix())]
    notebooks = [path for path in inside if path.suffix == ".ipynb" and path.resolve().is_relative_to(folder.resolve())]
    plain = any(path.parent == folder and not PLATFORM.match(path.name) for path in notebooks)
    if plain or folder / "notebooks" in inside:
        return {folder.resolve().name: notebooks}
    found: dict[str, list[Path]] = {_name(path.name): [] for path in inside if path.is_dir() and path.parent == folder}
    for path in notebooks:
        found.setdefault(_name(path.relative_to(folder).parts[0]), []).append(path)
    return found


def _name(first: str) -> str:
    platform = PLATFORM.match(first)
    return f"{platform[1]} {platform[2]}" if platform else first
