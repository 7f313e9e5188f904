"""Slices of a rank while they are read: columns that grow, and tables in which equal names, lanes and facts are one entry."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.recording import Facts, Lane, Left, Memory, Slices

US: Final = 10**9  # fs
NS: Final = 10**6
LONGEST: Final = 2**62  # fs: what a column of times holds
DIGITS: Final = 9  # of a fraction of a microsecond


class Columns:
    """Slices in the order of a file. Times are fs from the first one, so that they fit whatever the file's clock starts from."""

    def __init__(self) -> None:
        self.what, self.name, self.lane = array("B"), array("i"), array("i")
        self.start, self.duration, self.link, self.facts = array("q"), array("q"), array("q"), array("i")
        self.names: dict[str, int] = {}
        self.lanes: dict[Hashable, int] = {}
        self.table_of_lanes: list[Lane] = []
        self.facts_of: dict[Hashable, int] = {}
        self.table_of_facts: list[Facts] = []
        self.first: int | None = None  # fs

    def add(self, what: int, name: str, lane: int, start: int, duration: int, link: int = -1, facts: int = -1) -> None:
        """Append a slice; its start is fs of the file's clock.

        Raises:
            OverflowError: a time that is too long.
        """
        if self.first is None:
            self.first = start
        since = start - self.first
        if not (-LONGEST < since < LONGEST and duration < LONGEST):
            raise OverflowError
        names = self.names
        self.what.append(what)
        self.name.append(names[name] if name in names else names.setdefault(name, len(names)))
        self.lane.append(lane)
        self.start.append(since)
        self.duration.append(duration)
        self.link.append(link)
        self.facts.append(facts)

    def lane_of(self, key: Hashable, lane: Lane) -> int:
        """Index of a lane, which is added if it is new."""
        if key not in self.lanes:
            self.lanes[key] = len(self.table_of_lanes)
            self.table_of_lanes.append(lane)
        return self.lanes[key]

    def fact(self, facts: Facts, key: Hashable = None) -> int:
        """Index of facts, which are added if they are new."""
        key = facts if key is None else key
        if key not in self.facts_of:
            self.facts_of[key] = len(self.table_of_facts)
            self.table_of_facts.append(facts)
        return self.facts_of[key]

    def slices(self, shift: int) -> tuple[Slices, NDArray[np.int64]]:
        """Slices in order of start, the longer first, `shift` fs later; and where each was in the file."""
        start, duration = np.frombuffer(self.start, np.int64), np.frombuffer(self.duration, np.int64)
        order = np.lexsort((-duration, start))

        def column(values: array[int], kind: Any) -> Any:
            return np.frombuffer(values, kind)[order] if len(values) else np.empty(0, kind)

        slices = Slices(
            column(self.what, np.uint8), column(self.name, np.int32), column(self.lane, np.int32),
            column(self.start, np.int64) + shift, column(self.duration, np.int64), column(self.link, np.int64),
            column(self.facts, np.int32),
        )  # fmt: skip
        return slices, order


class Allocations:
    """Events of memory while they are read."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []

    def add(self, time: int, size: int, held: int, device: int) -> None:
        """Append an allocation; `time` is fs of the file's clock, `size` is negative for what is freed.

        Raises:
            ValueError: what is no number of bytes.
        """
        if not all(type(each) is int and abs(each) < LONGEST for each in (size, held, device)):
            raise ValueError("bytes of memory are whole numbers")
        self.rows.append((time, size, held, device))

    def memory(self, shift: int) -> Memory | None:
        """Allocations in order of time, `shift` fs later; None if there are none."""
        if not self.rows:
            return None
        rows = sorted(self.rows)
        times = [time + shift for time, *_ in rows]
        if max(map(abs, times)) >= LONGEST:
            raise OverflowError
        return Memory(
            np.array(times, np.int64), np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.int64), np.array([row[3] for row in rows], np.int32),
        )  # fmt: skip


class LeftOut:
    """What a reader does not take: count, time and reason, by name."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[int]] = {}

    def add(self, name: str, why: str, duration: int = 0, count: int = 1) -> None:
        """Count an event."""
        row = self._of.setdefault((name, why), [0, 0])
        row[0] += count
        row[1] += duration

    def rows(self) -> tuple[Left, ...]:
        """The longest first, then the most."""
        rows = [Left(name, count, duration, why) for (name, why), (count, duration) in self._of.items()]
        return tuple(sorted(rows, key=lambda left: (-left.duration, -left.count, left.name)))


def microseconds(value: Any) -> int:
    """Femtoseconds of a number of microseconds, exact whatever its size; a text is a decimal number.

    >>> microseconds(1712867402348256), microseconds("4368938094720.569"), microseconds("1.5e-3")
    (1712867402348256000000000, 4368938094720569000000, 1500000)

    Raises:
        ValueError: no number, or one that is not finite.
    """
    if type(value) is int:
        return value * US
    if type(value) is not str:
        raise ValueError(f"{value!r} is no number of microseconds")
    whole, _, part = value.partition(".")
    if len(part) <= DIGITS and part.isdigit() and whole.isdigit() and part.isascii():
        return int(whole) * US + int(part.ljust(DIGITS, "0"))
    from decimal import Decimal, InvalidOperation

    try:
        number = Decimal(value)
        if not number.is_finite() or abs(number) > LONGEST:
            raise ValueError(f"{value[:40]} is no number of microseconds")
        exact: int = int((number * US).to_integral_value())
        return exact
    except InvalidOperation:
        raise ValueError(f"{value[:40]!r} is no number of microseconds") from None
