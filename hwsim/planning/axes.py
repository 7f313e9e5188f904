"""Axes of a plan: values of paths, ranges from which the planner picks, plans of parallelism, batches, replicas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Final, Literal

from hwsim.planning.wants import amount
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree
from hwsim.spec.ranges import is_range, parse_range
from hwsim.studies.grid import parse_values, written
from hwsim.units import COUNT, RATIO, UnitError, parse_as

PICKED: Final = 32  # values of a range without a step that are looked at first
REPLICAS: Final = "replicas"
AUTO: Final = "train.parallel"
BATCH: Final = "train.global_batch"
Kind = Literal["values", "range", "replicas"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A path and the values that it may take.

    Args:
        kind: listed values; whole numbers of a range, from which the planner picks; numbers of equal replicas.
        values: the ends alone if it is a range.
        bundles: settings by name, where the values are names of several settings.
    """

    path: str
    values: tuple[object, ...]
    kind: Kind = "values"
    bundles: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest number."""
        numbers = [int(value) for value in self.values if isinstance(value, int | float)]
        return min(numbers), max(numbers)

    def first(self) -> tuple[object, ...]:
        """Values to look at first: all of a list, of a range at most 32 round ones and its ends.

        >>> Axis("let.nodes", (16, 640), "range").first()[:4], Axis("let.n", (1, 5), "range").first()
        ((16, 32, 64, 96), (1, 2, 3, 4, 5))
        """
        if self.kind == "values":
            return self.values
        low, high = self.ends
        step = 1
        while (high - low) // step + 1 > PICKED:
            step *= 2
        inner = range(-(-low // step) * step, high + 1, step)
        return tuple(sorted({low, *inner, high}))


@dataclass(frozen=True, slots=True)
class Batch:
    """A global batch that may differ from its size: sequences, or tokens, and the part within which it may."""

    size: float
    in_tokens: bool
    within: float

    def sequences(self, tokens: int) -> int:
        """The number of sequences, each of `tokens` tokens."""
        return max(1, round(self.size / tokens if self.in_tokens else self.size))


@dataclass(frozen=True, slots=True)
class Varied:
    """All that may vary.

    Args:
        auto: workloads whose plan of parallelism is looked for; batches: by workload.
    """

    axes: tuple[Axis, ...]
    auto: frozenset[str] = frozenset()
    batches: Mapping[str, Batch] | None = None


def varied_of(tree: Tree | None, workloads: Collection[str], mistakes: Mistakes) -> Varied:
    """The axes that a `vary:` writes; mistakes are noted."""
    axes, auto, batches = list[Axis](), set[str](), dict[str, Batch]()
    if tree is not None and not tree.is_mapping:
        mistakes.add(tree.place, f"`vary` must be a mapping, got {tree.what()}", "vary: {let.nodes: 16..640}")
        return Varied(())
    for path, given in tree.items() if tree is not None else ():
        workload, inside = _of_workload(path, workloads)
        if inside == AUTO and given.value == "auto":
            auto.add(workload)
        elif inside == BATCH and given.is_mapping:
            batch = _batch(given, mistakes)
            if batch is not None:
                batches[workload] = batch
        elif (axis := _axis(path, given, mistakes)) is not None:
            axes.append(replace(axis, place=(tree or given).key_place(path)))
    return Varied(tuple(axes), frozenset(auto), batches)


def _of_workload(path: str, workloads: Collection[str]) -> tuple[str, str]:
    """(name of the workload, path inside); "" of the only one."""
    first, _, rest = path.partition(".")
    if first == "workload":
        return "", rest
    return (first, rest) if first in workloads else ("", "")


def _axis(path: str, given: Tree, mistakes: Mistakes) -> Axis | None:
    if given.is_mapping:
        return _bundles(path, given, mistakes)
    values = list[object]()
    for element in given.elements():
        if not isinstance(element.value, str):
            values.append(element.plain())
            continue
        try:
            if is_range(element.value) and ":" not in element.value and not given.is_list:
                return _range(path, element.value)
            values += parse_values(element.value) if is_range(element.value) else [element.value]
        except UnitError as error:
            mistakes.add(element.place, f"'{path}': {error.message}", error.hint)
            return None
        except SpecError as error:
            for mistake in error.mistakes:
                mistakes.add(element.place, f"'{path}': {mistake.message}", mistake.hint)
            return None
    if not values:
        mistakes.add(given.place, f"'{path}' has no values", "[1, 2, 4] or 1..64")
        return None
    kept = tuple({written(value): value for value in values}.values())
    numbers = all(isinstance(each, int) and not isinstance(each, bool) and each > 0 for each in kept)
    if path == REPLICAS and not numbers:
        mistakes.add(given.place, "`replicas` must be whole numbers of at least 1", "replicas: 1..64")
        return None
    return Axis(path, kept)


def _bundles(path: str, given: Tree, mistakes: Mistakes) -> Axis | None:
    """Names that stand for several settings each: {slow: {let.rate: ndr400}, fast: {let.rate: xdr800, let.radix: 144}}."""
    wrong = [(name, entry) for name, entry in given.items() if not entry.is_mapping]
    if wrong or not given.items():
        bad = wrong[0][1] if wrong else given
        mistakes.add(bad.place, f"'{path}' must be a list, a range, or a mapping of names to settings, got {bad.what()}",
                     "[1, 2, 4], 1..64, or {slow: {let.rate: ndr400}, fast: {let.rate: xdr800}}")  # fmt: skip
        return None
    settings = {name: {inside: value.plain() for inside, value in entry.items()} for name, entry in given.items()}
    return Axis(path, tuple(settings), bundles=settings)


def _range(path: str, text: str) -> Axis:
    """A range without a step: whole numbers.

    Raises:
        UnitError: it is none.
    """
    bounds = parse_range(text)
    if not bounds.whole:
        raise UnitError(f"'{text}' has no step, and its ends are not whole numbers", f"'{text}:x2' or '{text}:log'")
    if path == REPLICAS and bounds.low < 1:
        raise UnitError(f"'{text}': the smallest number of replicas is 1", "1..64")
    return Axis(path, (round(bounds.low), round(bounds.high)), "replicas" if path == REPLICAS else "range")


def _batch(tree: Tree, mistakes: Mistakes) -> Batch | None:
    keys = ("tokens", "sequences", "within")
    for key in dict(tree.items()):
        if key not in keys:
            mistakes.add(tree.key_place(key), f"unknown key '{key}' of a batch", f"known keys: {', '.join(keys)}")
            return None
    sizes = [(key, tree.get(key)) for key in ("tokens", "sequences") if tree.get(key) is not None]
    if len(sizes) != 1:
        mistakes.add(tree.place, "a batch must have exactly one size: `tokens` or `sequences`", "{tokens: 16 M, within: 10 %}")
        return None
    (name, given), within = sizes[0], tree.get("within")
    assert given is not None
    try:
        size = amount(str(given.value), COUNT)
        part = parse_as(str(within.value), RATIO) if within is not None else 0.0
    except UnitError as error:
        mistakes.add(given.place, error.message, error.hint)
        return None
    if size < 1 or not 0.0 <= part < 1.0:
        mistakes.add(tree.place, "a batch must be at least 1, and `within` 0 % to 99 %", "{tokens: 16 M, within: 10 %}")
        return None
    return Batch(size, name == "tokens", part)


def between(seen: Collection[int], axis: Axis, near: Collection[int]) -> tuple[int, ...]:
    """Further numbers of a range: halfway between those seen and their neighbours, around some of them.

    >>> between([16, 32, 64, 96], Axis("let.nodes", (16, 640), "range"), [32])
    (24, 48)
    """
    ordered = sorted(seen)
    more = set[int]()
    for number in near:
        at = ordered.index(number)
        for neighbour in ordered[max(0, at - 1) : at + 2]:
            middle = (number + neighbour) // 2
            if middle not in seen and axis.kind == "range":
                more.add(middle)
    return tuple(sorted(more))
