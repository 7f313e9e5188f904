"""The timeline as integer columns with at most one span per pixel, small enough to send while a slider moves.

In a lane with many spans, neighbours of one name less than a pixel apart are merged into a span with its busy share. Identical
lanes share a row ("x 8").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np

from hwsim.formats import family
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.kit.lanes import OpLane, inside, lanes, spent_by
from hwsim.views.kit.spans import merge_spans

TICKS: Final = 1_000_000  # time resolution of the visible part
ROWS: Final = 64
ALIKE: Final = 8  # rows of one kind that have priority if not all rows fit
TINTS: Final = 8  # colours of the page; the last one is for all other names
WIDE: Final = 4  # average pixels per span from which spans are not merged; a span is at least a pixel wide
FEW: Final = 8  # number of names up to which each has its own colour


class Tints:
    """The colours of families of names. The page returns assigned colours with each request, so that they stay stable.

    Args:
        given: assigned colours by family.
        whole: whether each name is its own family; None: decide at the first run.
    """

    def __init__(self, given: Mapping[str, int] | None = None, whole: bool | None = None) -> None:
        self.given, self.whole = dict(given or {}), whole

    def family(self, name: str) -> str:
        """Return the family of a name: the name itself, or its first word without numbers (`forward 3.conv` -> forward)."""
        return name if self.whole else family(name.partition(" ")[0])

    def of(self, name: str) -> int:
        """Return the colour of a name; the last colour is for all families without one."""
        return min(self.given.get(self.family(name), TINTS - 1), TINTS - 1)

    def complete(self, result: Result, names: list[str]) -> None:
        """Assign free colours to the families with most time, in order of appearance; assigned colours stay."""
        if self.whole is None:
            self.whole = len(names) <= FEW
        families = {name: self.family(name) for name in names}
        new = [name for name in dict.fromkeys(families.values()) if name not in self.given]
        free = [tint for tint in range(TINTS - 1) if tint not in self.given.values()]
        if len(new) > len(free):
            spent = spent_by(result, [families.get(label.name, "") for label in result.timeline.flat.graph.labels])
            longest = set(sorted(new, key=lambda name: (-spent.get(name, 0.0), name))[: len(free)])
            new = [name for name in new if name in longest]
        self.given.update(zip(new, free, strict=False))


@dataclass(frozen=True, slots=True)
class TimelineColumns:
    """The columns for the page, and the row of each op; -1 for none."""

    columns: Mapping[str, Any]
    row_of: Ints


def spans(result: Result, tints: Tints, *, pixels: int, part: tuple[float, float]) -> TimelineColumns:
    """Return the lanes in a part of the time (0 to 1).

    Args:
        tints: assigned colours; new ones are added.
        pixels: width of the timeline.
    """
    timeline = result.timeline
    labels = timeline.flat.graph.labels
    low, high = (result.makespan_s * share for share in part)
    window = _Window(result, low, (high - low) or 1.0, pixels)
    all_lanes = lanes(result)
    made = [window.row(lane) for lane in all_lanes]
    total = sum(row.pop("ops") for row in made)  # integers
    keys = [(family(row["name"]), row.pop("bytes")) for row in made]  # equal for rows that look the same
    kept = _kept(keys)
    rows: list[dict[str, Any]] = []
    row_of = np.full(len(timeline), -1, np.int64)
    seen: dict[object, int] = {}
    for lane, row, key in zip(all_lanes, made, keys, strict=True):
        if key not in kept:
            continue
        if key in seen:
            rows[seen[key]]["times"] += 1
        else:
            seen[key] = len(rows)
            rows.append(row)
        row_of[lane.ops] = seen[key]
    names = list(dict.fromkeys(label.name for label in labels if label.device))
    tints.complete(result, names)
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(tints.family(name), []).append(name)
    columns = {
        "lanes": rows,
        "lanes_left": len(all_lanes) - sum(row["times"] for row in rows),  # integers
        "names": names,
        "tints": [tints.of(name) for name in names],
        "families": [
            [_common(members[text]), tint]
            for tint, text in sorted((tint, text) for text, tint in tints.given.items() if text in members)
        ],
        "coloured": {"by": tints.given, "whole": tints.whole},
        "spans": total,
        "sent": sum(len(row["at"]) for row in rows),  # integers
        "part": [low, high],
    }
    return TimelineColumns(columns, row_of)


def _kept(keys: Sequence[tuple[str, object]]) -> set[tuple[str, object]]:
    """Return the visible rows: the first few of each kind, then others, up to the limit."""
    counts: dict[str, int] = {}
    ranked = []
    for key in dict.fromkeys(keys):
        kind = key[0].rstrip(" 0123456789")
        counts[kind] = counts.get(kind, 0) + 1
        ranked.append((counts[kind] > ALIKE, key))
    return {key for _, key in sorted(ranked, key=lambda row: row[0])[:ROWS]}


class _Window:
    """A visible part of the time, which converts seconds to ticks."""

    def __init__(self, result: Result, low: float, length: float, pixels: int) -> None:
        self.result, self.low, self.length, self.pixels = result, low, length, pixels
        numbers: dict[str, int] = {}
        labels = result.timeline.flat.graph.labels
        self.name_of = np.array(
            [numbers.setdefault(label.name, len(numbers)) if label.device else -1 for label in labels], np.int64
        )
        self.begin, self.waiting = result.ops.begin, result.ops.waiting
        self.communicates = any(training.inside for training in result.timeline.flat.graph.trainings)

    def row(self, lane: OpLane) -> dict[str, Any]:
        """Return the spans of a lane as columns."""
        timeline, ops = self.result.timeline, lane.ops
        begin = self.begin[ops].astype(np.float64) / FEMTO
        end = timeline.end[ops].astype(np.float64) / FEMTO
        seen = (end >= self.low) & (begin <= self.low + self.length)
        if not seen.all():
            begin, end, ops = begin[seen], end[seen], ops[seen]
        name = self.name_of[timeline.flat.label[ops]]
        is_whole = WIDE * len(ops) <= self.pixels
        wait = self.waiting[ops].astype(np.float64) / FEMTO if is_whole else np.zeros(0)
        first, full = ops, np.zeros(0, np.int64)
        held = inside(self.result, ops) * (end - begin) if self.communicates else None
        if not is_whole:
            heads, took = begin, end - begin
            begin, end, name = merge_spans(begin, end, name, self.length / self.pixels)
            at = np.minimum(np.searchsorted(heads, begin), len(ops) - 1)
            first, held = ops[at], None if held is None else np.add.reduceat(held, at)
            full = np.clip(np.rint(100 * np.add.reduceat(took, at) / (end - begin)), 1, 100).astype(np.int64)  # count
        waits_inside = np.zeros(0, np.int64) if held is None or not held.any() else self._ticks(np.minimum(held, end - begin))
        at, to = (self._ticks(times - self.low) for times in (begin, end))
        waits = self._ticks(wait) if wait.any() else np.zeros(0, np.int64)
        return {
            "name": lane.name if lane.name.startswith(lane.device) else f"{lane.device} {lane.name}",
            "times": 1,
            "at": at.tolist(),
            "long": (to - at).tolist(),
            "name_of": name.tolist(),
            "op": first.tolist(),
            "wait": waits.tolist(),
            "inside": waits_inside.tolist(),
            "full": full.tolist(),  # busy share of a merged span (per cent)
            "whole": is_whole,
            "ops": len(ops) if len(lane.ops) else 0,
            "bytes": (at.tobytes(), to.tobytes(), name.tobytes(), waits.tobytes()),
        }

    def _ticks(self, seconds: Any) -> Ints:
        ticks: Ints = np.clip(np.rint(seconds * (TICKS / self.length)), 0, TICKS).astype(np.int64)  # fits
        return ticks


def _common(names: Sequence[str]) -> str:
    """Return the common first words of the names of a family; the whole name if there is only one.

    >>> _common(["look up large", "look up small"]), _common(["forward 3.conv", "forward 4.conv"]), _common(["dot 1", "dot"])
    ('look up', 'forward', 'dot')
    """
    words = list(zip(*(name.split(" ") for name in names), strict=False))
    shared = takewhile(lambda column: len(set(column)) == 1, words)
    return " ".join(column[0] for column in shared) or family(words[0][0])
