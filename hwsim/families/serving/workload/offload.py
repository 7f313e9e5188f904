"""`offload:` tiers for the KV cache of prompts below GPU memory: host memory, then a disk.

offload: {host: 200 GB}
offload: {host: 64 GB, disk: {device: disk0, size: 2 TB}, write: back}

Each replica has its own tiers, of these sizes. A request whose prompt begins with offloaded blocks waits for them to be loaded,
while other requests continue.
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
    """A tier on a disk, below the tier in host memory."""

    device: str = field("name of the disk", example="disk0")
    size: Bytes = field("capacity of the tier for each replica", exclusive_minimum=0.0, example="2 TB")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class OffloadKeys:
    """Tiers for KV-cache blocks of prompts that do not fit in GPU memory."""

    host: Bytes = field("host memory for the KV cache of each replica", exclusive_minimum=0.0, example="200 GB")
    disk: DiskKeys | None = field("second tier, on a disk (default: none)", default=None, example="{device: disk0, size: 2 TB}")
    write: Literal["through", "back"] = field(
        "time at which blocks are copied to host memory: when they are computed (through), or when the GPUs evict them (back)",
        default="through",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class Offload:
    """The tiers of all replicas.

    Args:
        hosts: device with the host memory of each replica.
        disk: name of the disk; "" without one.
        blocks: capacity of each tier of a replica in blocks, host memory first.
        block_bytes: bytes of a block on each GPU.
        late: blocks are stored when the GPUs evict them, not when they are computed.
    """

    hosts: tuple[str, ...]
    disk: str
    blocks: tuple[int, ...]
    block_bytes: float
    late: bool


def host_near(machine: Machine, gpu: str) -> str:
    """Return the name of a GPU's host CPU.

    Raises:
        ValueError: No CPU is connected to the GPU.
    """
    cpu = machine.host_of(gpu, linked=True)
    if not cpu:
        raise ValueError(f"no CPU is connected to {gpu}")
    return cpu


def offload_of(
    keys: OffloadKeys, machine: Machine, copies: Sequence[Sequence[str]], block_bytes: float, mistakes: Mistakes
) -> Offload | None:
    """Return the tiers of a file; None if they are not valid, which is noted in `mistakes`."""
    hosts, disk, gpu_count = [], "", len(copies[0])
    for gpus in copies:
        try:
            hosts.append(host_near(machine, gpus[0]))
        except (NoRoute, ValueError):
            mistakes.add(keys.place, f"{gpus[0]} has no link to host memory", "a machine with a cpu and a link to its GPUs")
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
            text = f"the replicas need {format_quantity(wanted, 'B')} on {device}, which has {format_quantity(size, 'B')}"
            mistakes.add(where, text, "a smaller size for each replica")
            return None
    blocks = tuple(int(size // (block_bytes * gpu_count)) for size in sizes)
    if not all(blocks):
        mistakes.add(keys.place, f"a tier is below one block, {format_quantity(block_bytes * gpu_count, 'B')}", "a larger size")
        return None
    return Offload(tuple(hosts), disk, blocks, block_bytes, keys.write == "back")
