"""Conversion of repeated calls to loops, with array names that are correct in every iteration.

Calls are equal if they agree in function, line, shapes and layout. Each array is named after the statement that creates it. A
check replays the program. If a name refers to another array than the one that a call read, the responsible loop is rewritten with
two iterations in its body (for alternating arrays), or unrolled if that does not help.

Each check finds all mistakes and rewrites one loop for each. Rewriting only separates names, so it causes no new mistakes. After
`MAX_CHECKS` checks, all remaining responsible loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hwsim_calibrate.recording.array_names import ArrayNames, Mistake
from hwsim_calibrate.recording.nodes import Leaf, Loop, Node, leaves, loosened, unrolled
from hwsim_calibrate.recording.tape import Step

MAX_PERIOD: Final = 4000  # statements per iteration of a loop
MIN_REPORTED: Final = 8  # statements of one function and line from which a note reports them
MIN_SAVED: Final = 2  # statements that a loop saves
MAX_DEPTH: Final = 8  # of nested loops
MAX_CHECKS: Final = 20  # of a program

Tell = Callable[[int, int], None]  # (calls with correct names, all calls)


@dataclass(slots=True)
class Folded:
    """A program of statements and loops.

    Args:
        nodes: statements and loops.
        names: array -> its name.
        notes: reasons for unrolled loops.
        checked_count: calls that all checks replayed.
    """

    nodes: list[Node]
    names: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checked_count: int = 0

    def leaves(self) -> Iterator[Leaf]:
        """Yield the statements in program order."""
        return (leaf for leaf, _ in leaves(self.nodes))


def fold(steps: Sequence[Step], *, loops: bool = True, tell: Tell | None = None) -> Folded:
    """Convert calls to statements, with loops for exact repetitions unless `loops` is false."""
    kinds: dict[object, int] = {}
    keys = [kinds.setdefault(_key(step), len(kinds)) for step in steps]
    nodes: list[Node] = [Leaf([index]) for index in range(len(steps))]
    if loops:
        nodes = _looped(nodes, keys)
    wrong: list[Leaf] = []
    names, checks = ArrayNames.of(nodes, steps), 1
    while mistakes := list(names.mistakes()):
        if tell is not None:
            tell(len(steps) - len(mistakes), len(steps))
        wrong += dict.fromkeys(mistake.leaf for mistake in mistakes)
        if checks > MAX_CHECKS:
            nodes = unrolled(nodes, {loop for mistake in mistakes for loop in mistake.around})
        else:
            nodes = loosened(nodes, _to_loosen(mistakes))
        names, checks = ArrayNames.of(nodes, steps), checks + 1
    _name_statements(names)
    notes = (*dict.fromkeys(_unrolled_notes(wrong, names)), *(_change_notes(names) if loops else ()))
    return Folded(nodes, _array_names(names), notes, checks * len(steps))


def _to_loosen(mistakes: Sequence[Mistake]) -> set[Loop]:
    """Return the loops that certainly cause mistakes; if there are none, the loops that may cause them."""
    certain = {loop for mistake in mistakes if mistake.is_certain for loop in mistake.blamed}
    return certain or {loop for mistake in mistakes for loop in mistake.blamed}


def _unrolled_notes(wrong: Sequence[Leaf], names: ArrayNames) -> Iterator[str]:
    for leaf in wrong:
        if len(leaf.calls) > 1 and all(len(names.leaves[names.of_call[call]][0].calls) == 1 for call in leaf.calls):
            step = names.steps[leaf.calls[0]]
            yield f"the loop around {_plain(step)} is unrolled: `repeat` cannot express the order of its arrays"


def _change_notes(names: ArrayNames) -> Iterator[str]:
    lines: dict[tuple[str, str], list[Step]] = {}
    for leaf, _ in names.leaves:
        if len(leaf.calls) == 1:
            step = names.steps[leaf.calls[0]]
            lines.setdefault((step.name, step.line), []).append(step)
    for same in lines.values():
        if len(same) >= MIN_REPORTED and len({_key(step) for step in same}) > len(same) // 4:
            shapes_differ = len({tuple(array.shape for array in step.made) for step in same}) > 1
            cause = "shapes" if shapes_differ or any(step.op.kind != "busy" for step in same) else "arguments"
            yield f"{_plain(same[0])} is written as {len(same)} statements, not as a `repeat`: its {cause} differ between calls"


def _plain(step: Step) -> str:
    return f"{step.name.replace(' ', '-')}@{step.line}" if step.line else step.name


def _key(step: Step) -> object:
    """Return what equal calls have in common: everything except their times."""
    made = tuple((array.shape, array.dtype, array.bytes, array.is_new) for array in step.made)
    keys = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in step.op.keys.items())
    present = tuple(value is None for value in (*step.reads, *step.updates))
    return step.name, step.line, step.op.kind, keys, step.op.reason, len(step.reads), present, made


# ---- loops ----


def _looped(nodes: list[Node], keys: Sequence[int]) -> list[Node]:
    """Convert repetitions to loops, the shortest first, then repetitions that contain loops."""
    kinds: dict[object, int] = {}
    for _ in range(MAX_DEPTH):
        codes = np.array([kinds.setdefault(_code(node, keys), len(kinds)) for node in nodes])
        looped = _loop_shortest(nodes, codes)
        if len(looped) == len(nodes):
            break
        nodes = looped
    return nodes


def _code(node: Node, keys: Sequence[int]) -> object:
    if isinstance(node, Leaf):
        return keys[node.calls[0]]
    return node.times, tuple(_code(child, keys) for child in node.body)


def _loop_shortest(nodes: list[Node], codes: np.ndarray) -> list[Node]:
    """Convert all repetitions with the shortest period to loops."""
    for period in range(1, min(len(nodes) // 2, MAX_PERIOD) + 1):
        same = codes[:-period] == codes[period:]
        if not same.any():
            continue
        spans = [(start, 1 + length // period) for start, length in _runs(same) if length >= max(period, MIN_SAVED)]
        if spans:
            return _replaced(nodes, spans, period)
    return nodes


def _runs(same: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield (start, length) of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], same.astype(np.int8), [0]))))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield start, end - start


def _replaced(nodes: list[Node], spans: Sequence[tuple[int, int]], period: int) -> list[Node]:
    replaced: list[Node] = []
    done = 0
    for start, times in spans:
        if start < done:
            continue
        replaced += nodes[done:start]
        done = start + times * period
        body = [_merged([nodes[start + turn * period + place] for turn in range(times)]) for place in range(period)]
        replaced.append(Loop(times, body))
    return replaced + nodes[done:]


def _merged(nodes: Sequence[Node]) -> Node:
    """Merge equal nodes into one node with all their calls."""
    first = nodes[0]
    if isinstance(first, Leaf):
        return Leaf([call for node in nodes if isinstance(node, Leaf) for call in node.calls])
    loops = [node for node in nodes if isinstance(node, Loop)]
    return Loop(first.times, [_merged(bodies) for bodies in zip(*(loop.body for loop in loops), strict=True)], first.doubled)


# ---- names ----


def _name_statements(names: ArrayNames) -> None:
    """Name each statement by its function and line, with a number if several statements share them."""
    taken: dict[str, int] = {}
    for leaf, _ in names.leaves:
        plain = _plain(names.steps[leaf.calls[0]])
        taken[plain] = taken.get(plain, 0) + 1
        leaf.name = plain if taken[plain] == 1 else f"{plain}.{taken[plain]}"


def _array_names(names: ArrayNames) -> dict[int, str]:
    def name_of(statement: int, place: int) -> str:
        return names.leaves[statement][0].name + (f"-{place + 1}" if place else "")

    return {value: name_of(*names.slot(value)) for value in names.maker}
