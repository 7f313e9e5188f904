"""Compare a recording with a run or another recording: time by category, GPU, kind of work and op.

The figure shows the kernels and transfers of the GPUs and the host threads of both runs over one time axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.comparing.recorded.compared_run import ComparedRun, OpTime
from hwsim.comparing.recorded.time_categories import TimeCategory
from hwsim.formats import format_quantity, percent
from hwsim.machine.contents import within
from hwsim.records import dataclass
from hwsim.spec import Warning, distinct_warnings
from hwsim.ticks import FEMTO
from hwsim.views.kit.answer_forms import FigureAnswer
from hwsim.views.lanes.draw import FigureLane, LaneBars, Lanes

STATED: Final = 0.8  # share of the critical path with stated times, from which on a run has no interval
NOTHING: Final = OpTime("", "", 0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class CategoryTimes:
    """The time of a category in both runs, per step (fs)."""

    where: TimeCategory
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class ComparedOps:
    """The ops of one name or one kind of work in both runs, per GPU and step; None if a run has none."""

    name: str
    first: OpTime | None
    second: OpTime | None

    @property
    def apart_s(self) -> float:
        """Second minus first (s)."""
        return (self.second or NOTHING).total_s - (self.first or NOTHING).total_s

    @property
    def longest_s(self) -> float:
        """The longer of both times (s)."""
        return max((self.first or NOTHING).total_s, (self.second or NOTHING).total_s)

    @property
    def error(self) -> float | None:
        """(second - first) / first; None if one of them is missing."""
        if self.first is None or self.second is None or self.first.total_s <= 0:
            return None
        return self.second.total_s / self.first.total_s - 1.0


@dataclass(frozen=True)
class AgainstTrace(FigureAnswer):
    """A comparison of a recorded run with a simulated or recorded one."""

    first: ComparedRun
    second: ComparedRun
    TABLE: ClassVar = "ops"

    @property
    def words(self) -> tuple[str, str]:
        """Headings of the columns."""
        return ("A", "B") if self.second.how == "recorded" else ("recorded", "simulated")

    @property
    def error(self) -> float:
        """(second - first) / first of the step time."""
        return self.second.step_s / self.first.step_s - 1.0 if self.first.step_s > 0 else 0.0

    @property
    def is_stated(self) -> bool:
        """Whether most of the critical path of the simulated run has stated times."""
        return self.second.interval is not None and self.second.interval.stated >= STATED

    @property
    def is_inside(self) -> bool | None:
        """Whether the recorded time is inside the interval of the simulated run; None if it has no useful interval."""
        sure = self.second.interval
        return None if sure is None or self.is_stated else sure.low <= self.first.step_s * self.second.steps <= sure.high

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warnings of both runs."""
        return distinct_warnings(self.first.warnings, self.second.warnings)

    @cached_property
    def causes(self) -> tuple[CategoryTimes, ...]:
        """Time by category on the critical paths; each column adds up to the step time."""
        return self._rows(self.first.path, self.second.path)

    @cached_property
    def of_gpu(self) -> tuple[CategoryTimes, ...]:
        """Time of a GPU by category, averaged over all GPUs."""
        return self._rows(self.first.mean, self.second.mean) if self.first.devices and self.second.devices else ()

    def _rows(self, first: Any, second: Any) -> tuple[CategoryTimes, ...]:
        rows = [
            CategoryTimes(where, first[where] / self.first.steps, second[where] / self.second.steps) for where in TimeCategory
        ]
        return tuple(row for row in rows if row.first or row.second)

    @cached_property
    def families(self) -> tuple[ComparedOps, ...]:
        """Kinds of work, largest difference first."""
        both = [_summed(_shared(side), lambda op: op.family) for side in (self.first, self.second)]
        return _paired(both[0], both[1])

    @cached_property
    def ops(self) -> tuple[ComparedOps, ...]:
        """Ops that both runs have, largest difference first, then other ops by time."""
        pairs = _paired(*(_summed(_shared(side), lambda op: op.name) for side in (self.first, self.second)))
        return (*(pair for pair in pairs if pair.error is not None), *(pair for pair in pairs if pair.error is None))

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: compare-trace/2`."""
        from hwsim.comparing.recorded.say import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Render both timelines, one above the other."""
        from hwsim.views.lanes import draw

        return draw.render(figure(self), suffix)

    def text(self, *, every: bool = False) -> str:
        """Return tables of causes, GPUs, kinds of work and ops; every: all ops."""
        from hwsim.comparing.recorded.say import text

        return text(self, every=every)

    def __str__(self) -> str:
        return self.text()


def _shared(side: ComparedRun) -> list[OpTime]:
    """Return the ops of a run, per GPU and step."""
    many = side.gpus * side.steps
    return [OpTime(op.name, op.family, op.times / many, op.total_s / many, op.wait_s / many) for op in side.ops.values()]


def _summed(ops: list[OpTime], key: Any) -> dict[str, OpTime]:
    sums: dict[str, OpTime] = {}
    for op in ops:
        name = key(op)
        before = sums.get(name, OpTime(name, op.family, 0, 0.0, 0.0))
        sums[name] = OpTime(name, before.family, before.times + op.times, before.total_s + op.total_s, before.wait_s + op.wait_s)
    return sums


def _paired(first: dict[str, OpTime], second: dict[str, OpTime]) -> tuple[ComparedOps, ...]:
    pairs = [ComparedOps(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    return tuple(sorted(pairs, key=lambda pair: (-round(abs(pair.apart_s) * FEMTO), -pair.longest_s, pair.name)))


def against(first: ComparedRun, second: ComparedRun) -> AgainstTrace:
    """Compare a recording with a run or another recording; a run uses the kinds of work of the recording."""
    if second.how == "simulated":
        second = replace(second, known_families=first.known_families)
    return AgainstTrace(first, second)


SHOWN: Final = 4  # number of GPUs shown of each run
PLACES: Final = (TimeCategory.KERNELS, TimeCategory.TRANSFER, TimeCategory.WAITING, TimeCategory.HOST)


def figure(both: AgainstTrace) -> Lanes:
    """Return the content of the figure."""
    rows = [row for word, side in zip(both.words, (both.first, both.second), strict=True) for row in _rows(word, side)]
    times = ", ".join(f"{word} {format_quantity(side.makespan_s, 's')}" for word, side in
                      zip(both.words, (both.first, both.second), strict=True))  # fmt: skip
    more = max(len(side.devices) for side in (both.first, both.second)) - SHOWN
    hidden = f"; {more} more GPUs not shown" if more > 0 else ""
    title = f"{times} ({percent(both.error, '+.1f')})"
    below = f"{both.first.title}\n{both.second.title}{hidden}"
    end = max(both.first.makespan_s, both.second.makespan_s)
    return Lanes(title, end, tuple(where.words for where in PLACES), tuple(rows), below, PLACES.index(TimeCategory.WAITING))


def _rows(word: str, side: ComparedRun) -> list[FigureLane]:
    """Return the lanes of one run: host, kernels and transfers of each GPU."""
    spans, rows = side.spans, list[FigureLane]()
    is_between = np.array([kind == "python" for _, kind in side.names], np.bool_)[spans.name]
    hosts = [number for number, name in enumerate(side.device_names) if name not in {device.name for device in side.devices}]
    for device in side.devices[:SHOWN]:
        number = side.device_names.index(device.name)
        of_gpu = spans.device == number
        mine = [host for host in hosts if within(side.device_names[host])[0] == within(device.name)[0]]
        of_host = np.isin(spans.device, mine) & (spans.place == TimeCategory.HOST) & ~is_between
        parts = [
            ("host", of_host, (TimeCategory.HOST,)),
            ("kernels", of_gpu & (spans.place == TimeCategory.KERNELS), (TimeCategory.KERNELS,)),
            ("transfer", of_gpu & (spans.place == TimeCategory.TRANSFER), (TimeCategory.TRANSFER, TimeCategory.WAITING)),
        ]
        for name, chosen, places in parts:
            if chosen.any():
                rows.append(FigureLane(word, f"{device.name} {name}", tuple(_bars(side, chosen, where) for where in places)))
    busy = side.mean[TimeCategory.KERNELS] / side.makespan_fs if side.makespan_fs else 0.0
    return [row._replace(block=f"{word}: kernels {percent(busy, '.0f')}") for row in rows]


def _bars(side: ComparedRun, chosen: NDArray[np.bool_], where: TimeCategory) -> LaneBars:
    """Return the bars of one category: the ops, or their waiting."""
    spans = side.spans
    begin, waited, end = spans.begin[chosen], spans.waited[chosen], spans.end[chosen]
    low, high = (begin, begin + waited) if where == TimeCategory.WAITING else (begin + waited, end)
    is_there = high > low
    order = np.argsort(low[is_there], kind="stable")
    from_s, to_s = (times[is_there][order].astype(np.float64) / FEMTO for times in (low, high))
    return LaneBars(PLACES.index(where), from_s, to_s)
