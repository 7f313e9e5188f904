"""Base classes of devices; a new kind of device is a subclass of `Device` or `Storage`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from hwsim.demand import Capacity, Cost
from hwsim.devices.power_curves import PowerCurve
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Watts

if TYPE_CHECKING:
    from hwsim.devices.storage import Direction, StorageAccesses


@dataclass(frozen=True, slots=True)
class Device:
    """A part of a machine, whose fields are the keys of a file.

    Attributes:
        sources: source of each number, by key.
        rated: power that the other numbers were measured at (W), if `power` was changed.
    """

    kind: ClassVar[str]
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)
    rated: float | None = dataclasses.field(default=None, init=False, repr=False)
    power: Watts | PowerCurve | None = field("maximum power, or idle and loaded power",
                                             default=None, example="{idle: 5 W, loaded: 20 W}", kw_only=True)  # fmt: skip
    lanes: int | None = field("number of PCIe lanes; not checked if omitted", default=None, minimum=0, kw_only=True)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys; bounds of single keys are checked elsewhere."""
        yield from ()

    def capacities(self, name: str) -> tuple[Capacity, ...]:  # noqa: ARG002 (kinds that have some use it)
        """Return the capacities shared by all ops on the device called `name`."""
        return ()


class Storage(Device):
    """A device that the name `disk` in a workload may refer to."""

    __slots__ = ()
    role: ClassVar[str] = "disk"

    @property
    def size(self) -> float | None:
        """Capacity (B); None if unlimited."""
        raise NotImplementedError

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return (Capacity.of(name, "media"),)

    def serve(self, name: str, direction: Direction, asked: StorageAccesses) -> Cost:
        """Return the cost of the reads or writes of one op."""
        raise NotImplementedError


def prefix_problems(key: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Prefix the keys of problems with the key of the value that they were found in."""
    return ((f"{key}.{inner}", message, hint) for inner, message, hint in problems)
