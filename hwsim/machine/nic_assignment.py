"""Assignment of NICs to devices: the nearest NICs are divided in order among the devices that share them.

    gpu0, gpu1 behind a switch with nic0, nic1                 gpu1 uses nic1
    gpu0, gpu1 behind a switch with nic0 ... nic7              gpu1 uses nic4 ... nic7, with equal parts of the bytes
    gpu0 ... gpu3 behind a switch with nic0, nic1              gpu2 and gpu3 use nic1

Only a GPU uses several NICs: GPU libraries open channels on all nearby NICs, while a program on a CPU uses one. Traffic of a GPU
uses only its own NICs at both ends, even if a route through another NIC of its node had fewer switches. Other NICs are used only
if its own NICs have no route.

Source: NCCL, src/graph/topo.cc, ncclTopoGetLocalNet (a GPU uses the nearest NICs; GPUs with the same
NICs start at different ones, and channels use them in turn).
Range: environment variables of the library can change the number of NICs that a program uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import natural
from hwsim.machine.net import Net


class NicAssignment:
    """An assignment of the NICs of a machine to its devices."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._any = any(part.kind == "nic" for part in net.layout.every())
        self._own: dict[str, tuple[str, ...]] = {}
        self._close: dict[tuple[str, str], tuple[int, frozenset[str]]] = {}
        self._others: dict[str, frozenset[str]] = {}
        self._inside: tuple[str, frozenset[str]] = "", frozenset()

    def own(self, name: str) -> tuple[str, ...]:
        """Return the NICs that a device's traffic to other nodes uses, in order of names."""
        if name not in self._own:
            self._own[name] = self._find(name) if self._any else ()
        return self._own[name]

    def others(self, name: str) -> frozenset[str]:
        """Return the NICs of a GPU's node that its traffic does not use; empty for other devices."""
        if name not in self._others:
            own_cards = frozenset(self.own(name)) if self._any and self._kind(name) == "gpu" else frozenset()
            inside = self._computer(name) if own_cards else frozenset[str]()
            self._others[name] = frozenset(name for name in inside if self._kind(name) == "nic") - own_cards
        return self._others[name]

    def barred(self, a: str, b: str) -> frozenset[str]:
        """Return the NICs that traffic between two devices of different nodes must not use."""
        found = self.others(a) | self.others(b)
        return found - {a, b} if found and a not in self._computer(b) else frozenset()  # of b, whose NICs were found last

    def _computer(self, name: str) -> frozenset[str]:
        """Return the devices of the same node: those reached without network links. The latest result is cached."""
        if self._inside[0] != name:
            self._inside = name, frozenset().union(*self._layers(name))
        return self._inside[1]

    def _find(self, name: str) -> tuple[str, ...]:
        kind = self._kind(name)
        distance, cards = self._nearest(name, "nic")
        if not cards or kind in ("nic", "switch"):
            return ()
        around = {device for card in cards for device in self._at(card, distance) if self._kind(device) == kind}
        siblings = sorted((device for device in around if self._nearest(device, "nic")[1] == cards), key=natural)
        rank, nics = siblings.index(name), sorted(cards, key=natural)
        first = rank * len(nics) // len(siblings)
        block = nics[first : max((rank + 1) * len(nics) // len(siblings), first + 1)]
        return tuple(block if kind == "gpu" else block[:1])

    def _kind(self, name: str) -> str:
        spot = self._net.layout.find(name)
        return "" if spot is None else spot.part.kind

    def _nearest(self, name: str, kind: str) -> tuple[int, frozenset[str]]:
        """Return (number of links, devices of a kind at that distance) of the nearest devices of a kind."""
        key = name, kind
        if key not in self._close:
            self._close[key] = 0, frozenset()
            for distance, layer in enumerate(self._layers(name)):
                nearest = frozenset(device for device in layer if distance and self._kind(device) == kind)
                if nearest:
                    self._close[key] = distance, nearest
                    break
        return self._close[key]

    def _at(self, name: str, distance: int) -> set[str]:
        for index, layer in enumerate(self._layers(name)):
            if index == distance:
                return layer
        return set()

    def _layers(self, name: str) -> Iterable[set[str]]:
        """Iterate over the devices at distance 0, 1, 2, ... within the node, through forwarding devices."""
        layer, seen = {name}, {name}
        while layer:
            yield layer
            through = [stop for stop in layer if stop == name or (self._net.forwards(stop) and self._kind(stop) != "nic")]
            layer = {target for stop in through for target in self._net.near(stop)} - seen
            seen |= layer
