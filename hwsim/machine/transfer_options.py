"""Options of transfers besides links and memories: messages of a protocol, pinned or pageable memory, mover of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Final, Literal

from hwsim.demand import Term, Unit
from hwsim.devices import Cpu, Gpu, Memory, Nic
from hwsim.devices.line_errors import doubts
from hwsim.devices.network import ON_CORES
from hwsim.devices.roofline import WORKLOAD, source_of
from hwsim.formats import precise
from hwsim.links import Protocol
from hwsim.machine.contents import Link, PlacedDevice, network_sides
from hwsim.origins import IDEAL, Cited, Origin, case_of
from hwsim.records import dataclass

LINE: Final = 64.0  # bytes of a cache line
# Loads over a bus that one core has in flight: a core of a DGX-1V reads 32 KiB of a V100 in 57 us, and 16 B in 0.86 us
LOADS_IN_FLIGHT: Final = 7.0
WORD: Final = 16.0  # bytes of one load
HEAD: Final = 2  # maximum dependent loads of the first line: 32 B take twice as long as 16
UNDER_WAY_FROM: Final = Origin("fitted", "NVIDIA/gdrcopy@fcec3ce0bb40:README.md, half of the sizes")
STORES: Final = "stores of a core"
LOADS: Final = "loads of a core"
Input = tuple[str, str, Cited]  # an input of a derivation: name, value, source
Pages = Literal["pinned", "pageable"]
Mover = Literal["dma", "cpu", "sm"]


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """A set of options of a copy or a message.

    Args:
        protocol: protocol of the messages; None: that of the NIC.
        messages: number of equal messages.
        pages: kind of host memory.
        by: mover of the data: DMA engine, CPU core, or GPU kernel (sm).
        waited: whether the program waits for the copy.
        of_service: see `hwsim.devices.storage.StorageAccesses`, for a disk at an end.
    """

    protocol: Protocol | None = None
    messages: float = 1.0
    pages: Pages = "pinned"
    by: Mover = "dma"
    waited: bool = False
    of_service: bool = False


PLAIN: Final = TransferOptions()


@dataclass(slots=True)
class TransferTally:
    """The costs of a transfer in addition to its bytes on links and memories.

    Args:
        latencies: derivation lines of latencies.
        floors: derivation lines of lower bounds of the time.
        terms: derivation lines of draws.
        draws: (amount, moved, unit) by capacity.
        holds: held fraction by capacity.
        cores: capacities of the cores that take part.
    """

    latencies: list[Term] = field(default_factory=list)
    floors: list[Term] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    draws: dict[str, tuple[float, float, Unit]] = field(default_factory=dict)  # by capacity
    holds: dict[str, float] = field(default_factory=dict)
    cores: set[str] = field(default_factory=set)

    def wait(self, label: str, seconds: float, source: Cited, cpu: str = "", of: str = "") -> None:
        """Add a latency, unless it is 0; cpu: CPU whose cores it occupies; of: device whose copy starts."""
        if seconds > 0:
            known = case_of(source) == "known"  # one GPU was measured; the start of another has the spread of its number
            unsure = doubts("copy/small", of, source, seconds) if of and known else ()
            inputs = ((label, precise(seconds, "s"), source),)
            self.latencies.append(Term("latency", label, inputs, seconds, cpu and f"{cpu}.cores", "latency", unsure, cpu))

    def clocks(self) -> tuple[tuple[str, float], ...]:
        """Return the core whose clock scales the longest floor, if that is work of a core and not its waiting for a bus."""
        longest = max(self.floors, key=lambda term: term.seconds, default=None)
        if longest is None or longest.capacity not in self.cores or longest.label in (STORES, LOADS):
            return ()
        return ((longest.capacity, 1.0),)

    def draw(self, capacity: str, amount: float, moved: float, unit: Unit) -> None:
        """Add an amount drawn from a capacity."""
        before, past, _ = self.draws.get(capacity, (0.0, 0.0, unit))
        self.draws[capacity] = before + amount, past + moved, unit


def protocol_on(devices: Mapping[str, PlacedDevice], stops: Sequence[str], asked: Protocol | None) -> Protocol | None:
    """Return the protocol of a transfer: the stated one, else the protocol of the first NIC on the route."""
    if asked is not None:
        return asked
    models = (devices[name].model for name in stops)
    return next((model.protocol for model in models if isinstance(model, Nic) and model.protocol is not None), None)


def send_messages(
    tally: TransferTally,
    devices: Mapping[str, PlacedDevice],
    stops: Sequence[str],
    links: Sequence[Link],
    count: float,
    protocol: Protocol,
) -> None:
    """Add the costs of messages on the NICs of the route and on the cores of their hosts.

    A message has an overhead at each end, before and after the transfer. With several messages, the overhead of one overlaps with
    the transfer of another.
    """
    for index, name in enumerate(stops):
        model = devices[name].model
        if not isinstance(model, Nic):
            continue
        into, out = network_sides(devices, links[index - 1] if index > 0 else None, links[index] if index < len(links) else None)
        if out == into:
            continue  # between two networks, or no network side
        overhead = model.overhead.get(protocol, 0.0)
        source = source_of(model.sources, f"overhead.{protocol}")
        cpu = _cpu(devices, stops, index, out) if protocol in ON_CORES else ""
        core = cpu and f"{cpu}.cores"
        tally.wait(f"{protocol} message at {name}", overhead, source, cpu)
        inputs: tuple[Input, ...] = (("messages", precise(count, "1"), WORKLOAD), ("overhead", precise(overhead, "s"), source))
        if overhead > 0 and core:
            cores = getattr(devices[cpu].model, "cores", 1)
            tally.cores.add(core)
            tally.draw(core, count * overhead, count, "1")
            with_cores = (*inputs, ("cores", str(cores), "cores"))
            seconds = count * overhead / cores
            tally.terms.append(Term(f"messages on {core}", "messages x overhead / cores", with_cores, seconds, core))
        if overhead > 0 and count > 1:
            tally.floors.append(
                Term(f"messages at {name}", "(messages - 1) x overhead", inputs, (count - 1) * overhead, core or f"{name}.tx")
            )
        if model.message_rate is not None:
            capacity = f"{name}.{'tx' if out else 'rx'}_messages"
            tally.draw(capacity, count, count, "1")
            inputs = (
                ("messages", precise(count, "1"), WORKLOAD),
                ("rate", precise(model.message_rate, "1/s"), source_of(model.sources, "message_rate")),
            )
            tally.terms.append(Term(f"messages of {name}", "messages / rate", inputs, count / model.message_rate, capacity))


def _cpu(devices: Mapping[str, PlacedDevice], stops: Sequence[str], nic: int, leaving: bool) -> str:
    """Return the host of the NIC at an index of the route: the nearest CPU; "" if there is none."""
    side = reversed(stops[:nic]) if leaving else stops[nic + 1 :]
    return next((name for name in side if isinstance(devices[name].model, Cpu)), "")


def copy_by(
    tally: TransferTally, start: PlacedDevice, end: PlacedDevice, links: Sequence[Link], size: float, handling: TransferOptions
) -> None:
    """Add the costs of the mover of a copy: an engine of a GPU, its multiprocessors, or a core."""
    cpu = next((device for device in (start, end) if isinstance(device.model, Cpu)), None)
    if handling.by == "cpu" and cpu is not None:
        _by_core(tally, start, end, cpu, links, size)
        return
    into = isinstance(end.model, Gpu) and not isinstance(start.model, Gpu)
    gpu = end if into else start
    if not isinstance(gpu.model, Gpu) or not (isinstance(end.model, Gpu) or end.kind in ("cpu", "memory")):
        return
    if start.kind not in ("cpu", "memory", "gpu"):
        return  # disks and NICs have their own DMA engines
    peer = isinstance(start.model, Gpu) and isinstance(end.model, Gpu)
    if handling.by == "sm":
        _by_kernel(tally, gpu.name, gpu.model, size, peer)
        return
    _by_engine(tally, gpu.name, gpu.model, links, size, into, handling)
    if handling.pages == "pageable" and not peer:
        _staged(tally, start if into else end, gpu.model, cpu, size)


def _by_engine(
    tally: TransferTally, name: str, gpu: Gpu, links: Sequence[Link], size: float, into: bool, handling: TransferOptions
) -> None:
    copies, sources = gpu.copies, gpu.sources
    if not links:
        tally.wait("setup of the copy", copies.local_setup, source_of(sources, "copies.local_setup"), of=name)
    else:
        tally.wait("setup of the copy", copies.setup, source_of(sources, "copies.setup"), of=name)
    if handling.waited:
        tally.wait("waiting for the copy", copies.waited, source_of(sources, "copies.waited"), of=name)
    if not into or not links:
        return
    tally.wait("fetch from the host", copies.fetch, source_of(sources, "copies.fetch"), of=name)
    narrow = min(links, key=attrgetter("bandwidth"))
    inputs = (
        ("bytes", precise(size, "B"), WORKLOAD),
        ("bandwidth", precise(narrow.bandwidth, "B/s"), narrow.model.origin(narrow.count)),
    )
    if copies.fill > 0 and size > 0:
        fill = ("fill", precise(copies.fill, "B"), source_of(sources, "copies.fill"))
        seconds = size * copies.fill / ((size + copies.fill) * narrow.bandwidth)
        text = "bytes x fill / ((bytes + fill) x bandwidth)"
        holder = f"link {narrow.name}"
        tally.latencies.append(Term("latency", text, (*inputs, fill), seconds, narrow.capacity, "latency", (), holder))
    fetched = narrow.model.fetched()
    if fetched < 1:
        part = ("fetches", precise(fetched, "%"), source_of(narrow.model.sources, "fetches"))
        seconds = size / (fetched * narrow.bandwidth)
        unsure = doubts("copy/large", name, part[2], seconds)
        formula = "bytes / (fetches x bandwidth)"
        tally.floors.append(Term("fetches", formula, (*inputs, part), seconds, narrow.capacity, doubts=unsure))


def _by_kernel(tally: TransferTally, name: str, gpu: Gpu, size: float, peer: bool) -> None:
    key = "kernel_peer" if peer else "kernel_host"
    rate = gpu.copies.kernel_peer if peer else gpu.copies.kernel_host
    if rate is not None:
        _floor(tally, "copy kernel", size, rate, source_of(gpu.sources, f"copies.{key}"), f"{name}.compute")


def _staged(tally: TransferTally, host: PlacedDevice, gpu: Gpu, cpu: PlacedDevice | None, size: float) -> None:
    """Add the costs of staging in a pinned buffer: a core reads and writes host memory once more."""
    model = host.model
    if isinstance(model, Cpu | Memory):
        capacity, seconds = model.copy_bytes(host.name, 1.0)
        tally.draw(capacity, 2 * seconds * size, 2 * size, "B")
        key = "memory.bandwidth" if isinstance(model, Cpu) else "bandwidth"
        rate_input = ("bandwidth", precise(1 / seconds, "B/s"), source_of(model.sources, key))
        passes = ("passes", "3", "one by the engine, two by a core that reads and writes")
        inputs = (("bytes", precise(size, "B"), WORKLOAD), passes, rate_input)
        text = "passes x bytes / bandwidth"
        tally.terms.append(Term(f"memory {host.name}, staged", text, inputs, 3 * seconds * size, capacity))
    rate, source = gpu.copies.pageable, source_of(gpu.sources, "copies.pageable")
    core = f"{cpu.name}.cores" if cpu is not None else ""
    if rate is None and cpu is not None and isinstance(cpu.model, Cpu) and (alone := cpu.model.core_rate()) is not None:
        rate, source = alone / 2, "half of " + cpu.model.core_rate_source()
    if rate is not None:
        _floor(tally, "staging copy", size, rate, source, core)
        if core:
            tally.cores.add(core)
            tally.draw(core, size / rate, size, "B")


def _by_core(
    tally: TransferTally, start: PlacedDevice, end: PlacedDevice, cpu: PlacedDevice, links: Sequence[Link], size: float
) -> None:
    """Add the costs of a core that loads and stores every byte."""
    model, core = cpu.model, f"{cpu.name}.cores"
    if not isinstance(model, Cpu):
        return
    tally.holds[core] = 1.0 / model.cores
    tally.cores.add(core)
    gpu = end.model if isinstance(end.model, Gpu) else None
    if isinstance(start.model, Gpu) and (start.model.copies.loads is not None or _round_trip(start.model, links) > 0):
        _by_loads(tally, start.name, start.model, links, size, cpu.name)
    elif gpu is not None:
        if gpu.copies.store_setup > 0:
            least = (("least", precise(gpu.copies.store_setup, "s"), source_of(gpu.sources, "copies.store_setup")),)
            tally.floors.append(Term("setup of the copy", "least", least, gpu.copies.store_setup, core))
        if gpu.copies.stores is not None:
            _floor(tally, STORES, size, gpu.copies.stores, source_of(gpu.sources, "copies.stores"), core)
    elif (alone := model.core_rate()) is not None:
        passes = 2 if start.name == end.name else 1
        _floor(tally, "copy by a core", passes * size, alone, model.core_rate_source().replace("core_bandwidth: ", ""), core)


def _round_trip(gpu: Gpu, links: Sequence[Link]) -> float:
    """Return the time (s) of one load. A switch does not double a slot's latency, which mostly arises at its two ends."""
    return 2 * max(link.model.delay() for link in links) + gpu.access_latency() if links else 0.0


