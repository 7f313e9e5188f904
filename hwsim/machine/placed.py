"""Contents of a machine: devices, machines inside the machine, links; and how names are joined and listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

from hwsim.devices import Device, Sockets
from hwsim.links import LinkKind
from hwsim.records import dataclass
from hwsim.spec.mistakes import Hinted

K = TypeVar("K")
V = TypeVar("V")
Routing = Literal["single", "ecmp", "adaptive"]
Fidelity = Literal["formula", "requests"]
_SHOWN: Final = 8  # names of a list


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device of the machine.

    family: the part's name in the file (`gpu` of `gpu0`).
    index: its place in the family, None for a part without `count`.
    node: the machine inside the machine that holds it ("" at the top, "node3", "pod0.node3").
    fidelity: closed form, or request by request.
    part: the part of the library that it is, "" if its file states it.
    """

    name: str
    family: str
    kind: str
    model: Device | Sockets
    index: int | None
    node: str
    fidelity: Fidelity = "formula"
    part: str = ""

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
    """One direction between two devices. bandwidth in B/s, latency in s.

    name: as in the file, else the kind.
    capacity: name of the capacity that it draws from; the two directions share one if half duplex.
    count: parallel links of `model` (double NVLinks).
    both: name of a capacity from which both directions draw in addition; "" where they do not disturb each other.
    routing: how traffic chooses among equally good routes over links of this routing.
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


class UnknownName(Hinted):
    """A name of nothing, or of several things where one is needed."""


class NoRoute(Hinted):
    """Two devices that no links connect."""


def within(name: str) -> tuple[str, str]:
    """The machine inside the machine that a full name is in ("" at the top), and what it is called there: the inverse of `below`.

    >>> within("pod0.node3.gpu1"), within("gpu1")
    (('pod0.node3', 'gpu1'), ('', 'gpu1'))
    """
    scope, _, last = name.rpartition(".")
    return scope, last


def listed(names: Sequence[str]) -> str:
    """The names in words; the middle of a long list is left out.

    >>> listed(["gpu0", "gpu1"]), listed([f"gpu{n}" for n in range(100)])
    ('gpu0, gpu1', 'gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, ..., gpu99')
    """
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return ", ".join([*names[: _SHOWN - 2], "...", names[-1]])


def below(scope: str, name: str) -> str:
    """The full name of what a scope calls `name`."""
    return f"{scope}.{name}" if scope else name


def network_sides(devices: Mapping[str, PlacedDevice], before: Link | None, after: Link | None) -> tuple[bool, bool]:
    """Whether traffic enters a network card from a network by one link, and leaves it to a network by the next.

    A `direct` link may lead out of a computer or join the card to its own host. Where both links could be a network, the one that
    leads to another card or a switch is, and the one that leads to a host is not; cards between two networks have both.
    """
    into, out = before is not None and before.model.network, after is not None and after.model.network
    if before is not None and after is not None and into and out:
        far = tuple(devices[end].kind in ("nic", "switch") for end in (before.source, after.target))
        into, out = far if any(far) else (True, True)
    return into, out


class Few(dict[K, V]):
    """Results by key; the latest few hundred are kept."""

    most: ClassVar[int] = 512

    def known(self, key: K, make: Callable[..., V], *given: object) -> V:
        """The result of a key, made of the other arguments if there is none."""
        if key not in self:
            made = make(*given)
            if len(self) >= self.most:
                self.clear()
            self[key] = made
        return self[key]


class Kept:
    """Results worked out on a machine, which all runs on it share: one value of each class, empty at first.

    Every entry is a function of the machine and its own key alone, so that a run is the same with and without. A copy of the
    machine in another process begins anew.
    """

    def __init__(self) -> None:
        self._values: dict[Callable[[], Any], Any] = {}

    def value(self, kind: Callable[[], V]) -> V:
        """The value of a class."""
        found: V | None = self._values.get(kind)
        if found is None:
            found = self._values[kind] = kind()
        return found

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
