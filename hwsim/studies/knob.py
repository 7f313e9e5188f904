"""The number that `--find` varies: a parameter, a path, or the rate or client count of the workload's only arrivals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree, did_you_mean, resolve
from hwsim.studies.grid import quantity_of
from hwsim.units import RATE, Dimension, Quantity

_DIGITS: Final = 4  # digits of tried values, so that they can be reproduced
_OPEN: Final = {"poisson": ("",), "day": (".mean", ".peak"), "bursts": (".poisson",), "every": ("",)}


@dataclass(frozen=True, slots=True)
class Knob:
    """A number in the files that `--find` varies.

    Args:
        name: name on the command line.
        paths: paths to set, each with a factor of the value or, for `every`, with a dividend.
        start: value in the files (SI units).
        whole: whether it is a whole number.
    """

    name: str
    start: float
    dimension: Dimension
    whole: bool
    paths: tuple[tuple[str, float], ...]
    inverse: bool = False

    def rounded(self, value: float) -> float:
        """Return the nearest allowed value."""
        return float(max(1, round(value))) if self.whole else float(f"{value:.{_DIGITS}g}")

    def settings(self, value: float) -> dict[str, object]:
        """Return paths and values, as for `--set`."""
        return {path: self._written(factor / value if self.inverse else factor * value) for path, factor in self.paths}

    def shown(self, value: float, digits: int = _DIGITS) -> str:
        """Return a value with its unit."""
        if self.whole:
            return f"{value:,.0f}"
        return format_quantity(value, self.dimension.unit, digits) if not self.dimension.plain else f"{value:.{digits}g}"

    def _written(self, value: float) -> object:
        if self.whole:
            return round(value)
        unit = "s" if self.inverse else "" if self.dimension.plain else self.dimension.unit
        return f"{value:.12g} {unit}".strip()


def knob(machine: Tree, workload: Tree, name: str) -> Knob:
    """Return the number with this name in both files, with settings applied.

    Raises:
        SpecError: the files have no such number.
    """
    parameter = _parameter(workload, name)
    if parameter is not None:
        return _plain(name, name, parameter)
    if name == "rate":
        return _rate(workload)
    if name == "clients":
        path, arrivals = _only(workload, lambda each: each.get("clients") is not None, name, "{clients: 64}")
        clients = arrivals.get("clients")
        return _plain(name, f"{path}.clients", clients or arrivals)
    if "." not in name:
        raise _unknown(name, workload)
    first, _, rest = name.partition(".")
    tree = {"machine": machine, "workload": workload}.get(first)
    if first == "let":
        tree, rest = (machine if _parameter(workload, rest) is None else workload), f"let.{rest}"
    node = (
        None
        if tree is None
        else resolve(tree, Mistakes(), kind=first if first in ("machine", "workload") else "workload").at(rest.split("."))
    )
    if node is None:
        raise _unknown(name, workload)
    return _plain(name, name, node)


def _plain(name: str, path: str, tree: Tree) -> Knob:
    quantity = _quantity(tree, name)
    start, is_whole = quantity.value, isinstance(tree.value, int)
    if not start > 0:
        raise SpecError.of(tree.place, f"`{name}` must start above 0 for --find, got {tree.value}", None)
    return Knob(name, start, quantity.dimension, is_whole, ((path, 1.0),))


def _quantity(tree: Tree, name: str) -> Quantity:
    value: Any = tree.value
    inner = tree.get("value") if tree.is_mapping else None
    if inner is not None:
        value = inner.value
    quantity = None if isinstance(value, str) and "$" in value else quantity_of(value)
    if quantity is not None:
        return quantity
    hint = (
        f"use one of its parameters: --find {value.split('$', 1)[1].split()[0]}"
        if isinstance(value, str) and "$" in value
        else None
    )
    raise SpecError.of(tree.place, f"`{name}` must be a number for --find, got {tree.what()}", hint)


def _rate(workload: Tree) -> Knob:
    path, arrivals = _only(
        workload, lambda each: each.is_mapping and any(each.get(way) for way in _OPEN), "rate", "{poisson: 4 1/s}"
    )
    way = next(kind for kind in _OPEN if arrivals.get(kind) is not None)
    paths = [
        (f"{path}.{way}{end}", arrivals.get(way) if not end else (arrivals.get(way) or arrivals).get(end[1:]))
        for end in _OPEN[way]
    ]
    values = [(where, _quantity(tree, "rate").value) for where, tree in paths if tree is not None]
    if not values or not values[0][1] > 0:
        raise SpecError.of(arrivals.place, "the arrival rate must be above 0", "poisson: 4 1/s")
    size = 1.0
    if way == "bursts":
        written = (arrivals.get("bursts") or arrivals).get("size")
        size = _quantity(written, "size").value if written is not None and not written.is_mapping else 1.0
    if way == "every":
        return Knob("rate", 1 / values[0][1], RATE, False, ((values[0][0], 1.0),), inverse=True)
    first = values[0][1] * size
    return Knob("rate", first, RATE, False, tuple((where, value / first) for where, value in values))


def _only(workload: Tree, fits: Callable[[Tree], bool], name: str, example: str) -> tuple[str, Tree]:
    """Return the only arrivals of a kind, and their path."""
    fitting = [(path, tree) for path, tree in _arrivals(workload) if fits(tree)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        message = f"the workload has no parameter `{name}` and no `{name}` in its arrivals"
        raise SpecError.of(Place("--find", 0, 0), message, f"arrivals: {example}; or {_choice(_names(workload))}")
    message = f"{len(fitting)} arrivals have a {name}: {', '.join(path for path, _ in fitting)}"
    raise SpecError.of(Place("--find", 0, 0), message, f"choose one by its path, or add a parameter: let: {{{name}: ...}}")


def _arrivals(workload: Tree) -> Iterator[tuple[str, Tree]]:
    """Return the arrivals of a workload and its jobs, with their paths."""
    jobs = workload.get("jobs")
    places = [("workload", workload), *((f"workload.jobs.{name}", job) for name, job in (jobs.items() if jobs else ()))]
    for path, tree in places:
        infer, services = tree.get("infer"), tree.get("services")
        named = [("infer", infer)] if infer is not None else []
        named += [(f"services.{name}", tree_of_step) for name, tree_of_step in services.items()] if services is not None else []
        for step, tree_of_step in named:
            arrivals = tree_of_step.get("arrivals") if tree_of_step.is_mapping else None
            if arrivals is not None and arrivals.is_mapping:
                yield f"{path}.{step}.arrivals", arrivals


def _parameter(workload: Tree, name: str) -> Tree | None:
    let = workload.get("let")
    return let.get(name) if let is not None and let.is_mapping else None


def _names(workload: Tree) -> list[str]:
    let = workload.get("let")
    return [name for name, _ in let.items()] if let is not None and let.is_mapping else []


def _choice(names: list[str]) -> str:
    return f"a parameter: {', '.join(names)}" if names else "a path, such as workload.infer.arrivals.poisson"


def _unknown(name: str, workload: Tree) -> SpecError:
    """Return the error for a name that is not a number in the files."""
    names = _names(workload)
    closed = {arrival.get("clients") is not None for _, arrival in _arrivals(workload)}
    hint = did_you_mean(name, [*(("rate", "clients")[is_closed] for is_closed in sorted(closed)), *names]) or _choice(names)
    return SpecError.of(Place("--find", 0, 0), f"neither file has a number `{name}`", hint)
