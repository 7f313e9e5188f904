"""Resolution of names in files (`gpu*`, `node0..95.gpu*`, `disk`) to full names of devices.

A pattern is resolved once for all equal inner machines, and only the names that are found are created.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final

from hwsim.formats import family as family_of
from hwsim.formats import natural
from hwsim.machine.contents import UnknownName, below, listed, within
from hwsim.machine.layout import Layout, LayoutPart, NumberedNames
from hwsim.machine.views import members_of_devices, members_of_nodes
from hwsim.records import dataclass
from hwsim.spec.mistakes import did_you_mean

_DOT: Final = re.compile(r"(?<!\.)\.(?!\.)")
_SEGMENT: Final = re.compile(r"(?P<text>[A-Za-z][\w-]*?)(?:(?P<star>\*)|(?P<first>\d{1,9})\.\.(?P<last>\d{1,9}))?", re.ASCII)
_ALL_NAMED: Final = 200  # number of devices up to which hints are chosen from all names
_COMPARED: Final = 10_000  # number of devices up to which a full name is compared with all names

__all__ = ["NameIndex", "UnknownName", "below", "listed"]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of a name between two dots: a name, a family (`gpu*`), or a range of a family (`gpu0..3`)."""

    text: str
    star: bool = False
    numbers: range | None = None


def _segments(pattern: str) -> list[_Segment]:
    segments = []
    for text in _DOT.split(pattern.strip()):
        match = _SEGMENT.fullmatch(text)
        if match is None:
            raise UnknownName(f"invalid name '{text}' in '{pattern}'", "write names like gpu, gpu0, gpu*, gpu0..3, node*.gpu*")
        numbers = None
        if match["first"] is not None:
            numbers = range(int(match["first"]), int(match["last"]) + 1)
            if not numbers:
                raise UnknownName(f"the range '{text}' is empty", "write the smaller number first")
        segments.append(_Segment(match["text"], match["star"] is not None, numbers))
    return segments


