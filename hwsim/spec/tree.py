"""Content of a file before decoding: a tree of values with their places."""

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
from hwsim.units import Quantity, quantity_of

MAX_DEPTH: Final = 100
DIGITS: Final = 40  # maximum digits of a whole number

# control characters, including those that change the text direction
UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

Scalar = str | int | float | bool | None | Quantity


@dataclass(frozen=True, slots=True)
class Tree:
    """A node: a mapping, a list or a scalar. Nodes are immutable by convention, including their containers.

    Args:
        value: content.
        place: position in the file.
        keys: positions of the keys of a mapping.
        origin: source of a number.
        over: value in the used file that this node replaces; for a mapping, that of one of its values.
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
        """Return the value of a key; None if there is none or the node is not a mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def at(self, path: Sequence[str]) -> Tree | None:
        """Return the value at a path of keys; None if there is none."""
        node: Tree | None = self
        for key in path:
            node = node.get(key) if node is not None else None
        return node

    def text(self, key: str) -> str | None:
        """Return the value of a key if it is a string, else None: `tree.text("kind")`."""
        child = self.get(key)
        return child.value if child is not None and isinstance(child.value, str) else None

    def items(self) -> ItemsView[str, Tree]:
        """Return keys and values of a mapping in order of the file; empty for other nodes."""
        return (self.value if isinstance(self.value, dict) else {}).items()

    def elements(self) -> tuple[Tree, ...]:
        """Return the elements of a list; a scalar or mapping is a list of one element, null an empty list."""
        if isinstance(self.value, list):
            return tuple(self.value)
        return () if self.value is None else (self,)

    def key_place(self, key: str) -> Place:
        """Return the place of a key, or the place of the mapping if the key is not from a file."""
        return self.keys.get(key, self.place)

    def having(self, value: dict[str, Tree] | list[Tree] | Scalar) -> Tree:
        """Return the node with another value."""
        return Tree(value, self.place, self.keys, self.origin, self.over)

    def put(self, key: str, value: Tree) -> Tree:
        """Return the mapping with one key set."""
        over = self.over or value.over
        return Tree({**dict(self.items()), key: value}, self.place, {**self.keys, key: value.place}, self.origin, over)

    def without(self, *names: str) -> Tree:
        """Return the mapping without these keys."""
        return self.having({key: value for key, value in self.items() if key not in names})

    def plain(self) -> Any:
        """Return dicts, lists and scalars without places, like a YAML loader."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    @property
    def quantity(self) -> Quantity | None:
        """Number of the node, which may have a source; None if it is not a number."""
        value = (self.get("value") or self).value
        if isinstance(value, Quantity):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        return quantity_of(value if isinstance(value, str) else repr(value))

    def what(self) -> str:
        """Return a short description of the value for messages."""
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
    """Return the first control character of a text, which files may not contain; None if there is none."""
    match = UNPRINTABLE.search(text)
    return None if match is None else match[0]


def printable(text: str) -> str:
    r"""Return a text that is safe on a terminal and in JSON: control characters become escapes.

    >>> printable("a\x1b[31mb")
    'a\\u001b[31mb'
    """
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def problem(value: str | float) -> str | None:
    """Return the reason why a file may not contain a text or number; None if it may."""
    if isinstance(value, str):
        bad = unprintable(value)
        return None if bad is None else f"the control character U+{ord(bad):04X} does not belong in a text"
    if isinstance(value, int):
        return None if abs(value) < 10**DIGITS else f"the number has more than {DIGITS} digits"
    return None if math.isfinite(value) else f"{value} is not a finite number"


def _key(key: object, place: Place) -> str:
    if not isinstance(key, str | int):
        raise SpecError.of(place, f"expected a text as key, got {type(key).__name__}")
    if wrong := problem(key):
        raise SpecError.of(place, wrong)
    return str(key)


def tree_of(value: Any, place: Place = NOWHERE, depth: int = 0) -> Tree:
    """Return a tree from plain data, for machines and workloads that a program builds; NumPy numbers are accepted.

    Raises:
        SpecError: the data contains control characters, numbers that are not finite or too long, or too many levels.
        TypeError: a value is not a number, text, list or mapping.
    """
    if isinstance(value, Tree):
        return value
    if depth > MAX_DEPTH:
        raise SpecError.of(place, f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return Tree({_key(key, place): tree_of(child, place, depth + 1) for key, child in value.items()}, place)
    if isinstance(value, list | tuple):
        return Tree([tree_of(child, place, depth + 1) for child in value], place)
    if value is None or isinstance(value, bool | Quantity):
        return Tree(value, place)
    if not isinstance(value, str):
        if not isinstance(value, Real):
            raise TypeError(f"expected a number, text, list or mapping, got {type(value).__name__}")
        value = int(value) if isinstance(value, Integral) else float(value)
    if wrong := problem(value):
        raise SpecError.of(place, wrong)
    return Tree(value, place)
