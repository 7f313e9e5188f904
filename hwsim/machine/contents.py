"""Contents of a machine (devices, inner machines, links), and functions that join and list names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

from hwsim.devices import Device, Sockets
from hwsim.links import LinkKind
from hwsim.records import dataclass
from hwsim.spec.mistakes import HintedError

K = TypeVar("K")
V = TypeVar("V")
Routing = Literal["single", "ecmp", "adaptive"]
Fidelity = Literal["formula", "requests"]
_SHOWN: Final = 8  # maximum names in a list


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device of a machine.

    Args:
        name: full name.
        family: name of the part in the file (`gpu` of `gpu0`).
        kind: kind of device.
        model: model of the device.
        index: index in the family; None for a part without `count`.
        node: inner machine that contains it: "" at the top, "node3", "pod0.node3".
        fidelity: closed form, or request by request.
        part: name of its part in the library; "" if the file itself describes it.
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
        """Whether traffic between other devices passes through it."""
        return self.kind in ("cpu", "nic", "switch") or bool(getattr(self.model, "forwards", False))


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """An inner machine: a machine inside the machine."""

    name: str
    family: str
    index: int | None
    node: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link in one direction between two devices.

    Args:
        name: name in the file, else the kind.
        source: name of the sending device.
        target: name of the receiving device.
        kind: kind of link.
        bandwidth: bandwidth of all parallel links (bytes/s).
        latency: latency (s).
        capacity: name of its capacity; both directions of a half-duplex link share one.
        model: model of one link.
        count: number of parallel links (double NVLinks).
        both: name of a capacity that limits both directions together; "": none.
        routing: choice among equal routes over links with the same routing.
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


class UnknownName(HintedError):
    """An error for a name that matches nothing, or several devices where one is required."""


class NoRoute(HintedError):
    """An error for two devices without a route."""


def within(name: str) -> tuple[str, str]:
    """Split a full name into the inner machine ("" at the top) and the name there: the inverse of `below`.

    >>> within("pod0.node3.gpu1"), within("gpu1")
    (('pod0.node3', 'gpu1'), ('', 'gpu1'))
    """
    scope, _, last = name.rpartition(".")
    return scope, last


def listed(names: Sequence[str]) -> str:
    """Return the names as text; a long list is shortened in the middle.

    >>> listed(["gpu0", "gpu1"]), listed([f"gpu{n}" for n in range(100)])
    ('gpu0, gpu1', 'gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, ..., gpu99')
    """
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return ", ".join([*names[: _SHOWN - 2], "...", names[-1]])


def below(scope: str, name: str) -> str:
    """Return the full name of `name` in a scope."""
    return f"{scope}.{name}" if scope else name


def network_sides(devices: Mapping[str, PlacedDevice], before: Link | None, after: Link | None) -> tuple[bool, bool]:
    """Return whether traffic enters a NIC from a network by link `before`, and whether it leaves to a network by link `after`.

    A `direct` link may be a network link or connect the NIC to its own host. If both links could be network links, those to
    another NIC or to a switch are, and those to a host are not. A NIC between two networks has both.
    """
    into, out = before is not None and before.model.network, after is not None and after.model.network
    if before is not None and after is not None and into and out:
        far = tuple(devices[end].kind in ("nic", "switch") for end in (before.source, after.target))
        into, out = far if any(far) else (True, True)
    return into, out


class BoundedCache(dict[K, V]):
    """A cache of at most `most` results by key."""

    most: ClassVar[int] = 512

    def known(self, key: K, make: Callable[..., V], *given: object) -> V:
        """Return the result of a key, computed by `make(*given)` if it is not cached."""
        if key not in self:
            made = make(*given)
            if len(self) >= self.most:
                self.clear()
            self[key] = made
        return self[key]


class MachineCaches:
    """A store of caches that all runs on a machine share: one of each type, empty at first.

    Each entry of a cache must depend only on the machine and its key, so that results do not depend on the cache. A copy of the
    machine in another process starts with empty caches.
    """

    def __init__(self) -> None:
        self._values: dict[Callable[[], Any], Any] = {}

    def value(self, kind: Callable[[], V]) -> V:
        """Return the cache of a type."""
        found: V | None = self._values.get(kind)
        if found is None:
            found = self._values[kind] = kind()
        return found

    def __reduce__(self) -> tuple[type[MachineCaches], tuple[()]]:
        return MachineCaches, ()
