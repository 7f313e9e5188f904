"""Columns of the varied paths in tables: quantities of one dimension as numbers in SI, with the unit in the heading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hwsim.records import dataclass
from hwsim.studies.grid import written
from hwsim.units import Quantity, UnitError, parse

LARGEST: Final = 2**63 - 1  # whole number of a column


class Column(NamedTuple):
    """A varied path: its heading, and whether its values are whole numbers, numbers or texts."""

    heading: str
    kind: type[int] | type[float] | type[str]

    def cell(self, value: object) -> int | float | str:
        """A value as it stands in the column."""
        if self.kind is str:
            return written(value)
        number = _number(value)
        assert number is not None
        return int(number.value) if self.kind is int else number.value


@dataclass(frozen=True, slots=True)
class _Number:
    value: float | int
    unit: str


def column(path: str, values: Sequence[object]) -> Column:
    """The column of a path that takes these values.

    >>> column("machine.gpu.memory.bandwidth", ["926.052 GB/s", "2 TB/s"])
    Column(heading='machine.gpu.memory.bandwidth [B/s]', kind=<class 'float'>)
    >>> column("gpus", [1, 2]), column("dtype", ["bf16", 1]), column("share", [0.5, "80 %"]).cell("80 %")
    (Column(heading='gpus', kind=<class 'int'>), Column(heading='dtype', kind=<class 'str'>), 0.8)
    """
    numbers = [_number(value) for value in values]
    units = {None if number is None else number.unit for number in numbers}
    if len(units) != 1 or None in units or not values:
        return Column(path, str)
    (unit,) = units
    are_whole = all(isinstance(value, int) and abs(value) <= LARGEST for value in values)
    return Column(f"{path} [{unit}]" if unit else path, int if are_whole else float)


def _number(value: object) -> _Number | None:
    """A value as a number in SI, and its unit; None of anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _Number(value, "")
    try:
        quantity = value if isinstance(value, Quantity) else parse(value) if isinstance(value, str) else None
    except UnitError:
        return None
    if quantity is None:
        return None
    return _Number(quantity.value, "" if quantity.dimension.plain else quantity.dimension.unit)
