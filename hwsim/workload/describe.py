"""An op graph in words: what `hwsim show --lowered` prints."""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.demand import Cost
from hwsim.formats import format_quantity
from hwsim.graph.opgraph import EVERY, PAIRED, Block, OpGraph
from hwsim.ticks import FEMTO


def describe(graph: OpGraph, limit: int = 200) -> str:
    """Blocks, their ops and what each starts after; at most `limit` ops of a block and ties are written out.

    An op stands as `position name (kind) on queue: cost; after ...`. That it also starts after the op before
    it in its queue goes without saying.
    """
    return "\n".join(_lines(graph, limit))


def _lines(graph: OpGraph, limit: int) -> Iterator[str]:
    yield f"{_count(graph.total, 'op')} in {_count(len(graph.blocks), 'block')}, {_count(len(graph.queues), 'queue')}"
    for queue in graph.queues:
        if queue.depth is not None:
            yield f"queue {queue.name}: at most {queue.depth} inserted and not yet ended"
    for number, block in enumerate(graph.blocks):
        yield ""
        yield f"block {number}: {_count(len(block), 'op')}, {_often(block)}"
        befores = _befores(graph, block)
        for position in range(min(limit, len(block))):
            yield f"  {position:>3}  {_op(graph, block, position, befores.get(position, []))}"
        if len(block) > limit:
            yield f"  ... and {_count(len(block) - limit, 'op')} more"
    if len(graph.ties):
        yield ""
        yield "between blocks:"
        yield from (f"  {_tie(graph, row)}" for row in graph.ties[:limit].tolist())
        if len(graph.ties) > limit:
            yield f"  ... and {len(graph.ties) - limit} more"


def _often(block: Block) -> str:
    if block.turns > 1:
        return f"{_count(block.times, 'time')}, {block.turns} iterations each"
    return "once" if block.times == 1 else f"{block.times} times"


def _befores(graph: OpGraph, block: Block) -> dict[int, list[str]]:
    """Per position, the ops it starts after, in words."""
    befores: dict[int, list[str]] = {}
    singular, plural = ("iteration", "iterations") if block.turns == 1 else ("pass", "passes")
    for before, then, lag in block.edges.tolist():
        when = "" if lag == 0 else f", of the {singular} before" if lag == 1 else f", of {lag} {plural} before"
        befores.setdefault(then, []).append(f"{_name(graph, block, before)}{when}")
    return befores


def _op(graph: OpGraph, block: Block, position: int, befores: list[str]) -> str:
    label = graph.labels[block.label[position]]
    queue, cost = int(block.queue[position]), int(block.cost[position])
    where = f" on {graph.queues[queue].name}" if queue >= 0 else ""
    program = f"{label.program}: " if label.program != "main" else ""
    parts = []
    if block.time[position]:
        parts.append(format_quantity(int(block.time[position]) / FEMTO, "s"))
    if cost >= 0:
        size = float(block.size[position])
        parts.append(("" if size == 1 else f"{size:.4g} x ") + _cost(graph.costs[cost]))
    for name, column in (("takes", block.take), ("gives back", block.give)):
        if column[position] >= 0:
            parts.append(f"{name} a server of {graph.pools[column[position]].name}")
    text = f"{program}{label.name} ({label.kind}){where}" + (f": {', '.join(parts)}" if parts else "")
    return text + (f"; after {' and '.join(befores)}" if befores else "")


def _cost(cost: Cost) -> str:
    """`5 us + the longest of compute 1 ms, memory 0.3 ms`."""
    latency = [term for term in cost.why if term.kind == "latency" and term.seconds > 0]
    others = [term for term in cost.why if term.kind != "latency" and term.seconds > 0]
    if not others and not latency:
        return format_quantity(cost.demand.latency + cost.demand.floor, "s")
    longest = ", ".join(f"{term.label} {format_quantity(term.seconds, 's')}" for term in others)
    body = [f"the longest of {longest}" if len(others) > 1 else longest] if others else []
    return " + ".join([*(f"latency {format_quantity(term.seconds, 's')}" for term in latency), *body])


def _tie(graph: OpGraph, row: list[int]) -> str:
    before, op, after, then, mode = row
    first, second = graph.blocks[before], graph.blocks[after]
    a, b = f"block {before} {_name(graph, first, op)}", f"block {after} {_name(graph, second, then)}"
    if mode == PAIRED:
        return f"{a} before {b}, iteration by iteration"
    which = "" if first.times == 1 else ", every iteration," if mode == EVERY else ", last iteration,"
    return f"{a}{which} before {b}" + ("" if second.times == 1 else ", first iteration")


def _name(graph: OpGraph, block: Block, position: int) -> str:
    label = graph.labels[block.label[position]]
    return f"{position} {label.name} ({label.kind})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
