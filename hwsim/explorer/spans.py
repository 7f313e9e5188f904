"""The timeline as columns of whole numbers, no more of them than pixels: what is sent while a hand moves.

In a lane with many, neighbours of one name with less than a pixel between them are one span, with the part of it that is busy.
Lanes that are equal in every tick are one row, "x 8".
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
from hwsim.views.kit.lanes import Lane, inside, lanes, spent_by
from hwsim.views.kit.spans import merged

TICKS: Final = 1_000_000  # of the part that is shown
ROWS: Final = 64
ALIKE: Final = 8  # rows of one device and kind that come before others, where there are more rows than fit
TINTS: Final = 8  # colours of the page; the last stands for all other names
WIDE: Final = 4  # pixels of a span in the mean, from which all are sent one by one: each is drawn at least a pixel wide
FEW: Final = 8  # names, up to which each has a colour of its own


class Tints:
    """Colours of families of names: the page sends back those that it was given, so that they stay while a hand moves.

    Args:
        given: colours by family.
        whole: whether each name is a family of its own; None: as the first run says.
    """

    def __init__(self, given: Mapping[str, int] | None = None, whole: bool | None = None) -> None:
        self.given, self.whole = dict(given or {}), whole

    def family(self, name: str) -> str:
        """The family of a name: itself, or its first word (`forward 3.conv`: forward), numbers left out."""
        return name if self.whole else family(name.partition(" ")[0])

    def of(self, name: str) -> int:
        """The colour of a name; the last one stands for all families without one."""
        return min(self.given.get(self.family(name), TINTS - 1), TINTS - 1)

    def complete(self, result: Result, names: list[str]) -> None:
        """Give colours to the families that take most of the time, in the order in which they appear; others keep theirs."""
        if self.whole is None:
            self.whole = len(names) <= FEW
        families = {name: self.family(name) for name in names}
        new = [each for each in dict.fromkeys(families.values()) if each not in self.given]
        free = [tint for tint in range(TINTS - 1) if tint not in self.given.values()]
        if len(new) > len(free):
            spent = spent_by(result, families)
            longest = set(sorted(new, key=lambda each: (-spent.get(each, 0.0), each))[: len(free)])
            new = [each for each in new if each in longest]
        self.given.update(zip(new, free, strict=False))


@dataclass(frozen=True, slots=True)
class Spans:
    """Columns for the page, and the row of each op (-1: it has none)."""

    columns: Mapping[str, Any]
    row_of: Ints


def spans(result: Result, tints: Tints, *, pixels: int, part: tuple[float, float]) -> Spans:
    """The lanes in a part of the time (0 to 1), for a number of pixels.

    Args:
        tints: colours given before; it is completed.
    """
    timeline = result.timeline
    labels = timeline.flat.graph.labels
    low, high = (result.makespan_s * each for each in part)
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
    return Spans(columns, row_of)


def _kept(keys: Sequence[tuple[str, object]]) -> set[tuple[str, object]]:
    """The rows that are shown: the first few of each kind, then the others, as many as fit."""
    many: dict[str, int] = {}
    ranked = []
    for key in dict.fromkeys(keys):
        kind = key[0].rstrip(" 0123456789")
        many[kind] = many.get(kind, 0) + 1
        ranked.append((many[kind] > ALIKE, key))
    return {key for _, key in sorted(ranked, key=lambda each: each[0])[:ROWS]}


class _Window:
    """A part of the time, and how its seconds become ticks."""

    def __init__(self, result: Result, low: float, length: float, pixels: int) -> None:
        self.result, self.low, self.length, self.pixels = result, low, length, pixels
        numbers: dict[str, int] = {}
        labels = result.timeline.flat.graph.labels
        self.name_of = np.array(
            [numbers.setdefault(label.name, len(numbers)) if label.device else -1 for label in labels], np.int64
        )
        self.begin, self.waiting = result.ops.begin, result.ops.waiting
        self.communicates = any(training.inside for training in result.timeline.flat.graph.trainings)

    def row(self, lane: Lane) -> dict[str, Any]:
        """A lane's spans as columns."""
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
            begin, end, name = merged(begin, end, name, self.length / self.pixels)
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
            "full": full.tolist(),  # per cent of a merged span in which an op of the row is under way
            "whole": is_whole,
            "ops": len(ops) if len(lane.ops) else 0,
            "bytes": (at.tobytes(), to.tobytes(), name.tobytes(), waits.tobytes()),
        }

    def _ticks(self, seconds: Any) -> Ints:
        ticks: Ints = np.clip(np.rint(seconds * (TICKS / self.length)), 0, TICKS).astype(np.int64)  # fits
        return ticks


def _common(names: Sequence[str]) -> str:
    """The words with which all names of a family begin; the whole name if it is the only one.

    >>> _common(["look up large", "look up small"]), _common(["forward 3.conv", "forward 4.conv"]), _common(["dot 1", "dot"])
    ('look up', 'forward', 'dot')
    """
    words = list(zip(*(name.split(" ") for name in names), strict=False))
    shared = takewhile(lambda each: len(set(each)) == 1, words)
    return " ".join(each[0] for each in shared) or family(words[0][0])
