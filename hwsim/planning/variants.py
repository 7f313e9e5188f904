"""Machines and workloads of the points of a plan: files with the values substituted; equal machines are built once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hwsim.api import load_machine
from hwsim.communication import CannotCollect
from hwsim.comparing.class_defaults import as_its_class
from hwsim.machine import Machine, NoRoute
from hwsim.models import Cluster, UnequalCluster, cluster_of
from hwsim.planning.axes import REPLICAS, PlanAxis
from hwsim.planning.question import Question
from hwsim.records import dataclass
from hwsim.spec import Mistake, Mistakes, Place, SpecError, Tree
from hwsim.spec.paths import apply_set
from hwsim.studies.grid import value_text

Values = tuple[tuple[str, object], ...]
MACHINE = "machine"  # path of the axis over machine files
MANY = 8  # number of values of a count from which machines are interpolated first


@dataclass(frozen=True, slots=True)
class PlanPoint:
    """A point of the search space: a machine file and values of the varied paths."""

    number: int
    machine: str
    values: Values

    @property
    def shown(self) -> Values:
        """Values of the point, including the machine file."""
        return ((MACHINE, self.machine), *self.values) if self.machine else self.values

    def get(self, path: str) -> object:
        """Return the value of a path; None if it is not varied."""
        return dict(self.values).get(path)

    @property
    def replicas(self) -> int:
        """Number of equal machines that share the requests."""
        count = self.get(REPLICAS)
        return count if isinstance(count, int) else 1


class Unbuilt(ValueError):
    """An error for a machine or workload that cannot be built; the message is one line."""


@dataclass(slots=True)
class Variants:
    """A cache of files and machines by their values; `of_class`: machines have class defaults instead of measured numbers."""

    question: Question
    of_class: bool = False
    _trees: dict[tuple[object, ...], tuple[Tree, dict[str, Tree]]] = field(default_factory=dict)
    _machines: dict[str, Machine | Unbuilt] = field(default_factory=dict)
    _clusters: dict[str, Cluster | UnequalCluster] = field(default_factory=dict)

    def trees(self, point: PlanPoint) -> tuple[Tree, dict[str, Tree]]:
        """Return machine and workloads with the values of a point.

        Raises:
            Unbuilt: a path does not exist.
        """
        values = tuple((path, value) for path, value in point.values if path != REPLICAS)
        key = (point.machine, *((path, value_text(value)) for path, value in values))
        if key not in self._trees:
            self._trees[key] = self._changed(point.machine, values)
        return self._trees[key]

    def _changed(self, name: str, values: Values) -> tuple[Tree, dict[str, Tree]]:
        machine = dict(self.question.machines)[name] if name else self.question.machines[0][1]
        workloads = dict(self.question.workloads)
        for path, value in (*self.question.settings.items(), *self.settings(values)):
            if value is None:
                continue
            machine, workloads = put_values(machine, workloads, path, value)
        return machine, workloads

    def settings(self, values: Values) -> Values:
        """Return the values as settings, with names replaced by their settings."""
        bundles = {axis.path: axis.bundles for axis in self.question.varied.axes if axis.bundles}
        return tuple(
            pair
            for path, value in values
            for pair in (bundles[path][str(value)].items() if path in bundles else ((path, value),))
        )

    def of_point(self, point: PlanPoint) -> Machine:
        """Return the machine of a point, built once per key.

        Raises:
            Unbuilt: the machine cannot be built.
        """
        key = self.key(point)
        if key not in self._machines:
            try:
                tree = self.trees(point)[0]
                self._machines[key] = load_machine(as_its_class(tree) if self.of_class else tree)
            except SpecError as error:
                self._machines[key] = Unbuilt(on_one_line(error.mistakes))
        built = self._machines[key]
        if isinstance(built, Unbuilt):
            raise built
        return built

    def key(self, point: PlanPoint) -> str:
        """Return the key of a point's machine, which is the same for points that differ only in their workloads."""
        base = dict(self.question.machines)[point.machine] if point.machine else self.question.machines[0][1]
        mine = []
        for path, value in self.settings(point.values):
            if path != REPLICAS and changes_machine(base, self.question.workloads, path):
                mine.append(f"{path}={value_text(value)}")
        return " ".join([point.machine, *mine])

    def cluster(self, machine: Machine, key: str) -> Cluster:
        """Return the machine as a cluster of equal GPUs.

        Raises:
            NotAlike, NoRoute, CannotCollect: the machine is not such a cluster.
        """
        if key not in self._clusters:
            try:
                self._clusters[key] = cluster_of(machine)
            except (UnequalCluster, NoRoute, CannotCollect) as error:
                self._clusters[key] = UnequalCluster(str(error))
        alike = self._clusters[key]
        if isinstance(alike, UnequalCluster):
            raise alike
        return alike


