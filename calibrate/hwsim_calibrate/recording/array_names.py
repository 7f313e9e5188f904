"""Array names in a program with loops, and the loops that prevent correct names.

An array is named after the statement that creates it. Arrays that one statement creates in several iterations share a name, and
so do arrays that one statement reads at the same position. At every call, a name must refer to the array that the call read. If
it refers to another array, a loop is responsible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hwsim_calibrate.recording.nodes import Leaf, Loop, Node, leaves
from hwsim_calibrate.recording.tape import Step

Slot = tuple[int, int]  # (index of a statement, position among the arrays that it creates)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A name that refers to another array than the one that was read.

    Args:
        leaf: the statement to report.
        blamed: the loops to rewrite.
        is_certain: whether no other mistake can be the cause.
        around: all loops that use the name.
    """

    leaf: Leaf
    blamed: tuple[Loop, ...]
    is_certain: bool
    around: tuple[Loop, ...]


@dataclass(slots=True)
class ArrayNames:
    """The arrays of a program, grouped by shared names.

    Args:
        steps: the calls.
        leaves: the statements with the loops around them.
        of_call: call -> its statement.
        maker: array -> (its slot, index of the call among all calls of the statement).
        joiners: first slot of a name -> statements that read arrays of several slots of the name.
        makers: first slot of a name -> statements that create its arrays.
    """

    steps: Sequence[Step]
    leaves: list[tuple[Leaf, tuple[Loop, ...]]]
    of_call: dict[int, int] = field(default_factory=dict)
    maker: dict[int, tuple[Slot, int]] = field(default_factory=dict)
    joiners: dict[Slot, list[int]] = field(default_factory=dict)
    makers: dict[Slot, list[int]] = field(default_factory=dict)
    _above: dict[Slot, Slot] = field(default_factory=dict)

    @staticmethod
    def of(nodes: Sequence[Node], steps: Sequence[Step]) -> ArrayNames:
        """Group the arrays of a program."""
        names = ArrayNames(steps, list(leaves(nodes)))
        for index, (leaf, _) in enumerate(names.leaves):
            for turn, call in enumerate(leaf.calls):
                names.of_call[call] = index
                for place, array in enumerate(steps[call].made):
                    names.maker[array.value] = (index, place), turn
        for index, (leaf, _) in enumerate(names.leaves):
            if len(leaf.calls) > 1:
                names._join(index, leaf)
        for slot, _ in names.maker.values():
            names.makers.setdefault(names.top(slot), []).append(slot[0])
        return names

    def top(self, slot: Slot) -> Slot:
        """Return the first of the slots that share a name."""
        top = slot
        while top in self._above:
            top = self._above[top]
        while slot != top:
            self._above[slot], slot = top, self._above[slot]
        return top

    def slot(self, value: int) -> Slot:
        """Return the first slot of the name of an array."""
        return self.top(self.maker[value][0])

    def mistakes(self) -> Iterator[Mistake]:
        """Yield all mistakes in the order of the calls."""
        latest: dict[Slot, int] = {}
        for index, step in enumerate(self.steps):
            for value in (*step.reads, *step.updates):
                if value is not None and (meant := latest.get(self.slot(value))) != value:
                    yield self._mistake(index, value, meant)
            for array in step.made:
                latest[self.slot(array.value)] = array.value

    def _join(self, index: int, leaf: Leaf) -> None:
        for values in zip(*((*self.steps[call].reads, *self.steps[call].updates) for call in leaf.calls), strict=True):
            slots = dict.fromkeys(self.slot(value) for value in values if value is not None)
            if len(slots) < 2:
                continue
            first, *others = sorted(slots)
            joiners = self.joiners.setdefault(first, [])
            joiners.append(index)
            for slot in others:
                self._above[slot] = first
                joiners += self.joiners.pop(slot, [])

    def _mistake(self, call: int, value: int, meant: int | None) -> Mistake:
        leaf, path = self.leaves[self.of_call[call]]
        top = self.slot(value)
        concerned = [self.of_call[call], *self.joiners.get(top, ()), *self.makers[top]]
        around = tuple(dict.fromkeys(path[0] for index in concerned if (path := self.leaves[index][1])))
        slot, turn = self.maker[value]
        if meant is not None and self.maker[meant][0] == slot:
            made, loops = self.leaves[slot[0]]
            return Mistake(made, (_parting(loops, turn, self.maker[meant][1]),), True, around)
        if path:
            return Mistake(leaf, (path[-1],), False, around)
        inner = dict.fromkeys(path[-1] for index in self.joiners[top] if (path := self.leaves[index][1]))
        return Mistake(self.leaves[self.joiners[top][0]][0], tuple(inner), False, around)


def _parting(loops: Sequence[Loop], first: int, second: int) -> Loop:
    """Return the outermost loop in which two calls of a statement belong to different iterations."""
    parting = loops[-1]
    for loop in reversed(loops):
        if first % loop.times != second % loop.times:
            parting = loop
        first, second = first // loop.times, second // loop.times
    return parting
