"""Compute the time of a single statement of the workload language on a device of a machine, without contention."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from hwsim.demand import Cost, Term
from hwsim.devices import CannotCompute, Gpu
from hwsim.formats import precise
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import OPS, CannotPlace, Scope
from hwsim.origins import CASES, Case, Origin, UncertaintySource
from hwsim.records import dataclass
from hwsim.spec import Mistakes, decode, read

Statement = Mapping[str, Mapping[str, Any]]
STREAM: Final = "stream/gpu"  # error model of plain streams, which is too narrow for kernels of a framework
BIG, SMALL = "elementwise/big", "elementwise/tiny"
# Error models of ops without errors of their own: copies staged by a core, and collectives of single messages.
UNSAID: Final = {"copy": "copy/*", **dict.fromkeys(("all-to-all", "gather", "scatter", "barrier", "send"), "nccl/*")}
NEVER: Final = frozenset({"pool", "reduce", "embedding", "rnn"})  # kinds without measured kernels
TINY: Final = 10e-6  # s: shorter kernels have the errors of short kernels
STAGED: Final = Origin("guess", "a CPU core copies to a pinned buffer before the transfer")


class CannotLower(ValueError):
    """An error for a statement that the machine cannot run."""


@dataclass(frozen=True, slots=True)
class LoweredStatement:
    """The time of a statement on a device.

    Args:
        body: time after the start (s).
        start: start time of all its kernels (s).
        lines: derivation of the body, with its errors.
        kind: kind of the statement.
    """

    body: float
    start: float
    lines: tuple[Term, ...]
    kind: str = ""

    def doubts(self, seconds: float, kernels: int = 1) -> tuple[UncertaintySource, ...]:
        """Return the errors of the total time.

        Streams were measured on many devices, but kernels of a framework only on others, and kernels of some kinds never. Short
        kernels consist mainly of their start, which a profiler prolongs, so no measurement is comparable.

        Args:
            seconds: total time, with kernel starts (s).
            kernels: number of kernels.
        """
        longest = max(self.lines, key=lambda line: line.seconds, default=None)
        total = math.fsum(doubt.seconds for doubt in longest.doubts) if longest is not None else 0.0
        kernel = seconds / max(kernels, 1)
        if longest is None or total <= 0 or (self.kind == "copy" and kernel < TINY):
            regime = SMALL if self.kind == "copy" and kernel < TINY else UNSAID.get(self.kind)
            return (UncertaintySource(regime, "outside", f"start of {self.kind}", seconds),) if regime is not None else ()
        return tuple(
            _of_framework(doubt._replace(seconds=doubt.seconds * seconds / total), kernel, self.kind) for doubt in longest.doubts
        )


@dataclass(slots=True)
class Lowering:
    """A cache of lowered statements; each statement is lowered once per device model."""

    machine: Machine
    _known: dict[tuple[str, object], LoweredStatement] = field(default_factory=dict)

    def on(self, statement: Statement, device: str) -> LoweredStatement:
        """Lower a statement on a compute device.

        Raises:
            CannotLower: the device cannot run it.
        """
        (kind, keys), model = next(iter(statement.items())), self.machine.device(device).model
        text = json.dumps({kind: keys}, sort_keys=True)
        return self._once((text, id(model)), lambda: self._lowered(kind, {**keys, "device": device}))

    def _once(self, key: tuple[str, object], lower: Callable[[], LoweredStatement]) -> LoweredStatement:
        if key not in self._known:
            self._known[key] = lower()
        return self._known[key]

    def copy(self, source: str, target: str, size: float, *, pageable: bool = False) -> LoweredStatement:
        """Lower a copy between two devices.

        Raises:
            CannotLower: there is no route between them.
        """
        keys: dict[str, Any] = {"from": source, "to": target, "bytes": f"{size:.0f} B"}
        keys |= {"memory": "pageable"} if pageable else {}

        def lower() -> LoweredStatement:
            lowered = self._lowered("copy", keys)
            return self._staged(lowered, source, target, size) if pageable else lowered

        return self._once((json.dumps(keys), None), lower)

    def _staged(self, copied: LoweredStatement, source: str, target: str, size: float) -> LoweredStatement:
        """Add the copy to a pinned buffer by a CPU core, if the GPU model has no rate of pageable copies."""
        models = {name: self.machine.device(name).model for name in (source, target)}
        cpu = next((name for name, model in models.items() if not isinstance(model, Gpu)), "")
        stated = any(isinstance(model, Gpu) and model.copies.pageable for model in models.values())
        if stated or not cpu:
            return copied
        core = self.on({"elementwise": {"count": max(size / 4.0, 1.0), "inputs": 1, "flop_each": 0.0, "cores": 1}}, cpu)
        seconds = copied.body + core.body
        inputs = (("link", precise(copied.body, "s"), "the machine's links"), ("core", precise(core.body, "s"), STAGED))
        doubt = UncertaintySource("number/guess.bandwidth", "device", "pageable copies, staged by a core", seconds)
        return LoweredStatement(seconds, copied.start, (Term("staged", "link + core", inputs, seconds, "", "floor", (doubt,)),))

    def exchange(self, operation: str, size: float, members: tuple[str, ...]) -> LoweredStatement:
        """Lower a collective among devices, from the arrival of the last one.

        Raises:
            CannotLower: no algorithm supports it.
        """
        keys = {"operation": operation, "among": list(members), "bytes": f"{size:.0f} B"}

        def lower() -> LoweredStatement:
            op, mistakes = self._read("collective", keys), Mistakes()
            try:
                parts = op.parts(self.machine, members, 1, mistakes)
                mistakes.raise_if_any()
            except (CannotPlace, NoRoute, UnknownName, ValueError) as error:
                raise CannotLower(getattr(error, "message", str(error))) from error
            # the first of several concurrent flows takes longest
            costs = [part.cost for index, part in enumerate(parts) if index == 0 or part.after != parts[index - 1].after]
            return replace(self._in_a_row(costs), kind=operation)

        return self._once((json.dumps(keys), None), lower)

    def _read(self, kind: str, keys: Mapping[str, Any]) -> Any:
        mistakes = Mistakes()
        op = decode(read(json.dumps(keys) + "\n"), OPS[kind], mistakes)
        if op is None or len(mistakes):
            raise CannotLower("; ".join(str(mistake.message) for mistake in mistakes))
        return op

    def _lowered(self, kind: str, keys: Mapping[str, Any]) -> LoweredStatement:
        op = self._read(kind, keys)
        try:
            cost = op.lower(Scope(self.machine)).cost
        except (CannotPlace, CannotCompute, UnknownName, NoRoute) as error:
            raise CannotLower(error.message) from error
        if cost is None:
            raise CannotLower(f"a single {kind} has no time in closed form")
        return replace(self._in_a_row([cost]), kind=kind)

    def _in_a_row(self, costs: list[Cost]) -> LoweredStatement:
        rates = self.machine.rates()
        full = [cost.in_full() for cost in costs]
        body = math.fsum(cost.demand.body(rates) for cost in full)
        start = math.fsum(cost.demand.latency for cost in full)
        lines = tuple(term for cost in full for term in cost.why if term.kind != "latency")
        return LoweredStatement(body, start, lines)


def _of_framework(doubt: UncertaintySource, seconds: float, kind: str) -> UncertaintySource:
    """Replace the error of a stream by the error of a framework kernel, and widen the error of short kernels."""
    tiny = seconds < TINY
    if doubt.regime != STREAM:
        return doubt._replace(case="outside") if tiny and doubt.case in CASES else doubt
    least: Case = "outside" if tiny or kind in NEVER else "device"
    case = max(doubt.case, least, key=CASES.index) if doubt.case in CASES else doubt.case
    return doubt._replace(regime=SMALL if tiny else BIG, case=case)


__all__ = ["CannotLower", "LoweredStatement", "Lowering"]
