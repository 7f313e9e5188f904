"""Table columns of varied paths: quantities of one dimension as numbers in SI units, with the unit in the heading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hwsim.studies.grid import quantity_of, value_text

LARGEST: Final = 2**63 - 1  # largest whole number of a column


class PathColumn(NamedTuple):
    """A column of a varied path: its heading, and whether its values are whole numbers, numbers or texts."""

    heading: str
    kind: type[int] | type[float] | type[str]

    def cell(self, value: object) -> int | float | str:
        """Return a value as a cell of the column."""
        if self.kind is str:
            return value_text(value)
        if isinstance(value, int | float):
            return value
        number = quantity_of(value)
        assert number is not None
        return number.value


def column(path: str, values: Sequence[object]) -> PathColumn:
    """Return the column of a path with these values.

    >>> column("machine.gpu.memory.bandwidth", ["926.052 GB/s", "2 TB/s"])
    PathColumn(heading='machine.gpu.memory.bandwidth [B/s]', kind=<class 'float'>)
    >>> column("gpus", [1, 2]), column("dtype", ["bf16", 1]), column("share", [0.5, "80 %"]).cell("80 %")
    (PathColumn(heading='gpus', kind=<class 'int'>), PathColumn(heading='dtype', kind=<class 'str'>), 0.8)
    """
    numbers = [quantity_of(value) for value in values]
    units = {None if number is None else "" if number.dimension.plain else number.dimension.unit for number in numbers}
    if len(units) != 1 or None in units or not values:
        return PathColumn(path, str)
    (unit,) = units
    are_whole = all(isinstance(value, int) and abs(value) <= LARGEST for value in values)
    return PathColumn(f"{path} [{unit}]" if unit else path, int if are_whole else float)
