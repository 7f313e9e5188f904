"""Changes between two measurements, or between two machine files: number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import Kernels
from hwsim.devices.work import Call, elementwise_call, product_call
from hwsim.spec import Mistakes, SpecError, Tree, decode, find, read
from hwsim.units import BYTES, UnitError, parse
from hwsim_calibrate.environment import differences
from hwsim_calibrate.store import load, located

UNSTABLE: Final = 0.05  # a number that moves by more is called unstable
SIZES: Final = (1024, 65536, 1 << 20)  # elements at which functions are compared
SIDES: Final = (64, 256, 1024)  # sides of square matrices at which products are compared
Timed = tuple[str, str, str, str]  # part, function and form, number format, size
_YAML: Final = (".yaml", ".yml")
_KERNELS: Final = ".kernels."
_DEPTH: Final = 4  # words of a path that a group has in common, as parts.cpu.kernels.functions


@dataclass(frozen=True, slots=True)
class Change:
    """One number in both files; group: the name under which it is counted."""

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
        """Relative change, up or down: 0.05 for 5 %."""
        return math.exp(abs(math.log(self.ratio))) - 1.0


@dataclass(frozen=True, slots=True)
class Difference:
    """All numbers that two files have in common, the names in one of them alone, and differences of the machines."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    machines: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        """Median size of the changes."""
        return median(each.size for each in self.changes) if self.changes else 0.0

    @property
    def unstable(self) -> tuple[Change, ...]:
        """Changes of more than 5 %, the largest first."""
        return tuple(sorted((each for each in self.changes if each.size > UNSTABLE), key=lambda each: -each.size))

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
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
    """Compare two files of measurements, or two machine files by their measured numbers, if both have any.

    A measured number is flagged `apart` if its two intervals do not overlap. Functions are compared by their time at a few sizes,
    because their numbers move against each other where the times do not.

    Raises:
        SpecError: a file is neither, one is of each kind, or they have nothing in common.
        OSError: one cannot be read.
    """
    difference = _measurements(before, after) if _measured(before) or _measured(after) else _machines(before, after)
    if not difference.changes:
        raise SpecError.of(None, f"'{before}' and '{after}' have nothing in common: no number is in both")
    return difference


def _machines(*sources: str | Path) -> Difference:
    if any(Path(source).is_file() and not str(source).endswith(_YAML) for source in sources):
        raise _neither(next(source for source in sources if not str(source).endswith(_YAML)))
    trees = [read(find("machine", str(source))) for source in sources]
    for source, tree in zip(sources, trees, strict=True):
        kind = tree.text("hwsim") if isinstance(tree.value, Mapping) else None
        if not (kind or "").startswith("machine/"):
            raise _neither(source)
    times = [_functions(tree) for tree in trees]
    if not all(times):
        times = [{}, {}]
    numbers = [{path: number for path, number in _numbers(tree) if not (times[0] and _KERNELS in path)} for tree in trees]
    measured = [{path: number for path, number in each.items() if number.measured} for each in numbers]
    before, after = measured if all(measured) else numbers
    changes = [
        Change(".".join(path.split(".")[:_DEPTH]), path, number.value, after[path].value, number.apart(after[path]))
        for path, number in before.items()
        if path in after
    ]
    changes += [
        Change(f"{name[0]}.functions", " ".join(name), seconds, times[1][name])
        for name, seconds in times[0].items()
        if name in times[1]
    ]
    return Difference(tuple(changes), _only(before, after, *times), _only(after, before, *times[::-1]))


def _only(
    numbers: Mapping[str, _Number],
    others: Mapping[str, _Number],
    times: Mapping[Timed, float],
    other_times: Mapping[Timed, float],
) -> tuple[str, ...]:
    """Names of the numbers and functions that one file has and the other has not."""
    functions = dict.fromkeys(" ".join(name[:3]) for name in times if name not in other_times)
    return (*(path for path in numbers if path not in others), *functions)


def _neither(source: str | Path) -> SpecError:
    hint = "diff compares what `hwsim calibrate measure` and `fit` write"
    return SpecError.of(None, f"'{source}' is neither measurements nor a machine file", hint)


def _functions(tree: Tree) -> dict[Timed, float]:
    """Seconds of all measured functions of a machine's CPUs."""
    parts = tree.value.get("parts") if isinstance(tree.value, Mapping) else None
    times: dict[Timed, float] = {}
    for part, inner in parts.value.items() if parts is not None and isinstance(parts.value, Mapping) else ():
        block = inner.value.get("kernels") if isinstance(inner.value, Mapping) else None
        if block is None:
            continue
        mistakes = Mistakes()
        kernels = decode(block, Kernels, mistakes)
        mistakes.raise_if_any()
        if isinstance(kernels, Kernels):
            times |= {(f"{part}.kernels", *name): kernels.time(call).seconds for name, call in _calls(kernels)}
    return times


def _calls(kernels: Kernels) -> Iterator[tuple[tuple[str, str, str], Call]]:
    """Calls of each function at a few of its measured sizes, and of each product at a few sides."""
    for entry, function in kernels.functions.items():
        name, _, form = entry.partition(" ")
        low, high = function.counts
        for dtype in [dtype for dtype in function.each or ("fp64",) if dtype in BYTES]:
            for count in sorted({min(max(float(size), low), high) for size in SIZES}):
                rows = math.sqrt(count) if function.row > 0 else 1.0
                call = elementwise_call(name, form=form, dtype=dtype, count=count if function.each else 0.0, rows=rows)
                yield (entry, dtype, f"n={count:.6g}"), call
    for dtype in kernels.products:
        for side in SIDES:
            yield ("matmul", dtype, f"{side}x{side}x{side}"), product_call(side, side, side, dtype=dtype)


def _measurements(before: str | Path, after: str | Path) -> Difference:
    files = load(before), load(after)
    old, new = ({row.key: row for row in file.rows} for file in files)
    changes = tuple(
        Change(
            f"{row.suite} {row.op}", f"{row.suite}: {row.case}", row.quiet, new[key].quiet, tuple({*row.flags, *new[key].flags})
        )
        for key, row in old.items()
        if key in new
    )
    only = [tuple(": ".join(key) for key in mine if key not in others) for mine, others in ((old, new), (new, old))]
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

    def apart(self, after: _Number) -> tuple[str, ...]:
        """The flag `apart` if the intervals do not overlap."""
        return ("apart",) if self.low > after.high or after.low > self.high else ()


def _numbers(tree: Tree, path: str = "") -> Iterator[tuple[str, _Number]]:
    """Every number of a file that is not 0, in base units, by its path."""
    value: Any = tree.value
    if isinstance(value, Mapping) and "value" in value:
        number, interval = _number(value["value"].value), value.get("ci95")
        low, high = (_number(each.value) for each in interval.elements()) if interval is not None else (0.0, math.inf)
        if number:
            yield path, _Number(number, low, high, measured=True)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key))
    elif tree.is_list:
        for at, inner in enumerate(tree.elements()):
            yield from _numbers(inner, f"{path}[{at}]")
    elif number := _number(value):
        yield path, _Number(number)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        return abs(parse(value).value if isinstance(value, str) else float(value))
    except UnitError:
        return 0.0
