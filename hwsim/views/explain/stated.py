"""Times that a workload states, by the ops that take them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost
from hwsim.records import dataclass
from hwsim.spec import SpecError, Tree, used
from hwsim.units import TIME, Quantity, UnitError, parse
from hwsim.views.explain.cause import Cause
from hwsim.views.explain.levers import Lever
from hwsim.views.explain.numbers import Number, read, written

_PARAMETER: Final = re.compile(r"\$(\w+)")
_CLOSE: Final = 1e-5  # derivations show six digits


@dataclass(frozen=True, slots=True)
class _Time:
    number: Number
    names: frozenset[str]  # of the statement it stands in, and of its kind


class Stated:
    """Times of a workload's file."""

    def __init__(self, workload: Tree) -> None:
        self._tree = workload
        let = workload.get("let")
        self._let = dict(let.items()) if let is not None else {}
        self._runtime = self._numbers_of_runtime()
        every = list(self._walk(workload, (), frozenset()))
        self._times = [one for one in every if one.number.value > 0]
        self._worked_out = [one for one in every if one.number.value <= 0]

    def against(self, cause: Cause, costs: Sequence[Cost]) -> Lever | None:
        """What halves the times behind a cause; None if no number of the file does."""
        if cause.kind in ("dispatch", "return"):
            return self._of_runtime(cause.kind, costs)
        if cause.kind == "time" and cause.label in ("dispatch", "return"):
            return self._of_runtime(cause.label, costs)
        seconds = {value for cost in costs for value in _told(cost)}
        wanted = cause.label or cause.op
        found = [one for one in self._times if any(_equal(one.number.value, each) for each in seconds)]
        named = [one for one in self._times if wanted in one.names and any(_times(one.number.value, each) for each in seconds)]
        if not named and len(seconds) == 1:  # an expression: the time that it came to
            [value] = seconds
            named = [
                replace(one, number=replace(one.number, value=value, written=""))
                for one in self._worked_out
                if wanted in one.names
            ]
        paths = {one.number.path for one in found}
        chosen = named or (found if len(paths) == 1 else [])
        return Lever.of(one.number for one in chosen) if chosen else self._of_runtime("call", costs)

    def _of_runtime(self, key: str, costs: Sequence[Cost]) -> Lever | None:
        """The numbers of the runtime that are as long as what the thread of the program does."""
        seconds = {value for cost in costs for value in _told(cost)}
        known = {name: each for name, each in self._runtime.items() if any(_equal(each.value, value) for value in seconds)}
        found = known if key not in known or len(seconds) > 1 else {key: known[key]}
        return Lever.of(found.values()) if found else None

    def _numbers_of_runtime(self) -> dict[str, Number]:
        """Times of the runtime by key, those of the file that it uses included."""
        tree, found = self._tree.get("runtime"), dict[str, Number]()
        while tree is not None and tree.is_mapping:
            for key, each in tree.items():
                node = each.get("value") or each
                quantity = read(node)
                if quantity is not None and quantity.dimension is TIME and quantity.value > 0:
                    number = Number("the runtime", key, f"workload.runtime.{key}", quantity.value, "s", written(node))
                    found.setdefault(key, number)
            try:
                tree = used(tree, "runtime")
            except SpecError:
                break
        return found

    def _walk(self, node: Tree, path: tuple[str, ...], names: frozenset[str]) -> Iterator[_Time]:
        if node.is_mapping:
            if node.get("value") is not None:
                yield from self._walk(node.get("value") or node, path, names)
                return
            own = node.text("name")
            names = names | {own} if own else names
            for key, each in node.items():
                if key in ("let", "expect", "notes", "source", "ref"):
                    continue
                below = names | {key} if each.is_mapping else names
                yield from self._walk(each, (*path, key), below)
        elif node.is_list:
            for index, each in enumerate(node.elements()):
                yield from self._walk(each, (*path, str(index)), frozenset())
        else:
            yield from self._leaf(node, path, names)

    def _leaf(self, node: Tree, path: tuple[str, ...], names: frozenset[str]) -> Iterator[_Time]:
        key, full = path[-1] if path else "", f"workload.{'.'.join(path)}"
        parameter = _PARAMETER.fullmatch(node.value) if isinstance(node.value, str) else None
        if parameter is not None and parameter[1] in self._let:
            node, full, key = self._let[parameter[1]], parameter[1], parameter[1]
            node = node.get("value") or node
        quantity = read(node)
        if (
            quantity is None
            and key == "time"
            and isinstance(node.value, str)
            and "$" in node.value
            and full.startswith("workload.")
        ):
            quantity = Quantity(0.0, TIME)
        if quantity is None or quantity.dimension is not TIME:
            return
        name = next((each for each in path[::-1] if not each.isdigit() and each in names), "")
        part = "the workload" if full == key else min(names - {name}) if names - {name} else name or "the workload"
        yield _Time(Number(part, key, full, quantity.value, "s", written(node)), names)


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= _CLOSE * second


def _times(once: float, all_of_them: float) -> bool:
    """Whether the second is a multiple of the first."""
    times = round(all_of_them / once)
    return times >= 1 and abs(all_of_them - times * once) <= _CLOSE * all_of_them


def _told(cost: Cost) -> Iterator[float]:
    """Times among the inputs of a derivation that the workload states."""
    for term in cost.why:
        for _, value, source in term.inputs:
            if source.startswith("workload"):
                try:
                    quantity = parse(value)
                except UnitError:
                    continue
                if quantity.dimension is TIME and quantity.value > 0:
                    yield quantity.value
