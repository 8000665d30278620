"""Ports for servers that tests start."""

import os
import socket
from contextlib import suppress


def free_port() -> int:
    """Below those that the system gives whoever asks for any: another test could be given it before it is used."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")
