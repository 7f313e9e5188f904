"""One scope of a machine: its parts, and the wires between them. Names and numbers are relative to the scope.

A part is one value, however many devices it has, and a thousand equal machines inside a machine share one layout. Devices are
numbered part by part, so that device n of the k-th of these machines has the number start + k x size + n: a few divisions lead
from a name to a number and back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from heapq import merge
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from hwsim.devices import Device
from hwsim.formats import natural
from hwsim.machine.libraries.reading import Libraries
from hwsim.machine.placed import Fidelity, below
from hwsim.machine.wires import Ints, Wires
from hwsim.origins import GIVEN
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.offers import Price
    from hwsim.devices.owning import PowerCurve

_DIGITS: Final = "0123456789"
_LONG: Final = 9  # more digits than any number of a member has


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
        return (f"{stem}{index}" for index in range(self.many))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> int | None:
        """The place of a name, None if it is not one of these."""
        digits = name[len(self.stem) :]
        return _index(digits, self.many) if name.startswith(self.stem) and digits.isdecimal() and digits.isascii() else None

    def index(self, name: str, *_: int) -> int:
        """The place of a name."""
        at = self.find(name)
        if at is None:
            raise ValueError(name)
        return at


@dataclass(slots=True)
class Part:
    """Devices that are alike, or machines inside the machine that are.

    family: its name in the file. names: of its members in their scope. numbered: they are `family` and a number.
    model: model of its devices; child: layout of each of its machines. start: the number of its first device in its scope.
    use: the name of the library that it was taken from, "" for none. price: of one of it, as the files say.
    made: switches that a topology brings.
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
    """The member of a part that a name means. number: of the device, or of the first one inside the machine."""

    part: Part
    member: int
    number: int
    node: str


