"""Worker processes: how they start, and how they end with their parent."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def bare_main() -> Iterator[None]:
    """Start processes without running the main script again, which most scripts do not expect."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def block_signals() -> Iterator[None]:
    """Block signals during a fork, because the child would handle its parent's signals as its own."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve_parent() -> None:
    """Initialise a worker process: it ends with its parent and ignores signals that the parent handles."""
    for number in _signals():
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _signals())
    collect_rarely()
    gc.freeze()  # what came with the process is never searched, so that its pages stay shared
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def collect_rarely() -> None:
    """Run the cyclic garbage collector rarely, because objects shared by points are large and long-lived."""
    gc.set_threshold(50_000, 20, 100)


def _end_with(parent: Any) -> None:
    """Wait for the end of the parent process, then exit immediately."""
    parent.join()
    os._exit(1)


def _signals() -> set[signal.Signals]:
    """Return the termination signals of this system."""
    return {getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)}
