"""Functions compiled by numba: the loops of `inorder`, `replay` and `fluid`, on arrays. Imported by `fast` alone.

Numba keeps its compiled code with the sources and compiles again when the file of the function changes, but not when
the file of another function changes that it calls. So the functions called from outside are closures over a digest of all
the sources, and only they are kept.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from numba import njit

from hwsim.engine.kernels import columns, flows, play, stations
from hwsim.engine.kernels.requests import play as services
from hwsim.engine.kernels.requests import rows

__all__ = ["begin", "columns", "flows", "longest_path", "play", "play_requests", "replay", "rows", "set_event", "stations"]


def _kept(digest):
    """The functions that are called from outside."""
    kept = njit(cache=True, nogil=True, error_model="numpy")

    @kept
    def longest_path(first, follow, missing, fixed, start, end):
        if digest:
            play.longest_path(first, follow, missing, fixed, start, end)

    @kept
    def replay(first, follow, missing, joins, fixed, take, give, free, start, end, granted, flow, flow_class, flows):
        if not digest:
            raise ValueError
        return play.replay(first, follow, missing, joins, fixed, take, give, free, start, end, granted, flow, flow_class, flows)

    @kept
    def begin(state, entry):
        if digest:
            services.begin(state, entry)

    @kept
    def set_event(state, time, happening, begins):
        if digest:
            services.set_event(state, time, happening, begins)

    @kept
    def play_requests(state, limit, margin):
        if not digest:
            raise ValueError
        return services.play(state, limit, margin)

    functions = longest_path, replay, begin, set_event, play_requests
    for function in functions:
        function._cache = Mended(function._cache)  # noqa: SLF001 (numba has no other way in)
    return functions


class Mended:
    """Numba's files of a function; a damaged one counts as none, and is written anew.

    Numba lets every error of unpickling and linking through, so one torn file would break all large runs until it is removed.
    """

    def __init__(self, cache):
        self._cache = cache

    def __getattr__(self, name):
        return getattr(self._cache, name)

    def load_overload(self, signature, target):
        """Compiled code from the files; None if it has to be compiled."""
        try:
            return self._cache.load_overload(signature, target)
        except Exception:  # noqa: BLE001 (whatever a torn pickle, or torn machine code, raises)
            self._cache.flush()
            return None


_DIGEST = zlib.crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))) + 1

longest_path, replay, begin, set_event, play_requests = _kept(_DIGEST)
