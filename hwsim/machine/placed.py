"""What stands in a machine: devices, machines inside the machine, links."""

from __future__ import annotations

from typing import Literal

from hwsim.devices import Device, Sockets
from hwsim.links import LinkKind
from hwsim.records import dataclass

Routing = Literal["single", "ecmp", "adaptive"]


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device of the machine.

    family: the part's name in the file (`gpu` of `gpu0`).  index: its place in the family, None
    for a part without `count`.  node: the machine inside the machine that holds it ("" at the
    top, "node3", "pod0.node3").  fidelity: by its closed form, or request by request.
    """

    name: str
    family: str
    kind: str
    model: Device | Sockets
    index: int | None
    node: str
    fidelity: Literal["formula", "requests"] = "formula"

    @property
    def forwards(self) -> bool:
        """Whether traffic of others passes through it."""
        return self.kind in ("cpu", "nic", "switch") or bool(getattr(self.model, "forwards", False))


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A machine inside the machine."""

    name: str
    family: str
    index: int | None
    node: str


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two devices.  bandwidth in B/s, latency in s.

    name: as in the file, else the kind.  capacity: what it draws from; the two directions share
    one if half duplex.  count: how many of `model` run side by side (double NVLinks).
    both: a capacity that the two directions draw from beside their own, "" where they do not disturb each other.
    routing: how traffic chooses among ways over links of this routing that are equally good.
    """

    name: str
    source: str
    target: str
    kind: str
    bandwidth: float
    latency: float
    capacity: str
    model: LinkKind
    count: int = 1
    both: str = ""
    routing: Routing = "single"
