"""A machine: placed devices, the links between them, names, routes and the cost of a transfer.

    machine = build(tree, mistakes)          # from a file, see hwsim.spec.read
    machine.select("node*.gpu*")             # names, in natural order
    machine.device("gpu0").model.compute(...)
    machine.transfer("cpu", "gpu0", 16e6)    # -> Cost

A lookup that finds nothing, or several where one is needed, raises `UnknownName`; two devices
with no way between them, `NoRoute`. Both carry a message and a hint; the caller adds the place.
"""

from __future__ import annotations

from hwsim.machine.build import build
from hwsim.machine.handling import Handling
from hwsim.machine.model import Machine
from hwsim.machine.placed import Link, NoRoute, PlacedDevice, PlacedNode, UnknownName
from hwsim.machine.schema import LinkEntry, MachineFile, PartEntry
from hwsim.machine.topologies import TOPOLOGIES

__all__ = [
    "TOPOLOGIES",
    "Handling",
    "Link",
    "LinkEntry",
    "Machine",
    "MachineFile",
    "NoRoute",
    "PartEntry",
    "PlacedDevice",
    "PlacedNode",
    "UnknownName",
    "build",
]
