"""A recording against a run, or against another recording: places of the time, GPUs, kinds of work and ops of both."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hwsim.comparing.recorded.played import OpTime, Played
from hwsim.comparing.recorded.where import Where
from hwsim.records import dataclass
from hwsim.spec import Warning, different
from hwsim.ticks import FEMTO

STATED: Final = 0.8  # part of the critical path of times that a file states, from which on an interval says nothing of the run
NOTHING: Final = OpTime("", "", 0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A place of the time in both, in fs of a step; None where nothing of the kind is known."""

    where: Where
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Ops of one name, or of one kind of work, in both: per GPU and step; None where a run has none of them."""

    name: str
    first: OpTime | None
    second: OpTime | None

    @property
    def apart_s(self) -> float:
        """Seconds of the second less seconds of the first."""
        return (self.second or NOTHING).total_s - (self.first or NOTHING).total_s

    @property
    def longest_s(self) -> float:
        """Seconds of that which takes longer."""
        return max((self.first or NOTHING).total_s, (self.second or NOTHING).total_s)

    @property
    def error(self) -> float | None:
        """(second - first) / first; None where one of them has nothing."""
        if self.first is None or self.second is None or self.first.total_s <= 0:
            return None
        return self.second.total_s / self.first.total_s - 1.0


@dataclass(frozen=True)
class AgainstTrace:
    """Two runs: the first recorded, the second simulated or recorded as well."""

    first: Played
    second: Played

    @property
    def words(self) -> tuple[str, str]:
        """Headings of the columns."""
        return ("A", "B") if self.second.how == "recorded" else ("recorded", "simulated")

    @property
    def error(self) -> float:
        """(second - first) / first, of the time of a step."""
        return self.second.step_s / self.first.step_s - 1.0 if self.first.step_s > 0 else 0.0

    @property
    def is_stated(self) -> bool:
        """Whether most of the simulated run's critical path are times that its file states."""
        return self.second.interval is not None and self.second.interval.stated >= STATED

    @property
    def is_inside(self) -> bool | None:
        """Whether the recorded time lies inside the interval of the simulated one; None where it has none, or states most."""
        sure = self.second.interval
        return None if sure is None or self.is_stated else sure.low <= self.first.step_s * self.second.steps <= sure.high

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warnings of both."""
        return different(self.first.warnings, self.second.warnings)

    @cached_property
    def causes(self) -> tuple[Row, ...]:
        """Places along the critical paths; each column adds up to the time of a step."""
        return self._rows(self.first.path, self.second.path)

    @cached_property
    def of_gpu(self) -> tuple[Row, ...]:
        """Places of the time of a GPU, the mean over all."""
        return self._rows(self.first.mean, self.second.mean) if self.first.devices and self.second.devices else ()

    def _rows(self, first: Any, second: Any) -> tuple[Row, ...]:
        rows = [Row(where, first[where] / self.first.steps, second[where] / self.second.steps) for where in Where]
        return tuple(row for row in rows if row.first or row.second)

    @cached_property
    def families(self) -> tuple[Pair, ...]:
        """Kinds of work, those that differ most first."""
        both = [_summed(_shared(side), lambda op: op.family) for side in (self.first, self.second)]
        return _paired(both[0], both[1])

    @cached_property
    def ops(self) -> tuple[Pair, ...]:
        """Ops of one name in both, those that differ most first; the others follow by their time."""
        pairs = _paired(*(_summed(_shared(side), lambda op: op.name) for side in (self.first, self.second)))
        return (*(pair for pair in pairs if pair.error is not None), *(pair for pair in pairs if pair.error is None))

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: compare-trace/1`."""
        from hwsim.comparing.recorded.say import as_dict

        return as_dict(self)

    def plot(self, path: str | Path) -> Path:
        """Write both timelines one above the other, .png, .svg or .pdf.

        Raises:
            ValueError: another suffix.
        """
        from hwsim.comparing.recorded.figure import figure
        from hwsim.views.kit.figure import suffix_of
        from hwsim.views.kit.writing import write
        from hwsim.views.lanes import draw

        return write(path, draw.render(figure(self), suffix_of(path)))

    def text(self, *, every: bool = False) -> str:
        """Tables of causes, GPUs, kinds of work and ops; every: all ops."""
        from hwsim.comparing.recorded.say import text

        return text(self, every=every)

    def __str__(self) -> str:
        return self.text()


def _shared(side: Played) -> list[OpTime]:
    """Ops of a GPU and a step."""
    many = side.gpus * side.steps
    return [OpTime(op.name, op.family, op.times / many, op.total_s / many, op.waited_s / many) for op in side.ops.values()]


def _summed(ops: list[OpTime], key: Any) -> dict[str, OpTime]:
    sums: dict[str, OpTime] = {}
    for op in ops:
        name = key(op)
        before = sums.get(name, OpTime(name, op.family, 0, 0.0, 0.0))
        sums[name] = OpTime(
            name, before.family, before.times + op.times, before.total_s + op.total_s, before.waited_s + op.waited_s
        )
    return sums


def _paired(first: dict[str, OpTime], second: dict[str, OpTime]) -> tuple[Pair, ...]:
    pairs = [Pair(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    return tuple(sorted(pairs, key=lambda pair: (-round(abs(pair.apart_s) * FEMTO), -pair.longest_s, pair.name)))


def against(first: Played, second: Played) -> AgainstTrace:
    """A recording against a run or another recording; names of both are of the kind that the recording tells."""
    if second.how == "simulated":
        second = replace(second, known_families=first.known_families)
    return AgainstTrace(first, second)
