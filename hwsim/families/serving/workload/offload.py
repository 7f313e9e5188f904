"""`offload:` keys and values of prompts are kept below the GPUs: in memory of the host, then on a disk.

offload: {host: 200 GB}
offload: {host: 64 GB, disk: {device: disk0, size: 2 TB}, write: back}

Each copy has tiers of its own, of these sizes. A request whose prompt begins with pieces that are there waits for them while
others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hwsim.formats import format_quantity
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, field, place_field
from hwsim.units import Bytes
from hwsim.workload.programs import memory_of


@dataclass(frozen=True, slots=True)
class DiskKeys:
    """A tier on a disk, behind the host's."""

    device: str = field("the disk", example="disk0")
    size: Bytes = field("of each copy", exclusive_minimum=0.0, example="2 TB")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class OffloadKeys:
    """Tiers for keys and values of prompts that the GPUs have no room for."""

    host: Bytes = field("memory of the host that each copy has for them", exclusive_minimum=0.0, example="200 GB")
    disk: DiskKeys | None = field("a tier behind it", default=None, example="{device: disk0, size: 2 TB}")
    write: Literal["through", "back"] = field(
        "they are stored as soon as they are read (through), or when the GPUs give them up (back)", default="through"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class Offload:
    """Tiers of each copy.

    Args:
        hosts: for each copy the device whose memory it uses; disk: "" without one.
        blocks: room of each tier in blocks, the host's first. block_bytes: bytes of a block on each GPU.
    """

    hosts: tuple[str, ...]
    disk: str
    blocks: tuple[int, ...]
    block_bytes: float
    late: bool


def host_near(machine: Machine, gpu: str) -> str:
    """The CPU that works for a GPU.

    Raises:
        ValueError: none is connected.
    """
    cpu = machine.host_of(gpu, linked=True)
    if not cpu:
        raise ValueError(f"no CPU is connected to {gpu}")
    return cpu


def offload_of(
    keys: OffloadKeys, machine: Machine, copies: Sequence[Sequence[str]], block_bytes: float, mistakes: Mistakes
) -> Offload | None:
    """The tiers that a file asks for; None once its mistakes are noted."""
    hosts, disk, many = [], "", len(copies[0])
    for gpus in copies:
        try:
            hosts.append(host_near(machine, gpus[0]))
        except (NoRoute, ValueError):
            mistakes.add(keys.place, f"no host's memory is connected to {gpus[0]}", "a machine with a cpu and a link to its GPUs")
            return None
    sizes = [keys.host]
    if keys.disk is not None:
        try:
            disk = machine.one(keys.disk.device)
            machine.read(disk, 1.0, to=hosts[0])
        except (UnknownName, NoRoute) as error:
            mistakes.add(keys.disk.place, str(error), "device: disk0")
            return None
        sizes.append(keys.disk.size)
    place = keys.place if keys.disk is None else keys.disk.place
    shared = [(host, keys.host * hosts.count(host), keys.place) for host in dict.fromkeys(hosts)]
    shared += [(disk, keys.disk.size * len(copies), place)] if keys.disk is not None else []
    for device, wanted, where in shared:
        size = memory_of(machine, device)
        if size is not None and wanted > size:
            text = f"copies keep {format_quantity(wanted, 'B')} on {device}, which has {format_quantity(size, 'B')}"
            mistakes.add(where, text, "less for each copy")
            return None
    blocks = tuple(int(size // (block_bytes * many)) for size in sizes)
    if not all(blocks):
        mistakes.add(keys.place, f"a block of the cache is {format_quantity(block_bytes * many, 'B')}", "more for each copy")
        return None
    return Offload(tuple(hosts), disk, blocks, block_bytes, keys.write == "back")
