"""The names of a program: what its ops and values are called, and who asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Tree, did_you_mean
from hwsim.workload.file import DOORS

Path = tuple[int, ...]  # the repeats around a statement, outermost first


@dataclass(frozen=True, slots=True)
class Stand:
    """Position of a statement: its number in the program, and the repeats around it."""

    number: int
    path: Path

    def shares_repeat(self, other: Stand) -> bool:
        """Whether one repeat holds both: then each comes before the other, an iteration later."""
        return bool(self.path and other.path and self.path[0] == other.path[0])


@dataclass(frozen=True, slots=True)
class Mention:
    """A name asked for: of an op, or where `values` of a value too; `back` if of an earlier iteration."""

    name: str
    place: Place
    stand: Stand
    values: bool = False
    back: bool = False


@dataclass(slots=True)
class Names:
    """Collected while a program is read; names may be asked for before they are known."""

    ops: dict[str, list[Stand]] = field(default_factory=dict)
    values: dict[str, list[Stand]] = field(default_factory=dict)
    mentions: list[Mention] = field(default_factory=list)

    def look_up(self, mistakes: Mistakes) -> None:
        """Note every name that means nothing where it is asked for."""
        for mention in self.mentions:
            self._look_up(mention, mistakes)

    def _look_up(self, mention: Mention, mistakes: Mistakes) -> None:
        name, stand = mention.name, mention.stand
        values = self.values if mention.values else {}
        stands = self.ops.get(name, []) + values.get(name, [])
        if not stands:
            noun = "op or value" if mention.values else "op"
            mistakes.add(mention.place, f"there is no {noun} called '{name}'", did_you_mean(name, [*self.ops, *values]))
        elif mention.back and not any(each.shares_repeat(stand) for each in stands):
            mistakes.add(mention.place, f"`back` counts iterations, but no repeat holds both this and '{name}'")
        elif not any(each.number < stand.number or each.shares_repeat(stand) for each in stands):
            mistakes.add(mention.place, f"nothing called '{name}' comes before this")


def place_of_op(tree: Tree, name: str) -> Place:
    """Place of the op called `name` in a workload file; the place of the workload form if no op has that name."""
    for key, value in _entries(tree):
        if name and (value.text("name") or key) == name:
            return value.place
    forms = [tree.key_place(form) for form in (*DOORS, "jobs") if tree.get(form)]
    return forms[0] if forms else tree.place


def _entries(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Every key of a tree with its value, in the order of the file."""
    for key, value in tree.items():
        yield key, value
        yield from _entries(value)
    for element in tree.elements() if tree.is_list else ():
        yield from _entries(element)
