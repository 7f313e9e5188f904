"""The demand of an op of arithmetic and memory traffic on a CPU: core time, memory time, and their derivation.

    cores     max(flop / peak, instructions / (ipc clock cores)) + mispredicted branches x cycles / clock,
              or the time of the bytes in the caches, whichever is longer
    memory    (read + write_cost x written) / (bandwidth x efficiency); with caches, only misses of the last level, and a
              line that is written is read first
    floor     the memory bandwidth that these cores reach (see `Numa`), and the core time divided among them

Source: roofline (Williams, Waterman, Patterson 2009) with the execution-cache-memory model inside the core.
Error: docs/validation/components.md; arithmetic is an upper bound of the speed if an efficiency has its default of 100 %.
Range: work divided evenly over the cores in advance; streams that a prefetcher detects.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term
from hwsim.devices.cores import Numa
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.line_errors import doubts
from hwsim.devices.roofline import WORKLOAD, CannotCompute, CapacityDraw, Input, assemble, latency_terms, source_of
from hwsim.devices.work import MatmulShape, Work
from hwsim.formats import precise
from hwsim.origins import Cited, Origin
from hwsim.records import dataclass
from hwsim.units import BYTES

# Default rate of numpy's normal random numbers on one core (1/s), fitted to the laptop of the d2l text (13.2). An EPYC 7003
# generates 48.4 million per second (hwsim_calibrate/data), a busy V100 server of 2021 about 10 million.
DEFAULT_RANDOM_RATE: Final = 32.5e6
BIG: Final = 512  # least side of a matmul whose operands are long in every direction
GUESSED: Final = Origin("elsewhere", "for every core: as the CPU of the d2l text")


@dataclass(frozen=True, slots=True)
class MemoryTraffic:
    """The bytes between the caches and memory.

    Args:
        read: bytes read.
        written: bytes written.
        why: reason, for the derivation.
    """

    read: float
    written: float
    why: str

    @property
    def bytes(self) -> float:
        return self.read + self.written

    @property
    def source(self) -> Origin:
        return WORKLOAD + (f": {self.why}" if self.why else "")


def work_cost(cpu: CpuKeys, name: str, work: Work, used: int) -> Cost:
    """Return the cost of the work (see `Cpu.compute`)."""
    core = _arithmetic(cpu, name, work, used)
    served = cpu.caches.streamed(work.working_set, used) if cpu.caches else ()
    lines = [core.why, *_instructions(cpu, name, work, used)]
    if cpu.caches and work.working_set is not None:
        lines.append(cache_term(cpu, name, work.reads, work.writes, work.in_place, served, used))
    seconds = max(line.seconds for line in lines)
    core = replace(core, amount=seconds * used if seconds > core.why.seconds else core.amount)
    traffic = traffic_beyond_caches(cpu, work.reads, work.writes, work.in_place, served[-1] if served else 0.0)
    floor, reach_terms = memory_floor(cpu, name, traffic, used, work.remote)
    latency = cpu.memory.latency if traffic.bytes > 0 else 0.0
    cost = assemble(
        [core, memory_time(cpu, name, traffic)],
        clock=f"{name}.cores",
        bandwidth=cpu.memory.bandwidth,
        floor=max(floor, core.amount / used if used < cpu.cores else 0.0),
        latencies=latency_terms(
            cpu.sources,
            ("overhead", "start of an op", cpu.overhead, "", ""),
            ("memory.latency", "first access", latency, f"{name}.memory", name),
        ),
    )
    return replace(cost, why=(*cost.why, *lines[1:], *reach_terms))


# ---- cores ----


def _arithmetic(cpu: CpuKeys, name: str, work: Work, used: int) -> CapacityDraw:
    """Return the core time, which depends on the number of cores only through the clock."""
    capacity, flop, dtype, mix = f"{name}.cores", work.flop, work.dtype, work.mix
    if mix == "random":
        rate = DEFAULT_RANDOM_RATE if cpu.random is None else cpu.random
        amount = flop / rate
        inputs: tuple[Input, ...] = (
            ("numbers", precise(flop, "1"), WORKLOAD),
            (
                "rate",
                precise(rate, "1/s"),
                "random, of one core: " + (source_of(cpu.sources, "random") if cpu.random else GUESSED),
            ),
            ("cores", str(used), source_of(cpu.sources, "cores")),
        )
        why = Term("compute", "numbers / (rate x cores)", inputs, amount / used, capacity)
        return CapacityDraw(capacity, amount, float(cpu.cores), flop, "1", why)
    format_used, rate_all, key = cpu.peak(dtype, name, work.isa, used) if flop > 0 else _any_peak(cpu, work, name, used)
    efficiency = cpu.efficiency.of(mix)
    key_of_efficiency = "efficiency.matmul" if mix == "matmul" else "efficiency.vector"
    lost, penalty, wrong = _mispredictions(cpu, name, work, used)
    packed = packing(cpu.packing, work.product) if mix == "matmul" else 1.0
    amount = flop * packed / (rate_all / cpu.cores * efficiency) + lost
    part = (("used", str(used), WORKLOAD), ("cores", str(cpu.cores), source_of(cpu.sources, "cores")))
    inputs = (
        ("flop", precise(flop, "FLOP"), WORKLOAD),
        (
            "peak",
            precise(rate_all, "FLOP/s"),
            _origin(cpu, format_used, key, used) + (f"; {dtype} computed in {format_used}" if format_used != dtype else ""),
        ),
        *(part if used < cpu.cores else ()),
        ("efficiency", precise(efficiency, "%"), f"{key_of_efficiency}: " + source_of(cpu.sources, key_of_efficiency)),
        *((("packing", precise(packed, "1"), "packing: " + source_of(cpu.sources, "packing")),) if packed > 1 else ()),
        *penalty,
    )
    formula = "flop x packing" if packed > 1 else "flop"
    formula += " / (peak x used / cores x efficiency)" if used < cpu.cores else " / (peak x efficiency)"
    shape = work.product
    size = "big" if shape is not None and min(shape.m, shape.n, shape.k) >= BIG else "skinny"
    source = source_of(cpu.sources, key_of_efficiency)
    unsure = doubts(f"cpuproduct/{size}", name, source, amount / used) if mix == "matmul" else ()
    why = Term("compute", formula + wrong, inputs, amount / used, capacity, doubts=unsure)
    return CapacityDraw(capacity, amount, float(cpu.cores), flop, "FLOP", why)


def packing(side: float, product: MatmulShape | None) -> float:
    """Return the time of a matmul relative to its arithmetic: operand blocks are packed, result blocks are read and written.

    **Source**: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008: the copies take
    time in proportion to m k + k n + m n.  **Error**: no measurement available; a calibrated machine has `kernels` instead.

    >>> packing(18, MatmulShape(18, 18, 18)), packing(18, None), round(packing(18, MatmulShape(1800, 1800, 1800)), 2)
    (2.0, 1.0, 1.01)
    """
    return 1.0 if product is None else 1.0 + side / 3.0 * (1.0 / product.m + 1.0 / product.n + 1.0 / product.k)


def _any_peak(cpu: CpuKeys, work: Work, name: str, used: int) -> tuple[str, float, str]:
    """Return the peak of its number format, else any peak: without arithmetic, the time is 0 in each case."""
    for dtype in (work.dtype, *BYTES):
        with suppress(CannotCompute):
            return cpu.peak(dtype, name, work.isa, used)
    return cpu.peak(work.dtype, name, work.isa, used)


def _origin(cpu: CpuKeys, dtype: str, key: str, used: int) -> Origin:
    source = source_of(cpu.sources, key)
    if key.startswith("flop."):
        return f"{key}: " + source
    if key.startswith("core.isa.") and cpu.core:
        isa = key.removeprefix("core.isa.")
        instructions = cpu.core.isa[isa]
        clock = precise(cpu.clock_of(isa, used), "Hz")
        pipes = f"{instructions.lanes(dtype)} lanes x {instructions.pipes} pipes{' x 2' if instructions.fma else ''}"
        return (
            f"{isa}: cores x clock x {pipes} = {cpu.cores} x {clock} x {precise(instructions.per_cycle(dtype), '1')}: " + source
        )
    clock = precise(cpu.clock or 0.0, "Hz")
    return f"cores x clock x per_cycle = {cpu.cores} x {clock} x {precise(cpu.per_cycle[dtype], '1')}: " + source


def _mispredictions(cpu: CpuKeys, name: str, work: Work, used: int) -> tuple[float, tuple[Input, ...], str]:
    """Return (core time in s, inputs, rest of the formula) of mispredicted branches."""
    if work.branches * work.mispredicted <= 0:
        return 0.0, (), ""
    if cpu.core is None or cpu.core.mispredict <= 0:
        raise CannotCompute(f"{name} has no branch misprediction penalty", "add `core: {mispredict: 16}`, in cycles")
    clock = _clock(cpu, name, work.isa, used)
    inputs = (
        ("branches", precise(work.branches, "1"), WORKLOAD),
        ("mispredicted", precise(work.mispredicted, "%"), WORKLOAD),
        ("cycles", precise(cpu.core.mispredict, "1"), "core.mispredict: " + source_of(cpu.sources, "core.mispredict")),
        ("clock", precise(clock, "Hz"), source_of(cpu.sources, "clock")),
        ("busy", str(used), "cores"),
    )
    lost = work.branches * work.mispredicted * cpu.core.mispredict / clock
    return lost, inputs, " + branches x mispredicted x cycles / (clock x busy)"


def _instructions(cpu: CpuKeys, name: str, work: Work, used: int) -> list[Term]:
    if work.instructions <= 0:
        return []
    rate = cpu.core.rate(work.threads) if cpu.core else None
    if rate is None:
        raise CannotCompute(f"{name} has no rate of instructions per cycle", "add `core: {ipc: 2}`")
    clock = _clock(cpu, name, work.isa, used)
    lost, penalty, wrong = _mispredictions(cpu, name, work, used)
    inputs: tuple[Input, ...] = (
        ("instructions", precise(work.instructions, "1"), WORKLOAD),
        ("ipc", precise(rate, "1"), "core.ipc: " + source_of(cpu.sources, "core.ipc")),
        *(penalty or (("clock", precise(clock, "Hz"), source_of(cpu.sources, "clock")), ("busy", str(used), "cores"))),
    )
    seconds = (work.instructions / (rate * clock) + lost) / used
    return [Term("instructions", "instructions / (ipc x clock x busy)" + wrong, inputs, seconds, f"{name}.cores")]


def _clock(cpu: CpuKeys, name: str, isa: str, used: int) -> float:
    """Return the clock of the instruction class; of scalar instructions if the op names none.

    Raises:
        CannotCompute: the clock is not given.
    """
    clock = cpu.clock_of(isa or "scalar", used)
    if clock <= 0:
        raise CannotCompute(f"{name} has no clock", "add `clock: 2.4 GHz`")
    return clock


# ---- caches and memory ----


def cache_term(
    cpu: CpuKeys, name: str, reads: float, writes: float, in_place: float, served: tuple[float, ...], used: int, near: float = 1.0
) -> Term:
    """Return the line of a core's time for its share of the bytes through all cache levels."""
    if cpu.caches is None:
        raise CannotCompute(f"{name} has no caches", "add them as `caches:`")
    times = cpu.caches.moving(reads, writes, in_place, served, used, cpu.clock_of("", used), near)
    names = list(cpu.caches.levels)
    inputs = tuple(
        (level, precise(seconds, "s"), f"its share of the bytes, caches.levels.{level}: " + _level_source(cpu, level))
        for level, seconds in zip(names, times, strict=True)
    )
    formula = f"max({', '.join(names)})" if cpu.caches.overlap and len(names) > 1 else " + ".join(names)
    seconds = max(times) if cpu.caches.overlap else math.fsum(times)
    slowest = max(zip(times, names, strict=True))[1]
    unsure = doubts("cache/cpu", name, _level_source(cpu, slowest), seconds)
    return Term("caches", formula, inputs, seconds, f"{name}.cores", doubts=unsure)


