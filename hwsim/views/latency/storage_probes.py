"""Latency numbers of disks: random access of 4 KB, and 1 MB of a long sequential read."""

from __future__ import annotations

from typing import Final, Literal

from hwsim.devices import Storage
from hwsim.devices.disk import Disk
from hwsim.devices.hdd import Hdd
from hwsim.devices.ssd import Ssd
from hwsim.devices.storage import StorageAccesses
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.views.latency.probe import LINE, MEGABYTE, PAGE, ProbeTime, ProbeUnavailable

Sort = Literal["hard disk", "NVMe SSD", "SATA SSD", "persistent memory", "other storage"]

LONG: Final = 1000  # size of a long read (MB), so that the first access hardly counts
SATA: Final = 600e6  # largest bandwidth of SATA (B/s)
SECTOR: Final = 512.0  # smallest access of a block device (B)


def long_read(machine: Machine, sort: Sort) -> ProbeTime:
    """Return the time per 1 MB of a sequential read of 1 GB."""
    name = find(machine, sort)
    cost = machine.read(name, LONG * MEGABYTE, to=machine.host_of(name, linked=True))
    seconds = cost.demand.alone(machine.rates()) / LONG
    return ProbeTime(seconds, name, f"1/{LONG} of a 1 GB read, {precise(float(f'{MEGABYTE / seconds:.3g}'), 'B/s')}", cost.why)


def find(machine: Machine, sort: Sort) -> str:
    """Return the first disk of a kind.

    Raises:
        Lacks: the machine has none.
    """
    for name in machine.devices_of("disk"):
        model = machine.device(name).model
        if isinstance(model, Storage) and sort_of(model) == sort:
            return name
    raise ProbeUnavailable(f"the machine has no {sort}")


def sort_of(model: Storage) -> Sort:
    """Return the common name of a storage device, by its interface and smallest access."""
    match model:
        case Hdd():
            return "hard disk"
        case Disk():
            return "hard disk" if model.queue == 1 else "NVMe SSD"
        case Ssd() if model.unit is not None and model.unit < SECTOR:
            return "persistent memory"
        case Ssd():
            return "SATA SSD" if model.interface is not None and model.interface <= SATA else "NVMe SSD"
        case _:
            return "other storage"


def random_access(machine: Machine, sort: Sort, way: Literal["read", "write"]) -> ProbeTime:
    """Return the time of a random access of 4 KB (64 B for persistent memory) at queue depth 1."""
    name = find(machine, sort)
    size = LINE if sort == "persistent memory" else PAGE
    host = machine.host_of(name, linked=True)
    cost = machine.serve(name, way, StorageAccesses(size=size, access="random"), host)
    return ProbeTime(cost.demand.alone(machine.rates()), name, f"one {way} of {size:g} B at queue depth 1", cost.why)
