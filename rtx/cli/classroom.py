"""`rtx class`: notebooks for students, and grades for what they hand in."""

import os
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from rtx.training.files import check_output, check_writable, write_whole

class_app = typer.Typer(no_args_is_help=True, help="A class: notebooks for students, and grades for them.")

Notebooks = Annotated[Path, typer.Option(help="The folder of rtx's own notebooks.")]
Only = Annotated[list[str] | None, typer.Option(help="How a notebook's name begins, such as 02. Repeat it for more.")]


@class_app.command("make", epilog="Example: rtx class make handout --only 02 --only 03")
def make(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    notebooks: Notebooks = Path("notebooks"),
    only: Only = None,
) -> None:
    """Write a folder of notebooks for students: without solutions, with the checks."""
    from rtx.classroom.notebooks import make_handout

    make_handout(folder, notebooks, only or ())


@class_app.command("grade", epilog="Example: rtx class grade returned.zip --csv grades.csv --only 02")
def grade(
    folder: Annotated[Path, typer.Argument(help="A folder with a folder for each student, or a platform's zip file.")],
    csv: Annotated[Path, typer.Option(help="The file to write: a line for each student and exercise.")],
    notebooks: Notebooks = Path("notebooks"),
    only: Only = None,
    seconds: Annotated[int, typer.Option(min=1, max=3600, help="How long one exercise may take.")] = 20,
) -> None:
    """Grade students' notebooks with the checks of the installed rtx.

    On Linux 6.2 or newer with Landlock and libseccomp, their code runs in a process without rights.

    docs/teaching.md says what this process cannot do, and when you need a container.
    """
    if not hasattr(os, "fork"):
        raise ValueError("class grade: needs Linux or macOS, got Windows; there, use WSL")
    from rtx.classroom.confine import can_confine
    from rtx.classroom.grading import PASSED, Grade, grade_folder, to_csv

    check_output("csv", csv, [folder])
    check_writable("csv", csv.resolve().parent)
    if not can_confine():
        needed = "Landlock (Linux 6.2 or newer) and libseccomp"
        typer.echo(f"rtx: without {needed}, a student's code has your rights. Use a container.", err=True)
    grades: list[Grade] = []
    try:
        for student, group in groupby(grade_folder(folder, notebooks, only or (), seconds), lambda each: each.student):
            start = len(grades)
            grades += group  # also those before an error
            passed = [each.result == PASSED for each in grades[start:]]
            typer.echo(f"{student}: {sum(passed)} of {len(passed)} passed")
        write_whole(csv, to_csv(grades))
    except OSError:  # the disk may be full, or the process for students' code may have ended
        typer.echo(to_csv(grades).decode("utf-8-sig"))
        raise
