"""Servers of a test's own."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen


def private_environment(home: Path) -> dict[str, str]:
    """Variables that keep JupyterLab and its kernels from the user's own settings, and those from them."""
    folders = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    folders += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    return os.environ | {name: str(home / name.lower()) for name in folders} | {"OMP_NUM_THREADS": "1"}


def wait_for(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Wait until a server answers at an address, for five minutes at most."""
    for _ in range(1500):
        with suppress(URLError, ConnectionError):
            urlopen(address, timeout=60).close()
            return
        assert server.poll() is None, log.read_text()
        time.sleep(0.2)
    raise TimeoutError(f"{address} does not answer:\n{log.read_text()}")
