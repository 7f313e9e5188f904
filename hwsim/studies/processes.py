"""Processes that compute for another one: how they are started, and how they end with it."""

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
    """Start processes that do not run the script of this one again: they need nothing of it, and few scripts expect it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Hold signals back until a process is forked: it would take its parent's signals as its own, and say so."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve_parent() -> None:
    """Begin a process that computes for the one that started it: it ends with that one, and leaves signals to it."""
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
    """Look for rings of garbage seldom: what points share is large, lives long, and would be searched for every point."""
    gc.set_threshold(50_000, 20, 100)


def _end_with(parent: Any) -> None:
    """Wait for the end of the parent, then end, whatever is being run."""
    parent.join()
    os._exit(1)


def _signals() -> set[signal.Signals]:
    """Signals that ask for the end, of those that the system has."""
    return {getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)}