class NameIndex:
    """An index of names, used by `Machine.select`; full names are in natural order.

    Parts that are added to the layout later are found only by their full names.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._parts = tuple(layout.parts)
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}
        self._several: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}
        self._relative: dict[tuple[int, _Segment], Sequence[str]] = {}

    def select(self, pattern: str | Sequence[str], inside: str = "") -> tuple[str, ...]:
        """See `Machine.select`."""
        if isinstance(pattern, str):
            key = (pattern, inside)
            if key not in self._found:
                self._found[key] = self._select(pattern, inside)
            return self._found[key]
        several = (tuple(pattern), inside)
        if several not in self._several:
            self._several[several] = tuple(dict.fromkeys(chain.from_iterable(self.select(name, inside) for name in pattern)))
        return self._several[several]

    def one(self, pattern: str | Sequence[str], inside: str = "") -> str:
        """See `Machine.one`."""
        names = self.select(pattern, inside)
        if not names:
            raise UnknownName("expected a name, got an empty list")
        if len(names) != 1:
            raise _several(pattern if isinstance(pattern, str) else ", ".join(pattern), names)
        return names[0]

    def of_kind(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """See `Machine.devices_of`."""
        key = f"{kind}?", inside  # not a valid pattern
        if key not in self._found:
            scope = self._scope(inside)
            self._found[key] = () if scope is None else tuple(below(inside, name) for name in self._walk(scope, _is_kind(kind)))
        return self._found[key]

    def no_device(self, name: str) -> UnknownName:
        """Return the error for a full name that does not name a device."""
        spot = self._layout.find(name)
        if spot is not None and spot.part.child is not None:
            inner = [below(name, inner_name) for inner_name in spot.part.child.walk(members_of_devices)]
            hint = f"name a device in it: {listed(inner)}" if inner else None
            return UnknownName(f"{name} is a machine: expected a device", hint)
        candidates = self._walk(self._layout, members_of_devices) if self._layout.size <= _COMPARED else self._families()
        return UnknownName(f"there is no device '{name}'", did_you_mean(name, candidates))

    def _select(self, pattern: str, inside: str) -> tuple[str, ...]:
        first, *rest = _segments(pattern)
        scope = inside
        while True:
            names = self._find([scope], first)
            for segment in rest:
                names = self._find(names, segment)
            if names:
                return tuple(names)
            if not scope:
                raise self._unknown(pattern, first)
            scope, _ = within(scope)

    def _find(self, scopes: Iterable[str], segment: _Segment) -> list[str]:
        full_names: list[str] = []
        for scope in scopes:
            layout = self._scope(scope)
            if layout is None:
                continue
            key = id(layout), segment
            names = self._relative.get(key)
            if names is None:
                names = self._relative[key] = self._inside(layout, segment, scope)
            if scope:
                full_names += [f"{scope}.{name}" for name in names]
            else:
                full_names += names
        return full_names

    def _scope(self, name: str) -> Layout | None:
        """Return the layout of an inner machine, or of the whole for ""; None if there is none."""
        if not name:
            return self._layout
        spot = self._layout.find(name)
        return None if spot is None else spot.part.child

    def _inside(self, layout: Layout, segment: _Segment, scope: str) -> Sequence[str]:
        """Find names in the scope itself, else at any depth in it, else by kind; scope: name of the scope, for messages."""
        text = segment.text
        if segment.star:
            return self._family(layout, text) or self._anywhere(layout, text)
        if segment.numbers is not None:
            return self._range(layout, text, segment.numbers, scope)
        if layout.local(text) is not None or any(part.grouped and part.family == text for part in self._parts_of(layout)):
            return [text]
        return self._lone(layout, text, self._family(layout, text), scope) or self._deep(layout, text, scope)

    def _family(self, layout: Layout, text: str) -> Sequence[str]:
        parts = [part for part in self._parts_of(layout) if part.family == text]
        return parts[0].names if len(parts) == 1 else sorted((name for part in parts for name in part.names), key=natural)

    def _anywhere(self, layout: Layout, text: str) -> list[str]:
        return list(self._walk(layout, lambda part: part.names if part.family == text else ())) or list(
            self._walk(layout, _is_kind(text))
        )

    def _deep(self, layout: Layout, text: str, scope: str) -> Sequence[str]:
        exact = list(self._walk(layout, lambda part: (text,) if text in part.names else ()))
        exact += self._walk(layout, lambda part: (text,) if part.grouped and part.family == text else ())
        return exact or self._lone(layout, text, self._anywhere(layout, text), scope)

    def _lone(self, layout: Layout, text: str, names: Sequence[str], scope: str) -> Sequence[str]:
        """Return the only part of a bare kind or family, or all sockets of a node."""
        if len(names) < 2:
            return names
        families = set()
        for name in names:
            spot = layout.find(name)
            if spot is not None:
                families.add((spot.node, spot.part.family, spot.part.grouped))
        node, family, group = families.pop()
        if families or not group:
            raise _several(text, [below(scope, name) for name in names])
        return [below(node, family)]

    def _range(self, layout: Layout, text: str, wanted: range, scope: str) -> list[str]:
        """Return the members of a family in a range; raise UnknownName if a number is missing."""
        family = self._family(layout, text) or self._anywhere(layout, text)
        if isinstance(family, NumberedNames):
            if wanted[-1] >= len(family):
                raise _missing(f"{text}{max(wanted[0], len(family))}", family, scope)
            return list(family[wanted[0] : wanted[-1] + 1])
        indices = [spot.member if (spot := layout.find(name)) is not None and spot.part.numbered else None for name in family]
        numbers = frozenset(indices)
        missing = next((index for index in wanted if index not in numbers), None) if family else None
        if missing is not None:
            raise _missing(f"{text}{missing}", family, scope)
        return [name for name, index in zip(family, indices, strict=True) if index in wanted]

    def _parts_of(self, layout: Layout) -> Sequence[LayoutPart]:
        return self._parts if layout is self._layout else layout.parts

    def _walk(self, layout: Layout, own: Callable[[LayoutPart], Sequence[str]]) -> Iterable[str]:
        return layout.walk(own, self._parts_of(layout))

    def _unknown(self, pattern: str, first: _Segment) -> UnknownName:
        families = self._families()
        if self._layout.size <= _ALL_NAMED:
            candidates = [*self._walk(self._layout, members_of_devices), *self._walk(self._layout, members_of_nodes)]
        else:
            candidates = [*families, *dict.fromkeys(kind for part in self._layout.every() for kind in _kinds(part))]
        if "*" in pattern:
            candidates = [family_of(name) for name in candidates]
        hint = (
            did_you_mean(pattern, [*candidates, *(f"{family}*" for family in families)])
            if candidates
            else "the machine has no parts"
        )
        family: list[str] = []
        for text in (first.text.rstrip("0123456789"), first.text):
            family = family or list(self._walk(self._layout, lambda part, text=text: part.names if part.family == text else ()))  # type: ignore[misc]
        return UnknownName(f"there is no part '{pattern}'", f"there are: {listed(family)}" if family else hint)

    def _families(self) -> list[str]:
        return list(dict.fromkeys(part.family for part in self._layout.every()))


def _missing(name: str, family: Sequence[str], scope: str) -> UnknownName:
    return UnknownName(f"there is no {name}", f"there are: {listed([below(scope, member) for member in family])}")


def _several(pattern: str, parts: Sequence[str]) -> UnknownName:
    family = parts[0].rstrip("0123456789")
    hint = (
        f"name one of them; {family}* matches all of them, `each: {family}*` runs a program on each"
        if family != parts[0]
        else "name one of them"
    )
    return UnknownName(f"'{pattern}' matches {len(parts)} parts, expected one: {listed(parts)}", hint)


def _kinds(part: LayoutPart) -> tuple[str, ...]:
    """Return the kind of a part and its role (`disk` matches every kind of disk)."""
    return () if part.child is not None else (part.kind, getattr(part.model, "role", part.kind))


def _is_kind(kind: str) -> Callable[[LayoutPart], Sequence[str]]:
    return lambda part: part.names if kind in _kinds(part) else ()
