"""Statements and loops, with transformations of loops."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

MIN_TIMES = 4  # iterations of a loop that can have two iterations in its body


@dataclass(slots=True, eq=False)
class Leaf:
    """A statement, and the indices of the calls that it represents."""

    calls: list[int]
    name: str = ""


@dataclass(slots=True, eq=False)
class Loop:
    """A loop of `times` iterations.

    doubled: whether the body contains two iterations of the original loop.
    """

    times: int
    body: list[Node]
    doubled: bool = False


Node = Leaf | Loop


def leaves(nodes: Sequence[Node], path: tuple[Loop, ...] = ()) -> Iterator[tuple[Leaf, tuple[Loop, ...]]]:
    """Yield the statements in program order, each with the loops around it from the outermost."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node, path
        else:
            yield from leaves(node.body, (*path, node))


def loosened(nodes: Sequence[Node], blamed: Collection[Loop]) -> list[Node]:
    """Rewrite some loops with two iterations in their bodies; unroll short loops and loops that are doubled already."""
    rewritten: list[Node] = []
    for node in nodes:
        if isinstance(node, Leaf):
            rewritten.append(node)
            continue
        within = Loop(node.times, loosened(node.body, blamed), node.doubled)
        if node not in blamed:
            rewritten.append(within)
        else:
            rewritten += turn_by_turn(within) if node.doubled or node.times < MIN_TIMES else _doubled(within)
    return rewritten


def unrolled(nodes: Sequence[Node], blamed: Collection[Loop]) -> list[Node]:
    """Unroll some loops, including the loops inside them."""
    rewritten: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop) and node in blamed:
            inside = [child for child in node.body if isinstance(child, Loop)]
            rewritten += turn_by_turn(Loop(node.times, unrolled(node.body, inside)))
        else:
            rewritten.append(node)
    return rewritten


def _doubled(loop: Loop) -> list[Node]:
    even = loop.times - loop.times % 2
    body = [_turns(node, loop.times, range(parity, even, 2)) for parity in (0, 1) for node in loop.body]
    rest = [_turns(node, loop.times, range(even, loop.times)) for node in loop.body] if loop.times % 2 else []
    return [Loop(even // 2, body, doubled=True), *rest]


def turn_by_turn(loop: Loop) -> list[Node]:
    """Return the statements of all iterations."""
    return [_turns(node, loop.times, (turn,)) for turn in range(loop.times) for node in loop.body]


def _turns(node: Node, times: int, turns: Sequence[int] | range, inner: int = 1) -> Node:
    """Return a node with the calls of some iterations of a loop.

    The calls of a statement are ordered by the iterations of the outer loops, then by its own iterations.

    Args:
        node: statement or loop in the body.
        times: iterations of the loop.
        turns: iterations to select.
        inner: iterations of the loops between the loop and the node.
    """
    if isinstance(node, Loop):
        return Loop(node.times, [_turns(child, times, turns, inner * node.times) for child in node.body], node.doubled)
    outer = len(node.calls) // (times * inner)
    begins = [(around * times + turn) * inner for around in range(outer) for turn in turns]
    return Leaf([call for begin in begins for call in node.calls[begin : begin + inner]])
