"""Names: from what a file says (`gpu*`, `node0..95.gpu*`, `disk`) to the full names of devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hwsim.machine.placed import PlacedDevice, PlacedNode
from hwsim.spec.mistakes import did_you_mean

_DIGITS: Final = re.compile(r"(\d+)")
_DOT: Final = re.compile(r"(?<!\.)\.(?!\.)")
_SEGMENT: Final = re.compile(r"(?P<text>[A-Za-z][\w-]*?)(?:(?P<star>\*)|(?P<first>\d{1,9})\.\.(?P<last>\d{1,9}))?", re.ASCII)
_SHOWN: Final = 8


class UnknownName(ValueError):
    """A name that nothing has, or that several have where one is needed."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def natural(name: str) -> tuple[tuple[str | int, ...], str]:
    """Sorting key that counts: gpu9 before gpu10.

    >>> sorted(["gpu10", "gpu9", "cpu"], key=natural)
    ['cpu', 'gpu9', 'gpu10']
    """
    return tuple(int(part) if at % 2 else part for at, part in enumerate(_DIGITS.split(name))), name


def listed(names: Sequence[str]) -> str:
    """The names in words, the middle of a long list left out.

    >>> listed(["gpu0", "gpu1"]), listed([f"gpu{n}" for n in range(100)])
    ('gpu0, gpu1', 'gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, ..., gpu99')
    """
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return ", ".join([*names[: _SHOWN - 2], "...", names[-1]])


def below(scope: str, name: str) -> str:
    """The full name of what a scope calls `name`."""
    return f"{scope}.{name}" if scope else name


@dataclass(frozen=True, slots=True)
class _Segment:
    """What stands between two dots: a name, a family (`gpu*`) or some of a family (`gpu0..3`)."""

    text: str
    star: bool = False
    some: range | None = None


def _segments(pattern: str) -> list[_Segment]:
    found = []
    for text in _DOT.split(pattern.strip()):
        match = _SEGMENT.fullmatch(text)
        if match is None:
            raise UnknownName(f"'{text}' in '{pattern}' is no name", "names look like gpu, gpu0, gpu*, gpu0..3, node*.gpu*")
        some = None
        if match["first"] is not None:
            some = range(int(match["first"]), int(match["last"]) + 1)
            if not some:
                raise UnknownName(f"the range '{text}' ends before it begins", "write the smaller number first")
        found.append(_Segment(match["text"], match["star"] is not None, some))
    return found


