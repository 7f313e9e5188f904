"""Latency numbers of a GPU: its memories, kernel launch, copies."""

from __future__ import annotations

from hwsim.devices import Accesses, Gpu, Work
from hwsim.formats import precise
from hwsim.machine import Machine, NoRoute
from hwsim.ops.op import Scope
from hwsim.ops.transfer import Copy
from hwsim.views.latency.probe import MEGABYTE, ProbeTime, ProbeUnavailable, body, first_cpu, first_gpu, rates


def shared_memory(machine: Machine) -> ProbeTime:
    """Return the time of a read from shared memory, which is one array with the L1 cache."""
    name, gpu = first_gpu(machine)
    if gpu.l1 is None or gpu.l1.latency <= 0:
        raise ProbeUnavailable(f"{name} does not define the latency of its l1")
    return _chased(name, gpu, gpu.l1.size / 4, "working set within the L1")


def second_level(machine: Machine) -> ProbeTime:
    """Return the time of a read served by the L2 cache."""
    name, gpu = first_gpu(machine)
    if gpu.l2 is None or gpu.l2.latency <= 0:
        raise ProbeUnavailable(f"{name} does not define the latency of its l2")
    near = gpu.l2.near or gpu.l2.size
    size = near / 4 if gpu.l1 is None else max(near / 4, min(near * 0.75, gpu.l1.size * 4))
    return _chased(name, gpu, size, f"working set of {precise(size, 'B')} within the L2")


def global_memory(machine: Machine) -> ProbeTime:
    """Return the time of a read that no cache serves."""
    name, gpu = first_gpu(machine)
    timed = _chased(name, gpu, None, "L2 miss" if gpu.l2 is not None and gpu.l2.miss > 0 else "latency of memory")
    if timed.seconds < 1e-9:
        raise ProbeUnavailable(f"{name} does not define the latency of its memory")
    return timed


def launch(machine: Machine) -> ProbeTime:
    """Return the time of an empty kernel that the host launches and waits for."""
    name, gpu = first_gpu(machine)
    cost = gpu.compute(name, Work(start="host", dtype=next(iter(gpu.flop))))
    seconds = cost.demand.alone(rates(gpu.capacities(name)))
    if seconds <= 0:
        raise ProbeUnavailable(f"{name} does not define a kernel launch latency")
    why = tuple(term for term in cost.why if term.kind == "latency")
    return ProbeTime(seconds, name, "empty kernel that the host waits for", why)


def host_copy(machine: Machine) -> ProbeTime:
    """Return the time to copy 1 MB from the memory of the nearest CPU."""
    name, _ = first_gpu(machine)
    first_cpu(machine)
    cpu = machine.host_of(name, linked=True)
    if not cpu:
        raise ProbeUnavailable(f"no CPU is linked to {name}")
    return _copied(machine, cpu, name)


def peer_copy(machine: Machine) -> ProbeTime:
    """Return the time to copy 1 MB from another GPU over links between GPUs."""
    name, _ = first_gpu(machine)
    for peer in machine.devices_of("gpu", machine.device(name).node):
        if peer == name:
            continue
        try:
            route = machine.route(name, peer)
        except NoRoute:
            continue
        if route and all(link.model.joins == "gpus" for link in route):
            return _copied(machine, name, peer)
    raise ProbeUnavailable(f"no other GPU is linked to {name} by NVLink or xGMI")


def _copied(machine: Machine, source: str, target: str) -> ProbeTime:
    cost = Copy(source=source, target=target, bytes=MEGABYTE).lower(Scope(machine)).cost
    if cost is None:
        raise ProbeUnavailable("nothing to copy")
    links = machine.route(source, target)
    narrow = min(links, key=lambda link: link.bandwidth)
    how = f"{source} to {target}, {narrow.kind} {precise(round(narrow.bandwidth / 1e8) * 1e8, 'B/s')}"
    return ProbeTime(cost.demand.alone(machine.rates()), narrow.name, how, cost.why)


def _chased(name: str, gpu: Gpu, size: float | None, how: str) -> ProbeTime:
    cost = gpu.access(name, Accesses(count=1.0, size=4.0, pattern="dependent", working_set=size))
    why = tuple(term for term in cost.why if term.kind == "floor")
    return ProbeTime(body(gpu, name, cost), name, how, why)
