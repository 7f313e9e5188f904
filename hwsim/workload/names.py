"""Names of the ops and values of a program, and the lookup of every name that a statement mentions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Tree, did_you_mean
from hwsim.workload.file import WORKLOAD_FORMS

Path = tuple[int, ...]  # the repeats around a statement, outermost first


@dataclass(frozen=True, slots=True)
class StatementPosition:
    """A position of a statement: its number in the program, and the repeats around it."""

    number: int
    path: Path

    def shares_repeat(self, other: StatementPosition) -> bool:
        """Whether one repeat contains both statements, so that each precedes the other in a later iteration."""
        return bool(self.path and other.path and self.path[0] == other.path[0])


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of an op by name.

    Args:
        values: whether the name may also be that of a value.
        back: whether the op of an earlier iteration is meant.
    """

    name: str
    place: Place
    stand: StatementPosition
    values: bool = False
    back: bool = False


@dataclass(slots=True)
class NameTable:
    """A table of the names of a program, collected during parsing; a mention may precede the definition."""

    ops: dict[str, list[StatementPosition]] = field(default_factory=dict)
    values: dict[str, list[StatementPosition]] = field(default_factory=dict)
    mentions: list[Mention] = field(default_factory=list)

    def look_up(self, mistakes: Mistakes) -> None:
        """Add a mistake for each mention of an unknown or later name."""
        for mention in self.mentions:
            self._look_up(mention, mistakes)

    def _look_up(self, mention: Mention, mistakes: Mistakes) -> None:
        name, stand = mention.name, mention.stand
        values = self.values if mention.values else {}
        stands = self.ops.get(name, []) + values.get(name, [])
        if not stands:
            noun = "op or value" if mention.values else "op"
            mistakes.add(mention.place, f"there is no {noun} called '{name}'", did_you_mean(name, [*self.ops, *values]))
        elif mention.back and not any(other.shares_repeat(stand) for other in stands):
            mistakes.add(mention.place, f"`back` counts iterations, but no repeat contains both this and '{name}'")
        elif not any(other.number < stand.number or other.shares_repeat(stand) for other in stands):
            mistakes.add(mention.place, f"'{name}' is defined only after this statement")


def place_of_op(tree: Tree, name: str) -> Place:
    """Return the place in the workload file of the op `name`, or of the workload form if there is no such op."""
    for key, value in _entries(tree):
        if name and (value.text("name") or key) == name:
            return value.place
    forms = [tree.key_place(form) for form in (*WORKLOAD_FORMS, "jobs") if tree.get(form)]
    return forms[0] if forms else tree.place


def _entries(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Yield every key of a tree with its value, in the order of the file."""
    for key, value in tree.items():
        yield key, value
        yield from _entries(value)
    for element in tree.elements() if tree.is_list else ():
        yield from _entries(element)
