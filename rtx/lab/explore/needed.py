"""What explorers need beside the package, said in one sentence where it is missing."""

from importlib.util import find_spec

for name in ("matplotlib", "seaborn", "ipywidgets", "anywidget"):
    if find_spec(name) is None:
        raise ModuleNotFoundError(f'explorers need {name}, which is not installed: pip install "rtx[lab]"', name=name)
