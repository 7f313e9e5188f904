"""Every device kind hwsim knows.  A new kind is a new file here and a name in this union."""

from __future__ import annotations

from typing import Final

from hwsim.devices.cpu import Cpu
from hwsim.devices.disk import Disk
from hwsim.devices.gpu import Gpu
from hwsim.devices.memory import Memory
from hwsim.devices.nic import Nic
from hwsim.devices.roofline import WORKLOAD, CannotCompute, precise
from hwsim.devices.sockets import Sockets
from hwsim.devices.switch import Switch
from hwsim.devices.work import Mix, Product, Work

Device = Cpu | Gpu | Memory | Disk | Nic | Switch

KINDS: Final[dict[str, type[Device]]] = {
    "cpu": Cpu,
    "gpu": Gpu,
    "memory": Memory,
    "disk": Disk,
    "nic": Nic,
    "switch": Switch,
}

__all__ = [
    "KINDS",
    "WORKLOAD",
    "CannotCompute",
    "Cpu",
    "Device",
    "Disk",
    "Gpu",
    "Memory",
    "Mix",
    "Nic",
    "Product",
    "Sockets",
    "Switch",
    "Work",
    "precise",
]
