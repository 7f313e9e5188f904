"""Seconds of a statement of the workload language on a device of a machine, alone."""

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
from hwsim.origins import CASES, Case, Doubt, Origin
from hwsim.records import dataclass
from hwsim.spec import Mistakes, decode, read

Statement = Mapping[str, Mapping[str, Any]]
STREAM: Final = "stream/gpu"  # errors of plain streams; kernels of a framework are less sure
BIG, SMALL = "elementwise/big", "elementwise/tiny"
# Errors of what has a time and no errors of its own: copies that a core stages, collectives that are single messages.
UNSAID: Final = {"copy": "copy/*", **dict.fromkeys(("all-to-all", "gather", "scatter", "barrier", "send"), "nccl/*")}
NEVER: Final = frozenset({"pool", "reduce", "embedding", "rnn"})  # kinds whose kernels were never measured
TINY: Final = 10e-6  # seconds: a shorter kernel has the errors of short ones
STAGED: Final = Origin("guess", "a core of the CPU copies to a pinned buffer before the link does")


class CannotLower(ValueError):
    """A statement that the machine cannot run, in words."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A statement on a device.

    Args:
        body: seconds once it has begun; start: seconds before, of all its kernels.
        lines: derivation of the body, with its errors. kind: of the statement.
    """

    body: float
    start: float
    lines: tuple[Term, ...]
    kind: str = ""

    def doubts(self, seconds: float, kernels: int = 1) -> tuple[Doubt, ...]:
        """The errors of its body, for `seconds` that it takes with its starts, in that many kernels.

        Streams of a device that was measured are known, but a framework's kernels were measured on others, and kernels of some
        kinds never. Short ones, of whatever kind, are little but their start, which a profiler makes longer: nothing measured
        is like them.
        """
        longest = max(self.lines, key=lambda line: line.seconds, default=None)
        total = math.fsum(doubt.seconds for doubt in longest.doubts) if longest is not None else 0.0
        kernel = seconds / max(kernels, 1)
        if longest is None or total <= 0 or (self.kind == "copy" and kernel < TINY):
            regime = SMALL if self.kind == "copy" and kernel < TINY else UNSAID.get(self.kind)
            return (Doubt(regime, "outside", f"start of {self.kind}", seconds),) if regime is not None else ()
        return tuple(
            _of_framework(doubt._replace(seconds=doubt.seconds * seconds / total), kernel, self.kind) for doubt in longest.doubts
        )


@dataclass(slots=True)
class Lowering:
    """Statements on the devices of a machine, each lowered once on devices that are alike."""

    machine: Machine
    _known: dict[tuple[str, object], Lowered] = field(default_factory=dict)

    def on(self, statement: Statement, device: str) -> Lowered:
        """The statement on a computing device.

        Raises:
            CannotLower: it cannot run there.
        """
        (kind, keys), model = next(iter(statement.items())), self.machine.device(device).model
        text = json.dumps({kind: keys}, sort_keys=True)
        return self._once((text, id(model)), lambda: self._lowered(kind, {**keys, "device": device}))

    def _once(self, key: tuple[str, object], lower: Callable[[], Lowered]) -> Lowered:
        if key not in self._known:
            self._known[key] = lower()
        return self._known[key]

    def copy(self, source: str, target: str, size: float, *, pageable: bool = False) -> Lowered:
        """A copy between two devices.

        Raises:
            CannotLower: there is no way between them.
        """
        keys: dict[str, Any] = {"from": source, "to": target, "bytes": f"{size:.0f} B"}
        keys |= {"memory": "pageable"} if pageable else {}

        def lower() -> Lowered:
            lowered = self._lowered("copy", keys)
            return self._staged(lowered, source, target, size) if pageable else lowered

        return self._once((json.dumps(keys), None), lower)

    def _staged(self, copied: Lowered, source: str, target: str, size: float) -> Lowered:
        """A copy of pageable memory whose rate the GPU does not state: a core copies to a pinned buffer, then the link does."""
        models = {name: self.machine.device(name).model for name in (source, target)}
        cpu = next((name for name, model in models.items() if not isinstance(model, Gpu)), "")
        stated = any(isinstance(model, Gpu) and model.copies.pageable for model in models.values())
        if stated or not cpu:
            return copied
        core = self.on({"elementwise": {"count": max(size / 4.0, 1.0), "inputs": 1, "flop_each": 0.0, "cores": 1}}, cpu)
        seconds = copied.body + core.body
        inputs = (("link", precise(copied.body, "s"), "the machine's links"), ("core", precise(core.body, "s"), STAGED))
        unsure = Doubt("number/guess.bandwidth", "device", "pageable copies, staged by a core", seconds)
        return Lowered(seconds, copied.start, (Term("staged", "link + core", inputs, seconds, "", "floor", (unsure,)),))

    def exchange(self, operation: str, size: float, members: tuple[str, ...]) -> Lowered:
        """A collective among devices, once all have come.

        Raises:
            CannotLower: no algorithm does it among them.
        """
        keys = {"operation": operation, "among": list(members), "bytes": f"{size:.0f} B"}

        def lower() -> Lowered:
            op, mistakes = self._read("collective", keys), Mistakes()
            try:
                parts = op.parts(self.machine, members, 1, mistakes)
                mistakes.raise_if_any()
            except (CannotPlace, NoRoute, UnknownName, ValueError) as error:
                raise CannotLower(getattr(error, "message", str(error))) from error
            # of flows that run together the first takes longest
            costs = [part.cost for at, part in enumerate(parts) if at == 0 or part.after != parts[at - 1].after]
            return replace(self._in_a_row(costs), kind=operation)

        return self._once((json.dumps(keys), None), lower)

    def _read(self, kind: str, keys: Mapping[str, Any]) -> Any:
        mistakes = Mistakes()
        op = decode(read(json.dumps(keys) + "\n"), OPS[kind], mistakes)
        if op is None or len(mistakes):
            raise CannotLower("; ".join(str(mistake.message) for mistake in mistakes))
        return op

    def _lowered(self, kind: str, keys: Mapping[str, Any]) -> Lowered:
        op = self._read(kind, keys)
        try:
            cost = op.lower(Scope(self.machine)).cost
        except (CannotPlace, CannotCompute, UnknownName, NoRoute) as error:
            raise CannotLower(error.message) from error
        if cost is None:
            raise CannotLower(f"{kind} has no time of its own")
        return replace(self._in_a_row([cost]), kind=kind)

    def _in_a_row(self, costs: list[Cost]) -> Lowered:
        rates = self.machine.rates()
        full = [cost.in_full() for cost in costs]
        body = math.fsum(cost.demand.body(rates) for cost in full)
        start = math.fsum(cost.demand.latency for cost in full)
        lines = tuple(term for cost in full for term in cost.why if term.kind != "latency")
        return Lowered(body, start, lines)


def _of_framework(doubt: Doubt, seconds: float, kind: str) -> Doubt:
    """The error of a framework's kernel of that many seconds in place of a stream's, and of any short one."""
    tiny = seconds < TINY
    if doubt.regime != STREAM:
        return doubt._replace(case="outside") if tiny and doubt.case in CASES else doubt
    least: Case = "outside" if tiny or kind in NEVER else "device"
    case = max(doubt.case, least, key=CASES.index) if doubt.case in CASES else doubt.case
    return doubt._replace(regime=SMALL if tiny else BIG, case=case)


__all__ = ["CannotLower", "Lowered", "Lowering"]
