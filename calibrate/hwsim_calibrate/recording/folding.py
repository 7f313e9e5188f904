"""Calls that repeat in the same order become a loop, and arrays get names that a loop can have.

Calls are the same if they agree in function, line, shapes and layout. Every array is named after the statement that makes it, and
the program is checked. Where a name would not mean the array that a call really read, the loop to blame is written with two turns
in its body (values alternate), and if that does not help, it is written out.

Each check finds all mistakes and rewrites a loop for each. This only separates names, so no new mistake appears; after `PLAYED`
checks the remaining loops to blame are written out at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hwsim_calibrate.recording.naming import Mistake, Names
from hwsim_calibrate.recording.nodes import Leaf, Loop, Node, leaves, loosened, unrolled
from hwsim_calibrate.recording.tape import Step

LONGEST: Final = 4000  # calls of one turn of a loop
MANY: Final = 8  # statements of one function and line that are reported
WORTH: Final = 2  # statements that a loop saves at least
ROUNDS: Final = 8  # loops inside loops
PLAYED: Final = 20  # checks of a program

Tell = Callable[[int, int], None]  # calls whose names are right, all calls


@dataclass(slots=True)
class Folded:
    """Statements; names: name of each array by number; notes: why a loop is written out; looked: calls checked in all."""

    nodes: list[Node]
    names: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    looked: int = 0

    def leaves(self) -> Iterator[Leaf]:
        """Statements in the order of the file."""
        return (leaf for leaf, _ in leaves(self.nodes))


def fold(steps: Sequence[Step], *, loops: bool = True, tell: Tell | None = None) -> Folded:
    """The calls as statements, in loops where they repeat exactly (or none, if `loops` is false)."""
    kinds: dict[object, int] = {}
    keys = [kinds.setdefault(_key(step), len(kinds)) for step in steps]
    nodes: list[Node] = [Leaf([number]) for number in range(len(steps))]
    if loops:
        nodes = _looped(nodes, keys)
    wrong: list[Leaf] = []
    names, played = Names.of(nodes, steps), 1
    while mistakes := list(names.mistakes()):
        if tell is not None:
            tell(len(steps) - len(mistakes), len(steps))
        wrong += dict.fromkeys(mistake.leaf for mistake in mistakes)
        if played > PLAYED:
            nodes = unrolled(nodes, {loop for each in mistakes for loop in each.around})
        else:
            nodes = loosened(nodes, _to_loosen(mistakes))
        names, played = Names.of(nodes, steps), played + 1
    _name(names)
    notes = (*dict.fromkeys(_written_out(wrong, names)), *(_changing(names) if loops else ()))
    return Folded(nodes, _called(names), notes, played * len(steps))


def _to_loosen(mistakes: Sequence[Mistake]) -> set[Loop]:
    """Loops that are surely to blame; where there are none, those that may be."""
    sure = {loop for mistake in mistakes if mistake.sure for loop in mistake.blamed}
    return sure or {loop for each in mistakes for loop in each.blamed}


def _written_out(wrong: Sequence[Leaf], names: Names) -> Iterator[str]:
    """A note for each statement whose loop was to blame and is written out."""
    for leaf in wrong:
        if len(leaf.calls) > 1 and all(len(names.leaves[names.of_call[call]][0].calls) == 1 for call in leaf.calls):
            step = names.steps[leaf.calls[0]]
            yield f"the loop around {_plain(step)} is written out: turns hand arrays on in no order that a `repeat` has"


def _changing(names: Names) -> Iterator[str]:
    """A note for each line with many statements: what differs between its calls."""
    lines: dict[tuple[str, str], list[Step]] = {}
    for leaf, _ in names.leaves:
        if len(leaf.calls) == 1:
            step = names.steps[leaf.calls[0]]
            lines.setdefault((step.name, step.line), []).append(step)
    for same in lines.values():
        if len(same) >= MANY and len({_key(step) for step in same}) > len(same) // 4:
            shapes = len({tuple(each.shape for each in step.made) for step in same}) > 1
            cause = "shapes" if shapes or any(step.op.kind != "busy" for step in same) else "arguments"
            yield f"{_plain(same[0])} is written {len(same)} times, not as a `repeat`: its {cause} change from call to call"


def _plain(step: Step) -> str:
    return f"{step.name.replace(' ', '-')}@{step.line}" if step.line else step.name


def _key(step: Step) -> object:
    """The identity of a statement: everything of a call but its times."""
    made = tuple((each.shape, each.dtype, each.bytes, each.fresh) for each in step.made)
    keys = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in step.op.keys.items())
    present = tuple(each is None for each in (*step.reads, *step.updates))
    return step.name, step.line, step.op.kind, keys, step.op.reason, len(step.reads), present, made


# ---- loops ----


def _looped(nodes: list[Node], keys: Sequence[int]) -> list[Node]:
    """Shortest turns first, then turns that have loops in them."""
    kinds: dict[object, int] = {}
    for _ in range(ROUNDS):
        codes = np.array([kinds.setdefault(_code(node, keys), len(kinds)) for node in nodes])
        looped = _once(nodes, codes)
        if len(looped) == len(nodes):
            break
        nodes = looped
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
    replaced: list[Node] = []
    at = 0
    for start, times in spans:
        if start < at:
            continue
        replaced += nodes[at:start]
        at = start + times * period
        body = [_merged([nodes[start + turn * period + place] for turn in range(times)]) for place in range(period)]
        replaced.append(Loop(times, body))
    return replaced + nodes[at:]


def _merged(alike: Sequence[Node]) -> Node:
    """Nodes of the same code as one with all their calls."""
    first = alike[0]
    if isinstance(first, Leaf):
        return Leaf([call for each in alike if isinstance(each, Leaf) for call in each.calls])
    loops = [each for each in alike if isinstance(each, Loop)]
    return Loop(first.times, [_merged(bodies) for bodies in zip(*(loop.body for loop in loops), strict=True)], first.doubled)


# ---- names ----


def _name(names: Names) -> None:
    """Name every statement: the function and the line, and a number where several share them."""
    taken: dict[str, int] = {}
    for leaf, _ in names.leaves:
        plain = _plain(names.steps[leaf.calls[0]])
        taken[plain] = taken.get(plain, 0) + 1
        leaf.name = plain if taken[plain] == 1 else f"{plain}.{taken[plain]}"


def _called(names: Names) -> dict[int, str]:
    def called(statement: int, place: int) -> str:
        return names.leaves[statement][0].name + (f"-{place + 1}" if place else "")

    return {value: called(*names.slot(value)) for value in names.maker}
