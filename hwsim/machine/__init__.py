"""Machines: devices and links with their names, routes between devices, and costs of transfers.

    machine = build(tree, mistakes)          # from the tree of a file (hwsim.spec.read)
    machine.select("node*.gpu*")             # full names, in natural order
    machine.device("gpu0").model.compute(...)
    machine.transfer("cpu", "gpu0", 16e6)    # -> Cost

A lookup raises `UnknownName` if it finds nothing, or several devices where one is required. A transfer between devices without a
route raises `NoRoute`. Both errors have a message and a hint; the caller adds the place in the file.
"""

from __future__ import annotations

from hwsim.machine.build import build
from hwsim.machine.contents import Link, NoRoute, PlacedDevice, UnknownName
from hwsim.machine.model import Machine
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.machine.transfer_options import TransferOptions

__all__ = [
    "TOPOLOGIES",
    "Link",
    "Machine",
    "NoRoute",
    "PlacedDevice",
    "TransferOptions",
    "UnknownName",
    "build",
]
