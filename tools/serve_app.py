"""Serve the pages of app/ by Voilà: explorers without notebooks, each visitor with a kernel of their own.

    python tools/serve_app.py --address 127.0.0.1 --port 8866

A page is a small .py file in jupytext's percent format. Nothing is asked of another server: Voilà's templates are
copied without their links to icons elsewhere. A kernel ends ten minutes after its page was closed.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).parents[1]
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
TEMPLATES = Path(sys.prefix) / "share/jupyter/voila/templates"


def stage(folder: Path, root: Path = ROOT) -> Path:
    """Write the pages as notebooks, and Voilà's templates beside them; return the pages' folder."""
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for source in sorted((root / "app").glob("*.py")):
        notebook = jupytext.read(source)
        notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "title": source.stem.replace("_", " ")})
        nbformat.write(notebook, pages / f"{source.stem}.ipynb")
    for template in TEMPLATES.rglob("*"):
        if template.is_file():
            target = folder / "share/voila/templates" / template.relative_to(TEMPLATES)
            target.parent.mkdir(parents=True, exist_ok=True)
            lines = template.read_bytes().splitlines(keepends=True)
            target.write_bytes(b"".join(line for line in lines if b'href="https://' not in line))
    return pages


def first_page(address: str, port: int) -> str:
    """Where a browser finds the index; what listens to everybody in the network is asked for by this machine's name."""
    host = socket.gethostname() if address == "0.0.0.0" else address
    return f"http://{host}:{port}/voila/render/index.ipynb"


def command(pages: Path, address: str, port: int, idle: int) -> list[str]:
    """The command that serves `pages`."""
    options = [f"--Voila.ip={address}", f"--port={port}", "--no-browser", "--VoilaConfiguration.show_tracebacks=False"]
    options += ["--Voila.port_retries=0"]  # or it would serve elsewhere than at the address that was printed
    options += [f"--MappingKernelManager.cull_idle_timeout={idle}"]
    options += [f"--MappingKernelManager.cull_interval={max(1, idle // 10)}"]
    return [sys.executable, "-m", "voila", str(pages), *options]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Serve explorers as web pages.")
    parser.add_argument("--address", default="127.0.0.1", help="whom to listen to; 0.0.0.0 is everybody in the network")
    parser.add_argument("--port", type=int, default=8866)
    parser.add_argument("--idle", type=int, default=600, help="seconds after which the kernel of a closed page ends")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rtx-app-") as scratch:
        pages = stage(Path(scratch))
        path = os.pathsep.join(filter(None, [f"{scratch}/share", os.environ.get("JUPYTER_PATH")]))
        print(first_page(given.address, given.port), flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # else Voilà would live on, without its pages
        server = subprocess.Popen(
            command(pages, given.address, given.port, given.idle),
            env=os.environ | {"JUPYTER_PATH": path, "OMP_NUM_THREADS": "1"},
        )
        try:
            return server.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
