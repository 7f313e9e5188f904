"""The start of the processes that answer: forked, where the system can, from one that has imported and tried what they do.

It imports little, so that this process begins at once, and both import at the same time.
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Final

TRIED: Final = "hwsim.explore.tried"


def context() -> Any:
    """The way to start a process."""
    if not _forks():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([TRIED])
    return made


def begin() -> None:
    """Start what the processes are forked from: it takes a second to be ready."""
    if _forks():
        from multiprocessing import forkserver

        context()
        forkserver.ensure_running()


def _forks() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods()
