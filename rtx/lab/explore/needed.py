"""What explorers need beside the package, said in one sentence where it is missing."""

from importlib.util import find_spec

for name in ("matplotlib", "seaborn", "ipywidgets", "anywidget", "safetensors", "scipy"):
    if find_spec(name) is None:
        said = f'explorers need {name}, which is not installed: pip install ".[lab,train]" in the folder of rtx'
        raise ModuleNotFoundError(said, name=name)
