"""The demand of many small accesses, or of increments of counters, on a CPU.

Sequential and strided accesses are prefetched in time: the bytes of the touched lines pass through the caches and the memory
as a stream. Beyond half a page no prefetcher follows. Then, as in random access, each core waits for its cache misses, with
`in_flight` of them in flight, and the memory serves as many random accesses as its banks allow (`dram`, if the memory has one).
Dependent accesses wait for each other: a chain takes count x latency.
Error: docs/validation/components.md (tinymembench for dependent accesses); independent random accesses: not yet measured.
Range: no other program on the cores; the cores do nothing but these accesses.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from hwsim.demand import Cost, Demand, Requests, Term, Unit
from hwsim.devices.accesses import Accesses, crossings, lines_touched
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.cpu_work import cache_term, memory_floor, memory_time, traffic_beyond_caches
from hwsim.devices.line_errors import doubts
from hwsim.devices.roofline import WORKLOAD, CannotCompute, CapacityDraw, Input, assemble, source_of
from hwsim.formats import format_share, precise
from hwsim.origins import IDEAL, Origin

PREFETCHED: Final = 2048.0  # largest prefetched stride (B): L2 prefetchers need at least two accesses within a page of 4 KiB


def access_cost(cpu: CpuKeys, name: str, accesses: Accesses, used: int) -> Cost:
    """Return the cost of accesses (see `Cpu.access`)."""
    line = cpu.caches.line if cpu.caches else 64.0
    lines = lines_touched(accesses, line)
    is_prefetched = not accesses.scattered and accesses.step <= PREFETCHED
    size = accesses.count * lines * line
    footprint = None if accesses.working_set is None else _footprint(accesses, line)
    reads, writes = size * (1.0 - accesses.write), size * accesses.write
    served: tuple[float, ...] = ()
    if cpu.caches:
        served = cpu.caches.streamed(footprint, used) if is_prefetched else cpu.caches.scattered(footprint)
    traffic = traffic_beyond_caches(cpu, reads, writes, 0.0, served[-1] if served else 0.0)
    issue = _issuing(cpu, name, accesses, used, line)
    terms = [issue]
    if cpu.caches and is_prefetched and footprint is not None:
        requested_share = min(1.0, accesses.size / (lines * line))
        terms.append(cache_term(cpu, name, reads, writes, 0.0, served, used, requested_share))
    busy = max(term.seconds for term in terms)
    floor, reach_terms = memory_floor(cpu, name, traffic, used, accesses.remote)
    if accesses.remote > 0 and not is_prefetched and cpu.numa is not None and cpu.numa.remote_latency <= 0:
        raise CannotCompute(f"{name} has no extra latency for remote memory", "add `numa: {remote_latency: 60 ns}`")
    waits = [] if is_prefetched else _waiting(cpu, name, accesses, footprint, lines, traffic.read / line, used)
    core = CapacityDraw(f"{name}.cores", busy * used, float(cpu.cores), accesses.count, "1", issue)
    cost = assemble(
        [core, memory_time(cpu, name, traffic)],
        clock=f"{name}.cores",
        bandwidth=cpu.memory.bandwidth,
        floor=max(floor, busy if used < cpu.cores else 0.0, *(term.seconds for term in waits)) if waits else max(floor, busy),
    )
    requests = Requests(
        device=name,
        count=accesses.count,
        size=accesses.size,
        pattern=accesses.pattern,
        stride=accesses.step,
        span=accesses.working_set or 0.0,
        write_share=accesses.write,
        depth=used * (accesses.chains if accesses.pattern == "dependent" else int(_in_flight(cpu))),
        cores=used,
    )
    return replace(cost, why=(*cost.why, *terms[1:], *reach_terms, *waits), requests=requests)


def access_latency(cpu: CpuKeys, working_set: float | None, *, busy: int = 1, chains: int = 1, remote: float = 0.0) -> float:
    """Return the time (s) from one access of a chain to the next, with `chains` parallel chains on the core.

    working_set: bytes accessed at random; None: every access reaches memory.
    """
    memory = memory_latency(cpu) + remote * (cpu.numa.remote_latency if cpu.numa else 0.0)
    if cpu.caches is None:
        return memory
    return cpu.caches.group_time(working_set, cpu.clock_of("scalar", busy) or 1.0, memory, chains)


def memory_latency(cpu: CpuKeys) -> float:
    """Return the latency of a memory access (s): the stated one, else the latency of its DRAM; 0 if neither is given."""
    dram = cpu.memory.dram
    return cpu.memory.latency if cpu.memory.latency > 0 or dram is None else dram.latency()


def _in_flight(cpu: CpuKeys) -> float:
    return cpu.caches.in_flight if cpu.caches else 10.0


def _footprint(accesses: Accesses, line: float) -> float:
    """Return the bytes of cache lines of the working set, including unused parts of lines."""
    working_set = accesses.working_set or 0.0
    if accesses.scattered:
        return working_set * max(1.0, line / max(accesses.size, line))
    return working_set / accesses.step * min(lines_touched(accesses, line) * line, max(accesses.step, line))


def _issuing(cpu: CpuKeys, name: str, accesses: Accesses, used: int, line: float) -> Term:
    """Return the line of the load and store instructions; an access that crosses a line takes two."""
    clock = cpu.clock_of("scalar", used)
    per_cycle = cpu.core.loads if cpu.core else 2.0
    lines_each = 1.0 + crossings(accesses.size, accesses.step if not accesses.scattered else accesses.size, accesses.offset, line)
    count = accesses.count * lines_each
    seconds = count / (per_cycle * clock * used) if clock > 0 else 0.0
    inputs: tuple[Input, ...] = (
        ("accesses", precise(count, "1"), WORKLOAD + (f", {lines_each:.3g} lines each" if lines_each > 1 else "")),
        ("loads", precise(per_cycle, "1"), "core.loads, per cycle: " + source_of(cpu.sources, "core.loads")),
        ("clock", precise(clock, "Hz"), source_of(cpu.sources, "clock")),
        ("cores", str(used), WORKLOAD),
    )
    if clock <= 0:
        return Term("accesses", "no clock is known", (("no clock is known", "0 s", IDEAL),), 0.0, f"{name}.cores")
    return Term("accesses", "accesses / (loads x clock x cores)", inputs, seconds, f"{name}.cores")


def _waiting(
    cpu: CpuKeys, name: str, accesses: Accesses, footprint: float | None, lines: float, missed: float, used: int
) -> list[Term]:
    """Return the lines of cores that wait for their accesses, and of the memory's random access rate."""
    chains = accesses.chains if accesses.pattern == "dependent" else 1
    latency = access_latency(cpu, footprint, busy=used, chains=chains, remote=accesses.remote)
    latency_input = ("latency", precise(latency, "s"), _steps(cpu, footprint, used, chains))
    count: Input = ("accesses", precise(accesses.count, "1"), WORKLOAD)
    cores: Input = ("cores", str(used), WORKLOAD)
    unsure = partial(doubts, "latency/cpu", name, source_of(cpu.sources, "memory.latency"))
    if accesses.pattern == "dependent":
        seconds = accesses.count / (used * chains) * latency
        inputs: tuple[Input, ...] = (count, latency_input, cores, ("chains", str(chains), WORKLOAD))
        terms = [
            Term("chain", "accesses x latency / (cores x chains)", inputs, seconds, f"{name}.memory", doubts=unsure(seconds))
        ]
    else:
        flight = _in_flight(cpu)
        seconds = accesses.count * max(1.0, lines) * latency / (used * flight)
        inputs = (
            ("lines", precise(accesses.count * max(1.0, lines), "1"), WORKLOAD),
            latency_input,
            cores,
            ("in_flight", precise(flight, "1"), "caches.in_flight: " + source_of(cpu.sources, "caches.in_flight")),
        )
        formula = "lines x latency / (cores x in_flight)"
        terms = [Term("lines in flight", formula, inputs, seconds, f"{name}.memory", doubts=unsure(seconds))]
    dram = cpu.memory.dram
    if dram is not None and missed > 0:
        rate = dram.random_rate()
        inputs = (("lines", precise(missed, "1"), "memory accesses"), ("rate", precise(rate, "1/s"), "memory.dram, all banks"))
        terms.append(Term("random access", "lines / rate", inputs, missed / rate, f"{name}.memory"))
    return terms