def put_values(machine: Tree, workloads: Mapping[str, Tree], path: str, value: object) -> tuple[Tree, dict[str, Tree]]:
    """Return machine and workloads with one value changed: in the machine, in a workload by name, or a parameter.

    Raises:
        Unbuilt: the path does not exist.
    """
    changed = dict(workloads)
    first, _, rest = path.partition(".")
    try:
        if first == "machine":
            return apply_set(machine, next(iter(workloads.values())), path, value).machine, changed
        if first in workloads and first:
            inside = rest.removeprefix("let.") if rest.startswith("let.") else f"workload.{rest}"
            changed[first] = apply_set(machine, workloads[first], inside, value).workload
            return machine, changed
        if first == "workload" or not rest:
            if len(workloads) > 1:
                raise Unbuilt(
                    f"'{path}' is ambiguous among workloads: {', '.join(f'{name}.{path}' for name in list(workloads)[:3])}"
                )
            for name, workload in workloads.items():
                changed[name] = apply_set(machine, workload, path, value).workload
            return machine, changed
        having = [name for name, tree in workloads.items() if _has_let(tree, rest)]
        if first == "let" and having:
            for name in having:
                new, changed[name], _ = apply_set(machine, workloads[name], path, value)
            return new, changed
        return apply_set(machine, next(iter(workloads.values())), path, value).machine, changed
    except SpecError as error:
        raise Unbuilt(on_one_line(error.mistakes)) from error


def lost_paths(question: Question) -> Mistakes:
    """Return the mistakes of set and varied paths that exist in no machine."""
    mistakes, places = Mistakes(), {path: tree.place for path, tree in question.keys.settings.items()}
    for path, value in question.settings.items():
        mistakes.extend(_lost(question, path, value, places[path]))
    for axis in question.varied.axes:
        if axis.path == REPLICAS:
            continue
        settings = [pair for bundle in axis.bundles.values() for pair in bundle.items()] or [(axis.path, axis.values[0])]
        for path, value in settings:
            mistakes.extend(_lost(question, path, value, axis.place))
    return mistakes


def _lost(question: Question, path: str, value: object, place: Place | None) -> Sequence[Mistake]:
    """Return the mistake of a path that exists in no machine."""
    errors = list[str]()
    for _, machine in question.machines:
        try:
            put_values(machine, question.workloads, path, value)
        except Unbuilt as error:
            errors.append(str(error))
    return [Mistake(place, errors[0])] if len(errors) == len(question.machines) else []


def changes_machine(machine: Tree, workloads: Mapping[str, Tree], path: str) -> bool:
    """Whether a path may change the machine."""
    first, _, rest = path.partition(".")
    if first == "machine":
        return True
    if first == "let" and rest:
        return _has_let(machine, rest) or not any(_has_let(tree, rest) for tree in workloads.values())
    return False


def _has_let(tree: Tree, name: str) -> bool:
    let = tree.get("let")
    return let is not None and let.get(name) is not None


def on_one_line(mistakes: Sequence[Mistake]) -> str:
    """Return the first mistakes on one line, with hints, without duplicates and places."""
    texts = list(dict.fromkeys(mistake.message + (f" ({mistake.hint})" if mistake.hint else "") for mistake in mistakes))
    return "; ".join(texts[:2]) + (f"; and {len(texts) - 2} more" if len(texts) > 2 else "")


def is_interpolated(axis: PlanAxis) -> bool:
    """Whether an axis has too many whole numbers to build a machine for each."""
    numbers = [value for value in axis.values if isinstance(value, int) and not isinstance(value, bool)]
    return len(numbers) == len(axis.values) and (axis.kind == "range" or len(numbers) > MANY)


def gpus_per_unit(cluster: Cluster, other: Cluster, low: int, high: int) -> int:
    """Return the GPUs per unit of a count, if two machines differ only in that count; otherwise 0."""
    each, rest = divmod(cluster.gpus, low)
    alike = replace(cluster, gpus=0) == replace(other, gpus=0)
    return each if alike and not rest and other.gpus == each * high else 0
