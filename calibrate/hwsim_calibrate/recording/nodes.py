"""Statements and the loops around them, and other ways to write a loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

LEAST = 4  # turns of a loop that can be written with two turns in its body


@dataclass(slots=True, eq=False)
class Leaf:
    """A statement, and the numbers of the calls that it represents."""

    calls: list[int]
    name: str = ""


@dataclass(slots=True, eq=False)
class Loop:
    """Nodes that are executed `times` times."""

    times: int
    body: list[Node]
    doubled: bool = False


Node = Leaf | Loop


def leaves(nodes: Sequence[Node], path: tuple[Loop, ...] = ()) -> Iterator[tuple[Leaf, tuple[Loop, ...]]]:
    """Statements in the order of the file, each with the loops around it, the outermost first."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node, path
        else:
            yield from leaves(node.body, (*path, node))


def loosened(nodes: Sequence[Node], blamed: Collection[Loop]) -> list[Node]:
    """The nodes with two turns of each of these loops in its body; one that has them already, or is short, is written out."""
    rewritten: list[Node] = []
    for node in nodes:
        if isinstance(node, Leaf):
            rewritten.append(node)
            continue
        within = Loop(node.times, loosened(node.body, blamed), node.doubled)
        if node not in blamed:
            rewritten.append(within)
        else:
            rewritten += turn_by_turn(within) if node.doubled or node.times < LEAST else _doubled(within)
    return rewritten


def unrolled(nodes: Sequence[Node], blamed: Collection[Loop]) -> list[Node]:
    """The nodes with each of these loops written out, and the loops in it."""
    rewritten: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop) and node in blamed:
            inside = [each for each in node.body if isinstance(each, Loop)]
            rewritten += turn_by_turn(Loop(node.times, unrolled(node.body, inside)))
        else:
            rewritten.append(node)
    return rewritten


def _doubled(loop: Loop) -> list[Node]:
    even = loop.times - loop.times % 2
    body = [_turns(each, loop.times, range(parity, even, 2)) for parity in (0, 1) for each in loop.body]
    rest = [_turns(each, loop.times, range(even, loop.times)) for each in loop.body] if loop.times % 2 else []
    return [Loop(even // 2, body, doubled=True), *rest]


def turn_by_turn(loop: Loop) -> list[Node]:
    """The statements of all turns, one turn after the other."""
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
