"""Servers of a test's own."""

import os
from pathlib import Path


def private_environment(home: Path) -> dict[str, str]:
    """Variables that keep JupyterLab and its kernels from the user's own settings, and those from them."""
    folders = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    folders += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    return os.environ | {name: str(home / name.lower()) for name in folders} | {"OMP_NUM_THREADS": "1"}
