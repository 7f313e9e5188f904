"""Devices: the demand of an op on a CPU, GPU, memory, disk or NIC, and its time alone. A new kind is a module and a line here."""

from __future__ import annotations

from typing import Final

from hwsim.devices.accesses import Accesses
from hwsim.devices.cpu import Cpu, Sockets
from hwsim.devices.gpu import Gpu
from hwsim.devices.kind import Device, Storage
from hwsim.devices.memory import Memory
from hwsim.devices.network import Nic, Switch
from hwsim.devices.roofline import WORKLOAD, CannotCompute
from hwsim.devices.work import (
    AttentionCall,
    Into,
    LibraryCall,
    MatmulShape,
    Mix,
    Start,
    Work,
    elementwise_call,
    general_call,
    lookup_call,
    product_call,
    reduce_call,
)
from hwsim.spec.kinds import KindTable

KINDS: Final = KindTable[type[Device]](
    {
        "cpu": "hwsim.devices.cpu:Cpu",
        "gpu": "hwsim.devices.gpu:Gpu",
        "memory": "hwsim.devices.memory:Memory",
        "disk": "hwsim.devices.disk:Disk",
        "hdd": "hwsim.devices.hdd:Hdd",
        "ssd": "hwsim.devices.ssd:Ssd",
        "volume": "hwsim.devices.volume:Volume",
        "raid": "hwsim.devices.raid:Raid",
        "filesystem": "hwsim.devices.filesystem:Filesystem",
        "nic": "hwsim.devices.network:Nic",
        "switch": "hwsim.devices.network:Switch",
    }
)

__all__ = [
    "KINDS",
    "WORKLOAD",
    "Accesses",
    "AttentionCall",
    "CannotCompute",
    "Cpu",
    "Device",
    "Gpu",
    "Into",
    "LibraryCall",
    "MatmulShape",
    "Memory",
    "Mix",
    "Nic",
    "Sockets",
    "Start",
    "Storage",
    "Switch",
    "Work",
    "elementwise_call",
    "general_call",
    "lookup_call",
    "product_call",
    "reduce_call",
]  # fmt: skip
