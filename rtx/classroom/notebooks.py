"""Write the notebooks of students, find what they hand in, and choose the cells to run."""

import dis
import json
import re
import shutil
import zipfile
from collections.abc import Sequence, Set
from contextlib import suppress
from pathlib import Path
from types import CodeType

# exercises.NAME(FUNCTION), or … = exercises.yours(FUNCTION, "NAME")
CHECKED = re.compile(r'^(?:\w+ = exercises\.yours\((\w+), "(\w+)"\)|exercises\.(\w+)\((\w+)\))$', re.MULTILINE)
COMMAND = re.compile(r"^([ \t]*)(?:[%!]+\w.*|[\w.]+\?+[ \t]*$)", re.MULTILINE)  # of IPython: %time, !pip, torch.triu?
LARGEST = 20_000_000  # bytes of a notebook
# Moodle: "Lovelace Ada_12345_assignsubmission_file_/a.ipynb"; Canvas: "lovelaceada_12345_67890_a.ipynb"
PLATFORM = re.compile(r"([^/]+?)_(?:LATE_)?(\d+)_(?:assignsubmission_|\d+_[^/]*$)")
HIDDEN = re.compile(r"(^|/)(\.|__MACOSX/)")  # what systems add
SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>.*?</details>\n?", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((\w+\.ipynb)(?:#[^)]*)?\)")  # to another notebook
INDEX = "**Index:** [README](../README.md) · "  # of the whole project, most of which a student is not given
BESIDE = re.compile(r"\.\./([\w./-]*\w)")  # a file or a folder that a cell reads, shows or links to

Notebook = Path | zipfile.Path


def chosen_notebooks(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the project's own notebooks in `folder`; with `only`, those whose names begin with one of its texts."""
    found = {path for start in only or ["[0-9][0-9]"] for path in folder.glob(f"{start}*_*.ipynb")}
    if not found:
        raise ValueError(f"notebooks: expected names such as 02_….ipynb in {str(folder)!r}, got none for {only}")
    return sorted(found)


def make_handout(folder: Path, notebooks: Path, only: Sequence[str] = ()) -> None:
    """Write the students' notebooks, and the files that they name, into a new folder."""
    sources = chosen_notebooks(notebooks, only)
    folder.mkdir(parents=True)
    (folder / "notebooks").mkdir()
    named = set[str]()
    for source in sources:
        text = _for_students(source, {each.name for each in sources})
        (folder / "notebooks" / source.name).write_text(text, encoding="utf-8")
        named.update(BESIDE.findall(text))
    for name in named:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (notebooks.parent / name).is_dir() else shutil.copyfile
        copy(notebooks.parent / name, folder / name)


def _for_students(source: Path, given: Set[str]) -> str:
    """Return a notebook without solutions, outputs and widgets. A link to a notebook that is not given becomes text."""
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        else:
            text = SOLUTION.sub("", "".join(cell["source"])).replace(INDEX, "")
            cell["source"] = LINK.sub(lambda link: link[0] if link[2] in given else link[1], text)
    notebook["metadata"].pop("widgets", None)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def handed_in(place: Path) -> dict[str, list[Notebook]]:
    """Return the notebooks of each student; raise ValueError if there are none. A zip file is read, never unpacked.

    `place` is a folder or a zip file, with a folder for each student, a platform's files, or one student's notebooks.
    """
    found: dict[str, list[Notebook]] = {}
    for name, file in _files(place).items():
        is_notebook = name.lower().endswith(".ipynb") and file.is_file()  # reading a pipe would never end
        if HIDDEN.search(name) or not (is_notebook or "/" in name):  # a student's folder may be empty
            continue
        platform, folder = PLATFORM.match(name), name.split("/")[0] if "/" in name else place.resolve().stem
        notebooks = found.setdefault(f"{platform[1]} {platform[2]}" if platform else folder, [])
        notebooks += [file] * is_notebook
    if not any(found.values()):
        raise ValueError(f"folder: expected a folder or a zip file with notebooks, got {str(place)!r}")
    return dict(sorted(found.items()))


def _files(place: Path) -> dict[str, Notebook]:
    """Return all folders and files by their names below `place`, without links. A folder's name ends with a slash."""
    if zipfile.is_zipfile(place):
        archive = zipfile.ZipFile(place)
        # zipfile.Path would never end with a name such as "//a"; Windows may separate folders by backslashes
        archive.filelist = [file for file in archive.filelist if not file.filename.startswith("/")]
        return {name.replace("\\", "/"): zipfile.Path(archive, name) for name in sorted(archive.namelist())}
    inside = [path for path in sorted(place.rglob("*")) if not path.is_symlink()]  # what is behind a link is not listed
    return {path.relative_to(place).as_posix() + "/" * path.is_dir(): path for path in inside}


def exercises_of(cells: Sequence[str]) -> dict[str, str]:
    """Return the exercises in cells of our own notebooks: the name of each, and the function that it tries."""
    return {name or other: mine or function for mine, name, other, function in CHECKED.findall("\n".join(cells))}


def code_cells(notebook: Notebook) -> list[str]:
    """Return the sources of a notebook's code cells; raise ValueError if the file is no notebook, or is too large."""
    try:
        with notebook.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        return ["".join(cell["source"]) for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    except Exception as error:  # a student or a damaged archive may hand in anything
        raise ValueError(f"the file is not a notebook of format 4 ({type(error).__name__}: {error})") from None


def needed_cells(cells: Sequence[str], exercise: str) -> list[str]:
    """Return the last cell that tries an exercise, and before it the cells that define the names it reads.

    The search follows names: it misses a cell that only changes an object of another cell.
    """
    codes = [cell if _compiled(cell) else COMMAND.sub(r"\1pass", cell) for cell in cells]
    # not in a comment or a text; the call may have several lines, but a longer search could take days
    call = rf"""{exercise}\(|yours\((?:.{{0,300}}|[^)]{{0,300}})["']{exercise}["']"""
    tried = re.compile(rf"""^[^#"'\n]*exercises\.({call})""", re.MULTILINE)
    while codes and not tried.search(codes[-1]):
        codes.pop()
    compiled = [_compiled(code) or compile("", "cell", "exec") for code in codes]
    binds = [_names(code, "STORE") for code in compiled]
    chosen = set[int]()
    more = {len(codes) - 1} if codes else set()
    while more:
        chosen |= more
        reads = set().union(*(_names(compiled[place], "LOAD") for place in chosen))
        more = {at for at, code in enumerate(codes) if binds[at] & reads or "import *" in code} - chosen
    return [codes[place] for place in sorted(chosen)]


def _compiled(code: str) -> CodeType | None:
    with suppress(SyntaxError, ValueError, MemoryError, RecursionError):  # a null byte, or a thousand brackets
        return compile(code, "cell", "exec")
    return None


def _names(code: CodeType, does: str) -> set[str]:
    """Return the global names that a cell reads ("LOAD") or binds ("STORE"), in its functions and classes, too."""
    own = {step.argval for step in dis.get_instructions(code) if step.opname in (f"{does}_NAME", f"{does}_GLOBAL")}
    return own.union(*(_names(each, does) for each in code.co_consts if isinstance(each, CodeType)))
