"""The bases of every kind of device; a new kind is a class of `Device` or of `Storage`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from hwsim.demand import Capacity, Cost
from hwsim.devices.owning import PowerCurve
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Watts

if TYPE_CHECKING:
    from hwsim.devices.storage import Asked, Direction


@dataclass(frozen=True, slots=True)
class Device:
    """A part of a machine. Its fields are the keys of a file; `sources` says where their numbers are from, by key.

    rated: watts that its other numbers are from, where `power` is another now.
    """

    kind: ClassVar[str]
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)
    rated: float | None = dataclasses.field(default=None, init=False, repr=False)
    power: Watts | PowerCurve | None = field("maximum power, or idle and loaded power",
                                             default=None, example="{idle: 5 W, loaded: 20 W}", kw_only=True)  # fmt: skip
    lanes: int | None = field("number of PCIe lanes; not checked if omitted", default=None, minimum=0, kw_only=True)

    def problems(self) -> Iterator[Problem]:
        """Contradictions between its keys, beyond the bounds of each."""
        yield from ()

    def capacities(self, name: str) -> tuple[Capacity, ...]:  # noqa: ARG002 (kinds that have some use it)
        """Capacities that ops on the device of this name share."""
        return ()


class Storage(Device):
    """A device that the name `disk` may mean."""

    __slots__ = ()
    role: ClassVar[str] = "disk"

    @property
    def size(self) -> float | None:
        """Bytes it holds; None: any number."""
        raise NotImplementedError

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return (Capacity.of(name, "media"),)

    def serve(self, name: str, direction: Direction, asked: Asked) -> Cost:
        """Reads or writes of one op."""
        raise NotImplementedError


def under(key: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems of the value of a key, as those of what has the key."""
    return ((f"{key}.{inner}", message, hint) for inner, message, hint in problems)