def traffic_beyond_caches(cpu: CpuKeys, reads: float, writes: float, in_place: float, served: float) -> MemoryTraffic:
    """Return the traffic that misses the last cache level, whose hit rate is `served`."""
    missed = 1.0 - served
    filled = max(0.0, writes - in_place) if cpu.caches and cpu.caches.write_allocate else 0.0
    reasons = [f"{precise(missed, '%')} cache misses"] if served > 0 else []
    if filled > 0:
        reasons.append("write allocate")
    return MemoryTraffic((reads + filled) * missed, writes * missed, "; ".join(reasons))


def memory_time(cpu: CpuKeys, name: str, traffic: MemoryTraffic) -> CapacityDraw:
    """Return the time of the traffic on the memory of the whole socket."""
    capacity = f"{name}.memory"
    bandwidth = ("bandwidth", precise(cpu.memory.bandwidth, "B/s"), source_of(cpu.sources, "memory.bandwidth"))
    if cpu.numa is None:
        seconds = traffic.bytes / cpu.memory.bandwidth
        crossing = ("traffic", precise(traffic.bytes, "B"), traffic.source)
        why = Term("memory", "traffic / bandwidth", (crossing, bandwidth), seconds, capacity)
        return CapacityDraw(capacity, seconds, 1.0, traffic.bytes, "B", why)
    weight, formula, inputs = _weighted(cpu.numa, traffic, cpu)
    seconds = weight / (cpu.memory.bandwidth * cpu.numa.efficiency)
    inputs = (
        *inputs,
        bandwidth,
        ("efficiency", precise(cpu.numa.efficiency, "%"), "numa.efficiency: " + source_of(cpu.sources, "numa.efficiency")),
    )
    unsure = doubts("stream/cpu", name, source_of(cpu.sources, "numa.efficiency"), seconds)
    why = Term("memory", f"{formula} / (bandwidth x efficiency)", inputs, seconds, capacity, doubts=unsure)
    return CapacityDraw(capacity, seconds, 1.0, traffic.bytes, "B", why)


