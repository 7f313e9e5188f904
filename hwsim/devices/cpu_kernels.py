"""The demand of an op on a CPU whose functions were measured (see `kernels`), and the line for a function that was not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term, Unit
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.kernels import Kernels, Time
from hwsim.devices.roofline import CannotCompute, Draw, Input, assemble, latency_term, source_of
from hwsim.devices.work import Call
from hwsim.formats import precise

UNCALIBRATED: Final = "uncalibrated"  # labels of lines that say how well a time is known
EXTRAPOLATED: Final = "extrapolated"


def measured_cost(
    cpu: CpuKeys, name: str, call: Call | None, flop: float, otherwise: Callable[[], Cost], unit: Unit = "FLOP"
) -> Cost:
    """The cost of a call if the CPU's functions were measured and this one among them, else what the formulas say."""
    if cpu.kernels is None:
        return otherwise()
    if call is None or (reason := cpu.kernels.unknown(call)):
        reason = reason if call else "no function of the library"
        line = Term(UNCALIBRATED, f"not measured on this machine: {reason}", (), 0.0)
        cost = otherwise()
        if cost.requests is not None and flop > 0 and not _takes_time(cpu, cost):
            raise CannotCompute(
                f"'{name}' does not say what an access takes",
                "hwsim calibrate measure --suite memory finds it out; or add `latency` to its levels of cache and its memory",
            )
        return replace(cost, why=(*cost.why, line))
    return _cost(cpu, cpu.kernels, name, call, flop, unit)


def _takes_time(cpu: CpuKeys, cost: Cost) -> bool:
    """Whether accesses were given a time: those that wait for each other need a latency, all others anything."""
    if cost.requests is not None and cost.requests.pattern in ("random", "dependent"):
        levels = cpu.caches.levels.values() if cpu.caches else ()
        if cpu.memory.latency <= 0 and cpu.memory.dram is None and not any(each.latency or each.cycles for each in levels):
            return False
    return cost.demand.floor > 0 or any(amount > 0 for _, amount in cost.demand.amounts)


def _cost(cpu: CpuKeys, kernels: Kernels, name: str, call: Call, flop: float, unit: Unit) -> Cost:
    """One thread from start to end, and what of its bytes comes from memory."""
    time = kernels.time(call)
    source = source_of(cpu.sources, f"kernels.{kernels.entry(call)}.call")
    why = _line(name, time, source)
    traffic = min(time.memory / cpu.memory.bandwidth, time.body)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(time.memory, "B"), "not in any cache"),
        ("bandwidth", precise(cpu.memory.bandwidth, "B/s"), source_of(cpu.sources, "memory.bandwidth")),
    )
    memory = Term("memory", "traffic / bandwidth", inputs, traffic, f"{name}.memory")
    cost = assemble(
        [
            Draw(f"{name}.cores", time.body * kernels.cores, float(cpu.cores), flop, unit, why),
            Draw(f"{name}.memory", traffic, 1.0, time.memory, "B", memory),
        ],
        bandwidth=cpu.memory.bandwidth,
        floor=time.body,
        latencies=[latency_term("one call", time.call * time.ratio, source)] if time.call > 0 else [],
    )
    if time.standing != "extrapolated":
        return cost
    line = Term(EXTRAPOLATED, f"{call.function}: no size near it was measured", (), 0.0)
    return replace(cost, why=(*cost.why, line))


def _line(name: str, time: Time, source: str) -> Term:
    pieces = (
        ("computing", time.compute, "elements, inner loops, flop"),
        ("moving", time.moving, "bytes from beyond the first cache"),
        ("looking up", time.lookups, "elements anywhere in an array"),
        ("new pages", time.pages, "bytes used for the first time"),
    )
    inputs: list[Input] = [
        (piece, precise(seconds, "s"), f"{meaning}: {source}") for piece, seconds, meaning in pieces if seconds > 0
    ]
    formula = " + ".join(piece for piece, _, _ in inputs) or "nothing but the call"
    if abs(time.ratio - 1.0) > 1e-3:
        formula = f"({formula}) x correction"
        inputs.append(("correction", precise(time.ratio, "%"), f"{time.standing}: kernels.corrections"))
    return Term("kernel", formula, tuple(inputs), time.body, f"{name}.cores")
