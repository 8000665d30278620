"""Notebooks with the solutions in the place of the stubs."""

import re

from nbformat import NotebookNode

SOLUTION = re.compile(r"<summary>Solution</summary>\s*```python\n(.*?)```", re.DOTALL)
STUB = re.compile(r"^def (\w+)\([^\n]*\n    \.\.\.[^\n]*\n", re.MULTILINE)


def solved(notebook: NotebookNode) -> NotebookNode:
    """Replace each function that a learner writes by its solution, which is in the text."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    solutions = {re.findall(r"^def (\w+)\(", code, re.MULTILINE)[-1]: code for code in SOLUTION.findall(text)}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = STUB.sub(lambda match: solutions[match[1]], cell.source)
    return notebook
