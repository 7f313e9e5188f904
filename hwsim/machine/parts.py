"""An entry of `parts:` as one value, however many of it there are: nothing is made for a single one until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, overload

from hwsim.devices import Device
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.machine.layout import Layout

_DIGITS: Final = 9  # more than any index has


class Numbered(Sequence[str]):
    """`gpu0`, `gpu1`, ...: names that need no list.

    >>> names = Numbered("gpu", 1_000_000)
    >>> len(names), names[7], names.index("gpu12"), "gpu01" in names
    (1000000, 'gpu7', 12, False)
    """

    __slots__ = ("many", "stem")

    def __init__(self, stem: str, many: int) -> None:
        self.stem, self.many = stem, many

    def __len__(self) -> int:
        return self.many

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [f"{self.stem}{each}" for each in range(self.many)[at]]
        return f"{self.stem}{range(self.many)[at]}"

    def __iter__(self) -> Iterator[str]:
        stem = self.stem
        return (f"{stem}{each}" for each in range(self.many))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> int | None:
        """The place of a name, None if it is not one of these."""
        digits = name[len(self.stem) :]
        if not name.startswith(self.stem) or not digits.isdecimal() or len(digits) > _DIGITS or not digits.isascii():
            return None
        at = int(digits)
        return at if at < self.many and (digits[0] != "0" or len(digits) == 1) else None

    def index(self, name: str, *_: int) -> int:
        """The place of a name."""
        at = self.find(name)
        if at is None:
            raise ValueError(name)
        return at


@dataclass(slots=True)
class Part:
    """Devices that are alike, or machines inside the machine that are.

    family: its name in the file.  names: of its members in their scope.  numbered: they are `family` and a number.
    model: of devices; child: what each of the machines holds.  start: the number of its first device in its scope.
    """

    family: str
    names: Sequence[str]
    numbered: bool
    kind: str
    model: Device | None = None
    child: Layout | None = None
    fidelity: Literal["formula", "requests"] = "formula"
    start: int = 0
    each: int = field(init=False)  # devices of one member

    def __post_init__(self) -> None:
        self.each = 1 if self.child is None else self.child.size

    @property
    def size(self) -> int:
        """Devices in all of it."""
        return self.each * len(self.names)

    @property
    def forwards(self) -> bool:
        """Whether traffic of others passes through its devices."""
        return self.kind in ("cpu", "nic", "switch") or bool(getattr(self.model, "forwards", False))

    @property
    def grouped(self) -> bool:
        """Whether its members are the sockets of one node: all of them are what its family's name means."""
        return self.kind == "cpu" and self.numbered and len(self.names) > 1


class Spot(NamedTuple):
    """Where a name leads: a member of a part.  number: of the device, or of the first one inside the machine."""

    part: Part
    member: int
    number: int
    node: str
