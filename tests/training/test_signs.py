"""Signs of life: who gives one, and who counts as dead."""

import json
import os
import time

from rtx.training import signs
from rtx.training.signs import alive, is_dead, write_sign


def test_who_gives_no_sign_of_life_is_dead(tmp_path):
    sign = tmp_path / "alive"
    assert is_dead(sign)
    write_sign(sign)
    assert not is_dead(sign)
    os.utime(sign, (time.time() - 3600, time.time() - 3600))
    assert is_dead(sign)
    write_sign(sign)
    host, _ = json.loads(sign.read_text())
    sign.write_text(json.dumps([host, 2**22 + 1]))  # no process has such a number
    assert is_dead(sign)
    sign.write_text(json.dumps(["another", 2**22 + 1]))
    assert not is_dead(sign)


def test_a_long_run_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(signs, "BEAT", 0.01)
    sign, end = tmp_path / "alive", time.monotonic() + 60
    write_sign(sign)
    with alive(sign):
        first = sign.stat().st_mtime_ns
        while sign.stat().st_mtime_ns == first:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert not sign.exists()


def test_a_sign_that_cannot_be_written_is_not_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(signs, "BEAT", 0.01)
    fails, end = iter([True]), time.monotonic() + 60

    def write(sign):
        if next(fails, False):
            raise OSError("No space left on device")
        write_sign(sign)

    monkeypatch.setattr(signs, "write_sign", write)
    sign = tmp_path / "alive"
    with alive(sign):
        while not sign.exists():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_process_of_a_machine_or_container_of_the_same_name_is_not_looked_for_here(tmp_path, monkeypatch):
    sign = tmp_path / "alive"
    with monkeypatch.context() as patch:
        patch.setattr(os, "readlink", lambda _: "pid:[1]")  # of a container that has this machine's name
        patch.setattr(os, "getpid", lambda: 2**22 + 1)
        write_sign(sign)
    assert not is_dead(sign)
