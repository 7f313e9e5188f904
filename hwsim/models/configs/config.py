"""A config while it is read: the keys that were used, and mistakes with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from hwsim.records import dataclass
from hwsim.spec.mistakes import NOWHERE, Mistakes, Place
from hwsim.spec.tree import Tree

NOT_GIVEN: Final = object()
LARGEST: Final = 10**9  # maximum of any dimension


class ConfigValue(NamedTuple):
    """A value of a model key with its origin.

    Args:
        origin: config keys, or the default, that determined the value.
        place: place in the config.
    """

    value: Any
    origin: str
    place: Place = NOWHERE


@dataclass(slots=True)
class Config:
    """A config, or the language model's part of it.

    Args:
        family: `model_type`.
        defaults: values of omitted keys in this family.
        used: keys that were read.
    """

    tree: Tree
    family: str
    mistakes: Mistakes
    defaults: Mapping[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def find(self, *names: str) -> tuple[str, Tree | None]:
        """Return (the first name that has a value, the value), and mark all names as used."""
        self.used.update(names)
        for name in names:
            tree = self.tree.get(name)
            if tree is not None and tree.value is not None:
                return name, tree
        return names[0], None

    def has(self, *names: str) -> bool:
        """Return whether one of the names has a value."""
        return self.find(*names)[1] is not None

    def count(self, *names: str, default: Any = NOT_GIVEN, minimum: int = 1) -> ConfigValue:
        """Return a whole number.

        Args:
            names: names of the key, the usual one first.
            default: value if the key is omitted; without this and without a family default, the key is required.
        """
        name, tree = self.find(*names)
        if tree is None:
            return self._default(names, default)
        value = tree.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.mistakes.add(tree.place, f"'{name}': expected a whole number, got {tree.what()}")
        elif not minimum <= value <= LARGEST:
            self.mistakes.add(tree.place, f"'{name}': expected {minimum} to {LARGEST:,}, got {value}")
        else:
            return ConfigValue(value, name, tree.place)
        return ConfigValue(1 if default in (NOT_GIVEN, None) else default, name, tree.place)

    def flag(self, *names: str, default: Any = NOT_GIVEN) -> ConfigValue:
        """Return true or false."""
        name, tree = self.find(*names)
        if tree is None:
            return self._default(names, default)
        if not isinstance(tree.value, bool):
            self.mistakes.add(tree.place, f"'{name}': expected true or false, got {tree.what()}")
            return ConfigValue(False, name, tree.place)
        return ConfigValue(tree.value, name, tree.place)

    def listed(self, name: str, kind: type, length: int | None = None) -> ConfigValue | None:
        """Return a list of strings or whole numbers; None if omitted."""
        _, tree = self.find(name)
        if tree is None:
            return None
        words = "strings" if kind is str else "whole numbers"
        if not tree.is_list or any(not isinstance(element.value, kind) for element in tree.elements()):
            self.mistakes.add(tree.place, f"'{name}': expected a list of {words}, got {tree.what()}")
            return None
        values = tuple(element.value for element in tree.elements())
        if length is not None and len(values) != length:
            self.mistakes.add(tree.place, f"'{name}' has {len(values)} entries, but the model has {length} layers")
            return None
        return ConfigValue(values, name, tree.place)

    def refuse_types(self, name: str, allowed: Sequence[str]) -> None:
        """Add a mistake if a layer type is not one of `allowed`."""
        listed = self.listed(name, str)
        strange = (
            next((layer_type for layer_type in listed.value if layer_type not in allowed), None) if listed is not None else None
        )
        if strange is not None:
            self.refuse(name, f"unsupported layer type '{strange}' for {self.family}", f"all layers {' or '.join(allowed)}")

    def _default(self, names: Sequence[str], default: Any) -> ConfigValue:
        for name in names:
            if name in self.defaults:
                return ConfigValue(self.defaults[name], f"left out: {name} of {self.family}", self.tree.place)
        if default is NOT_GIVEN:
            also = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            self.mistakes.add(self.tree.place, f"'{names[0]}'{also} is missing, but required for {self.family}")
            return ConfigValue(1, names[0], self.tree.place)
        return ConfigValue(default, f"left out: {names[0]}", self.tree.place)

    def refuse(self, name: str, message: str, hint: str | None = None) -> None:
        """Add a mistake for a key that a model does not support."""
        self.used.add(name)
        self.mistakes.add(self.tree.key_place(name), message, hint)

    def refuse_unless(self, name: str, allowed: Sequence[Any], message: str) -> None:
        """Add a mistake if the key is set, and its value is not one of `allowed`."""
        _, found = self.find(name)
        if found is not None and found.plain() not in allowed:
            self.mistakes.add(found.place, f"'{name}' is {found.what()}: {message}")
