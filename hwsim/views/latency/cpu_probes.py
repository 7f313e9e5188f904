"""Latency numbers of a CPU: caches, cores, other sockets, memory.

Each is one op of one core: a dependent read, a mispredicted branch, a cache line of another core. **Range**: nothing else runs.
For a cache row, one cache serves all reads and every page is in the TLB. For a memory row, reads of 8 bytes are random in the
working set, so caches serve part of them, and page walks take their time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Term
from hwsim.devices import Accesses, Work
from hwsim.devices.cpu_access import memory_latency
from hwsim.devices.roofline import source_of
from hwsim.formats import percent, precise
from hwsim.machine import Machine
from hwsim.machine.contents import Link
from hwsim.views.latency.probe import LINE, ProbeTime, ProbeUnavailable, body, changed, first_cpu

KIB: Final = 1024.0
MUTEX: Final = 50.0  # instructions to lock and unlock, including calls: about 25 each in glibc, one of them atomic
SNAPPY: Final = 20.0  # instructions per byte: Snappy's README states at least 250 MB/s on one core at 2.7 GHz


def cache_hit(machine: Machine, index: int) -> ProbeTime:
    """Return the time of a read served by a cache; index 0 is the L1 cache."""
    name, cpu = first_cpu(machine)
    levels = cpu.caches.levels if cpu.caches else {}
    if cpu.caches is None or len(levels) <= index:
        raise ProbeUnavailable(f"{name} does not define a level {index + 1} cache")
    level, cache = list(levels.items())[index]
    only_level = replace(cpu.caches, levels={level: replace(cache, ways=0)}, tlbs={})
    cost = changed(cpu, caches=only_level).access(name, _chain(LINE))
    seconds = body(cpu, name, cost)
    if seconds <= 0:
        raise ProbeUnavailable(f"{name} does not define the latency of its {level}")
    if cache.latency is not None:
        source = source_of(cpu.sources, f"caches.levels.{level}.latency")
        term = Term("latency", "load to use", (("load to use", precise(cache.latency, "s"), source),), seconds, kind="latency")
        return ProbeTime(seconds, name, f"{level}, {precise(cache.latency, 's')}", (term,))
    clock = cpu.clock_of("scalar", 1)
    key = f"caches.levels.{level}.cycles"
    inputs = (
        ("cycles", f"{cache.cycles or 0.0:g}", f"{key}: " + source_of(cpu.sources, key)),
        ("clock", precise(clock, "Hz"), "one core busy: " + source_of(cpu.sources, "clock")),
    )
    how = f"{level}, {cache.cycles or 0.0:g} cycles at {precise(clock, 'Hz')}"
    return ProbeTime(seconds, name, how, (Term("latency", "cycles / clock", inputs, seconds, kind="latency"),))


def multiply_add(machine: Machine) -> ProbeTime:
    """Return the time per scalar arithmetic instruction among many independent ones."""
    name, cpu = first_cpu(machine)
    scalar = cpu.core.isa.get("scalar") if cpu.core else None
    if scalar is None:
        raise ProbeUnavailable(f"{name} does not define scalar instructions")
    flop = 2.0 if scalar.fma else 1.0
    cost = cpu.compute(name, Work(flop=flop, isa="scalar", cores=1))
    pipes = f"{scalar.pipes} pipe{'s' if scalar.pipes > 1 else ''}"
    share = f" at {percent(cpu.efficiency.vector, '.0f')} efficiency" if cpu.efficiency.vector < 1 else ""
    return ProbeTime(body(cpu, name, cost), name, f"throughput of {pipes}{share}", cost.why)


def wrong_guess(machine: Machine) -> ProbeTime:
    """Return the time of a mispredicted branch."""
    name, cpu = first_cpu(machine)
    cost = cpu.compute(name, Work(branches=1.0, mispredicted=1.0, cores=1))
    cycles = cpu.core.mispredict if cpu.core else 0.0
    return ProbeTime(body(cpu, name, cost), name, f"{cycles:g} cycles", cost.why)


def mutex(machine: Machine) -> ProbeTime:
    """Return the time to lock and unlock an uncontended mutex: two atomic instructions and the code around them."""
    name, cpu = first_cpu(machine)
    atomic = cpu.increment(name, 2, 1, shared=False)
    around = cpu.compute(name, Work(instructions=MUTEX, cores=1))
    seconds = body(cpu, name, atomic) + body(cpu, name, around)
    why = (*atomic.why, *(term for term in around.why if term.label == "instructions"))
    return ProbeTime(seconds, name, f"2 atomic + {MUTEX:g} other instructions in sequence", why)


def line_of_another_core(machine: Machine) -> ProbeTime:
    """Return the time to fetch a cache line from another core of the socket."""
    name, cpu = first_cpu(machine)
    if cpu.coherence is None:
        raise ProbeUnavailable(f"{name} does not define a core-to-core cache-line latency")
    if cpu.cores < 2:
        raise ProbeUnavailable(f"{name} has one core")
    cost = cpu.increment(name, 1, 2, shared=True)
    lines = tuple(term for term in cost.why if term.label != "increments")
    return ProbeTime(math.fsum(term.seconds for term in lines) / 2, name, "half a round trip between two cores", lines)


def line_of_another_socket(machine: Machine) -> ProbeTime:
    """Return the time to fetch a cache line from a core of another socket."""
    name, cpu = first_cpu(machine)
    other_socket = socket_link(machine, name).target
    if cpu.coherence is None or cpu.coherence.sockets is None:
        raise ProbeUnavailable(f"{name} does not define a socket-to-socket cache-line latency")
    core_of_each_socket = cpu.like(cores=2, flop=cpu.flop, memory=cpu.memory, sources=cpu.sources, sockets=2)
    cost = core_of_each_socket.increment(name, 1, 2, shared=True, sockets=2)
    lines = tuple(term for term in cost.why if term.label != "increments")
    how = f"half a round trip between cores of {name} and {other_socket}"
    return ProbeTime(math.fsum(term.seconds for term in lines) / 2, name, how, lines)


def socket_hop(machine: Machine) -> ProbeTime:
    """Return the time of a cache line over the link between two sockets, without the memories at its ends."""
    name, _ = first_cpu(machine)
    link = socket_link(machine, name)
    if link.latency <= 0:
        raise ProbeUnavailable(f"the link {link.name} does not define a latency")
    cost = machine.transfer(name, link.target, LINE)
    why = tuple(term for term in cost.why if term.capacity == link.capacity)
    return ProbeTime(math.fsum(term.seconds for term in why), link.name, f"latency + {LINE:g} B", why)


def memory_read(machine: Machine, working_set: float, *, remote: bool) -> ProbeTime:
    """Return the time of a dependent random read of 8 bytes in a working set (B)."""
    name, cpu = first_cpu(machine)
    latency = memory_latency(cpu)
    if latency <= 0:
        raise ProbeUnavailable(f"{name} does not define the latency of its memory")
    if remote and (cpu.numa is None or cpu.numa.remote_latency <= 0):
        raise ProbeUnavailable(f"{name} does not define the latency of remote memory")
    if remote and cpu.numa is not None and cpu.numa.domains < 2:
        socket_link(machine, name)
    cost = cpu.access(name, _chain(working_set, remote=1.0 if remote else 0.0))
    held = cpu.caches.scattered(working_set)[-1] if cpu.caches else 0.0
    cached_text = f"{percent(held, '.0f')} cached, " if cpu.caches else ""
    remote_text = f" + {precise(cpu.numa.remote_latency, 's')}" if remote and cpu.numa else ""
    return ProbeTime(body(cpu, name, cost), name, f"{cached_text}memory {precise(latency, 's')}{remote_text}", _chains(cost.why))


def stream(machine: Machine) -> ProbeTime:
    """Return the time of a sequential read of 1 MB of memory by one core."""
    name, cpu = first_cpu(machine)
    cost = cpu.access(name, Accesses(count=1e6 / 8, size=8.0, cores=1))
    seconds = body(cpu, name, cost)
    return ProbeTime(seconds, name, f"one core, {precise(1e6 / seconds, 'B/s')}", cost.why)


def compress(machine: Machine) -> ProbeTime:
    """Return the time to compress 1 KiB from the L1 cache (Snappy)."""
    name, cpu = first_cpu(machine)
    cost = cpu.compute(name, Work(instructions=SNAPPY * KIB, cores=1))
    return ProbeTime(body(cpu, name, cost), name, f"{SNAPPY:g} instructions per byte", cost.why)


def socket_link(machine: Machine, name: str) -> Link:
    """Return the first direct link from a CPU to another.

    Raises:
        Lacks: the CPU has no such link.
    """
    for link in machine.links_from(name):
        if link.target != name and machine.device(link.target).kind == "cpu" and not link.model.network:
            return link
    raise ProbeUnavailable(f"{name} has no link to another socket")


def _chain(working_set: float, remote: float = 0.0) -> Accesses:
    return Accesses(count=1.0, pattern="dependent", working_set=working_set, cores=1, remote=remote)


def _chains(why: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(term for term in why if term.label == "chain")
