"""The part of a prediction's critical path that keeps its recorded time: no error that was measured stands behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from hwsim.importers.recording import Ints
from hwsim.importers.replay import Part
from hwsim.results.critical import critical_path
from hwsim.results.timeline import Timeline

NAMES: Final[Mapping[Part, str]] = {
    Part.HOST: "host threads", Part.START: "host threads", Part.DEVICE: "GPU ops", Part.COLLECTIVE: "collectives",
    Part.LAUNCH: "launches", Part.GAP: "gaps of streams", Part.DELAY: "unexplained", Part.ARRIVE: "collectives",
    Part.MEET: "collectives",
}  # fmt: skip


def as_recorded(timeline: Timeline, part: Ints) -> dict[str, float]:
    """Shares of the critical path that are as recorded, by kind of op, the largest first.

    part: kind of each op, of `Part`.
    """
    path = critical_path(timeline, pools=False)
    if not len(path):
        return {}
    took = (path.end - path.start).astype(np.float64)
    kept = timeline.flat.cost[path.op] < 0  # a predicted op says how its time came about
    kinds, where = np.unique(part[path.op[kept]], return_inverse=True)
    shares: dict[str, float] = {}
    for kind, seconds in zip(kinds.tolist(), np.bincount(where, took[kept]).tolist(), strict=True):
        shares[NAMES[Part(kind)]] = shares.get(NAMES[Part(kind)], 0.0) + seconds
    length = math.fsum(took.tolist())
    rows = [(name, seconds / length) for name, seconds in shares.items() if seconds > 0]
    return dict(sorted(rows, key=lambda each: -each[1]))