def _steps(cpu: CpuKeys, working_set: float | None, busy: int, chains: int) -> Origin:
    of_memory = "memory.latency: " + source_of(cpu.sources, "memory.latency")
    if cpu.caches is None:
        return of_memory
    steps = cpu.caches.latency(working_set, cpu.clock_of("scalar", busy) or 1.0, memory_latency(cpu), chains)
    parts = [f"{name} {precise(extra_s, 's')} for {format_share(part)}" for name, part, extra_s in steps if part * extra_s > 0]
    prefix = f"slowest of {chains} parallel chains: " if chains > 1 else ""
    return f"{prefix}{', '.join(parts)}; " + of_memory


def increment_cost(cpu: CpuKeys, name: str, times: float, used: int, *, shared: bool, atomic: bool, sockets: int) -> Cost:
    """Return the cost of increments (see `Cpu.increment`)."""
    clock = cpu.clock_of("scalar", used)
    if cpu.core is None or clock <= 0:
        raise CannotCompute(f"{name} has no time for an increment", "add `clock: 3 GHz` and `core: {rmw: 20}`")
    cycles, key = (cpu.core.rmw, "core.rmw") if atomic else (cpu.core.store, "core.store")
    own_s = times * cycles / clock
    inputs: tuple[Input, ...] = (
        ("times", precise(times, "1"), WORKLOAD),
        ("cycles", precise(cycles, "1"), f"{key}: " + source_of(cpu.sources, key)),
        ("clock", precise(clock, "Hz"), source_of(cpu.sources, "clock")),
    )
    own_term = Term("increments", "times x cycles / clock", inputs, own_s, f"{name}.cores")
    if not shared or used == 1:
        return _increments(cpu, name, [own_term], used, own_s, 0.0, times)
    if cpu.coherence is None:
        raise CannotCompute(f"{name} does not define a core-to-core cache-line latency", "add `coherence: {cluster: 40 ns}`")
    transfer = cpu.coherence.transfer(used, cpu.cores, sockets)
    line = used * times * transfer
    inputs = (
        ("cores", str(used), WORKLOAD),
        ("times", precise(times, "1"), WORKLOAD),
        (
            "transfer",
            precise(transfer, "s"),
            "coherence, average over pairs of cores: " + source_of(cpu.sources, "coherence.cluster"),
        ),
    )
    unsure = doubts("latency/core", name, source_of(cpu.sources, "coherence.cluster"), line)
    line_term = Term("line from core to core", "cores x times x transfer", inputs, line, f"{name}.line", doubts=unsure)
    return _increments(cpu, name, [own_term, line_term], used, max(own_s, line), line, times)


def _increments(cpu: CpuKeys, name: str, why: list[Term], used: int, seconds: float, line: float, times: float) -> Cost:
    """Return the cost of cores that are busy (or waiting) all the time, and of a line that is owned part of the time."""
    amounts = {f"{name}.cores": used * seconds, f"{name}.line": line}
    draws = tuple(sorted((capacity, amount) for capacity, amount in amounts.items() if amount > 0))
    share = seconds * used / cpu.cores * cpu.memory.bandwidth or 1.0
    moved: tuple[tuple[str, float, Unit], ...] = tuple((capacity, times * used, "1") for capacity, _ in draws)
    return Cost(Demand(amounts=draws, floor=seconds, share=share, clocks=((f"{name}.cores", 1.0),)), moved=moved, why=tuple(why))
