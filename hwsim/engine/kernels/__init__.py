"""What numba compiles: the loops of `inorder`, `replay` and `fluid`, on arrays.  Imported by `fast` alone.

Numba keeps what it compiled beside the sources and compiles again when the file of the function changes, but not when
that of another does which it calls.  So the functions called from outside are closures over a digest of all the sources,
and only they are kept.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from numba import njit

from hwsim.engine.kernels import inorder, play
from hwsim.engine.kernels.flows import (
    BOUND,
    CHANGED,
    DUE,
    DUE_PLACE,
    FIRST_DRAW,
    FIRST_PAIR,
    FIRST_USER,
    LAST_DRAW,
    LAST_PAIR,
    LEVEL,
    RISING,
    ROOT,
    SEEN,
    SOLVES,
    Flows,
)
from hwsim.engine.kernels.play import DONE

__all__ = [
    "BOUND",
    "CHANGED",
    "DONE",
    "DUE",
    "DUE_PLACE",
    "FIRST_DRAW",
    "FIRST_PAIR",
    "FIRST_USER",
    "LAST_DRAW",
    "LAST_PAIR",
    "LEVEL",
    "RISING",
    "ROOT",
    "SEEN",
    "SOLVES",
    "Flows",
    "longest_path",
    "replay",
]


def _kept(digest):
    """The functions that are called from outside."""
    kept = njit(cache=True, nogil=True, error_model="numpy")

    @kept
    def longest_path(first, follow, missing, fixed, start, end):
        if digest:
            inorder.longest_path(first, follow, missing, fixed, start, end)

    @kept
    def replay(first, follow, missing, joins, fixed, take, give, free, start, end, granted, flow, flow_class, flows):
        if not digest:
            raise ValueError
        return play.replay(first, follow, missing, joins, fixed, take, give, free, start, end, granted, flow, flow_class, flows)

    return longest_path, replay


_DIGEST = zlib.crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))) + 1

longest_path, replay = _kept(_DIGEST)