def _weighted(numa: Numa, traffic: MemoryTraffic, cpu: CpuKeys) -> tuple[float, str, tuple[Input, ...]]:
    """Return (bytes with written bytes weighted by their cost, formula, inputs)."""
    source = traffic.source
    if traffic.written <= 0:
        return traffic.read, "traffic", (("traffic", precise(traffic.read, "B"), source),)
    inputs = (
        ("read", precise(traffic.read, "B"), source),
        ("written", precise(traffic.written, "B"), source),
        ("write_cost", precise(numa.write_cost, "1"), "numa.write_cost: " + source_of(cpu.sources, "numa.write_cost")),
    )
    return traffic.read + numa.write_cost * traffic.written, "(read + write_cost x written)", inputs


def memory_floor(cpu: CpuKeys, name: str, traffic: MemoryTraffic, used: int, remote: float) -> tuple[float, tuple[Term, ...]]:
    """Return (minimum time in s of these cores for their traffic, lines of the derivation).

    Raises:
        CannotCompute: a part of the traffic goes to the memory of another socket, whose speed is not given.
    """
    if remote > 0 and (cpu.numa is None or (cpu.numa.remote_latency <= 0 and cpu.numa.remote_bandwidth is None)):
        message = f"{name} has no latency or bandwidth of remote memory"
        raise CannotCompute(message, "add `numa: {remote_latency: 60 ns, remote_bandwidth: 62 GB/s}`")
    if traffic.bytes <= 0:
        return 0.0, ()
    core_rate = cpu.core_rate()
    terms = _store_terms(cpu, name, traffic, used)
    if cpu.numa is None:
        if core_rate:
            seconds = traffic.bytes / (used * core_rate)
            inputs: tuple[Input, ...] = (
                ("traffic", precise(traffic.bytes, "B"), WORKLOAD),
                ("core_bandwidth", precise(core_rate, "B/s"), cpu.core_rate_source().replace("core_bandwidth: ", "")),
                ("cores", str(used), WORKLOAD if used < cpu.cores else source_of(cpu.sources, "cores")),
            )
            formula = "traffic / (cores x core_bandwidth)"
            terms.append(Term("bandwidth of the cores", formula, inputs, seconds, f"{name}.cores"))
        return max((term.seconds for term in terms), default=0.0), tuple(terms)
    seconds, domain_cores = cpu.numa.seconds(used, cpu.cores, traffic.read, traffic.written, cpu.memory.bandwidth, core_rate)
    if seconds > 0:
        domains = f"{len(domain_cores)} domains" if len(domain_cores) > 1 else "one domain"
        source = f"{used} cores in {domains}: " + cpu.core_rate_source()
        inputs = (
            ("traffic", precise(traffic.bytes, "B"), traffic.source),
            ("reached", precise(traffic.bytes / seconds, "B/s"), source),
        )
        errors = doubts("stream/core" if used == 1 else "stream/cpu", name, cpu.core_rate_source(), seconds)
        terms.append(Term("bandwidth of the cores", "traffic / reached", inputs, seconds, f"{name}.cores", doubts=errors))
    far = remote * traffic.bytes
    if far > 0 and cpu.numa.remote_bandwidth is not None:
        inputs = (
            ("far", precise(far, "B"), f"{precise(remote, '%')} of the traffic: " + WORKLOAD),
            ("remote_bandwidth", precise(cpu.numa.remote_bandwidth, "B/s"), source_of(cpu.sources, "numa.remote_bandwidth")),
        )
        terms.append(Term("remote memory", "far / remote_bandwidth", inputs, far / cpu.numa.remote_bandwidth, f"{name}.memory"))
    return max((term.seconds for term in terms), default=0.0), tuple(terms)


def _store_terms(cpu: CpuKeys, name: str, traffic: MemoryTraffic, used: int) -> list[Term]:
    rate = cpu.store_rate()
    if rate is None or traffic.written <= 0:
        return []
    inputs: tuple[Input, ...] = (
        ("written", precise(traffic.written, "B"), WORKLOAD),
        ("rate", precise(rate, "B/s"), "core.stored, per cycle: " + source_of(cpu.sources, "core.stored")),
        ("cores", str(used), WORKLOAD if used < cpu.cores else source_of(cpu.sources, "cores")),
    )
    seconds = traffic.written / (used * rate)
    unsure = doubts("stream/core", name, source_of(cpu.sources, "core.stored"), seconds)
    return [Term("stores of the cores", "written / (cores x rate)", inputs, seconds, f"{name}.cores", doubts=unsure)]


def _level_source(cpu: CpuKeys, level: str) -> Cited:
    keys = (f"caches.levels.{level}.bandwidth", f"caches.levels.{level}.per_cycle")
    return next((source_of(cpu.sources, key) for key in keys if key in cpu.sources), "unlimited")
