"""Start of the worker processes, forked if possible from a fork server that has imported the modules of a run.

This module imports little, so that the fork server and this process can import concurrently.
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Final

IMPORTED: Final = "hwsim.explorer.worker"


def context() -> Any:
    """Return the multiprocessing context."""
    if not _forks():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([IMPORTED])
    return made


def begin() -> None:
    """Start the fork server early, because its imports take time."""
    if _forks():
        from multiprocessing import forkserver

        context()
        forkserver.ensure_running()


def _forks() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods()