def _by_loads(tally: TransferTally, name: str, gpu: Gpu, links: Sequence[Link], size: float, cpu: str) -> None:
    """Add the costs of a core that loads from a device: each load crosses the links, reads the memory and returns.

    Stores are posted, so the core continues. The number of loads in flight is limited by the core's buffers for combined
    accesses. Every copy already includes the latency of the route to the device and of its memory; the rest and the way back are
    added here.
    """
    core = f"{cpu}.cores"
    back, memory = max(link.model.delay() for link in links), gpu.access_latency() - gpu.copy_latency()
    trip = _round_trip(gpu, links)
    more = min(HEAD, math.ceil(size / WORD)) - 1 if size > 0 else 0
    inputs: list[Input] = [
        ("back", precise(back, "s"), links[-1].model.sources.get("latency", IDEAL)),
        ("memory", precise(memory, "s"), "l2.miss: " + source_of(gpu.sources, "l2.miss")),
        ("more", precise(more, "1"), "dependent loads of the first line"),
        ("trip", precise(trip, "s"), f"round trip to the memory of {name}"),
    ]
    seconds = back + memory + more * trip
    unsure = doubts("copy/loads", name, UNDER_WAY_FROM, seconds)
    formula = "back + memory + more x trip"
    tally.latencies.append(Term("load over the bus", formula, tuple(inputs), seconds, core, "latency", unsure, cpu))
    if gpu.copies.loads is not None:
        _floor(tally, LOADS, size, gpu.copies.loads, source_of(gpu.sources, "copies.loads"), core)
        return
    rest = max(0.0, size - LINE)
    inputs = [
        ("bytes", precise(rest, "B"), WORKLOAD + ", after the first line"),
        ("trip", precise(trip, "s"), f"round trip to the memory of {name}"),
        ("under_way", precise(LOADS_IN_FLIGHT, "1"), UNDER_WAY_FROM),
        ("line", precise(LINE, "B"), "size of a CPU's buffer for combined accesses"),
    ]
    seconds = rest * trip / (LOADS_IN_FLIGHT * LINE)
    unsure = doubts("copy/loads", name, UNDER_WAY_FROM, seconds)
    formula = "bytes x trip / (under_way x line)"
    tally.floors.append(Term(LOADS, formula, tuple(inputs), seconds, core, doubts=unsure))


def _floor(tally: TransferTally, label: str, size: float, rate: float, source: Cited, capacity: str) -> None:
    inputs = (("bytes", precise(size, "B"), WORKLOAD), ("rate", precise(rate, "B/s"), source))
    tally.floors.append(Term(label, "bytes / rate", inputs, size / rate, capacity))
