"""Search axes of a plan: values by path, ranges, parallel plans, batches and replicas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Final, Literal

from hwsim.planning.requirements import amount
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree
from hwsim.spec.ranges import is_range, parse_range
from hwsim.studies.grid import parse_values, value_text
from hwsim.units import COUNT, RATIO, UnitError, parse_as

MAX_FIRST_VALUES: Final = 32  # maximum number of values of a range that are evaluated first
REPLICAS: Final = "replicas"
AUTO: Final = "train.parallel"
BATCH: Final = "train.global_batch"
SERVED: Final = "infer"
DEPLOYMENT_AXES: Final = ("tp", "pp", "groups", "ep", "split", "budget", "dtype", "replicas")
Kind = Literal["values", "range", "replicas"]


@dataclass(frozen=True, slots=True)
class PlanAxis:
    """A search axis: a path and its possible values.

    Args:
        path: path of the varied value.
        values: possible values; of a range, its two ends.
        kind: listed values, a range of whole numbers from which the planner selects, or numbers of equal replicas.
        bundles: settings by name, if each value names several settings.
        place: place of the axis in the file.
    """

    path: str
    values: tuple[object, ...]
    kind: Kind = "values"
    bundles: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)

    @property
    def ends(self) -> tuple[int, int]:
        """Smallest and largest number."""
        numbers = [int(value) for value in self.values if isinstance(value, int | float)]
        return min(numbers), max(numbers)

    def first(self) -> tuple[object, ...]:
        """Return the values to evaluate first: all values of a list; of a range, its ends and at most 32 round numbers.

        >>> PlanAxis("let.nodes", (16, 640), "range").first()[:4], PlanAxis("let.n", (1, 5), "range").first()
        ((16, 32, 64, 96), (1, 2, 3, 4, 5))
        """
        if self.kind == "values":
            return self.values
        low, high = self.ends
        step = 1
        while (high - low) // step + 1 > MAX_FIRST_VALUES:
            step *= 2
        inner = range(-(-low // step) * step, high + 1, step)
        return tuple(sorted({low, *inner, high}))


@dataclass(frozen=True, slots=True)
class GlobalBatch:
    """A global batch with a tolerance.

    Args:
        size: number of sequences, or of tokens.
        in_tokens: whether `size` counts tokens.
        within: largest relative difference from `size`.
    """

    size: float
    in_tokens: bool
    within: float

    def sequences(self, tokens: int) -> int:
        """Return the number of sequences of `tokens` tokens each."""
        return max(1, round(self.size / tokens if self.in_tokens else self.size))


@dataclass(frozen=True, slots=True)
class PlanAxes:
    """The search space of a plan.

    Args:
        axes: search axes.
        auto: workloads whose parallel plan is searched.
        batches: batches with a tolerance, by workload.
        deployments: axes of the deployment of a served model that are searched; None without such a search.
    """

    axes: tuple[PlanAxis, ...]
    auto: frozenset[str] = frozenset()
    batches: Mapping[str, GlobalBatch] | None = None
    deployments: frozenset[str] | None = None


def read_axes(tree: Tree | None, workloads: Collection[str], mistakes: Mistakes) -> PlanAxes:
    """Parse a `vary:`; add its mistakes to `mistakes`."""
    axes, auto, batches, deployments = list[PlanAxis](), set[str](), dict[str, GlobalBatch](), None
    if tree is not None and not tree.is_mapping:
        mistakes.add(tree.place, f"`vary` must be a mapping, got {tree.what()}", "vary: {let.nodes: 16..640}")
        return PlanAxes(())
    for path, given in tree.items() if tree is not None else ():
        if path in ("rent", "provider"):
            mistakes.add(given.place, f"`{path}` is a key of the plan", "set it once: the answer lists all payments")
            continue
        workload, inside = _of_workload(path, workloads)
        if inside == AUTO and given.value == "auto":
            auto.add(workload)
        elif inside == SERVED:
            deployments = _deployment_axes(given, workloads, mistakes)
        elif inside == BATCH and given.is_mapping:
            batch = _batch(given, mistakes)
            if batch is not None:
                batches[workload] = batch
        elif (axis := _axis(path, given, mistakes)) is not None:
            axes.append(replace(axis, place=(tree or given).key_place(path)))
    return PlanAxes(tuple(axes), frozenset(auto), batches, deployments)


def _deployment_axes(given: Tree, workloads: Collection[str], mistakes: Mistakes) -> frozenset[str]:
    """Parse the axes of a served model: `auto`, or a list of them; the number of replicas is always one."""
    names = DEPLOYMENT_AXES if given.value == "auto" else [entry.value for entry in given.elements()]
    if unknown := [name for name in names if name not in DEPLOYMENT_AXES]:
        mistakes.add(
            given.place, f"unknown axis '{unknown[0]}' of a deployment", f"auto, or a list of {', '.join(DEPLOYMENT_AXES)}"
        )
    if len(workloads) > 1:
        mistakes.add(given.place, "the deployment of one served model can be searched, got several workloads", "one workload")
    return frozenset(str(name) for name in (*names, REPLICAS))


def _of_workload(path: str, workloads: Collection[str]) -> tuple[str, str]:
    """Split a path into the workload's name ("" for a single workload) and the path inside it."""
    first, _, rest = path.partition(".")
    if first == "workload":
        return "", rest
    return (first, rest) if first in workloads else ("", "")


