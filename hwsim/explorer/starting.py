"""The start of the processes that answer: forked, where the system can, from one that has imported what a run needs.

This module imports little, so that this process begins at once, and both import at the same time.
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Final

IMPORTED: Final = "hwsim.explorer.doors"


def context() -> Any:
    """The way to start a process."""
    if not _forks():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([IMPORTED])
    return made


def begin() -> None:
    """Start what the processes are forked from: its imports take a while."""
    if _forks():
        from multiprocessing import forkserver

        context()
        forkserver.ensure_running()


def _forks() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods()
