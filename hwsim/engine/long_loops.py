"""Long loops: simulated until their iterations repeat to the femtosecond, then written out.

The replay is deterministic, and what happens next depends on nothing but the ops that have not ended and the iterations that
edges reach back over. Once enough successive iterations are the same but for a shift of one period, so are all later
ones, until the loop's end is felt. So a run of n iterations is a run of few, with copies of one of them put in between:
the timeline is the one of the whole graph, op by op, and equals a full replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import Block, Ints, OpGraph
from hwsim.records import dataclass
from hwsim.results.timeline import PaceChange, Steady, Timeline

FIRST: Final = 16  # iterations that are tried first
LONG: Final = 64  # iterations of a loop for which it is tried

Play = Callable[[OpGraph], Timeline]


def play_steady(graph: OpGraph, play: Play) -> tuple[Timeline, Steady | None]:
    """The timeline of a graph, and how much of its longest loop was simulated; None: it has no long loop.

    play: simulates a graph in full.
    """
    times = max((block.times for block in graph.blocks), default=0)
    if times < LONG:
        return play(graph), None
    loop = max((block for block in graph.blocks if block.times == times), key=lambda block: block.turns_in(times))
    iterations = loop.turns_in(times)
    few, why = FIRST, "its iterations never repeated"
    while few <= times // 2:
        short = replace(graph, blocks=tuple(replace(each, times=few) if each.times == times else each for each in graph.blocks))
        timeline = play(replace(short, buffers=()))  # they are the whole graph's, and take no time
        period = _period(timeline, graph, few, loop)
        if isinstance(period, _Period):
            full = _written_out(timeline, graph, period, few, times)
            return full, Steady(iterations, loop.turns_in(few), period.length, period.identical * loop.turns, turns=loop.turns)
        why = period
        few *= 2
    return play(graph), Steady(iterations, iterations, why=why, turns=loop.turns)


@dataclass(frozen=True, slots=True)
class _Period:
    """Iteration `last` is the last of `identical` that are shifts of each other by `length` fs; `begin` is when it began."""

    last: int
    length: int
    identical: int
    begin: int


def _period(timeline: Timeline, graph: OpGraph, few: int, loop: Block) -> _Period | str:
    """The period, or why there is none."""
    times = loop.times
    spans = _spans(timeline, graph, few, times)
    if not spans:
        return "it does nothing"
    starts = np.concatenate([start for start, _ in spans], axis=1)
    ends = np.concatenate([end for _, end in spans], axis=1)
    steps = np.diff(starts, axis=0)
    length = int(steps[few // 2, 0])
    if length <= 0:
        return "its iterations take no time"
    reach = max(int(block.edges[:, 2].max(initial=0)) for block in graph.blocks if block.times == times)
    reach = max([reach, *(queue.depth for queue in graph.queues if queue.depth is not None)])
    alive = -(-int((ends.max(axis=1) - starts.min(axis=1)).max()) // length)
    margin = max(reach, alive) + 2
    last = few - 1 - margin
    first = last - margin
    if first < 1:
        return f"up to {min(max(reach, alive) * loop.turns, loop.turns_in(times)):,} iterations are under way at once"
    same = (steps[first:last] == length).all() and (np.diff(ends, axis=0)[first:last] == length).all()
    if not same:
        return "its iterations never repeated"
    if not all((each[first:last] == each[first + 1 : last + 1]).all() for each in _servers(timeline, graph, few, times)):
        return "its waits for servers never repeated"
    begin, end = int(starts[last].min()), int(ends[last].max())
    window = int(starts[first].min())
    if ends[:first].max() > begin or starts[last + 1 :].min() < begin:
        return "its iterations overtake each other"
    others = _others(graph, times, few)
    if ((timeline.end[others] > window) & (timeline.start[others] < end)).any():
        return "something else goes on meanwhile"
    if not all(_repeats(history, begin, length) for history in timeline.paces):
        return "the paces of its flows never repeated"
    return _Period(last, length, last - first + 1, begin)


def _spans(timeline: Timeline, graph: OpGraph, few: int, times: int) -> list[tuple[Ints, Ints]]:
    """Start and end of the ops of every long block, a row per iteration."""
    spans = []
    base = 0
    for block in graph.blocks:
        count = len(block) * (few if block.times == times else block.times)
        if block.times == times and len(block):
            shape = (few, len(block))
            spans.append((timeline.start[base : base + count].reshape(shape), timeline.end[base : base + count].reshape(shape)))
        base += count
    return spans


def _servers(timeline: Timeline, graph: OpGraph, few: int, times: int) -> list[Ints]:
    """Ops by whose end the ops of every long block got their servers, a row per iteration; relative to it, if of a long block."""
    sizes = [len(block) * (few if block.times == times else block.times) for block in graph.blocks]
    bases = np.cumsum([0, *sizes])
    rows = []
    for at, block in enumerate(graph.blocks):
        if block.times == times and len(block):
            grantors = timeline.granted[bases[at] : bases[at + 1]].reshape(few, len(block))
            number = np.clip(np.searchsorted(bases, grantors, side="right") - 1, 0, len(graph.blocks) - 1)
            step = np.array([len(each) if each.times == times else 0 for each in graph.blocks])
            rows.append(np.where(grantors < 0, -1, grantors - np.arange(few)[:, None] * step[number] + graph.total))
    return rows


def _others(graph: OpGraph, times: int, few: int) -> Ints:
    """The ops outside the long blocks."""
    parts = []
    base = 0
    for block in graph.blocks:
        count = len(block) * (few if block.times == times else block.times)
        if block.times != times:
            parts.append(np.arange(base, base + count))
        base += count
    return np.concatenate([np.empty(0, np.int64), *parts])


def _repeats(history: Sequence[PaceChange], begin: int, length: int) -> bool:
    """Whether the paces of the period before `begin` are repeated in the period after it."""
    before = [(each.start + length, each.pace, each.bound) for each in history if begin - length <= each.start < begin]
    after = [tuple(each) for each in history if begin <= each.start < begin + length]
    return before == after


def _written_out(timeline: Timeline, graph: OpGraph, period: _Period, few: int, times: int) -> Timeline:
    """The timeline of the whole graph."""
    more = times - few
    taken, shift = _taken(timeline, graph, period, few, times)
    later = ticks.multiply(shift, period.length)
    return Timeline(
        flat=flatten(graph),
        start=ticks.add(timeline.start[taken], later),
        end=ticks.add(timeline.end[taken], later),
        granted=_granted(timeline.granted[taken], graph, shift, few, times),
        flow_class=timeline.flow_class[taken],
        paces=tuple(_longer(history, period.begin, period.length, more) for history in timeline.paces),
        alone=timeline.alone,
        solves=timeline.solves,
    )


def _taken(timeline: Timeline, graph: OpGraph, period: _Period, few: int, times: int) -> tuple[Ints, Ints]:
    """For every op of the whole graph the op of the short one it is a copy of, and how many periods later it is."""
    rows, shifts = [], []
    base, last, more = 0, period.last, times - few
    iteration = np.arange(times)
    source = np.where(iteration <= last, iteration, np.where(iteration <= last + more, last, iteration - more))
    for block in graph.blocks:
        n = len(block)
        if block.times == times:
            rows.append((base + source[:, None] * n + np.arange(n)).ravel())
            shifts.append(np.repeat(iteration - source, n))
            base += n * few
        else:
            ops = np.arange(base, base + block.total)
            rows.append(ops)
            shifts.append(np.where(timeline.start[ops] >= period.begin, more, 0))  # after the loop
            base += block.total
    return np.concatenate(rows), np.concatenate(shifts)


def _granted(grantors: Ints, graph: OpGraph, shift: Ints, few: int, times: int) -> Ints:
    """Op whose server an op got: the same op as in the short graph, as many iterations later."""
    short = np.cumsum([0, *(len(block) * (few if block.times == times else block.times) for block in graph.blocks)])
    full = np.cumsum([0, *(block.total for block in graph.blocks)])
    number = np.clip(np.searchsorted(short, grantors, side="right") - 1, 0, len(graph.blocks) - 1)
    size = np.array([len(block) if block.times == times else 0 for block in graph.blocks])
    moved = grantors - short[number] + full[number] + shift * size[number]
    granted: Ints = np.where(grantors < 0, -1, moved)
    return granted


def _longer(history: Sequence[PaceChange], begin: int, length: int, more: int) -> tuple[PaceChange, ...]:
    """A class's paces with `more` copies of the period that begins at `begin`."""
    before = [each for each in history if each.start < begin]
    period = [each for each in history if begin <= each.start < begin + length]
    after = [each._replace(start=each.start + more * length) for each in history if each.start >= begin]
    copies = [each._replace(start=each.start + copy * length) for copy in range(more) for each in period]
    return (*before, *copies, *after)
