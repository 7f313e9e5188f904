"""Which network cards are a device's own: of those nearest to it, the ones at its place among its siblings.

    gpu0, gpu1 behind a switch with nic0, nic1                 gpu1 takes nic1
    gpu0, gpu1 behind a switch with nic0 ... nic7              gpu1 takes nic4 ... nic7, an equal part of the bytes over each
    gpu0 ... gpu3 behind a switch with nic0, nic1              gpu2 and gpu3 take nic1

Only a GPU spreads over several: libraries for GPUs open channels on all cards near one; a program on a CPU names one card.
A GPU's traffic keeps to its own cards at both ends, even where another card of its computer would save a switch. Its route is
the shortest over its own cards, and over others only where its own lead nowhere.

Source: NCCL, src/graph/topo.cc, ncclTopoGetLocalNet (a GPU's cards are the nearest ones; GPUs with the same ones
begin at another each, and channels go around them).
Range: how many cards a real program uses is its choice: environment variables of the library change it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import natural
from hwsim.machine.net import Net


class Cards:
    """The cards of each device of a machine."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._any = any(part.kind == "nic" for part in net.layout.every())
        self._own: dict[str, tuple[str, ...]] = {}
        self._close: dict[tuple[str, str], tuple[int, frozenset[str]]] = {}
        self._others: dict[str, frozenset[str]] = {}
        self._inside: tuple[str, frozenset[str]] = "", frozenset()

    def own(self, name: str) -> tuple[str, ...]:
        """The cards that its traffic to other computers takes, in order of names; none where none is near."""
        if name not in self._own:
            self._own[name] = self._find(name) if self._any else ()
        return self._own[name]

    def others(self, name: str) -> frozenset[str]:
        """Cards of a GPU's computer that are not its own, which its traffic keeps off; none of what is no GPU."""
        if name not in self._others:
            own_cards = frozenset(self.own(name)) if self._any and self._kind(name) == "gpu" else frozenset()
            inside = self._computer(name) if own_cards else frozenset[str]()
            self._others[name] = frozenset(name for name in inside if self._kind(name) == "nic") - own_cards
        return self._others[name]

    def barred(self, a: str, b: str) -> frozenset[str]:
        """Cards that traffic between two computers may not use to leave the one or to enter the other."""
        found = self.others(a) | self.others(b)
        return found - {a, b} if found and b not in self._computer(a) else frozenset()

    def _computer(self, name: str) -> frozenset[str]:
        """All that it reaches over no network; of the latest asked for it is known."""
        if self._inside[0] != name:
            self._inside = name, frozenset().union(*self._layers(name))
        return self._inside[1]

    def _find(self, name: str) -> tuple[str, ...]:
        kind = self._kind(name)
        distance, cards = self._nearest(name, "nic")
        if not cards or kind in ("nic", "switch"):
            return ()
        around = {each for card in cards for each in self._at(card, distance) if self._kind(each) == kind}
        siblings = sorted((each for each in around if self._nearest(each, "nic")[1] == cards), key=natural)
        place, many, have = siblings.index(name), len(siblings), sorted(cards, key=natural)
        first = place * len(have) // many
        block = have[first : max((place + 1) * len(have) // many, first + 1)]
        return tuple(block if kind == "gpu" else block[:1])

    def _kind(self, name: str) -> str:
        spot = self._net.layout.find(name)
        return "" if spot is None else spot.part.kind

    def _nearest(self, name: str, kind: str) -> tuple[int, frozenset[str]]:
        """The devices of a kind that the fewest links away, and how many links that are."""
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
        for at, layer in enumerate(self._layers(name)):
            if at == distance:
                return layer
        return set()

    def _layers(self, name: str) -> Iterable[set[str]]:
        """Itself, its neighbours, theirs, ...: through what passes traffic on inside a computer."""
        layer, seen = {name}, {name}
        while layer:
            yield layer
            through = (each for each in layer if each == name or (self._net.forwards(each) and self._kind(each) != "nic"))
            layer = {target for each in through for target in self._net.near(each)} - seen
            seen |= layer
