"""The demand of an op on a CPU with measured functions (see `kernels`), and the line for unmeasured functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term, Unit
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.kernels import CallTime, MeasuredFunctions
from hwsim.devices.roofline import WORKLOAD, CannotCompute, CapacityDraw, Input, assemble, latency_term, source_of
from hwsim.devices.work import LibraryCall
from hwsim.formats import precise
from hwsim.origins import Case, Cited, UncertaintySource

UNCALIBRATED: Final = "uncalibrated"  # labels of lines about the uncertainty of a time
EXTRAPOLATED: Final = "extrapolated"
RELATED: Final = "related"
KERNEL: Final = "kernel"
USUAL: Final = "time of numpy on one core of an EPYC 9004 (Zen 4), scaled by the clock"
OWN_RATE: Final = ("normal", "uniform")  # functions whose rate a part may state
SLOWER: Final = 2.0  # ratio to the time by peak and bandwidth from which the typical time is used
FUNCTION: Final = "function"  # name of the input that contains the function
REGIMES: Final = {  # regimes of `errors.yaml`, by the standing of a call
    "measured": "program/measured", "interpolated": "program/interpolated", "extrapolated": "program/extrapolated",
    "related": "program/related", "usual": "program/usual",
}  # fmt: skip


def measured_cost(
    cpu: CpuKeys, name: str, call: LibraryCall | None, flop: float, otherwise: Callable[[], Cost], unit: Unit = "FLOP"
) -> Cost:
    """Return the cost of a call from the CPU's measured functions, if it is among them, else from the formulas."""
    kernels = cpu.kernels
    if kernels is None:
        return otherwise() if call is None or call.cores != 1 else _typical_cost(cpu, name, call, flop, unit, otherwise)
    if call is None or (reason := kernels.unknown(call)):
        reason = reason if call else "no function of the library"
        if call is not None and (related := kernels.related(call)) is not None:
            return _cost(cpu, kernels, name, call, flop, unit, related)
        line = Term(
            UNCALIBRATED, "not measured on this machine: function", ((FUNCTION, reason, WORKLOAD),), 0.0,
        )  # fmt: skip
        cost = _with_doubt(otherwise(), call.function if call else "no function")
        if cost.requests is not None and flop > 0 and not _takes_time(cpu, cost):
            raise CannotCompute(
                f"'{name}' has no memory latency",
                "measure it with `hwsim calibrate measure --suite memory`, or add `latency` to its cache levels and its memory",
            )
        return replace(cost, why=(*cost.why, line))
    return _cost(cpu, kernels, name, call, flop, unit, kernels.time(call))


def _typical_cost(cpu: CpuKeys, name: str, call: LibraryCall, flop: float, unit: Unit, otherwise: Callable[[], Cost]) -> Cost:
    """Return the typical time of a call on one core, where peak and bandwidth alone would be far too fast for the library."""
    from hwsim.devices.typical_functions import typical_kernels

    kernels = typical_kernels(cpu.clock_of("", 1))
    if call.function in OWN_RATE or call.function == "matmul":  # a formula with numbers and sources of its own
        return otherwise()
    if kernels.unknown(call):
        return _with_doubt(otherwise(), call.function)
    time = kernels.time(call)
    with suppress(CannotCompute):  # most parts have no peak for integers
        formula = otherwise()
        if time.compute < SLOWER * max((term.seconds for term in formula.why), default=0.0):
            return _with_doubt(formula, call.function)
    cost = _cost(cpu, kernels, name, call, flop, unit, time._replace(standing="usual"))
    lines = tuple(replace(term, label="usual") if term.label == KERNEL else term for term in cost.why)
    return replace(cost, why=lines)


def _with_doubt(cost: Cost, function: str) -> Cost:
    """Add the uncertainty of a formula that replaces a library call."""
    return replace(cost, why=tuple(
        term if term.doubts or term.seconds <= 0 else replace(
            term, doubts=(UncertaintySource("program/formula", "outside", f"formula {function}", term.seconds),)
        ) for term in cost.why
    ))  # fmt: skip


def _takes_time(cpu: CpuKeys, cost: Cost) -> bool:
    """Return whether the accesses have a time: random and dependent ones require a latency, others any positive demand."""
    if cost.requests is not None and cost.requests.pattern in ("random", "dependent"):
        levels = cpu.caches.levels.values() if cpu.caches else ()
        if cpu.memory.latency <= 0 and cpu.memory.dram is None and not any(level.latency or level.cycles for level in levels):
            return False
    return cost.demand.floor > 0 or any(amount > 0 for _, amount in cost.demand.amounts)


def _cost(
    cpu: CpuKeys, kernels: MeasuredFunctions, name: str, call: LibraryCall, flop: float, unit: Unit, time: CallTime
) -> Cost:
    is_related = time.standing == "related"
    sources: dict[str, Cited] = {"related": "similar measured functions", "usual": USUAL}
    kernel_source = source_of(cpu.sources, f"kernels.{kernels.entry(call)}.call")
    source = sources.get(time.standing, kernel_source)
    case: Case = "outside" if time.standing == "usual" else "generation" if kernel_source.kind == "what-if" else "known"
    doubt = UncertaintySource(REGIMES[time.standing], case, f"{name} {call.function}", time.body)
    why = replace(_line(name, time, source), doubts=(doubt,))
    traffic = min(time.memory / cpu.memory.bandwidth, time.body)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(time.memory, "B"), "bytes that miss all caches"),
        ("bandwidth", precise(cpu.memory.bandwidth, "B/s"), source_of(cpu.sources, "memory.bandwidth")),
    )
    memory = Term("memory", "traffic / bandwidth", inputs, traffic, f"{name}.memory")
    cost = assemble(
        [
            CapacityDraw(f"{name}.cores", time.body * kernels.cores, float(cpu.cores), flop, unit, why),
            CapacityDraw(f"{name}.memory", traffic, 1.0, time.memory, "B", memory),
        ],
        clock=f"{name}.cores",
        bandwidth=cpu.memory.bandwidth,
        floor=time.body,
        latencies=[_start(time, source, doubt)] if time.call > 0 else [],
    )
    named = ((FUNCTION, call.function, WORKLOAD),)
    if time.standing == "extrapolated":
        return replace(cost, why=(*cost.why, Term(EXTRAPOLATED, "no size near it was measured: function", named, 0.0)))
    if is_related:
        return replace(cost, why=(*cost.why, Term(RELATED, "by others that were measured: function", named, 0.0)))
    return cost


def _start(time: CallTime, source: Cited, doubt: UncertaintySource) -> Term:
    seconds = time.call * time.ratio
    return replace(latency_term("one call", seconds, source), doubts=(doubt._replace(seconds=seconds),))


def _line(name: str, time: CallTime, source: Cited) -> Term:
    pieces = (
        ("computing", time.compute, "elements, inner loops, flop"),
        ("moving", time.moving, "bytes from beyond the L1 cache"),
        ("looking up", time.lookups, "random lookups in an array"),
        ("new pages", time.pages, "bytes used for the first time"),
    )
    inputs: list[Input] = [
        (piece, precise(seconds, "s"), f"{meaning}: " + source) for piece, seconds, meaning in pieces if seconds > 0
    ]
    formula = " + ".join(piece for piece, _, _ in inputs) or "nothing but the call"
    if abs(time.ratio - 1.0) > 1e-3:
        formula = f"({formula}) x correction"
        inputs.append(("correction", precise(time.ratio, "%"), f"{time.standing}: kernels.corrections"))
    return Term(KERNEL, formula, tuple(inputs), time.body, f"{name}.cores")
