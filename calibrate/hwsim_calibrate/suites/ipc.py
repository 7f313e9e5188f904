"""Handing things over: between threads through queues and locks, between processes through pipes."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from hwsim_calibrate import peer
from hwsim_calibrate.case import Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import Scope

PIPED: Final = (1, 1024, 65536, 1 << 20)
QUEUES: Final[dict[str, type[Any]]] = {"queue": queue.Queue, "simple_queue": queue.SimpleQueue}


def cases(_: Scope) -> Iterator[Case]:
    """All cases."""
    for op, kind in QUEUES.items():
        yield Case("ipc", op, {"pattern": "handoff", "threads": 2}, Amounts(), partial(_echo, kind), "wall", 9, 5e-3, loop=2)
        yield Case("ipc", op, {"pattern": "same_thread", "threads": 1}, Amounts(), partial(_same, kind))
    yield Case("ipc", "lock", {"pattern": "same_thread", "threads": 1}, Amounts(), lambda _: _lock())
    yield Case("ipc", "thread_start", {"threads": 2}, Amounts(), lambda _: _thread(), "wall", 9, 5e-3)
    for size in PIPED:
        params: dict[str, Param] = {"bytes": size, "pattern": "pingpong"}
        yield Case("ipc", "pipe", params, Amounts(0, size, size), partial(_pipe, size), "wall", 9, 5e-3, loop=2)
    yield Case("ipc", "process_start", {}, Amounts(), lambda _: _process(), "wall", 3, 0.0)


def _echo(kind: type[Any], stack: ExitStack) -> Call:
    """To another thread and back."""
    requests, answers = kind(), kind()

    def answer() -> None:
        while (got := requests.get()) is not None:
            answers.put(got)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    stack.callback(thread.join)
    stack.callback(requests.put, None)

    def call() -> None:
        requests.put(1)
        answers.get()

    return call


def _same(kind: type[Any], _: ExitStack) -> Call:
    queue = kind()

    def call() -> None:
        queue.put(1)
        queue.get()

    return call


def _lock() -> Call:
    lock = threading.Lock()

    def call() -> None:
        with lock:
            pass

    return call


def _thread() -> Call:
    def call() -> None:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

    return call


def _pipe(size: int, stack: ExitStack) -> Call:
    """To another process and back, by its standard input and output."""
    command = [sys.executable, "-I", "-S", peer.__file__, "pipe"]
    process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0))
    to, back = process.stdin, process.stdout
    if to is None or back is None:
        raise OSError("the other process has no pipes")
    stack.callback(to.close)
    write, read = to.fileno(), back.fileno()
    os.write(write, peer.HEAD.pack(size, 0))
    out, into = memoryview(bytes(size)), memoryview(bytearray(size))

    def fill(place: memoryview) -> int:
        data = os.read(read, len(place))
        place[: len(data)] = data
        return len(data)

    def call() -> None:
        sent = 0
        while sent < size:
            sent += os.write(write, out[sent:])
        peer.receive(fill, into)

    return call


def _process() -> Call:
    command = [sys.executable, "-I", "-S", "-c", ""]
    return lambda: subprocess.run(command, check=True)
