"""Calls that come again and again in the same order become a loop, and arrays get names that a loop can have.

A loop is found by what its calls are: function, line, shapes, how operands lie.  Then every array is named after the statement
that makes it, and the whole is played through: where a name would not mean the array that a call really read, the loop is
written with two turns in its body (values handed on alternately), and if that does not help, it is written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hwsim.calibration.recording.tape import Step

LONGEST: Final = 4000  # calls of one turn of a loop
MANY: Final = 8  # statements of one function and line that deserve a word
WORTH: Final = 2  # statements that a loop saves at least
ROUNDS: Final = 8  # loops inside loops


@dataclass(slots=True, eq=False)
class Leaf:
    """A statement, and which calls it stands for: their numbers in the recording."""

    calls: list[int]
    name: str = ""


@dataclass(slots=True, eq=False)
class Loop:
    """Nodes that are gone through `times` times."""

    times: int
    body: list[Node]
    doubled: bool = False


Node = Leaf | Loop


@dataclass(slots=True)
class Folded:
    """Statements; names: what the array of each number is called; notes: why a loop stayed written out."""

    nodes: list[Node]
    names: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def leaves(self) -> Iterator[Leaf]:
        """Statements in the order of the file."""
        yield from _leaves(self.nodes)


def fold(steps: Sequence[Step], *, loops: bool = True) -> Folded:
    """The calls as statements, in loops where they repeat exactly (or none, if `loops` is false)."""
    kinds: dict[object, int] = {}
    keys = [kinds.setdefault(_key(step), len(kinds)) for step in steps]
    nodes: list[Node] = [Leaf([number]) for number in range(len(steps))]
    if loops:
        nodes = _looped(nodes, keys)
    told: dict[str, None] = {}
    while (wrong := _misnamed(nodes, steps)) is not None:
        nodes = _loosened(nodes, wrong)
        step = steps[wrong.calls[0]]
        if len(wrong.calls) > 1 and all(len(leaf.calls) == 1 for leaf in _leaves(nodes) if set(leaf.calls) & set(wrong.calls)):
            told[f"the loop around {_plain(step)} is written out: turns hand arrays on in no order that a `repeat` has"] = None
    _name(nodes, steps)
    notes = (*told, *(_changing(nodes, steps) if loops else ()))
    return Folded(nodes, _names(nodes, steps), notes)


def _changing(nodes: Sequence[Node], steps: Sequence[Step]) -> Iterator[str]:
    """Of each line whose calls came many times and are statements of their own: what is not the same each time."""
    lines: dict[tuple[str, str], list[Step]] = {}
    for leaf in _leaves(nodes):
        if len(leaf.calls) == 1:
            step = steps[leaf.calls[0]]
            lines.setdefault((step.name, step.line), []).append(step)
    for same in lines.values():
        if len(same) >= MANY and len({_key(step) for step in same}) > len(same) // 4:
            shapes = len({tuple(each.shape for each in step.made) for step in same}) > 1
            what = "shapes" if shapes or any(step.op.kind != "busy" for step in same) else "arguments"
            yield f"{_plain(same[0])} is written {len(same)} times, not as a `repeat`: its {what} change from call to call"


def _plain(step: Step) -> str:
    return f"{step.name.replace(' ', '-')}@{step.line}" if step.line else step.name


def _key(step: Step) -> object:
    """What makes two calls the same statement; times do not."""
    made = tuple((each.shape, each.dtype, each.bytes, each.fresh) for each in step.made)
    keys = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in step.op.keys.items())
    present = tuple(each is None for each in (*step.reads, *step.updates))
    return step.name, step.line, step.op.kind, keys, step.op.reason, len(step.reads), present, made


# ---- loops ----


def _looped(nodes: list[Node], keys: Sequence[int]) -> list[Node]:
    """Shortest turns first, then turns that have loops in them."""
    kinds: dict[object, int] = {}
    for _ in range(ROUNDS):
        codes = np.array([kinds.setdefault(_code(each, keys), len(kinds)) for each in nodes])
        found = _once(nodes, codes)
        if len(found) == len(nodes):
            break
        nodes = found
    return nodes


def _code(node: Node, keys: Sequence[int]) -> object:
    if isinstance(node, Leaf):
        return keys[node.calls[0]]
    return node.times, tuple(_code(each, keys) for each in node.body)


def _once(nodes: list[Node], codes: np.ndarray) -> list[Node]:
    """The nodes with what repeats at the shortest distance that anything repeats at, as loops."""
    for period in range(1, min(len(nodes) // 2, LONGEST) + 1):
        same = codes[:-period] == codes[period:]
        if not same.any():
            continue
        spans = [(start, 1 + length // period) for start, length in _runs(same) if length >= max(period, WORTH)]
        if spans:
            return _replaced(nodes, spans, period)
    return nodes


def _runs(same: np.ndarray) -> Iterator[tuple[int, int]]:
    """(start, length) of each run of trues."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], same.astype(np.int8), [0]))))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield start, end - start


