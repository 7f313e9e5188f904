"""What changed between two measurements, or between two machine files: number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import Kernels
from hwsim.devices.work import Call, elementwise_call, product_call
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, decode, find, read
from hwsim.units import BYTES, UnitError, parse
from hwsim_calibrate.environment import differences
from hwsim_calibrate.store import load, located

UNSTABLE: Final = 0.05  # a number that moves by more is called unstable
SIZES: Final = (1024, 65536, 1 << 20)  # elements at which functions are compared
SIDES: Final = (64, 256, 1024)  # of square matrices
_YAML: Final = (".yaml", ".yml")
_KERNELS: Final = ".kernels."
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

    A measured number is flagged `apart` if its two intervals have nothing in common.  Of functions, what they take at a few
    sizes is compared: their numbers move against each other where the times do not.

    Raises:
        SpecError: a file is neither, one is of each kind, or they have nothing in common.
        OSError: one cannot be read.
    """
    found = _measurements(before, after) if any(_measured(each) for each in (before, after)) else _machines(before, after)
    if not found.changes:
        raise SpecError([Mistake(None, f"'{before}' and '{after}' have nothing in common: no number is in both")])
    return found


def _machines(before: str | Path, after: str | Path) -> Difference:
    for source in (before, after):
        if Path(source).is_file() and not str(source).endswith(_YAML):
            raise _neither(source)
    trees = [read(find("machine", str(each))) for each in (before, after)]
    for source, tree in zip((before, after), trees, strict=True):
        said = tree.text("hwsim") if isinstance(tree.value, Mapping) else None
        if not (said or "").startswith("machine/"):
            raise _neither(source)
    timed = [_functions(tree) for tree in trees]
    numbers = [{path: found for path, found in _numbers(tree) if not (all(timed) and _KERNELS in path)} for tree in trees]
    measured = [{path: found for path, found in each.items() if found.measured} for each in numbers]
    one, two = measured if all(measured) else numbers
    changes = tuple(
        Change(".".join(path.split(".")[:_DEPTH]), path, one[path].value, two[path].value, _apart(one[path], two[path]))
        for path in one
        if path in two
    )
    first, second = timed if all(timed) else ({}, {})
    changes += tuple(
        Change(f"{name[0]}.functions", " ".join(name), first[name], second[name]) for name in first if name in second
    )
    only = [
        (*(each for each in this if each not in that), *dict.fromkeys(" ".join(name[:3]) for name in mine if name not in other))
        for this, that, mine, other in ((one, two, first, second), (two, one, second, first))
    ]
    return Difference(changes, only[0], only[1])


def _neither(source: str | Path) -> SpecError:
    hint = "diff compares what `hwsim calibrate measure` and `fit` write"
    return SpecError([Mistake(None, f"'{source}' is neither measurements nor a machine file", hint)])


def _functions(tree: Tree) -> dict[tuple[str, str, str, str], float]:
    """Seconds of (part, function and form, number format, size), for all functions that a machine's CPUs were measured with."""
    parts = tree.value.get("parts") if isinstance(tree.value, Mapping) else None
    found: dict[tuple[str, str, str, str], float] = {}
    for part, inner in parts.value.items() if parts is not None and isinstance(parts.value, Mapping) else ():
        block = inner.value.get("kernels") if isinstance(inner.value, Mapping) else None
        if block is None:
            continue
        mistakes = Mistakes()
        kernels = decode(block, Kernels, mistakes)
        mistakes.raise_if_any()
        if isinstance(kernels, Kernels):
            found |= {(f"{part}.kernels", *name): kernels.time(call).seconds for name, call in _calls(kernels)}
    return found


def _calls(kernels: Kernels) -> Iterator[tuple[tuple[str, str, str], Call]]:
    """Calls of each function at a few sizes among those that were measured, of each product at a few sides."""
    for entry, function in kernels.functions.items():
        name, _, form = entry.partition(" ")
        low, high = function.counts
        for dtype in function.each or {"fp64": 0.0}:
            for count in sorted({min(max(float(size), low), high) for size in SIZES}):
                rows = math.sqrt(count) if function.row > 0 else 1.0
                if dtype in BYTES:
                    call = elementwise_call(name, form=form, dtype=dtype, count=count if function.each else 0.0, rows=rows)
                    yield (entry, dtype, f"n={count:.6g}"), call
    for dtype in kernels.products:
        for side in SIDES:
            yield ("matmul", dtype, f"{side}x{side}x{side}"), product_call(side, side, side, dtype=dtype)


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
    if str(source).endswith(_YAML):
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
