"""Layout of one scope (a machine, or a machine inside it): its parts and wires, with names and numbers relative to the scope.

A part is one value for any number of devices, and a thousand equal inner machines share one layout. Devices are numbered part by
part: device n of the k-th inner machine of a part has the number start + k x size + n. Names and numbers are therefore converted
by a few divisions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from heapq import merge
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hwsim.devices import Device
from hwsim.formats import natural
from hwsim.machine.contents import Fidelity, below
from hwsim.machine.libraries.parser import Libraries
from hwsim.machine.wires import Ints, Wires
from hwsim.origins import GIVEN
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.offers import Price
    from hwsim.devices.power_curves import PowerCurve

_DIGITS: Final = "0123456789"
_LONG: Final = 9  # maximum digits of a member's number


class NumberedNames(Sequence[str]):
    """A sequence of the names `gpu0`, `gpu1`, ..., without a list.

    >>> names = NumberedNames("gpu", 1_000_000)
    >>> len(names), names[7], names.find("gpu12"), "gpu01" in names
    (1000000, 'gpu7', 12, False)
    """

    __slots__ = ("many", "stem")

    def __init__(self, stem: str, many: int) -> None:
        self.stem, self.many = stem, many

    def __len__(self) -> int:
        return self.many

    def __getitem__(self, index: Any) -> Any:
        numbers = range(self.many)[index]
        return f"{self.stem}{numbers}" if isinstance(numbers, int) else [f"{self.stem}{number}" for number in numbers]

    def __iter__(self) -> Iterator[str]:
        stem = self.stem
        return (f"{stem}{index}" for index in range(self.many))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> int | None:
        """Return the index of a name; None if it is not in the sequence."""
        digits = name[len(self.stem) :]
        return _index(digits, self.many) if name.startswith(self.stem) and digits.isdecimal() and digits.isascii() else None


@dataclass(slots=True)
class LayoutPart:
    """A part: equal devices, or equal inner machines.

    Args:
        family: name in the file.
        names: names of its members in their scope.
        numbered: whether the names are `family` and a number.
        kind: kind of device, or `machine`.
        model: model of its devices.
        child: layout of each inner machine.
        fidelity: closed form, or request by request.
        start: number of its first device in its scope.
        use: name of its part in the library; "": none.
        price: price of one member, as stated in the files.
        made: whether they are switches added by a topology.
    """

    family: str
    names: Sequence[str]
    numbered: bool
    kind: str
    model: Device | None = None
    child: Layout | None = None
    fidelity: Fidelity = "formula"
    start: int = 0
    use: str = ""
    price: Price | None = None
    made: bool = False
    each: int = field(init=False)  # devices per member

    def __post_init__(self) -> None:
        self.each = 1 if self.child is None else self.child.size

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.each * len(self.names)

    @property
    def forwards(self) -> bool:
        """Whether traffic between other devices passes through its devices."""
        return self.kind in ("cpu", "nic", "switch") or bool(getattr(self.model, "forwards", False))

    @property
    def grouped(self) -> bool:
        """Whether its members are the sockets of one node, so that the name of the family means all of them."""
        return self.kind == "cpu" and self.numbered and len(self.names) > 1


class NameMatch(NamedTuple):
    """A result of a lookup by name.

    Args:
        part: part that contains the member.
        member: index of the member.
        number: number of the device, or of the first device in the inner machine.
        node: inner machine that contains the part.
    """

    part: LayoutPart
    member: int
    number: int
    node: str


class Layout:
    """A layout of one scope.

    Attributes:
        parts: parts in the order of their devices.
        size: number of devices, at any depth.
        machines: number of inner machines, at any depth.
        wires: wires of this scope.
        used: used amount of each budget (lanes, ...), by device number.
        power: maximum power (W) of all parts, as far as known.
        libraries: communication libraries of this machine.
        file: name of the machine in the library, or of its file.
        drawn: power of the whole machine, as stated in its file.
        drawn_source: source of that power.
        price: price of the whole machine, as stated in its file.
    """

    def __init__(self) -> None:
        self.parts: list[LayoutPart] = []
        self.size = 0
        self.machines = 0
        self.wires = Wires()
        self.used: dict[str, Ints] = {}
        self.power = 0.0
        self.libraries: Libraries | None = None
        self.file = ""
        self.drawn: float | PowerCurve | None = None
        self.drawn_source = GIVEN
        self.price: Price | None = None
        self._named: dict[str, tuple[LayoutPart, int]] = {}
        self._stems: dict[str, LayoutPart] = {}
        self._starts: list[int] = []
        self._limits: dict[str, bool] = {}
        self._digits = False  # whether the family of a numbered part ends in a digit

    def add(self, part: LayoutPart) -> None:
        """Append a part whose names must not exist yet (see `clash`)."""
        part.start = self.size
        self.parts.append(part)
        self._limits.clear()
        self._starts.append(part.start)
        self.size += part.size
        if part.child is not None:
            self.machines += len(part.names) * (1 + part.child.machines)
        if isinstance(part.names, NumberedNames):
            self._stems[part.family] = part
            self._digits |= part.family[-1] in _DIGITS
        else:
            self._named |= {name: (part, index) for index, name in enumerate(part.names)}

    def clash(self, part: LayoutPart) -> str | None:
        """Return the first name of a part that exists already; None if there is none."""
        if not isinstance(part.names, NumberedNames):
            return next((name for name in part.names if self.local(name) is not None), None)
        stem = part.family
        taken = [index for name in self._named if (index := part.names.find(name)) is not None]
        for stem_taken in self._stems:  # gpu1 with number 2 is gpu with number 12
            longer, shorter = (stem_taken, stem) if len(stem_taken) > len(stem) else (stem, stem_taken)
            if longer.startswith(shorter) and longer[len(shorter) :].isdecimal():
                names = self._stems[stem_taken].names
                taken += [index for index, name in enumerate(part.names) if name in names]
        return part.names[min(taken)] if taken else None

    def local(self, name: str) -> tuple[LayoutPart, int] | None:
        """Return (part, index of the member) of a name in this scope, not in inner machines; None if there is none."""
        member = self._named.get(name)
        if member is not None:
            return member
        stem = name.rstrip(_DIGITS)
        part = self._stems.get(stem)
        if part is not None and (index := _index(name[len(stem) :], len(part.names))) is not None:
            return part, index
        for cut in range(len(stem) + 1, len(name)) if self._digits else ():
            part = self._stems.get(name[:cut])
            if part is not None and (index := _index(name[cut:], len(part.names))) is not None:
                return part, index
        return None

    def find(self, name: str) -> NameMatch | None:
        """Return the device or inner machine of a full name, at any depth; None if there is none."""
        layout, number, start, rest = self, 0, 0, name
        while True:
            head, dot, tail = rest.partition(".")
            member = layout.local(head)
            if member is None:
                return None
            part, index = member
            number += part.start + index * part.each
            if not dot:
                return NameMatch(part, index, number, name[: max(start - 1, 0)])
            if part.child is None:
                return None
            layout, rest, start = part.child, tail, start + len(head) + 1

    def at(self, number: int) -> tuple[LayoutPart, int, int]:
        """Return (part, index of the member, device number within the member) of a device number."""
        part = self.parts[bisect_right(self._starts, number) - 1]
        index, rest = divmod(number - part.start, part.each)
        return part, index, rest

    def place(self, part: LayoutPart) -> int:
        """Return the index of a part with at least one member."""
        return bisect_right(self._starts, part.start) - 1

    def name(self, number: int) -> str:
        """Return the full name of a device."""
        part, index, rest = self.at(number)
        own = part.names[index]
        return own if part.child is None else f"{own}.{part.child.name(rest)}"

    def walk(self, taken: Callable[[LayoutPart], Sequence[str]], parts: Sequence[LayoutPart] | None = None) -> Iterator[str]:
        """Iterate over the names that `taken` selects from each part, at any depth, in natural order; parts: default all."""
        runs = [run for part in (self.parts if parts is None else parts) if (run := _Run.of(part, taken)) is not None]
        runs.sort(key=lambda run: natural(run.first))
        if all(natural(before.last) < natural(after.first) for before, after in pairwise(runs)):
            return chain.from_iterable(run.names() for run in runs)
        return merge(*(run.names() for run in runs), key=natural)

    def every(self) -> Iterator[LayoutPart]:
        """Iterate over its parts and those of inner machines, each once."""
        seen: set[int] = set()
        waiting = list(self.parts)
        while waiting:
            part = waiting.pop()
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting += part.child.parts if part.child is not None else []

    def limits(self, budget: str) -> bool:
        """Return whether one of its parts states a budget (lanes, ...)."""
        if budget not in self._limits:
            self._limits[budget] = any(getattr(part.model, budget, None) is not None for part in self.every())
        return self._limits[budget]

    def prices(self) -> Iterator[Price]:
        """Iterate over the prices of machines and parts that are stated in the files."""
        for scope in self.scopes():
            yield from (price for price in (scope.price, *(part.price for part in scope.parts)) if price is not None)

    @property
    def priced(self) -> bool:
        """Whether its files state a price."""
        return any(True for _ in self.prices())

    def scopes(self) -> list[Layout]:
        """Return its own layout and those of inner machines, each once."""
        return [self, *{id(part.child): part.child for part in self.every() if part.child is not None}.values()]


def _index(digits: str, count: int) -> int | None:
    """Return the number that the digits represent if it is below `count` and has no leading zero; else None."""
    if not digits or len(digits) > _LONG or (digits[0] == "0" and len(digits) > 1):
        return None
    index = int(digits)
    return index if index < count else None


class _Run:
    """An iterator over selected names of one part: of members, and of devices inside each member."""

    __slots__ = ("first", "inner", "last", "own", "part")

    def __init__(self, part: LayoutPart, own: Sequence[str], inner: Sequence[str]) -> None:
        self.part, self.own, self.inner = part, own, inner
        ends = part.names[0], part.names[-1]
        self.first = own[0] if own and (not inner or own[0] == ends[0]) else below(ends[0], inner[0])
        self.last = below(ends[1], inner[-1]) if inner else own[-1]

    @classmethod
    def of(cls, part: LayoutPart, own: Callable[[LayoutPart], Sequence[str]]) -> _Run | None:
        taken = own(part)
        inner = list(part.child.walk(own)) if part.child is not None else []
        return cls(part, taken, inner) if taken or inner else None

    def names(self) -> Iterator[str]:
        if not self.inner:
            return iter(self.own)
        inner, members = self.inner, self.part.names
        if not self.own:
            return (f"{member}.{name}" for member in members for name in inner)
        taken = self.own if self.own is members else frozenset(self.own)
        return (
            name
            for member in members
            for name in (
                (member, *(f"{member}.{tail}" for tail in inner)) if member in taken else (f"{member}.{tail}" for tail in inner)
            )
        )
