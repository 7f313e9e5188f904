"""Growing columns for the slices of a rank, with tables in which equal names, lanes and facts are one entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.recording import OmittedEvents, RecordedLane, RecordedSlices, SliceFacts

US: Final = 10**9  # fs
NS: Final = 10**6
LONGEST: Final = 2**62  # fs: longest time in a column of 64 bits
DIGITS: Final = 9  # decimal digits of a microsecond, down to 1 fs
BATCH: Final = 1 << 15  # slices per conversion to columns
_KINDS: Final = (np.uint8, np.int32, np.int32, np.int64, np.int64, np.int64, np.int32)  # what, name, lane, start, ...
_THOUSANDTHS: Final = re.compile(r"(?:\d++\.\d{3} )*+", re.ASCII)


class StringTable(dict[str, int]):
    """A table of names and their numbers, in order of first use."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class RecordingTooLong(ValueError):
    """An error for recordings that are too long for whole femtoseconds in columns of 64 bits."""


class SliceColumns:
    """The slices of a file, in its order, with times in fs after the first slice, so that they fit for any epoch.

    Args:
        clock: function that converts times of the file to fs.
        batch: slices per conversion to columns.
    """

    def __init__(self, clock: Callable[[Sequence[Any]], list[int]] = list, batch: int = BATCH) -> None:
        self.clock, self.batch = clock, batch
        self.names = StringTable()
        self.lanes: dict[Hashable, int] = {}
        self.table_of_lanes: list[RecordedLane] = []
        self.facts_of: dict[Hashable, int] = {}
        self.table_of_facts: list[SliceFacts] = []
        self.first: int | None = None  # fs
        self._rows: list[tuple[Any, ...]] = []
        self._columns: list[list[NDArray[Any]]] = [[] for _ in _KINDS]

    def add(self, kind: int, name: str, lane: int, start: Any, duration: Any, link: int = -1, facts: int = -1) -> None:
        """Append a slice, with its start and duration on the clock of the file.

        Raises:
            TypeError, ValueError, OverflowError: a value of the last rows is invalid, negative or too large.
        """
        self._rows.append((kind, name, lane, start, duration, link, facts))
        if len(self._rows) == self.batch:
            self.flush()

    def flush(self) -> None:
        """Convert the rows to columns; raises the same errors as `add`."""
        if not self._rows:
            return
        kind, names, lane, start, duration, link, facts = zip(*self._rows, strict=True)
        numbers = self.names
        starts = self.clock(start)
        first = self.first = starts[0] if self.first is None else self.first
        since, named = [instant - first for instant in starts], [numbers[name] for name in names]
        took = self.clock(duration)
        for time, text in ((max(map(abs, since)), "it starts {} h after the first event"), (max(took), "it lasts {} h")):
            if time >= LONGEST:
                hours = time / (3600 * 10**6 * US)
                limit = f"the limit is {LONGEST / (60 * 10**6 * US):.0f} min"
                raise RecordingTooLong(f"{text.format(f'{hours:.3g}')}, {limit}: record a few steps")
        if set(map(type, names)) != {str}:
            raise ValueError("its name is not a text")
        rows = (kind, named, lane, since, took, link, facts)
        columns = [np.array(row, kind) for row, kind in zip(rows, _KINDS, strict=True)]
        if columns[4].min() < 0:
            raise ValueError("a negative duration")
        if abs(columns[5]).max() >= LONGEST:
            raise OverflowError
        for column, values in zip(self._columns, columns, strict=True):
            column.append(values)
        self._rows.clear()

    def __len__(self) -> int:
        return sum(map(len, self._columns[0])) + len(self._rows)  # integers

    def _column(self, number: int) -> NDArray[Any]:
        self.flush()
        parts = self._columns[number]
        if len(parts) != 1:
            self._columns[number] = parts = [np.concatenate(parts) if parts else np.empty(0, _KINDS[number])]
        return parts[0]

    @property
    def start(self) -> NDArray[np.int64]:
        """Starts, relative to the first slice of the file (fs)."""
        return self._column(3)

    def lane_of(self, key: Hashable, lane: RecordedLane) -> int:
        """Return the index of a lane; add it if it is new."""
        if key not in self.lanes:
            self.lanes[key] = len(self.table_of_lanes)
            self.table_of_lanes.append(lane)
        return self.lanes[key]

    def fact(self, facts: SliceFacts, key: Hashable = None) -> int:
        """Return the index of facts; add them if they are new."""
        key = facts if key is None else key
        if key not in self.facts_of:
            self.facts_of[key] = len(self.table_of_facts)
            self.table_of_facts.append(facts)
        return self.facts_of[key]

    def slices(self, shift: int) -> tuple[RecordedSlices, NDArray[np.int64]]:
        """Return the slices in order of start, the longer first, shifted by `shift` fs, and the position of each in the file."""
        order = np.lexsort((-self._column(4), self._column(3)))
        sorted_columns = []
        for number in range(len(_KINDS)):
            sorted_columns.append(self._column(number)[order])
            self._columns[number] = []
        kind, name, lane, start, duration, link, facts = sorted_columns
        return RecordedSlices(kind, name, lane, start + shift, duration, link, facts), order


class OmittedCounter:
    """The omitted events of a reader: count, time and reason by name."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[int]] = {}

    def add(self, name: str, why: str, duration: int = 0, count: int = 1) -> None:
        """Count an omitted event."""
        row = self._of.setdefault((name, why), [0, 0])
        row[0] += count
        row[1] += max(duration, 0)  # times of omitted events are not checked

    def rows(self) -> tuple[OmittedEvents, ...]:
        """Return the rows, by time, then by count."""
        rows = [OmittedEvents(name, count, duration, why) for (name, why), (count, duration) in self._of.items()]
        return tuple(sorted(rows, key=lambda left: (-left.duration, -left.count, left.name)))


def all_microseconds(values: Sequence[Any]) -> list[int]:
    """Convert many numbers of microseconds to femtoseconds (see `microseconds`), with fast paths for the usual forms."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return [value * US for value in values]
    if kinds == {str} and _THOUSANDTHS.fullmatch(joined := " ".join(values) + " "):
        return [int(value) * NS for value in joined.replace(".", "").split()]
    return [microseconds(value) for value in values]


def microseconds(value: Any) -> int:
    """Convert a number of microseconds to femtoseconds, exactly; a text is a decimal number.

    >>> microseconds(1712867402348256), microseconds("4368938094720.569"), microseconds("1.5e-3")
    (1712867402348256000000000, 4368938094720569000000, 1500000)

    Raises:
        ValueError: the value is no finite number.
    """
    if type(value) is int:
        return value * US
    if type(value) is not str:
        raise ValueError(f"expected a time in us, got {value!r}")
    digits, _, part = value.partition(".")
    if len(part) <= DIGITS and part.isdigit() and digits.isdigit() and part.isascii():
        return int(digits) * US + int(part.ljust(DIGITS, "0"))
    from decimal import Decimal, InvalidOperation

    try:
        number = Decimal(value)
        if not number.is_finite() or abs(number) > LONGEST:
            raise ValueError(f"expected a finite time in us, got {value[:40]}")
        exact: int = int((number * US).to_integral_value())
        return exact
    except InvalidOperation:
        raise ValueError(f"expected a time in us, got {value[:40]!r}") from None
