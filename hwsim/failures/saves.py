"""Checkpoints of a training that is simulated, as its results need them."""

from __future__ import annotations

from hwsim.failures.goodput import Near
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Saves:
    """Checkpoints of a training among the ops of a graph.

    Args:
        mode: sync: the next step waits for the write; async: for the copy alone.
        every: steps, every_s: seconds from one to the next; both 0: where the goodput is largest.
        first: steps before the first one; extra: a step follows the last one, to see what the write costs it.
        size: bytes; target: where to, in words; load_s: seconds to read it back.
        near: copies in memory as well.
    """

    mode: str
    every: int
    every_s: float
    first: int
    extra: bool
    size: float
    target: str
    load_s: float
    near: Near | None = None
