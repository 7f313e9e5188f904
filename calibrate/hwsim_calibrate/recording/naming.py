"""What arrays are called in a program with loops, and which loops keep them from having names.

An array is named after the statement that makes it.  Arrays that one statement makes have one name, and so have those that one
statement reads in the same place: its turns cannot say anything else.  Played through from the first call to the last, a name
must mean the array that the call really read; where it means another, a loop is to blame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hwsim_calibrate.recording.nodes import Leaf, Loop, Node, leaves
from hwsim_calibrate.recording.tape import Step

Slot = tuple[int, int]  # a statement by its number, and which of the arrays that it makes


@dataclass(frozen=True, slots=True)
class Mistake:
    """A name that would mean another array than the one that was read.

    leaf: a statement to tell it by.  blamed: the loops that must be written another way.  sure: no other mistake explains it.
    around: all loops that have to do with the name.
    """

    leaf: Leaf
    blamed: tuple[Loop, ...]
    sure: bool
    around: tuple[Loop, ...]


@dataclass(slots=True)
class Names:
    """Which arrays have one name."""

    steps: Sequence[Step]
    leaves: list[tuple[Leaf, tuple[Loop, ...]]]
    of_call: dict[int, int] = field(default_factory=dict)  # the number of its statement
    maker: dict[int, tuple[Slot, int]] = field(default_factory=dict)  # of each array, and in which turn of all
    joiners: dict[Slot, list[int]] = field(default_factory=dict)  # statements that read arrays of several slots, by top slot
    makers: dict[Slot, list[int]] = field(default_factory=dict)  # statements that make them
    _above: dict[Slot, Slot] = field(default_factory=dict)

    @staticmethod
    def of(nodes: Sequence[Node], steps: Sequence[Step]) -> Names:
        found = Names(steps, list(leaves(nodes)))
        for number, (leaf, _) in enumerate(found.leaves):
            for turn, call in enumerate(leaf.calls):
                found.of_call[call] = number
                for place, each in enumerate(steps[call].made):
                    found.maker[each.value] = (number, place), turn
        for number, (leaf, _) in enumerate(found.leaves):
            if len(leaf.calls) > 1:
                found._join(number, leaf)
        for (number, place), _ in found.maker.values():
            found.makers.setdefault(found.top((number, place)), []).append(number)
        return found

    def top(self, slot: Slot) -> Slot:
        """The first of the slots that share a name."""
        top = slot
        while top in self._above:
            top = self._above[top]
        while slot != top:
            self._above[slot], slot = top, self._above[slot]
        return top

    def slot(self, value: int) -> Slot:
        """That an array has its name from."""
        return self.top(self.maker[value][0])

    def mistakes(self) -> Iterator[Mistake]:
        """In the order of the calls."""
        latest: dict[Slot, int] = {}
        for number, step in enumerate(self.steps):
            for value in (*step.reads, *step.updates):
                if value is not None and (other := latest.get(self.slot(value))) != value:
                    yield self._mistake(number, value, other)
            for each in step.made:
                latest[self.slot(each.value)] = each.value

    def _join(self, number: int, leaf: Leaf) -> None:
        for values in zip(*((*self.steps[call].reads, *self.steps[call].updates) for call in leaf.calls), strict=True):
            slots = dict.fromkeys(self.slot(value) for value in values if value is not None)
            if len(slots) < 2:
                continue
            first, *others = sorted(slots)
            joiners = self.joiners.setdefault(first, [])
            joiners.append(number)
            for each in others:
                self._above[each] = first
                joiners += self.joiners.pop(each, [])

    def _mistake(self, call: int, value: int, other: int | None) -> Mistake:
        leaf, path = self.leaves[self.of_call[call]]
        top = self.slot(value)
        concerned = [self.of_call[call], *self.joiners.get(top, ()), *self.makers[top]]
        around = tuple(dict.fromkeys(path[0] for number in concerned if (path := self.leaves[number][1])))
        slot, turn = self.maker[value]
        if other is not None and self.maker[other][0] == slot:
            made, loops = self.leaves[slot[0]]
            return Mistake(made, (_parting(loops, turn, self.maker[other][1]),), True, around)
        if path:
            return Mistake(leaf, (path[-1],), False, around)
        inner = dict.fromkeys(path[-1] for number in self.joiners[top] if (path := self.leaves[number][1]))
        return Mistake(self.leaves[self.joiners[top][0]][0], tuple(inner), False, around)


def _parting(loops: Sequence[Loop], one: int, two: int) -> Loop:
    """The outermost loop of which two calls of a statement are in different turns."""
    found = loops[-1]
    for loop in reversed(loops):
        if one % loop.times != two % loop.times:
            found = loop
        one, two = one // loop.times, two // loop.times
    return found
