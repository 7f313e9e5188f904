"""The content of a file before it is decoded: values with their places."""

from __future__ import annotations

import math
import re
from collections.abc import ItemsView, Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, Final

from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.mistakes import NOWHERE, Place, SpecError
from hwsim.units import Quantity, is_quantity, parse

MAX_DEPTH: Final = 100
DIGITS: Final = 40  # of a whole number

# control characters, and those that turn the direction of all that follows them
UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

Scalar = str | int | float | bool | None | Quantity


@dataclass(frozen=True, slots=True)
class Tree:
    """A node: a mapping, a list or a scalar, with its place and the places of a mapping's keys.

    over: the value of the used file that this one replaces; of a mapping: one of the values in it does.

    Never changed once made (the containers inside are by agreement not written to).
    """

    value: dict[str, Tree] | list[Tree] | Scalar
    place: Place = NOWHERE
    keys: Mapping[str, Place] = field(default_factory=dict, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)
    over: Tree | None = field(default=None, compare=False, repr=False)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, list)

    def get(self, key: str) -> Tree | None:
        """The value under a key; None if there is none or this is no mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def at(self, path: Sequence[str]) -> Tree | None:
        """The value at a path of keys; None if there is none."""
        found: Tree | None = self
        for key in path:
            found = found.get(key) if found is not None else None
        return found

    def text(self, key: str) -> str | None:
        """The value under a key if it is a string: `tree.text("kind")`."""
        found = self.get(key)
        return found.value if found is not None and isinstance(found.value, str) else None

    def items(self) -> ItemsView[str, Tree]:
        """Keys and values of a mapping in the order of the file; nothing for anything else."""
        return (self.value if isinstance(self.value, dict) else {}).items()

    def elements(self) -> tuple[Tree, ...]:
        """The elements of a list; a scalar or mapping is a list of one; null is none."""
        if isinstance(self.value, list):
            return tuple(self.value)
        return () if self.value is None else (self,)

    def key_place(self, key: str) -> Place:
        """Place of a key (its mapping's place if the key was made by a program)."""
        return self.keys.get(key, self.place)

    def having(self, value: dict[str, Tree] | list[Tree] | Scalar) -> Tree:
        """This node with another value."""
        return Tree(value, self.place, self.keys, self.origin, self.over)

    def put(self, key: str, value: Tree) -> Tree:
        """This mapping with one key set."""
        over = self.over or value.over
        return Tree({**dict(self.items()), key: value}, self.place, {**self.keys, key: value.place}, self.origin, over)

    def without(self, *names: str) -> Tree:
        """This mapping without some keys."""
        return self.having({key: value for key, value in self.items() if key not in names})

    def plain(self) -> Any:
        """Dicts, lists and scalars without places, as a YAML loader would give them."""
        if isinstance(self.value, dict):
            return {key: each.plain() for key, each in self.value.items()}
        if isinstance(self.value, list):
            return [each.plain() for each in self.value]
        return self.value

    @property
    def quantity(self) -> Quantity | None:
        """The number that it is, or a mapping with its source holds; None of anything else."""
        value = (self.get("value") or self).value
        if isinstance(value, Quantity):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        text = value if isinstance(value, str) else repr(value)
        return parse(text) if is_quantity(text) else None

    def what(self) -> str:
        """This value in a few words, for messages."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        if self.value is None:
            return "nothing"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        shown = f"'{self.value}'" if isinstance(self.value, str) else str(self.value)
        return shown if len(shown) <= 60 else shown[:56] + "...'"


def unprintable(text: str) -> str | None:
    """The first character of a text that would command a terminal, or that no file may have; None if there is none."""
    found = UNPRINTABLE.search(text)
    return None if found is None else found[0]


def printable(text: str) -> str:
    r"""A text that can be shown on a terminal and be read as JSON: every such character as an escape.

    >>> printable("a\x1b[31mb")
    'a\\u001b[31mb'
    """
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def problem(value: str | float) -> str | None:
    """The reason why no file may hold a text or a number, in words; None if it may."""
    if isinstance(value, str):
        bad = unprintable(value)
        return None if bad is None else f"the control character U+{ord(bad):04X} does not belong in a text"
    if isinstance(value, int):
        return None if abs(value) < 10**DIGITS else "this number has too many digits"
    return None if math.isfinite(value) else f"{value} is not a finite number"


def _key(key: object, place: Place) -> str:
    if not isinstance(key, str | int):
        raise SpecError.of(place, f"a key is a text, not {type(key).__name__}")
    if wrong := problem(key):
        raise SpecError.of(place, wrong)
    return str(key)


def tree_of(value: Any, place: Place = NOWHERE, depth: int = 0) -> Tree:
    """A tree from plain data, for machines and workloads built by a program; the numbers of numpy are numbers as well.

    Raises:
        SpecError: what no file may hold: control characters, numbers that are not finite, too many digits, too deep nesting.
        TypeError: what is neither a number, a text, a list nor a mapping.
    """
    if isinstance(value, Tree):
        return value
    if depth > MAX_DEPTH:
        raise SpecError.of(place, f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return Tree({_key(key, place): tree_of(each, place, depth + 1) for key, each in value.items()}, place)
    if isinstance(value, list | tuple):
        return Tree([tree_of(each, place, depth + 1) for each in value], place)
    if value is None or isinstance(value, bool | Quantity):
        return Tree(value, place)
    if not isinstance(value, str):
        if not isinstance(value, Real):
            raise TypeError(f"a machine or workload holds numbers, texts, lists and mappings, not {type(value).__name__}")
        value = int(value) if isinstance(value, Integral) else float(value)
    if wrong := problem(value):
        raise SpecError.of(place, wrong)
    return Tree(value, place)
