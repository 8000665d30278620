"""`rtx class`: notebooks for students, and grades for what they hand in."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rtx.training.files import write_whole

class_app = typer.Typer(no_args_is_help=True, help="A class: notebooks for students, and grades for them.")

Notebooks = Annotated[Path, typer.Option(help="The folder of rtx's own notebooks.")]
Only = Annotated[list[str] | None, typer.Option(help="How a notebook's name begins, as 02; may be given again.")]


@class_app.command("make", epilog="Example: rtx class make handout --only 02 --only 03")
def make(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    notebooks: Notebooks = Path("notebooks"),
    only: Only = None,
) -> None:
    """Write a folder of notebooks for students: without solutions, with the checks."""
    from rtx.classroom.handout import make_handout

    written = make_handout(folder, notebooks, only or ())
    typer.echo(f"{len(written)} notebooks in {folder}")


@class_app.command("grade", epilog="Example: rtx class grade returned --csv grades.csv --only 02")
def grade(
    folder: Annotated[Path, typer.Argument(help="A student's folder, or one with a folder for each student.")],
    csv: Annotated[Path, typer.Option(help="The file to write: a line for each student and exercise.")],
    notebooks: Notebooks = Path("notebooks"),
    only: Only = None,
    seconds: Annotated[int, typer.Option(help="How long the exercises of a notebook may take.")] = 60,
) -> None:
    """Grade folders that were handed in, by the checks of this rtx and not by the students' copies of them.

    Their code runs on this machine, each notebook in a process that may write nowhere but in a scratch folder.
    """
    from rtx.classroom.confine import can_confine
    from rtx.classroom.grading import RESULTS, Grade, grade_folder, to_csv

    if csv.is_dir() or not csv.resolve().parent.is_dir():
        raise ValueError(f"csv: expected a file in a folder that exists, got {str(csv)!r}")
    if not can_confine():
        typer.echo(
            "rtx: this system has no Landlock, so that a student's code may write files: use a container", err=True
        )
    grades: list[Grade] = []
    try:
        for each in grade_folder(folder, notebooks, only or (), seconds):
            grades.append(each)
            if each.result != RESULTS[True]:
                typer.echo(f"{each.student}  {each.notebook}  {each.exercise}: {each.result}  {each.message}")
    except BaseException:  # Ctrl-C, too; a former file of grades stays
        if grades:
            so_far = csv.with_name(f"unfinished-{csv.name}")
            write_whole(so_far, to_csv(grades))
            typer.echo(f"rtx: stopped; the grades so far are in {so_far}", err=True)
        raise
    write_whole(csv, to_csv(grades))  # after the last student's process has ended
    passed = Counter(each.student for each in grades if each.result == RESULTS[True])
    for student in dict.fromkeys(each.student for each in grades):
        typer.echo(f"{student}: {passed[student]} of {sum(each.student == student for each in grades)} passed")
