"""Every device kind hwsim knows.  A new kind is a new file here and a name in this union."""

from __future__ import annotations

from typing import Final

from hwsim.devices.accesses import Accesses
from hwsim.devices.calls import Call, Into, elementwise_call, lookup_call, product_call, reduce_call
from hwsim.devices.cpu import Cpu
from hwsim.devices.disk import Disk
from hwsim.devices.filesystem import Filesystem
from hwsim.devices.gpu import Gpu
from hwsim.devices.hdd import Hdd
from hwsim.devices.memory import Memory
from hwsim.devices.nic import Nic
from hwsim.devices.raid import Raid
from hwsim.devices.roofline import WORKLOAD, CannotCompute
from hwsim.devices.sockets import Sockets
from hwsim.devices.ssd import Ssd
from hwsim.devices.switch import Switch
from hwsim.devices.volume import Volume
from hwsim.devices.work import Mix, Product, Start, Work

Storage = Disk | Hdd | Ssd | Volume | Raid | Filesystem  # what the name `disk` may mean
Device = Cpu | Gpu | Memory | Storage | Nic | Switch

KINDS: Final[dict[str, type[Device]]] = {
    "cpu": Cpu,
    "gpu": Gpu,
    "memory": Memory,
    "disk": Disk,
    "hdd": Hdd,
    "ssd": Ssd,
    "volume": Volume,
    "raid": Raid,
    "filesystem": Filesystem,
    "nic": Nic,
    "switch": Switch,
}

__all__ = [
    "KINDS",
    "WORKLOAD",
    "Accesses",
    "Call",
    "CannotCompute",
    "Cpu",
    "Device",
    "Disk",
    "Filesystem",
    "Gpu",
    "Hdd",
    "Into",
    "Memory",
    "Mix",
    "Nic",
    "Product",
    "Raid",
    "Sockets",
    "Ssd",
    "Start",
    "Storage",
    "Switch",
    "Volume",
    "Work",
    "elementwise_call",
    "lookup_call",
    "product_call",
    "reduce_call",
]
