"""A PostgreSQL server for tests, in a temporary folder."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def free_port() -> int:
    """Below those that the system gives whoever asks for any: another test could be given it before it is used."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty database; the test is skipped without PostgreSQL, or fails if it is required."""
    on_debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # there it is not in PATH
    path = os.pathsep.join([os.environ["PATH"], *map(str, reversed(on_debian))])
    if not shutil.which("initdb", path=path):
        stop = pytest.fail if os.environ.get("RTX_REQUIRE_POSTGRES") else pytest.skip
        stop("needs PostgreSQL: apt-get install postgresql")
    # the server refuses to run as root
    user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []

    def run(*words: str) -> None:
        subprocess.run([*user, *words], env=os.environ | {"PATH": path}, check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as name:
        if user:
            shutil.chown(name, "nobody", "nogroup")
        data, port = f"{name}/data", free_port()
        run("initdb", "--pgdata", data, "--username=rtx", "--auth=trust", "--no-sync")
        options = f"-p {port} -k {name} -c listen_addresses=127.0.0.1 -c fsync=off -c timezone=Asia/Tokyo"
        run("pg_ctl", "--pgdata", data, "--log", f"{name}/log", "--options", options, "--wait", "start")
        try:
            yield f"postgresql://rtx@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "--pgdata", data, "--mode=immediate", "stop")
