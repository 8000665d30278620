"""The notebooks in a class: folders for students, and grades for what they hand in."""

from rtx.classroom.grading import Grade, grade_folder, to_csv
from rtx.classroom.notebooks import make_handout

__all__ = ["Grade", "grade_folder", "make_handout", "to_csv"]
