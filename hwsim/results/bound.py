"""Bounds of the time of a run: the causes on the critical path, mapped to a closed list of terms.

A cause names a capacity, a derivation line or a latency of one device. A bound joins causes with the same meaning: the capacity
`gpu0.memory` and the line `memory` of a kernel on that GPU both mean its memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from hwsim.demand import Capacity
from hwsim.formats import family, natural
from hwsim.graph.opgraph import Label
from hwsim.records import dataclass
from hwsim.results.cause import HOST, Cause

ARRIVALS: Final = "arrivals"
GIVEN: Final = "fixed duration"
HOST_CPU: Final = "host CPU"
COPY: Final = "copy setup latency"
LAUNCH: Final = "kernel launch latency"
MEMORY: Final = {"gpu": "GPU memory bandwidth", "cpu": "memory bandwidth"}  # by kind of device
COMPUTE: Final = {"gpu": "GPU compute", "cpu": "CPU cores"}
LONG: Final = 28  # longest link name with both ends (characters); a longer one is shown without them
STORAGE: Final = frozenset({"disk", "hdd", "ssd"})

CAPACITIES: Final[Mapping[str, str]] = {  # term by kind of capacity, for any device
    "backplane": "switch",
    "iops": "disk IOPS",
    "line": "cache-line transfers",
    "media": "disk",
    "rx": "NIC",
    "rx_messages": "NIC message rate",
    "tx": "NIC",
    "tx_messages": "NIC message rate",
}
MEMORY_LATENCY: Final = "access latency"
SOFTWARE: Final = "software overhead"
LINES: Final[Mapping[str, str]] = {  # term by label of a derivation line without a capacity
    "accesses": MEMORY_LATENCY,
    "all at once": MEMORY_LATENCY,
    "bandwidth of the cores": COMPUTE["cpu"],
    "caches": "cache bandwidth",
    "cast": COMPUTE["gpu"],
    "chain": MEMORY_LATENCY,
    "copy by cores": COMPUTE["cpu"],
    "fetches": MEMORY_LATENCY,
    "flow": "communication",
    "increments": "cache-line transfers",
    "instructions": COMPUTE["cpu"],
    "iops": "disk IOPS",
    "kernel": "measured call",
    "kernels": "GPU kernels",
    "kernels (memory)": MEMORY["gpu"],
    "kernels (small)": "small kernels",
    "kernels (starts)": LAUNCH,
    "kernels (with communication)": "GPU kernels and communication",
    "kernels (units)": COMPUTE["gpu"],
    "level 1": "L1 bandwidth",
    "level 2": "L2 bandwidth",
    "line from core to core": "cache-line transfers",
    "lines in flight": MEMORY_LATENCY,
    "load over the bus": MEMORY_LATENCY,
    "loads of a core": MEMORY_LATENCY,
    "media": "disk",
    "members": "disk",
    "random access": MEMORY_LATENCY,
    "remote memory": MEMORY["cpu"],
    "requests": "simulated requests",
    "setup of the copy": COPY,
    "staged": "staging copy",
    "staging copy": "staging copy",
    "stores of a core": COMPUTE["cpu"],
    "stores of the cores": COMPUTE["cpu"],
    "wear": "disk",
}
ACCESSES: Final = frozenset({"accesses", "chain", "random access"})  # labels of derivation lines of single accesses
COLLECTIVES: Final = frozenset({  # kinds of ops among several GPUs
    "allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce", "gather", "scatter", "barrier", "exchange",
    "all-reduce", "all-gather", "all-to-all", "collective",
})  # fmt: skip
COPYING: Final = frozenset({"asnumpy", "copy", "item", "print"})  # kinds of ops that copy
ARRIVING: Final = frozenset({"arrivals", "service", "start"})  # kinds of ops that start at a given time
TERMS: Final = frozenset(
    {
        *CAPACITIES.values(), *LINES.values(), *MEMORY.values(), *COMPUTE.values(), ARRIVALS, GIVEN, HOST_CPU, COPY, LAUNCH,
        SOFTWARE, "disk latency", "latency", "link", "queueing", "waiting",
    }
)  # fmt: skip


class Bound(NamedTuple):
    """A term of `TERMS` with its location: a device, link, pool or op; members of a family have one location.

    >>> str(Bound("link", "slot cpu->gpu")), str(Bound("disk", "disk")), str(Bound("GPU compute", "gpu*"))
    ('link slot cpu->gpu', 'disk', 'GPU compute')
    """

    term: str
    where: str = ""

    @property
    def full(self) -> str:
        """The bound in words; a fixed duration with the name of its op."""
        return f"{self.term} of {self.where}" if self.term == GIVEN and self.where else str(self)

    def __str__(self) -> str:
        has_place = not self.term.startswith(self.where) and self.term not in HERE
        return f"{self.term} {self.where}" if has_place else self.term


HERE: Final = frozenset({*MEMORY.values(), *COMPUTE.values(), *LINES.values(), ARRIVALS, GIVEN, HOST_CPU, COPY, LAUNCH})


def bounds(capacities: Iterable[Capacity], devices: Mapping[str, str]) -> Callable[[Cause, Label], Bound]:
    """Return a function from a cause and the label of its op to the bound.

    Args:
        capacities: capacities of the op graph.
        devices: kind of each device by name.
    """
    by_name = {capacity.name: capacity for capacity in capacities}

    @cache
    def bound(cause: Cause, kind: str) -> Bound:
        match cause.kind:
            case "capacity":
                return capacity_bound(by_name[cause.name], devices) if cause.name in by_name else Bound("link", cause.name)
            case "pool":
                return Bound("queueing", f"for {family(cause.name)}")
            case "wait":
                return Bound("waiting")
            case "dispatch" | "return":
                return Bound(HOST_CPU)
            case "latency":
                return _of_latency(cause.name, kind, devices)
        if kind in ARRIVING:
            return Bound(ARRIVALS)
        if kind == "starting":
            return Bound("waiting", "for a replica to start")
        if cause.kind == "time":
            return Bound(HOST_CPU) if kind in {"host", "infer", *HOST} else Bound(GIVEN, family(cause.label))
        device = family(cause.name)
        if devices.get(cause.name) in STORAGE and cause.label in ACCESSES:
            return Bound("disk latency", device)
        return Bound(LINES.get(cause.label) or _of_line(cause, devices.get(cause.name, "")), device)

    return lambda cause, label: bound(cause, label.kind)


def capacity_bound(capacity: Capacity, devices: Mapping[str, str]) -> Bound:
    """Return the bound of an op that a capacity limits; `devices`: kind of each device by name."""
    if capacity.link:
        ends = family(capacity.name.replace(":", " ", 1))
        return Bound("link", ends if len(ends) <= LONG else capacity.link)
    kind, device = devices.get(capacity.device, ""), family(capacity.device)
    match capacity.kind:
        case "memory":
            return Bound(MEMORY.get(kind, MEMORY["cpu"]), device)
        case "compute":
            return Bound(COMPUTE.get(kind, COMPUTE["gpu"]), device)
        case "cores":
            return Bound(COMPUTE["cpu"], device)
    return Bound(CAPACITIES.get(capacity.kind, capacity.kind or capacity.name), device)


def _of_latency(holder: str, kind: str, devices: Mapping[str, str]) -> Bound:
    device = devices.get(holder, "")
    if holder.startswith("link "):
        return Bound("latency", f"of {family(holder)}")
    if device in STORAGE:
        return Bound("disk latency", family(holder))
    if device == "gpu":
        return Bound(LINES["flow"] if kind in COLLECTIVES else COPY if kind in COPYING else LAUNCH, family(holder))
    return Bound("latency", f"of {family(holder)}")


def _of_line(cause: Cause, device: str) -> str:
    """Return the term of a derivation line that depends on its device: compute, memory or software."""
    if device in STORAGE:
        return "disk"
    if cause.label.startswith("messages"):
        return "NIC message rate"
    if cause.label == "memory":
        return MEMORY.get(device, MEMORY["cpu"])
    return COMPUTE.get(device, SOFTWARE)


@dataclass(frozen=True, slots=True)
class BoundTime:
    """A bound and its time on the critical path.

    Args:
        bound: bound.
        time_fs: time (fs).
    """

    bound: Bound
    time_fs: int


def longest_first(spent: Mapping[Bound, int]) -> list[BoundTime]:
    """Return the parts, longest first; ties by name."""
    return [BoundTime(*pair) for pair in sorted(spent.items(), key=lambda pair: (-pair[1], natural(str(pair[0]))))]


def words(parts: list[BoundTime], *, least: float = 0.1, shown: int = 2) -> str:
    """Return the bounds of most of a time in words, such as `GPU memory bandwidth 53 %, GPU compute 42 %`.

    A bound of nearly all of the time has no share.

    Args:
        parts: bounds with their times.
        least: smallest share to show (fraction); default 0.1.
        shown: largest number of bounds; default 2.
    """
    from hwsim.formats import format_share

    spent: dict[str, int] = {}
    for part in parts:  # fixed durations of several ops have one text
        spent[str(part.bound)] = spent.get(str(part.bound), 0) + part.time_fs
    total = sum(spent.values())  # integers
    ranked = sorted(spent.items(), key=lambda pair: (-pair[1], pair[0]))
    kept = [(name, time) for name, time in ranked if time and time >= least * total][:shown]
    if not kept:
        return ""
    if kept[0][1] >= (1.0 - least) * total:
        return kept[0][0]
    return ", ".join(f"{name} {format_share(time / total)}" for name, time in kept)
