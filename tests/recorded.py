"""Small recordings by hand: rows of (what, name, lane, start, duration, link, facts) in microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hwsim.importers.recording import HOST, Rank, RecordedLane, RecordedSlices, Recording, SliceFacts, What

US = 10**9  # fs


class Row(NamedTuple):
    """A slice; lane: "main", "other" are threads, "7" is stream 7 of GPU 0."""

    what: What
    name: str
    lane: str
    start: float
    duration: float
    link: int = -1
    facts: SliceFacts | None = None


def rank(rows: Iterable[Row], number: int = 0, world: int = 0) -> Rank:
    """One rank of these slices."""
    ordered = sorted(rows, key=lambda row: (row.start, -row.duration))
    names: dict[str, int] = {}
    lanes: dict[str, int] = {}
    facts: dict[SliceFacts, int] = {}
    columns = [
        (
            int(row.what),
            names.setdefault(row.name, len(names)),
            lanes.setdefault(row.lane, len(lanes)),
            round(row.start * US),
            round(row.duration * US),
            row.link,
            -1 if row.facts is None else facts.setdefault(row.facts, len(facts)),
        )
        for row in ordered
    ]
    kinds = (np.uint8, np.int32, np.int32, np.int64, np.int64, np.int64, np.int32)
    arrays = [np.array(column, kind) for column, kind in zip(zip(*columns, strict=True), kinds, strict=True)]
    placed = [
        RecordedLane(f"stream {lane}", 0, int(lane)) if lane.isdigit() else RecordedLane(lane, HOST, n)
        for n, lane in enumerate(lanes)
    ]
    return Rank(number, world, f"rank{number}.json", "", (), RecordedSlices(*arrays), tuple(names), tuple(placed), tuple(facts))


def recording(*ranks: Rank) -> Recording:
    """A recording of these ranks."""
    return Recording("by hand", ranks)
