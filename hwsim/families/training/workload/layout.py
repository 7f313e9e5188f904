"""Placement of a parallel plan on devices: the device of each rank, and the groups of devices that communicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Any

from hwsim.machine import Machine
from hwsim.machine.wires import Ints
from hwsim.models.capacity_amounts import Names
from hwsim.models.layer import Axis
from hwsim.models.plan import strides_of
from hwsim.records import dataclass

Index = int | Ints


@dataclass(slots=True, kw_only=True)
class DeviceLayout:
    """A parallel plan on devices, in the order of the machine.

    A stage group is the tp x cp devices that process the same layers of the same microbatch at the same time.

    Args:
        devices: names of the devices.
        order: axes from neighbouring devices outwards, see `hwsim.models.plan.strides_of`.
        chunks: virtual stages per stage.
        per_node: number of devices of the first node.
        strides: distance of neighbours of each axis in the order of the devices.
    """

    devices: Sequence[str]
    order: Sequence[Axis] = ("tp", "cp", "ep", "pp", "dp")
    tp: int = 1
    cp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    chunks: int = 1
    per_node: int = 1
    strides: Mapping[Axis, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.strides = strides_of(self.order, tp=self.tp, cp=self.cp, pp=self.pp, ep=self.ep, dp=self.dp)

    def device(self, tp: int, cp: int, stage: int, replica: int) -> str:
        """Return the device at these coordinates."""
        name: str = self.devices[self.place(tp, cp, stage, replica)]
        return name

    def place(self, tp: Index, cp: Index, stage: Index, replica: Index) -> Any:
        """Return the index of the device at these coordinates, which may be arrays."""
        strides = self.strides
        inner = replica % self.ep
        outer = (replica - inner) // self.ep
        return tp * strides["tp"] + cp * strides["cp"] + stage * strides["pp"] + inner * strides["ep"] + outer * strides["dp"]

    def group(self, stage: int, replica: int) -> Names:
        """Return the stage group of a replica, tensor-parallel neighbours first."""
        return tuple(self.device(tp, cp, stage, replica) for cp in range(self.cp) for tp in range(self.tp))

    def exchanging(self, axis: Axis, stage: int, replica: int) -> tuple[Names, ...]:
        """Return the groups of devices that communicate along an axis, in a stage group (tp, cp) or among replicas (ep, dp)."""
        tps, cps = range(self.tp), range(self.cp)
        match axis:
            case "tp":
                return tuple(tuple(self.device(tp, cp, stage, replica) for tp in tps) for cp in cps)
            case "cp":
                return tuple(tuple(self.device(tp, cp, stage, replica) for cp in cps) for tp in tps)
            case _:
                size = self.ep if axis == "ep" else self.dp
                first = replica // size * size
                peers = range(first, first + size)
                return tuple(tuple(self.device(tp, cp, stage, peer) for peer in peers) for cp in cps for tp in tps)

    def across(self, stage: int, size: int) -> tuple[Names, ...]:
        """Return all groups of `size` successive replicas of a stage; devices that split a sequence are in one group."""
        starts = [self.place(0, 0, stage, replica) for replica in range(self.dp)]
        splits = [self.place(0, cp, 0, 0) for cp in range(self.cp)]
        return tuple(
            tuple([self.devices[start + split + offset] for start in starts[first : first + size] for split in splits])
            for first in range(0, self.dp, size)
            for offset in (self.place(tp, 0, 0, 0) for tp in range(self.tp))
        )


def layout_of(machine: Machine, devices: Sequence[str], **sizes: Any) -> DeviceLayout:
    """Return a layout on devices of a machine, with `per_node` from its first node."""
    node = machine.node_of(devices[0])
    per_node = sum(1 for _ in takewhile(lambda name: machine.node_of(name) == node, devices))
    return DeviceLayout(devices=devices, per_node=per_node, **sizes)