def _replaced(nodes: list[Node], spans: Sequence[tuple[int, int]], period: int) -> list[Node]:
    found: list[Node] = []
    at = 0
    for start, times in spans:
        if start < at:
            continue
        found += nodes[at:start]
        at = start + times * period
        body = [_merged([nodes[start + turn * period + place] for turn in range(times)]) for place in range(period)]
        found.append(Loop(times, body))
    return found + nodes[at:]


def _merged(alike: Sequence[Node]) -> Node:
    """Nodes of the same code as one that stands for all their calls."""
    first = alike[0]
    if isinstance(first, Leaf):
        return Leaf([call for each in alike if isinstance(each, Leaf) for call in each.calls])
    loops = [each for each in alike if isinstance(each, Loop)]
    return Loop(first.times, [_merged(bodies) for bodies in zip(*(each.body for each in loops), strict=True)], first.doubled)


# ---- names ----


def _misnamed(nodes: list[Node], steps: Sequence[Step]) -> Leaf | None:
    """The first statement of a loop that would read something else than its calls did; None if there is none."""
    of = {call: leaf for leaf in _leaves(nodes) for call in leaf.calls}
    group = _groups(nodes, steps)
    latest: dict[object, int] = {}
    for number, step in enumerate(steps):
        for value in (*step.reads, *step.updates):
            if value is not None and latest.get(group.of(value)) != value:
                return of[number]
        for each in step.made:
            latest[group.of(each.value)] = each.value
    return None


@dataclass(slots=True)
class _Union:
    """Which arrays must have one name: those that one statement makes, and those that one reads in the same place."""

    maker: dict[int, tuple[int, int]]  # of each array the statement and the place in it
    above: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def top(self, slot: tuple[int, int]) -> tuple[int, int]:
        while slot in self.above:
            slot = self.above[slot]
        return slot

    def of(self, value: int) -> tuple[int, int]:
        return self.top(self.maker[value])

    def join(self, one: int, two: int) -> None:
        first, second = sorted((self.of(one), self.of(two)))
        if first != second:
            self.above[second] = first


def _groups(nodes: list[Node], steps: Sequence[Step]) -> _Union:
    leaves = list(_leaves(nodes))
    found = _Union({each.value: (number, place) for number, leaf in enumerate(leaves) for call in leaf.calls
                    for place, each in enumerate(steps[call].made)})  # fmt: skip
    for leaf in leaves:
        if len(leaf.calls) > 1:
            for values in zip(*((*steps[call].reads, *steps[call].updates) for call in leaf.calls), strict=True):
                known = [value for value in values if value is not None]
                for value in known[1:]:
                    found.join(known[0], value)
    return found


def _loosened(nodes: list[Node], wrong: Leaf) -> list[Node]:
    """The nodes with the innermost loop around a statement written with two turns, or out."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Leaf) or wrong not in set(_leaves([node])):
            found.append(node)
        elif any(isinstance(each, Loop) and wrong in set(_leaves([each])) for each in node.body):
            found.append(Loop(node.times, _loosened(node.body, wrong), node.doubled))
        else:
            found += _written_out(node) if node.doubled or node.times < 4 else _doubled(node)
    return found


def _doubled(loop: Loop) -> list[Node]:
    even = loop.times - loop.times % 2
    body = [_turns(each, loop.times, range(parity, even, 2)) for parity in (0, 1) for each in loop.body]
    rest = [_turns(each, loop.times, range(even, loop.times)) for each in loop.body] if loop.times % 2 else []
    return [Loop(even // 2, body, doubled=True), *rest]


def _written_out(loop: Loop) -> list[Node]:
    return [_turns(each, loop.times, (turn,)) for turn in range(loop.times) for each in loop.body]


def _turns(node: Node, times: int, turns: Sequence[int] | range, inner: int = 1) -> Node:
    """The node as it is in some of the turns of a loop of `times`; inner: turns of the loops between the two.

    A statement's calls are in the order they were made: by the turns of the loops around the loop, then by its own.
    """
    if isinstance(node, Loop):
        return Loop(node.times, [_turns(each, times, turns, inner * node.times) for each in node.body], node.doubled)
    outer = len(node.calls) // (times * inner)
    begins = [(around * times + turn) * inner for around in range(outer) for turn in turns]
    return Leaf([call for begin in begins for call in node.calls[begin : begin + inner]])


def _name(nodes: list[Node], steps: Sequence[Step]) -> None:
    """Every statement a name of its own: the function and the line, and a number where that is not enough."""
    taken: dict[str, int] = {}
    for leaf in _leaves(nodes):
        step = steps[leaf.calls[0]]
        plain = _plain(step)
        taken[plain] = taken.get(plain, 0) + 1
        leaf.name = plain if taken[plain] == 1 else f"{plain}.{taken[plain]}"


def _names(nodes: list[Node], steps: Sequence[Step]) -> dict[int, str]:
    leaves = list(_leaves(nodes))
    group = _groups(nodes, steps)

    def called(slot: tuple[int, int]) -> str:
        leaf, place = slot
        return leaves[leaf].name + (f"-{place + 1}" if place else "")

    return {value: called(group.of(value)) for value in group.maker}


def _leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from _leaves(node.body)
