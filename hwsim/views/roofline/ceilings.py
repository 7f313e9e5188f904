"""The ceilings of a roofline: bandwidth of the memory levels and FLOP/s of the compute units of a device.

    peak        product of the part's numbers
    sustained   rate of a long read stream, or of a large matmul, in the device's own model

**Source**: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; a ceiling per cache level as in Ilic, Pratas, Sousa,
"Cache-aware Roofline Model", IEEE CAL 13(1), 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from hwsim.devices import CannotCompute, Cpu, Gpu, MatmulShape, Sockets, Work
from hwsim.devices.gpu_memory import ThreadStream
from hwsim.devices.roofline import source_of
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.units import BYTES
from hwsim.views.latency.probe import LINE, changed, rates

STREAM: Final = 1e12  # size of a read stream (B), so large that its latency is negligible
SIDE: Final = 16384  # side of the square matrices of a large matmul


@dataclass(frozen=True, slots=True)
class Ceiling:
    """An upper limit of performance.

    Args:
        key: name in a report, such as "fp16", "fp16 vector" or "L2".
        sort: kind of limit.
        peak, sustained: rates (B/s or FLOP/s).
        source: source of the peak.
    """

    key: str
    sort: Literal["memory", "compute"]
    peak: float
    sustained: float
    source: str


def memory_ceilings(machine: Machine, name: str, *, links: bool = False) -> tuple[Ceiling, ...]:
    """Return the cache levels with a bandwidth, the memory, and with `links` the route from the host; fastest first."""
    model = machine.device(name).model
    ceilings: list[Ceiling] = []
    single = model.model if isinstance(model, Sockets) else model
    if isinstance(single, Cpu):
        ceilings += _cpu_caches(single, name, len(model.names) if isinstance(model, Sockets) else 1)
    elif isinstance(single, Gpu):
        ceilings += _gpu_caches(single, name)
    if isinstance(model, Cpu | Sockets | Gpu) and isinstance(single, Cpu | Gpu):
        count = len(model.names) if isinstance(model, Sockets) else 1
        reached = STREAM / _body(model, name, Work(reads=STREAM))
        peak = single.memory.bandwidth * count
        ceilings.append(Ceiling("memory", "memory", peak, min(reached, peak), str(source_of(single.sources, "memory.bandwidth"))))
    ceilings += _link(machine, name) if links and isinstance(model, Gpu) else []
    return tuple(sorted(ceilings, key=lambda ceiling: -ceiling.peak))


def compute_ceilings(machine: Machine, name: str) -> tuple[Ceiling, ...]:
    """Return the number formats by instruction class or kind of unit; fastest first."""
    match model := machine.device(name).model:
        case Gpu():
            ceilings = list(_units(model, name))
        case Cpu():
            ceilings = list(_instructions(model))
        case Sockets():
            alone, count = _instructions(model.model), len(model.names)
            ceilings = [replace(single, peak=count * single.peak, sustained=count * single.sustained) for single in alone]
        case _:
            ceilings = []
    return tuple(sorted(ceilings, key=lambda ceiling: (-ceiling.peak, ceiling.key)))


def _body(model: Cpu | Sockets | Gpu, name: str, work: Work) -> float:
    return model.compute(name, work).demand.body(rates(model.capacities(name)))


def _cpu_caches(cpu: Cpu, name: str, sockets: int) -> Iterator[Ceiling]:
    for level, cache in (cpu.caches.levels if cpu.caches else {}).items():
        if cpu.caches is None or (cache.bandwidth is None and cache.per_cycle is None and cache.together is None):
            continue
        alone = changed(cpu, caches=replace(cpu.caches, levels={level: cache}))
        rate = sockets * STREAM / _body(alone, name, Work(reads=STREAM, working_set=LINE))
        keys = (f"caches.levels.{level}.{key}" for key in ("bandwidth", "per_cycle", "together"))
        yield Ceiling(
            level, "memory", rate, rate, next((str(source_of(cpu.sources, key)) for key in keys if key in cpu.sources), "")
        )


def _gpu_caches(gpu: Gpu, name: str) -> Iterator[Ceiling]:
    if gpu.l1 is not None and gpu.l1.bandwidth is not None and gpu.sms is not None:
        stream = ThreadStream(reads=STREAM, working_set=gpu.l1.size / 4, together=True)
        cost = gpu.stream(name, stream)
        rate = gpu.l1.bandwidth * gpu.sms
        reached = STREAM / cost.demand.body(rates(gpu.capacities(name)))
        yield Ceiling("L1", "memory", rate, min(rate, reached), str(source_of(gpu.sources, "l1.bandwidth")))
    if gpu.l2 is not None and gpu.l2.bandwidth is not None:
        reached = STREAM / _body(gpu, name, Work(reads=STREAM, working_set=gpu.l2.size / 16))
        yield Ceiling(
            "L2", "memory", gpu.l2.bandwidth, min(gpu.l2.bandwidth, reached), str(source_of(gpu.sources, "l2.bandwidth"))
        )


def _link(machine: Machine, name: str) -> Iterator[Ceiling]:
    """Yield the narrowest link on the route from the nearest CPU."""
    cpu = machine.host_of(name, linked=True)
    route = machine.route(cpu, name) if cpu else ()
    if route:
        narrow = min(route, key=lambda link: link.bandwidth)
        yield Ceiling(narrow.kind, "memory", narrow.model.peak() * narrow.count, narrow.bandwidth, str(narrow.model.formula()))


def _units(gpu: Gpu, name: str) -> Iterator[Ceiling]:
    for dtype in BYTES:
        if dtype in gpu.flop:
            size = BYTES[dtype] * SIDE * SIDE
            shape = MatmulShape(SIDE, SIDE, SIDE)
            work = Work(flop=2.0 * SIDE**3, reads=2 * size, writes=size, dtype=dtype, mix="matmul", product=shape)
            peak = gpu.flop[dtype]
            yield Ceiling(
                dtype,
                "compute",
                peak,
                min(peak, work.flop / _body(gpu, name, work)),
                str(source_of(gpu.sources, f"flop.{dtype}")),
            )
        if dtype in gpu.vector:
            rate = gpu.vector[dtype]
            source = str(source_of(gpu.sources, f"vector.{dtype}"))
            yield Ceiling(f"{dtype} vector", "compute", rate, rate * gpu.efficiency.vector, source)


def _instructions(cpu: Cpu) -> Iterator[Ceiling]:
    best = max(cpu.efficiency.matmul, cpu.efficiency.vector)
    for dtype in BYTES:
        classes = _classes(cpu, dtype)
        if dtype in cpu.flop or dtype in cpu.per_cycle:
            _, stated, key = cpu.peak(dtype)
            if not any(math.isclose(stated, rate, rel_tol=1e-9) for rate in classes.values()):  # else equal to a class
                yield Ceiling(dtype, "compute", stated, stated * best, str(source_of(cpu.sources, key)))
        for isa, rate in classes.items():
            yield Ceiling(f"{dtype} {isa}", "compute", rate, rate * best, str(source_of(cpu.sources, "clock")))


def _classes(cpu: Cpu, dtype: str) -> dict[str, float]:
    """Return the peak of each instruction class that computes in a format."""
    classes = {}
    for isa in cpu.core.isa if cpu.core else ():
        try:
            used, rate, _ = cpu.peak(dtype, isa=isa, busy=cpu.cores)
        except CannotCompute:
            continue
        if used == dtype:
            classes[isa] = rate
    return classes
