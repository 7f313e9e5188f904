"""A CPU socket: cores that share one memory; and several sockets as one.

Error: not yet measured.  No caches, no NUMA domains inside a socket, one clock for any number
of busy cores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Demand, Term
from hwsim.devices.roofline import (
    WORKLOAD,
    CannotCompute,
    Draw,
    Efficiency,
    Input,
    LocalMemory,
    assemble,
    latency_terms,
    memory_draw,
    peak_of,
    precise,
    source_of,
    unknown_dtypes,
)
from hwsim.devices.work import Work
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, FlopPerSecond, Hertz, PerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Cpu:
    """Roofline CPU.  An op has all cores unless it says how many.

    Peaks are of the whole socket: as stated in `flop`, else cores x clock x `per_cycle`.
    A type without a peak runs in the next wider one (see `roofline.WIDER`).
    """

    kind: ClassVar[str] = "cpu"
    cores: int = field("physical cores", minimum=1)
    memory: LocalMemory = field("main memory of the socket")
    flop: Mapping[str, FlopPerSecond] = field(
        "peak of the socket by number format, e.g. {fp32: 500 GFLOP/s}", default_factory=dict, exclusive_minimum=0.0
    )
    clock: Hertz | None = field("sustained with all cores busy", default=None, exclusive_minimum=0.0)
    per_cycle: Mapping[str, float] = field(
        "FLOP per cycle and core by number format, e.g. {fp32: 32}", default_factory=dict, exclusive_minimum=0.0
    )
    efficiency: Efficiency = field("part of the peaks that is reached", default_factory=Efficiency)
    overhead: Seconds = field("start of one op", default=0.0)
    random: PerSecond | None = field("random numbers per second and core", default=None, exclusive_minimum=0.0)
    core_bandwidth: BytesPerSecond | None = field("memory bandwidth one core reaches alone", default=None, exclusive_minimum=0.0)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        yield from unknown_dtypes("flop", self.flop)
        yield from unknown_dtypes("per_cycle", self.per_cycle)
        if self.per_cycle and self.clock is None:
            yield "per_cycle", "FLOP per cycle need a clock", "add `clock: 2.3 GHz`"
        if self.clock is not None and not self.per_cycle:
            yield "clock", "the clock has no effect without FLOP per cycle", "add `per_cycle: {fp32: 32}` or leave it out"
        if not self.flop and not self.per_cycle:
            yield "flop", "a cpu needs at least one peak", "such as {fp32: 500 GFLOP/s}"
        for dtype in self.flop:
            if dtype in self.per_cycle:
                yield f"flop.{dtype}", f"the {dtype} peak is given twice, in `flop` and in `per_cycle`", None

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return Capacity(f"{name}.cores", float(self.cores)), Capacity(f"{name}.memory", 1.0)

    def compute(self, name: str, work: Work) -> Cost:
        """One op, whose traffic is with main memory, on the cores it asks for.

        Raises:
            CannotCompute: no peak for the type, or more cores than the socket has.
        """
        used, traffic = self._used(name, work.cores), work.traffic
        draws = [self._cores_draw(name, work, used), memory_draw(name, traffic, self.memory, self.sources)]
        few = traffic / (used * self.core_bandwidth) if self.core_bandwidth else 0.0
        floor = max(few, draws[0].amount / used if used < self.cores else 0.0)
        latency = self.memory.latency if traffic > 0 else 0.0
        cost = assemble(
            draws,
            bandwidth=self.memory.bandwidth,
            floor=floor,
            latencies=latency_terms(
                self.sources,
                ("overhead", "start of an op", self.overhead, ""),
                ("memory.latency", "first access", latency, f"{name}.memory"),
            ),
        )
        return cost if few <= 0 else replace(cost, why=(*cost.why, self._few_cores(name, traffic, used, few)))

    def busy(self, name: str, seconds: float) -> Cost:
        """One core for a known time."""
        time = Term("time", "given, on one core", (("given, on one core", precise(seconds, "s"), WORKLOAD),), seconds)
        amounts = ((f"{name}.cores", seconds),) if seconds > 0 else ()
        share = seconds / self.cores * self.memory.bandwidth or 1.0
        return Cost(Demand(amounts=amounts, floor=seconds, share=share), why=(time,))

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """What a transfer that leaves (or reaches) this memory draws of it: memory time."""
        return f"{name}.memory", size / self.memory.bandwidth

    def copy_latency(self) -> float:
        """Seconds before the first byte of a transfer that ends here."""
        return self.memory.latency

    def like(self, *, cores: int, flop: Mapping[str, float], memory: LocalMemory, sources: Mapping[str, str]) -> Cpu:
        """The same CPU with another number of cores, other peaks and another memory, from these sources."""
        other = replace(self, cores=cores, flop=flop, memory=memory)
        object.__setattr__(other, "sources", sources)  # no key of a file, hence no argument
        return other

    def peak(self, dtype: str, where: str = "the cpu") -> tuple[str, float, str]:
        """(the type it is computed in, peak of the socket in FLOP/s, the key that says so)."""
        derived = {each: self.cores * (self.clock or 0.0) * flops for each, flops in self.per_cycle.items()}
        used, rate = peak_of({**derived, **self.flop}, dtype, where)
        return used, rate, f"flop.{used}" if used in self.flop else f"per_cycle.{used}"

    def _used(self, name: str, cores: int | None) -> int:
        if cores is None:
            return self.cores
        if not 1 <= cores <= self.cores:
            raise CannotCompute(f"{name} has {self.cores} cores, not {cores}", f"write a number from 1 to {self.cores}")
        return cores

    def _cores_draw(self, name: str, work: Work, used: int) -> Draw:
        """Core-seconds: the same however many cores share them."""
        capacity, flop, dtype, mix = f"{name}.cores", work.flop, work.dtype, work.mix
        if mix == "random":
            if self.random is None:
                raise CannotCompute(f"{name} has no rate for random numbers", "add one as `random: 100e6 1/s`, for one core")
            amount = flop / self.random
            inputs: tuple[Input, ...] = (
                ("numbers", precise(flop, "1"), WORKLOAD),
                ("rate", precise(self.random, "1/s"), f"random, of one core: {source_of(self.sources, 'random')}"),
                ("cores", str(used), source_of(self.sources, "cores")),
            )
            why = Term("compute", "numbers / (rate x cores)", inputs, amount / used, capacity)
            return Draw(capacity, amount, float(self.cores), flop, "1", why)
        found, rate_all, key = self.peak(dtype, name)
        efficiency = self.efficiency.of(mix)
        what = "efficiency.matmul" if mix == "matmul" else "efficiency.vector"
        amount = flop / (rate_all / self.cores * efficiency)
        part = (("used", str(used), WORKLOAD), ("cores", str(self.cores), source_of(self.sources, "cores")))
        inputs = (
            ("flop", precise(flop, "FLOP"), WORKLOAD),
            (
                "peak",
                precise(rate_all, "FLOP/s"),
                self._origin(found, key) + (f"; {dtype} computed in {found}" if found != dtype else ""),
            ),
            *(part if used < self.cores else ()),
            ("efficiency", precise(efficiency, "%"), f"{what}: {source_of(self.sources, what)}"),
        )
        formula = "flop / (peak x used / cores x efficiency)" if used < self.cores else "flop / (peak x efficiency)"
        return Draw(capacity, amount, float(self.cores), flop, "FLOP", Term("compute", formula, inputs, amount / used, capacity))

    def _origin(self, dtype: str, key: str) -> str:
        """Where a peak is from; one that is worked out says how."""
        source = source_of(self.sources, key)
        if dtype in self.flop:
            return f"{key}: {source}"
        clock = precise(self.clock or 0.0, "Hz")
        return f"cores x clock x per_cycle = {self.cores} x {clock} x {precise(self.per_cycle[dtype], '1')}: {source}"

    def _few_cores(self, name: str, traffic: float, used: int, seconds: float) -> Term:
        inputs = (
            ("traffic", precise(traffic, "B"), WORKLOAD),
            ("core_bandwidth", precise(self.core_bandwidth or 0.0, "B/s"), source_of(self.sources, "core_bandwidth")),
            ("cores", str(used), WORKLOAD if used < self.cores else source_of(self.sources, "cores")),
        )
        return Term("bandwidth of the cores", "traffic / (cores x core_bandwidth)", inputs, seconds, f"{name}.cores")
