"""Levers for times and workers that a workload states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from hwsim.demand import Cost
from hwsim.devices import WORKLOAD
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.results.cause import Cause
from hwsim.spec import SpecError, Tree, used_file
from hwsim.units import TIME, Quantity, UnitError, parse
from hwsim.views.explain.levers import Lever
from hwsim.views.explain.numbers import FileNumber, scalar_text

_PARAMETER: Final = re.compile(r"\$(\w+)")
_CLOSE: Final = 1e-5  # relative difference; derivations have six digits


@dataclass(frozen=True, slots=True)
class _Time:
    number: FileNumber
    names: frozenset[str]  # name and kind of its statement


class StatedTimes:
    """The times in a workload's file."""

    def __init__(self, workload: Tree) -> None:
        self._tree = workload
        let = workload.get("let")
        self._let = dict(let.items()) if let is not None else {}
        self._runtime = self._numbers_of_runtime()
        times = list(self._walk(workload, (), frozenset()))
        self._times = [time for time in times if time.number.value > 0]
        self._expressions = [time for time in times if time.number.value <= 0]

    def against(self, cause: Cause, costs: Sequence[Cost]) -> Lever | None:
        """Return the lever that halves the times behind a cause; None if no number of the file does."""
        if cause.kind in ("dispatch", "return"):
            return self._of_runtime(cause.kind, costs)
        if cause.kind == "time" and cause.label in ("dispatch", "return"):
            return self._of_runtime(cause.label, costs)
        seconds = {value for cost in costs for value in _stated(cost)}
        op = cause.label or cause.op
        equal = [time for time in self._times if any(_is_equal(time.number.value, value) for value in seconds)]
        named = [
            time for time in self._times if op in time.names and any(_is_multiple(time.number.value, value) for value in seconds)
        ]
        if not named and len(seconds) == 1:  # the value of an expression
            [value] = seconds
            named = [
                replace(time, number=replace(time.number, value=value, written=""))
                for time in self._expressions
                if op in time.names
            ]
        chosen = named or (equal if len({time.number.path for time in equal}) == 1 else [])
        return Lever.of(time.number for time in chosen) if chosen else self._of_runtime("call", costs)

    def workers(self, cause: Cause) -> Iterator[Lever]:
        """Yield the lever that doubles the workers of the pipeline stage that the run waits for."""
        stages, waited = (self._tree.get("pipeline") or self._tree).get("stages"), cause.label or cause.op
        for index, stage in enumerate(stages.elements() if stages is not None else ()):
            ops = [(kind, op.text("name")) for kind, op in stage.items() if op.is_mapping]
            count, path = self._parameter(stage.get("at_once") or stage, f"workload.pipeline.stages.{index}.at_once")
            if count.quantity is not None and waited in chain([stage.text("name")], *ops):
                yield Lever.of([FileNumber(waited, path.split(".")[-1], path, count.quantity.value, "1", scalar_text(count))])

    def _parameter(self, node: Tree, path: str) -> tuple[Tree, str]:
        """Return a value and its path; if it is a parameter, the value and the name of the parameter."""
        found = _PARAMETER.fullmatch(node.value) if isinstance(node.value, str) else None
        if found is None or found[1] not in self._let:
            return node, path
        return self._let[found[1]].get("value") or self._let[found[1]], found[1]

    def _of_runtime(self, key: str, costs: Sequence[Cost]) -> Lever | None:
        """Return the numbers of the runtime that equal a time of the program's thread."""
        seconds = {value for cost in costs for value in _stated(cost)}
        numbers = {
            name: number for name, number in self._runtime.items() if any(_is_equal(number.value, value) for value in seconds)
        }
        if key in numbers and len(seconds) <= 1:
            numbers = {key: numbers[key]}
        return Lever.of(numbers.values()) if numbers else None

    def _numbers_of_runtime(self) -> dict[str, FileNumber]:
        """Return the times of the runtime by key, including the file that it uses."""
        tree, numbers = self._tree.get("runtime"), dict[str, FileNumber]()
        while tree is not None and tree.is_mapping:
            for key, entry in tree.items():
                node = entry.get("value") or entry
                quantity = node.quantity
                if quantity is not None and quantity.dimension is TIME and quantity.value > 0:
                    number = FileNumber("the runtime", key, f"workload.runtime.{key}", quantity.value, "s", scalar_text(node))
                    numbers.setdefault(key, number)
            try:
                tree = used_file(tree, "runtime")
            except SpecError:
                break
        return numbers

    def _walk(self, node: Tree, path: tuple[str, ...], names: frozenset[str]) -> Iterator[_Time]:
        if node.is_mapping:
            if node.get("value") is not None:
                yield from self._walk(node.get("value") or node, path, names)
                return
            name = node.text("name")
            names = names | {name} if name else names
            for key, entry in node.items():
                if key in ("let", "expect", "notes", "source", "ref"):
                    continue
                below = names | {key} if entry.is_mapping else names
                yield from self._walk(entry, (*path, key), below)
        elif node.is_list:
            for index, element in enumerate(node.elements()):
                yield from self._walk(element, (*path, str(index)), frozenset())
        else:
            yield from self._leaf(node, path, names)

    def _leaf(self, node: Tree, path: tuple[str, ...], names: frozenset[str]) -> Iterator[_Time]:
        node, full = self._parameter(node, f"workload.{'.'.join(path)}")
        key = full.rpartition(".")[2]
        quantity = node.quantity
        is_expression = key == "time" and isinstance(node.value, str) and "$" in node.value and full.startswith("workload.")
        if quantity is None and is_expression:
            quantity = Quantity(0.0, TIME)
        if quantity is None or quantity.dimension is not TIME:
            return
        name = next((step for step in path[::-1] if not step.isdigit() and step in names), "")
        part = "the workload" if full == key else min(names - {name}) if names - {name} else name or "the workload"
        yield _Time(FileNumber(part, key, full, quantity.value, "s", scalar_text(node)), names)


def _is_equal(first: float, second: float) -> bool:
    return abs(first - second) <= _CLOSE * second


def _is_multiple(once: float, total: float) -> bool:
    """Return whether the second time is a multiple of the first."""
    times = round(total / once)
    return times >= 1 and abs(total - times * once) <= _CLOSE * total


def _stated(cost: Cost) -> Iterator[float]:
    """Yield the times stated by the workload among the inputs of a derivation."""
    for term in cost.why:
        for _, value, source in term.inputs:
            if isinstance(source, Origin) and source.plain == WORKLOAD:
                try:
                    quantity = parse(value)
                except UnitError:
                    continue
                if quantity.dimension is TIME and quantity.value > 0:
                    yield quantity.value
