"""A CPU socket: cores with their caches, which share one memory.

The duration of an op is the largest of its times on the cores (arithmetic, instructions, bytes through the caches) and on the
memory. Omitted keys are ideal: without `caches`, every byte comes from memory once; without `core`, only the stated peaks count;
without `numa`, every core can use the full memory bandwidth.

Source, error and range of each part: `cores`, `cache`, `cpu_work`, `cpu_access`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, Self

from hwsim.demand import Capacity, Cost
from hwsim.devices.cache import Caches
from hwsim.devices.cores import Coherence, Core, Numa
from hwsim.devices.kernels import MeasuredFunctions
from hwsim.devices.kind import Device, prefix_problems
from hwsim.devices.roofline import CannotCompute, Efficiency, LocalMemory, busy_cost, peak_of, source_of, unknown_dtypes
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import BytesPerSecond, FlopPerSecond, Hertz, PerSecond, Seconds


@dataclass(frozen=True, slots=True)
class CpuKeys(Device):
    """A roofline model of a CPU socket. An op uses all cores unless it specifies a number of cores.

    Peaks are of the whole socket. They are given by `flop`; without it, they are cores x clock x `per_cycle`; without
    `per_cycle`, they follow from the widest instructions of `core`. A data type without a peak has the peak of the next wider
    data type (see `roofline.WIDER`).
    """

    cores: int = field("number of physical cores", minimum=1)
    memory: LocalMemory = field("main memory of the socket")
    flop: Mapping[str, FlopPerSecond] = field("peak FLOP/s of the socket by number format, e.g. {fp32: 500 GFLOP/s}; "
                                              "required without `per_cycle` or `core`",
                                              default_factory=dict, exclusive_minimum=0.0)  # fmt: skip
    clock: Hertz | None = field("clock with all cores busy", default=None, exclusive_minimum=0.0)
    per_cycle: Mapping[str, float] = field("FLOP per cycle and core by number format, e.g. {fp32: 32}",
                                           default_factory=dict, exclusive_minimum=0.0)  # fmt: skip
    efficiency: Efficiency = field("achieved share of the peaks", default_factory=Efficiency)
    packing: float = field("side of a square matmul that takes twice the time of its arithmetic, because of packed blocks and "
                           "partial tiles", default=0.0, minimum=0)  # fmt: skip
    overhead: Seconds = field("startup time of an op", default=0.0)
    random: PerSecond | None = field("random numbers per second and core (default: 32.5 million, normal numbers of numpy on a "
                                     "laptop)", default=None, exclusive_minimum=0.0)  # fmt: skip
    serves: Literal["shared", "fifo"] = field("scheduling of more service requests than cores: processor sharing, or first come "
                                              "first served", default="shared")  # fmt: skip
    core_bandwidth: BytesPerSecond | None = field("memory bandwidth of a single busy core; alternative to `core.streamed`; "
                                                  "unlimited if both are omitted",
                                                  default=None, exclusive_minimum=0.0)  # fmt: skip
    core: Core | None = field("instruction rates and penalties of one core, in cycles", default=None)
    caches: Caches | None = field("caches and TLBs; without them, memory serves every access", default=None)
    numa: Numa | None = field("NUMA domains and sustained memory bandwidth", default=None)
    coherence: Coherence | None = field("core-to-core latencies of a cache line", default=None)
    kernels: MeasuredFunctions | None = field(
        "measured times of library functions on this CPU; derived from the other keys if omitted", default=None
    )
    dimm_slots: int | None = field("number of slots for memory modules (DIMMs); not checked if omitted", default=None, minimum=0)

    def problems(self) -> Iterator[Problem]:
        yield from unknown_dtypes("flop", self.flop)
        yield from unknown_dtypes("per_cycle", self.per_cycle)
        classes = self.core.isa if self.core else {}
        if self.per_cycle and self.clock is None:
            yield "per_cycle", "`per_cycle` requires a clock", "add `clock: 2.3 GHz`"
        if self.clock is not None and not (self.per_cycle or self.core or self.caches):
            yield (
                "clock",
                "`clock` has no effect without `per_cycle`, `core` or `caches`",
                "add `per_cycle: {fp32: 32}` or remove it",
            )
        if not (self.flop or self.per_cycle or classes):
            yield "flop", "a CPU requires at least one peak", "add `flop: {fp32: 500 GFLOP/s}`"
        for dtype in self.flop:
            if dtype in self.per_cycle:
                yield f"flop.{dtype}", f"the {dtype} peak is specified twice, in `flop` and in `per_cycle`", None
        if self.core:
            yield from self.core.problems(self.cores, self.clock)
        if self.caches:
            yield from self.caches.problems()
            if self.clock is None and any(level.cycles or level.per_cycle for level in self.caches.levels.values()):
                yield "caches", "cache levels in cycles require a clock", "add `clock: 2.3 GHz`"
        if self.numa and self.numa.domains > self.cores:
            yield (
                "numa.domains",
                f"expected at most one domain per core, {self.cores}, got {self.numa.domains}",
                f"numa: {{domains: {self.cores}}}, or more cores",
            )
        if self.kernels:
            yield from prefix_problems("kernels", self.kernels.problems())

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        capacities = Capacity.of(name, "cores", float(self.cores)), Capacity.of(name, "memory")
        return (*capacities, Capacity.of(name, "line")) if self.coherence else capacities

    def busy(self, name: str, seconds: float) -> Cost:
        """Return the cost of a known time on one core."""
        return busy_cost("given, on one core", f"{name}.cores", seconds, self.cores, self.memory)

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """Return the memory capacity and the memory time (s) that a transfer to or from this memory takes."""
        return f"{name}.memory", size / self.memory.bandwidth

    def copy_latency(self) -> float:
        """Return the latency (s) to the first byte of a transfer that ends here."""
        return self.memory.latency

    def like(
        self, *, cores: int, flop: Mapping[str, float], memory: LocalMemory, sources: Mapping[str, Origin], sockets: int = 1
    ) -> Self:
        """Return this CPU with other cores, peaks, memory and sources.

        sockets: number of such CPUs that are combined: clocks depend on the busy cores of each socket, domains add up.
        """
        numa = replace(self.numa, domains=self.numa.domains * sockets) if self.numa else None
        core = self.core.of_sockets(sockets) if self.core else None
        cpu = replace(self, cores=cores, flop=flop, memory=memory, numa=numa, core=core)
        object.__setattr__(cpu, "sources", sources)  # not a key of a file, hence not an argument
        return cpu

    def clock_of(self, isa: str, busy: int) -> float:
        """Return the clock (Hz) of an instruction class with `busy` busy cores; 0 if not given."""
        instructions = self.core.isa.get(isa) if self.core else None
        return instructions.clock_of(busy, self.clock or 0.0) if instructions else self.clock or 0.0

    def core_rate(self) -> float | None:
        """Return the read bandwidth (B/s) of a single core: from `core.streamed`, else as stated; None if neither is given."""
        streamed = self.core.streamed if self.core is not None else None
        if streamed is None:
            return self.core_bandwidth
        return streamed * self.clock_of("scalar", 1) or self.core_bandwidth

    def core_rate_source(self) -> Origin:
        """Return the source of `core_rate`."""
        if self.core is None or self.core.streamed is None or self.clock_of("scalar", 1) <= 0:
            return "core_bandwidth: " + source_of(self.sources, "core_bandwidth")
        return "core.streamed, per cycle: " + source_of(self.sources, "core.streamed")

    def store_rate(self) -> float | None:
        """Return the write bandwidth (B/s) of a single core; None if not given."""
        if self.core is None or self.core.stored is None:
            return None
        return self.core.stored * self.clock_of("scalar", 1) or None

    def peak(self, dtype: str, where: str = "the cpu", isa: str = "", busy: int | None = None) -> tuple[str, float, str]:
        """Return (number format of the computation, peak of the socket in FLOP/s, key of the peak).

        Args:
            dtype: number format of the op.
            where: name of the CPU in messages.
            isa: instruction class; "": the fastest.
            busy: number of busy cores, which sets the clock; default: all.

        Raises:
            CannotCompute: there is no peak for the number format, or no such instruction class.
        """
        classes = self.core.isa if self.core else {}
        if isa and isa not in classes:
            names = ", ".join(classes) or "none"
            raise CannotCompute(
                f"{where} has no {isa} instructions", f"available: {names}; add them as `core: {{isa: {{{isa}: ...}}}}`"
            )
        derived: dict[str, tuple[float, str]] = {}
        for name, entry in classes.items():
            if isa in ("", name):
                for kind in entry.formats:
                    rate = self.cores * self.clock_of(name, busy or self.cores) * entry.per_cycle(kind)
                    derived[kind] = max(derived.get(kind, (0.0, "")), (rate, f"core.isa.{name}"))
        if not isa:
            derived |= {
                entry: (self.cores * (self.clock or 0.0) * flops, f"per_cycle.{entry}") for entry, flops in self.per_cycle.items()
            }
            derived |= {entry: (rate, f"flop.{entry}") for entry, rate in self.flop.items()}
        compute_dtype, rate = peak_of({entry: rate for entry, (rate, _) in derived.items()}, dtype, where)
        return compute_dtype, rate, derived[compute_dtype][1]

    def used(self, name: str, cores: int | None) -> int:
        """Return the number of cores of an op.

        Raises:
            CannotCompute: the op has more cores than the socket.
        """
        if cores is None:
            return self.cores
        if not 1 <= cores <= self.cores:
            raise CannotCompute(f"{name} has {self.cores} cores, not {cores}", f"write a number from 1 to {self.cores}")
        return cores
