"""Rows of a timeline: identical lanes joined, with their busy and waiting segments."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.formats import family
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass
from hwsim.results.cause import HOST
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.kit.lanes import OpLane, inside, lanes, spent_by

NAMED: Final = 8  # largest number of op names with their own colour
_NUMBERED: Final = re.compile(r"[ .]?\d.*$|[ .]\S*\d.*$")


@dataclass(frozen=True)
class GanttRow:
    """Lanes with identical ops at identical times.

    Args:
        name: name of the queue with its devices.
        low, high: starts and ends of the segments (s), in order, without overlap.
        name_of: number of the op name of each segment.
        waits: whether the op waits or communicates during the segment.
        begin: starts of the ops (s).
        kind: kind of the queue.
    """

    name: str
    low: Floats
    high: Floats
    name_of: Ints
    waits: NDArray[np.bool_]
    begin: Floats
    kind: str = ""

    @property
    def working_s(self) -> float:
        """Busy time (s)."""
        return float((self.high - self.low)[~self.waits].sum())


@dataclass(frozen=True)
class GanttRows:
    """A timeline as data.

    Args:
        rows: rows.
        names: op names in order of appearance; number `len(names)` is any other name.
        others: number of other names.
    """

    rows: tuple[GanttRow, ...]
    names: tuple[str, ...]
    others: int


def rows_of(result: Result) -> GanttRows:
    """Return the rows of a run, in order of their first lanes."""
    labels = result.timeline.flat.graph.labels
    every = dict.fromkeys(label.name for label in labels if label.device)
    short = {name: name if len(every) <= NAMED else _NUMBERED.sub("", name) or name for name in every}
    called = [label.kind if label.kind in HOST else short.get(label.name, "") for label in labels]
    spent = spent_by(result, called)
    longest = set(sorted(spent, key=lambda name: (-spent[name], name))[:NAMED])
    names = tuple(sorted((name for name in dict.fromkeys(called) if name in longest), key=HOST.__contains__))  # HOST last
    number = {name: index for index, name in enumerate(names)}
    of_label = np.array([number.get(name, len(names)) for name in called], np.int64)
    alike: dict[tuple[object, ...], list[OpLane]] = {}
    for lane in lanes(result):
        alike.setdefault(_doing(result, lane, of_label), []).append(lane)
    parts: dict[tuple[object, ...], int] = {}  # number of rows by queue and device family
    for key in alike:
        parts[key[:2]] = parts.get(key[:2], 0) + 1
    rows = tuple(_row(result, members, of_label, whole=parts[key[:2]] == 1) for key, members in alike.items())
    return GanttRows(rows, names, len(spent) - len(names))


def _doing(result: Result, lane: OpLane, of_label: Ints) -> tuple[object, ...]:
    """Return a key that is equal for identical lanes: kind of queue, and start, waiting and end of each op."""
    queue = lane.name.removeprefix(lane.device).lstrip(".")
    ops, timeline = lane.ops, result.timeline
    columns = (result.ops.begin[ops], timeline.end[ops], result.ops.waiting[ops], inside(result, ops))
    times = tuple(column.tobytes() if column.dtype != object else tuple(column.tolist()) for column in columns)
    return (queue, family(lane.device), of_label[timeline.flat.label[ops]].tobytes(), *times)


def _row(result: Result, members: list[OpLane], of_label: Ints, *, whole: bool) -> GanttRow:
    """Return a row for identical lanes; whole: whether they are all lanes of their family."""
    ops = members[0].ops
    begin, end = (times[ops].astype(np.float64) / FEMTO for times in (result.ops.begin, result.timeline.end))
    arrived = begin + result.ops.waiting[ops].astype(np.float64) / FEMTO
    left = arrived + (end - arrived) * (1.0 - inside(result, ops))
    edges = np.stack([begin, arrived, left, end], axis=1)
    low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    lasts = high > low
    names = np.repeat(of_label[result.timeline.flat.label[ops]], 3)
    waits = np.tile(np.array([True, False, True]), len(ops))
    name, shown = _called(members, whole=whole), (low[lasts], high[lasts], names[lasts], waits[lasts])
    return GanttRow(name, *shown, begin, members[0].kind)


def _called(members: list[OpLane], *, whole: bool) -> str:
    first = members[0]
    name = first.name if first.name.startswith(first.device) else f"{first.device}  {first.name}"
    if len(members) == 1:
        return name
    return f"{family(name)} × {len(members)}" if whole else f"{name}\nand {len(members) - 1} identical"