def _axis(path: str, given: Tree, mistakes: Mistakes) -> PlanAxis | None:
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
    kept = tuple({value_text(value): value for value in values}.values())
    numbers = all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in kept)
    if path == REPLICAS and not numbers:
        mistakes.add(given.place, "`replicas` must be whole numbers of at least 1", "replicas: 1..64")
        return None
    return PlanAxis(path, kept)


def _bundles(path: str, given: Tree, mistakes: Mistakes) -> PlanAxis | None:
    """Parse names that each represent several settings: {slow: {let.rate: ndr400}, fast: {let.rate: xdr800, let.radix: 144}}."""
    wrong = [(name, entry) for name, entry in given.items() if not entry.is_mapping]
    if wrong or not given.items():
        bad = wrong[0][1] if wrong else given
        mistakes.add(bad.place, f"'{path}' must be a list, a range, or a mapping of names to settings, got {bad.what()}",
                     "[1, 2, 4], 1..64, or {slow: {let.rate: ndr400}, fast: {let.rate: xdr800}}")  # fmt: skip
        return None
    settings = {name: {inside: value.plain() for inside, value in entry.items()} for name, entry in given.items()}
    return PlanAxis(path, tuple(settings), bundles=settings)


def _range(path: str, text: str) -> PlanAxis:
    """Parse a range of whole numbers without a step.

    Raises:
        UnitError: the ends are not whole numbers.
    """
    bounds = parse_range(text)
    if not bounds.whole:
        raise UnitError(f"'{text}' has no step, and its ends are not whole numbers", f"'{text}:x2' or '{text}:log'")
    if path == REPLICAS and bounds.low < 1:
        raise UnitError(f"'{text}': the smallest number of replicas is 1", "1..64")
    return PlanAxis(path, (round(bounds.low), round(bounds.high)), "replicas" if path == REPLICAS else "range")


def _batch(tree: Tree, mistakes: Mistakes) -> GlobalBatch | None:
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
    return GlobalBatch(size, name == "tokens", part)


def values_between(seen: Collection[int], axis: PlanAxis, near: Collection[int]) -> tuple[int, ...]:
    """Return further numbers of a range: halfway between evaluated neighbours of the numbers in `near`.

    >>> values_between([16, 32, 64, 96], PlanAxis("let.nodes", (16, 640), "range"), [32])
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
