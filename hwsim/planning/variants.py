"""Machines and workloads of the points of a plan: both files with the values put in, built once where they are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hwsim.api import load_machine
from hwsim.communication import CannotCollect
from hwsim.comparing.alike import as_its_class
from hwsim.machine import Machine, NoRoute
from hwsim.models import Cluster, NotAlike, cluster_of
from hwsim.planning.axes import REPLICAS, Axis
from hwsim.planning.question import Question
from hwsim.records import dataclass
from hwsim.spec import Mistake, Mistakes, Place, SpecError, Tree
from hwsim.spec.paths import apply_set
from hwsim.studies.grid import written

Values = tuple[tuple[str, object], ...]
MACHINE = "machine"  # the axis of several machine files
MANY = 8  # values of a count from which machines between two of them are not built for a first look


@dataclass(frozen=True, slots=True)
class Point:
    """A point: the machine file and the values of the varied paths, by which it is also named."""

    number: int
    machine: str
    values: Values

    @property
    def shown(self) -> Values:
        """Its values, the machine's file among them."""
        return ((MACHINE, self.machine), *self.values) if self.machine else self.values

    def get(self, path: str) -> object:
        """The value of a path; None if it is not varied."""
        return dict(self.values).get(path)

    @property
    def replicas(self) -> int:
        """Equal machines that share the requests."""
        count = self.get(REPLICAS)
        return count if isinstance(count, int) else 1


class Unbuilt(ValueError):
    """A machine or a workload that cannot be; the message says why, in one line."""


@dataclass(slots=True)
class Variants:
    """Trees and machines by the values that they have; of_class: what was measured of a machine is left to its class."""

    question: Question
    of_class: bool = False
    _trees: dict[tuple[object, ...], tuple[Tree, dict[str, Tree]]] = field(default_factory=dict)
    _machines: dict[str, Machine | Unbuilt] = field(default_factory=dict)
    _clusters: dict[str, Cluster | NotAlike] = field(default_factory=dict)

    def trees(self, point: Point) -> tuple[Tree, dict[str, Tree]]:
        """Machine and workloads with the values of a point.

        Raises:
            Unbuilt: a path leads nowhere in them.
        """
        values = tuple((path, value) for path, value in point.values if path != REPLICAS)
        key = (point.machine, *((path, written(value)) for path, value in values))
        if key not in self._trees:
            self._trees[key] = self._changed(point.machine, values)
        return self._trees[key]

    def _changed(self, name: str, values: Values) -> tuple[Tree, dict[str, Tree]]:
        machine = dict(self.question.machines)[name] if name else self.question.machines[0][1]
        workloads = dict(self.question.workloads)
        for path, value in (*self.question.settings.items(), *self.settings(values)):
            if value is None:
                continue
            machine, workloads = put(machine, workloads, path, value)
        return as_its_class(machine) if self.of_class else machine, workloads

    def settings(self, values: Values) -> Values:
        """Values with the settings that names among them stand for."""
        bundles = {axis.path: axis.bundles for axis in self.question.varied.axes if axis.bundles}
        return tuple(
            pair
            for path, value in values
            for pair in (bundles[path][str(value)].items() if path in bundles else ((path, value),))
        )

    def of_point(self, point: Point) -> Machine:
        """The machine of a point, built once for its key.

        Raises:
            Unbuilt: it cannot be.
        """
        key = self.key(point)
        if key not in self._machines:
            try:
                self._machines[key] = load_machine(self.trees(point)[0])
            except SpecError as error:
                self._machines[key] = Unbuilt(in_a_line(error.mistakes))
        built = self._machines[key]
        if isinstance(built, Unbuilt):
            raise built
        return built

    def key(self, point: Point) -> str:
        """Name of the machine of a point: the same for points whose values change the workloads alone."""
        base = dict(self.question.machines)[point.machine] if point.machine else self.question.machines[0][1]
        mine = []
        for path, value in self.settings(point.values):
            if path != REPLICAS and changes_machine(base, self.question.workloads, path):
                mine.append(f"{path}={written(value)}")
        return " ".join([point.machine, *mine])

    def cluster(self, machine: Machine, key: str) -> Cluster:
        """The machine as a cluster of equal GPUs.

        Raises:
            NotAlike, NoRoute, CannotCollect: it is none.
        """
        if key not in self._clusters:
            try:
                self._clusters[key] = cluster_of(machine)
            except (NotAlike, NoRoute, CannotCollect) as error:
                self._clusters[key] = NotAlike(str(error))
        alike = self._clusters[key]
        if isinstance(alike, NotAlike):
            raise alike
        return alike


def put(machine: Tree, workloads: Mapping[str, Tree], path: str, value: object) -> tuple[Tree, dict[str, Tree]]:
    """Machine and workloads with one value changed: of the machine, of a workload by name, or a parameter where there is one.

    Raises:
        Unbuilt: the path leads nowhere.
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
        raise Unbuilt(in_a_line(error.mistakes)) from error


def lost_paths(question: Question) -> Mistakes:
    """Mistakes of set and varied paths that lead nowhere, in whichever machine."""
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
    """The mistake of a path that leads nowhere in all machines."""
    errors = list[str]()
    for _, machine in question.machines:
        try:
            put(machine, question.workloads, path, value)
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


def in_a_line(mistakes: Sequence[Mistake]) -> str:
    """The first mistakes, each once and with its hint, without places in files."""
    texts = list(dict.fromkeys(mistake.message + (f" ({mistake.hint})" if mistake.hint else "") for mistake in mistakes))
    return "; ".join(texts[:2]) + (f"; and {len(texts) - 2} more" if len(texts) > 2 else "")


def counted(axis: Axis) -> bool:
    """Whether an axis has too many whole numbers to build every machine for a first look."""
    numbers = [value for value in axis.values if isinstance(value, int) and not isinstance(value, bool)]
    return len(numbers) == len(axis.values) and (axis.kind == "range" or len(numbers) > MANY)


def scaled(cluster: Cluster, other: Cluster, low: int, high: int) -> int:
    """GPUs of one of a count, if two machines differ by nothing but that count; else 0."""
    each, rest = divmod(cluster.gpus, low)
    alike = replace(cluster, gpus=0) == replace(other, gpus=0)
    return each if alike and not rest and other.gpus == each * high else 0
