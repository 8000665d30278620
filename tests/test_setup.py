"""The set-up holds together: packages build, lists of dependencies agree, `make` does its part."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import rtx

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "build": "python-build"}


def requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    listed = [extras[name] for name in ("lab", "train", "export", "site", "test")]
    return [Requirement(text) for text in sum(listed, PROJECT["dependencies"])]


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # these tests may run under make themselves
        environment.pop(inherited, None)
    return subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)


# Dependencies


def test_environment_yml_asks_for_what_pyproject_asks_for() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    listed = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert "-e ." in pip and "pip" in listed
    asked = [Requirement(text) for text in listed + pip if text not in ("pip", "-e .")]

    wanted = {CONDA_NAMES.get(each.name, each.name): each.specifier for each in requirements()}
    assert {each.name: each.specifier for each in asked} == wanted | {
        "python": SpecifierSet(PROJECT["requires-python"])
    }
    assert environment["channels"][0] == "conda-forge"


def test_constraints_pin_every_dependency_to_an_allowed_version() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[^+*]+", str(pin.specifier)) for pin in pins)  # exact, and no local builds
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert len(versions) == len(pins)
    for each in requirements():
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each


def test_the_oldest_python_can_install_every_pin() -> None:
    (oldest,) = (each.version for each in SpecifierSet(PROJECT["requires-python"]))
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, pinned = line.partition("==")
        try:
            pythons = metadata(name)["Requires-Python"] if pinned == version(name) else None
        except (PackageNotFoundError, ValueError):  # a comment, or of another platform
            continue
        assert SpecifierSet(pythons or "").contains(f"{oldest}.0"), f"{line} needs Python {pythons}"


# Packages


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    built = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    return folder


def package_files() -> set[str]:
    """The files of the package in the working tree."""
    files = (path for path in (ROOT / "rtx").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(packages: Path) -> None:
    (wheel,) = packages.glob("rtx-*-py3-none-any.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == package_files()
    assert "rtx/py.typed" in names and any(name.startswith("rtx/training/recipes/") for name in names)


@pytest.mark.slow
def test_the_sdist_holds_what_it_takes_to_test_it(packages: Path) -> None:
    (sdist,) = packages.glob("rtx-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert package_files() <= names
    assert {"Makefile", "constraints.txt", "environment.yml", "LICENSE", "README.md"} <= names
    assert {"tests/test_setup.py", "tools/make_venv.py", "CITATION.cff"} <= names
    site = {path for path in ROOT.glob("site/**/*.*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(ROOT).as_posix() for path in [*site, *ROOT.glob("docs/*.md")]} <= names


@pytest.mark.slow
def test_the_wheel_installs_and_works_elsewhere(packages: Path, tmp_path: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    installed = run(*pip, "--no-compile", "--target", tmp_path / "site", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    code = "import rtx, torch; print(rtx.__file__, rtx.RTransformer(8, 1, 2, 3)(torch.ones(1, 5, 8)).shape)"
    ran = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert ran.stdout.strip() == f"{tmp_path / 'site' / 'rtx' / '__init__.py'} torch.Size([1, 5, 8])"


def test_the_package_and_its_metadata_agree_on_the_version() -> None:
    assert rtx.__version__ == PROJECT["version"] == version("rtx")


# Commands


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that `make` reads, in a folder with a space in its name, with nothing installed."""
    folder = tmp_path / "my rtx"
    (folder / "tools").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/make_venv.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_make_help_lists_every_target_a_line_each() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (help .*)$", makefile, flags=re.MULTILINE)
    lines = run("make", "help", cwd=ROOT).stdout.splitlines()
    assert [line.split()[1] for line in lines] == phony.split()
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("target", ["lab", "quick"])
def test_make_installs_once_and_again_when_asked_for_other_packages(checkout: Path, target: str) -> None:
    def installs() -> bool:
        done = run("make", "--dry-run", target, cwd=checkout)
        assert done.returncode == 0, done.stderr
        return "pip install" in done.stdout

    assert installs()
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "made-in").write_text(f"{checkout}\n")
    for stamp in ("lab-installed", "test-installed"):
        (checkout / ".venv" / stamp).touch()
    assert not installs()
    os.utime(checkout / ".venv" / f"{'lab' if target == 'lab' else 'test'}-installed", (0, 0))
    assert installs()
    (checkout / ".venv" / "lab-installed").touch()
    (checkout / ".venv" / "test-installed").touch()
    assert not installs()
    (checkout / ".venv" / "made-in").write_text("/the/folder/it/was/copied/from\n")
    assert installs()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sys.version_info = (3, 10, 13)", "rtx needs Python 3.11 or newer"),
        ("sys.modules['ensurepip'] = None", "On Debian and Ubuntu: apt install python3-venv"),
    ],
    ids=["too old", "without ensurepip"],
)
def test_a_python_that_will_not_do_is_refused_in_one_line(checkout: Path, given: str, message: str) -> None:
    python = checkout / "unfit python"
    code = f"import sys; {given}; sys.argv = sys.argv[1:]; exec(open(sys.argv[0]).read())"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    python.chmod(0o755)
    refused = run("make", "lab", f"PYTHON={python}", cwd=checkout)
    assert refused.returncode != 0
    assert message in refused.stderr and "Traceback" not in refused.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.slow
def test_style_and_types_are_clean() -> None:
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        checked = run(sys.executable, "-m", *command, cwd=ROOT)
        assert checked.returncode == 0, checked.stdout