class Layout:
    """power: watts that all its parts draw at the most, as far as they say. used: how much of a budget (lanes, ...) of its
    devices the wires of this scope take, by number. libraries: for collectives, of this machine itself.
    file: name of its file in the library, or of the file. drawn, price: of it as a whole, as
    its file says; drawn_source: where that is from.
    """

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.size = 0
        self.machines = 0  # inside it, at any depth
        self.wires = Wires()
        self.used: dict[str, Ints] = {}
        self.power = 0.0
        self.libraries: Libraries | None = None
        self.file = ""
        self.drawn: float | PowerCurve | None = None
        self.drawn_source = GIVEN
        self.price: Price | None = None
        self._named: dict[str, tuple[Part, int]] = {}
        self._stems: dict[str, Part] = {}
        self._starts: list[int] = []
        self._limits: dict[str, bool] = {}
        self._digits = False  # whether a numbered part is called something with a digit at the end

    def add(self, part: Part) -> None:
        """Put a part after all so far; see `clash`."""
        part.start = self.size
        self.parts.append(part)
        self._limits.clear()
        self._starts.append(part.start)
        self.size += part.size
        if part.child is not None:
            self.machines += len(part.names) * (1 + part.child.machines)
        if isinstance(part.names, Numbered):
            self._stems[part.family] = part
            self._digits |= part.family[-1] in _DIGITS
        else:
            self._named |= {name: (part, at) for at, name in enumerate(part.names)}

    def clash(self, part: Part) -> str | None:
        """The first name of a part that another one has already."""
        if not isinstance(part.names, Numbered):
            return next((name for name in part.names if self.local(name) is not None), None)
        stem = part.family
        taken = [at for name in self._named if (at := part.names.find(name)) is not None]
        for stem_taken in self._stems:  # gpu1 and its number can be gpu and another
            longer, shorter = (stem_taken, stem) if len(stem_taken) > len(stem) else (stem, stem_taken)
            if longer.startswith(shorter) and longer[len(shorter) :].isdecimal():
                names = self._stems[stem_taken].names
                taken += [at for at, name in enumerate(part.names) if name in names]
        return part.names[min(taken)] if taken else None

    def local(self, name: str) -> tuple[Part, int] | None:
        """A member of one of its own parts, by the name it has in this scope."""
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

    def find(self, name: str) -> Spot | None:
        """A device or a machine at any depth, by its full name."""
        layout, number, at, rest = self, 0, 0, name
        while True:
            head, dot, tail = rest.partition(".")
            member = layout.local(head)
            if member is None:
                return None
            part, index = member
            number += part.start + index * part.each
            if not dot:
                return Spot(part, index, number, name[: max(at - 1, 0)])
            if part.child is None:
                return None
            layout, rest, at = part.child, tail, at + len(head) + 1

    def at(self, number: int) -> tuple[Part, int, int]:
        """The part of a device, the index of its member, and the device's number in the member."""
        part = self.parts[bisect_right(self._starts, number) - 1]
        index, rest = divmod(number - part.start, part.each)
        return part, index, rest

    def place(self, part: Part) -> int:
        """The place of a part that has members among the parts."""
        return bisect_right(self._starts, part.start) - 1

    def name(self, number: int) -> str:
        """The full name of a device."""
        part, index, rest = self.at(number)
        own = part.names[index]
        return own if part.child is None else f"{own}.{part.child.name(rest)}"

    def walk(self, taken: Callable[[Part], Sequence[str]], parts: Sequence[Part] | None = None) -> Iterator[str]:
        """In natural order the names that `own` takes of each part, at any depth."""
        runs = [run for part in (self.parts if parts is None else parts) if (run := _Run.of(part, taken)) is not None]
        runs.sort(key=lambda run: natural(run.first))
        if all(natural(before.last) < natural(after.first) for before, after in pairwise(runs)):
            return chain.from_iterable(run.names() for run in runs)
        return merge(*(run.names() for run in runs), key=natural)

    def every(self) -> Iterator[Part]:
        """Its parts and the parts of the machines inside it, each once."""
        seen: set[int] = set()
        waiting = list(self.parts)
        while waiting:
            part = waiting.pop()
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting += part.child.parts if part.child is not None else []

    def limits(self, budget: str) -> bool:
        """Whether one of its parts says how much of a budget (lanes, ...) it has."""
        if budget not in self._limits:
            self._limits[budget] = any(getattr(part.model, budget, None) is not None for part in self.every())
        return self._limits[budget]

    def prices(self) -> Iterator[Price]:
        """Prices that its files say, of machines and of parts."""
        for scope in self.scopes():
            yield from (price for price in (scope.price, *(part.price for part in scope.parts)) if price is not None)

    @property
    def priced(self) -> bool:
        """Whether its files say a price."""
        return any(True for _ in self.prices())

    def scopes(self) -> list[Layout]:
        """Itself and what the machines inside it hold, each once."""
        return [self, *{id(part.child): part.child for part in self.every() if part.child is not None}.values()]


def _index(digits: str, count: int) -> int | None:
    """The place that a number is, None where it is none or not written so."""
    if not digits or len(digits) > _LONG or (digits[0] == "0" and len(digits) > 1):
        return None
    at = int(digits)
    return at if at < count else None


class _Run:
    """Names taken of one part: some members themselves, and the same names inside each."""

    __slots__ = ("first", "inner", "last", "own", "part")

    def __init__(self, part: Part, own: Sequence[str], inner: Sequence[str]) -> None:
        self.part, self.own, self.inner = part, own, inner
        ends = part.names[0], part.names[-1]
        self.first = own[0] if own and (not inner or own[0] == ends[0]) else below(ends[0], inner[0])
        self.last = below(ends[1], inner[-1]) if inner else own[-1]

    @classmethod
    def of(cls, part: Part, own: Callable[[Part], Sequence[str]]) -> _Run | None:
        """None where nothing is taken."""
        taken = own(part)
        inner = list(part.child.walk(own)) if part.child is not None else []
        return cls(part, taken, inner) if taken or inner else None

    def names(self) -> Iterator[str]:
        """In natural order."""
        if not self.inner:
            return iter(self.own)
        inner, members = self.inner, self.part.names
        if not self.own:
            return (f"{member}.{each}" for member in members for each in inner)
        taken = self.own if self.own is members else frozenset(self.own)
        return (
            name
            for member in members
            for name in (
                (member, *(f"{member}.{each}" for each in inner)) if member in taken else (f"{member}.{each}" for each in inner)
            )
        )