class Names:
    """The index behind `Machine.select`; full names in natural order throughout."""

    def __init__(self, devices: Mapping[str, PlacedDevice], nodes: Mapping[str, PlacedNode], groups: Mapping[str, PlacedDevice]):
        self._devices, self._nodes, self._groups = devices, nodes, groups
        self._families: dict[tuple[str, str], list[str]] = {}  # (scope, family)
        self._anywhere: dict[str, list[str]] = {}  # family
        self._local: dict[str, list[str]] = {}  # last part of the name, and of the name of a group
        self._kinds: dict[str, list[str]] = {}
        roles: dict[str, list[str]] = {}
        placed: list[PlacedDevice | PlacedNode] = [*devices.values(), *nodes.values()]
        for each in sorted(placed, key=lambda each: natural(each.name)) if nodes else placed:
            self._families.setdefault((each.node, each.family), []).append(each.name)
            self._anywhere.setdefault(each.family, []).append(each.name)
            self._local.setdefault(each.name.rpartition(".")[2], []).append(each.name)
            if isinstance(each, PlacedDevice):
                self._kinds.setdefault(each.kind, []).append(each.name)
                roles.setdefault(getattr(each.model, "role", each.kind), []).append(each.name)
        self._kinds |= roles  # `disk` means every kind of disk
        for name in groups:
            self._local.setdefault(name.rpartition(".")[2], []).append(name)
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def select(self, pattern: str | Sequence[str], inside: str = "") -> tuple[str, ...]:
        """See `Machine.select`."""
        if isinstance(pattern, str):
            key = (pattern, inside)
            if key not in self._found:
                self._found[key] = self._select(pattern, inside)
            return self._found[key]
        return tuple(dict.fromkeys(name for each in pattern for name in self.select(each, inside)))

    def one(self, pattern: str | Sequence[str], inside: str = "") -> str:
        """See `Machine.one`."""
        found = self.select(pattern, inside)
        if not found:
            raise UnknownName("a name is missing")
        if len(found) != 1:
            raise self._several(pattern if isinstance(pattern, str) else ", ".join(pattern), found)
        return found[0]

    def of_kind(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """See `Machine.devices_of`."""
        return tuple(self._under(inside, self._kinds.get(kind, ())))

    def no_device(self, name: str) -> UnknownName:
        """What is wrong with a full name that is no device's."""
        if name in self._nodes:
            inner = self._under(name, self._devices)
            return UnknownName(f"{name} is a machine, not a device", f"name a device in it: {listed(inner)}" if inner else None)
        return UnknownName(f"there is no device '{name}'", did_you_mean(name, self._devices))

    def _select(self, pattern: str, inside: str) -> tuple[str, ...]:
        first, *rest = _segments(pattern)
        scope = inside
        while True:
            found = self._find(scope, first)
            for segment in rest:
                found = [name for each in found for name in self._find(each, segment)]
            if found:
                return tuple(dict.fromkeys(found))
            if not scope:
                raise self._unknown(pattern, first)
            scope = scope.rpartition(".")[0]

    def _find(self, scope: str, segment: _Segment) -> list[str]:
        """In the scope itself, else at any depth in it, else by kind."""
        text = segment.text
        if segment.star:
            return (
                self._families.get((scope, text))
                or self._under(scope, self._anywhere.get(text, ()))
                or self._under(scope, self._kinds.get(text, ()))
            )
        if segment.some is not None:
            family = self._families.get((scope, text)) or self._under(scope, self._anywhere.get(text, ()))
            family = family or self._under(scope, self._kinds.get(text, ()))
            return self._range(text, family, segment.some)
        full = below(scope, text)
        if full in self._devices or full in self._nodes or full in self._groups:
            return [full]
        return self._lone(text, self._families.get((scope, text), [])) or self._deep(scope, text)

    def _deep(self, scope: str, text: str) -> list[str]:
        exact = self._under(scope, self._local.get(text, ()))
        if exact:
            return exact
        found = self._under(scope, self._anywhere.get(text, ())) or self._under(scope, self._kinds.get(text, ()))
        return self._lone(text, found)

    def _lone(self, text: str, found: list[str]) -> list[str]:
        """What a bare kind or family means: its only part, or all sockets of a node."""
        if len(found) < 2:
            return found
        families = {(self._placed(name).node, self._placed(name).family) for name in found}
        node, family = min(families)
        if len(families) == 1 and below(node, family) in self._groups:
            return [below(node, family)]
        raise self._several(text, found)

    def _range(self, text: str, family: Sequence[str], some: range) -> list[str]:
        """Those of a family whose numbers are in a range; every number must be there."""
        chosen = [name for name in family if self._placed(name).index in some]
        there = {self._placed(name).index for name in chosen}
        missing = next((index for index in some if index not in there), None) if family else None
        if missing is not None:
            raise UnknownName(f"there is no {text}{missing}", f"there are: {listed(family)}")
        return chosen

    def _placed(self, name: str) -> PlacedDevice | PlacedNode:
        return self._devices.get(name) or self._nodes[name]

    def _under(self, scope: str, names: Iterable[str]) -> list[str]:
        return [name for name in names if name.startswith(scope + ".")] if scope else list(names)

    def _several(self, pattern: str, found: Sequence[str]) -> UnknownName:
        family = found[0].rstrip("0123456789")
        hint = f"name one of them, or put the statements under `each: {family}*`" if family != found[0] else "name one of them"
        return UnknownName(f"'{pattern}' is {len(found)} parts where one is needed: {listed(found)}", hint)

    def _unknown(self, pattern: str, first: _Segment) -> UnknownName:
        known = [*self._devices, *self._nodes] if len(self._devices) <= 200 else [*self._anywhere, *self._kinds]
        families = [f"{family}*" for family in self._anywhere]
        hint = did_you_mean(pattern, [*known, *families]) if known else "the machine has no parts"
        family = self._anywhere.get(first.text.rstrip("0123456789")) or self._anywhere.get(first.text)
        return UnknownName(f"there is no part '{pattern}'", f"there are: {listed(family)}" if family else hint)
