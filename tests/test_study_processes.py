"""Processes of a study: forked with all that this one has, or from a server beside other threads; no answer depends on it."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hwsim.studies import pool
from hwsim.studies.point import Outcome
from hwsim.studies.sweeps import sweep

POINTS = [*range(1, 40), -1]  # the last is a mistake


@contextmanager
def another_thread() -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_rows_are_the_same_one_by_one_forked_and_from_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # the tests may run beside threads of their own
    assert pool._context().get_start_method() == "fork"
    alone = sweep("d2l-laptop", "d2l/async-loop", {"n": POINTS}, workers=1)
    assert sweep("d2l-laptop", "d2l/async-loop", {"n": POINTS}, workers=2).rows == alone.rows
    monkeypatch.undo()
    with another_thread():
        assert pool._context().get_start_method() == "forkserver"
        assert sweep("d2l-laptop", "d2l/async-loop", {"n": POINTS}, workers=2).rows == alone.rows
    assert [bool(row.error) for row in alone.rows] == [n < 0 for n in POINTS]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked, and found in /proc")
def test_processes_end_if_their_study_is_interrupted_again_while_it_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [pool._Worker(multiprocessing.get_context("fork"), lambda values: Outcome()) for _ in range(2)]
    for worker in workers:
        os.kill(worker.process.pid or 0, signal.SIGSTOP)  # nothing but SIGKILL is heard
    alarms = itertools.chain([KeyboardInterrupt], itertools.repeat(None))
    join = workers[0].process.join

    def interrupted(seconds: float) -> None:
        if (alarm := next(alarms)) is not None:
            raise alarm
        join(seconds)

    monkeypatch.setattr(workers[0].process, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool._end(workers)
    assert [worker.process.pid for worker in workers if _runs(worker.process.pid or 0)] == []


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
