"""What changed between two measurements, or between two machine files: number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hwsim.calibration.environment import differences
from hwsim.calibration.store import load, located
from hwsim.spec import Tree, read
from hwsim.units import UnitError, parse

UNSTABLE: Final = 0.05  # a number that moves by more is called unstable
_DEPTH: Final = 4  # words of a path that a group has in common, as parts.cpu.kernels.functions


@dataclass(frozen=True, slots=True)
class Change:
    """One number in both files; `group` is what it is counted with."""

    group: str
    name: str
    before: float
    after: float
    flags: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after / self.before

    @property
    def size(self) -> float:
        """How far apart they are, whichever way: 0.05 for 5 %."""
        return math.exp(abs(math.log(self.ratio))) - 1.0


@dataclass(frozen=True, slots=True)
class Difference:
    """All numbers that two files have in common, what only one of them has, and in what the machines differ."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    machines: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        """Of the sizes of all changes."""
        return median(each.size for each in self.changes) if self.changes else 0.0

    @property
    def unstable(self) -> tuple[Change, ...]:
        """Those that moved by more than 5 %, the furthest first."""
        return tuple(sorted((each for each in self.changes if each.size > UNSTABLE), key=lambda each: -each.size))

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "hwsim": "difference/1",
            "median_change": self.median,
            "machines": list(self.machines),
            "changes": [
                {"group": each.group, "name": each.name, "before": each.before, "after": each.after, "flags": list(each.flags)}
                for each in self.changes
            ],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


def diff(before: str | Path, after: str | Path) -> Difference:
    """Two files of measurements, or two machine files: of these the measured numbers, if both have any.

    A measured number is flagged `apart` if its two intervals have nothing in common.

    Raises:
        SpecError: a file is neither, or one is of each kind.
        OSError: one cannot be read.
    """
    if any(_measured(each) for each in (before, after)):
        return _measurements(before, after)
    trees = [read(str(each)) for each in (before, after)]
    measured = [{path: found for path, found in _numbers(tree) if found.measured} for tree in trees]
    one, two = measured if all(measured) else (dict(_numbers(tree)) for tree in trees)
    changes = tuple(
        Change(".".join(path.split(".")[:_DEPTH]), path, one[path].value, two[path].value, _apart(one[path], two[path]))
        for path in one
        if path in two
    )
    return Difference(changes, tuple(each for each in one if each not in two), tuple(each for each in two if each not in one))


def _measurements(before: str | Path, after: str | Path) -> Difference:
    files = load(before), load(after)
    one, two = ({row.key: row for row in each.rows} for each in files)
    changes = tuple(
        Change(
            f"{row.suite} {row.op}", f"{row.suite}: {row.case}", row.quiet, two[key].quiet, tuple({*row.flags, *two[key].flags})
        )
        for key, row in one.items()
        if key in two
    )
    only = [
        tuple(f"{suite}: {case}" for suite, case in this if (suite, case) not in that) for this, that in ((one, two), (two, one))
    ]
    return Difference(changes, only[0], only[1], differences(files[0].environment, files[1].environment))


def _measured(source: str | Path) -> bool:
    if str(source).endswith((".yaml", ".yml")):
        return False
    with located(source).open("rb") as file:
        start = file.read(2)
    return start == b"\x1f\x8b" or start.lstrip()[:1] == b"{"


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of a file; measured ones have an interval."""

    value: float
    low: float = 0.0
    high: float = math.inf
    measured: bool = False


def _apart(one: _Number, two: _Number) -> tuple[str, ...]:
    """Whether their intervals have nothing in common."""
    return ("apart",) if one.low > two.high or two.low > one.high else ()


def _numbers(tree: Tree, path: str = "") -> Iterator[tuple[str, _Number]]:
    """Every number of a file that is not 0, in base units, by its path."""
    value: Any = tree.value
    if isinstance(value, Mapping):
        if "value" in value:
            found, interval = _number(value["value"].value), value.get("ci95")
            low, high = (_number(each.value) for each in interval.elements()) if interval is not None else (0.0, math.inf)
            if found:
                yield path, _Number(found, low, high, measured=True)
            return
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key))
    elif tree.is_list:
        for number, inner in enumerate(tree.elements()):
            yield from _numbers(inner, f"{path}[{number}]")
    else:
        plain = _number(value)
        if plain:
            yield path, _Number(plain)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        return 0.0
    if isinstance(value, int | float):
        return abs(float(value))
    if not isinstance(value, str):
        return 0.0
    try:
        return abs(parse(value).value)
    except UnitError:
        return 0.0
