"""Training steps of a recording: find them, cut one out, and measure them in a replay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim.formats import format_quantity
from hwsim.importers.recording import HOST, Ints, Rank, Recording, What
from hwsim.importers.slice_links import link
from hwsim.importers.threads import STEP
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.importers.replay import RecordingReplay

SHORT: Final = 20  # a last mark shorter than the longest step by this factor only ends the last step


@dataclass(frozen=True, slots=True)
class MarkedStep:
    """A step of one rank.

    Args:
        rank: position of the rank in the recording.
        lane: lane of its thread.
        start: start (fs).
        end: end (fs).
    """

    name: str
    rank: int
    lane: int
    start: int
    end: int


def steps(recording: Recording) -> list[MarkedStep]:
    """Return the steps of all ranks, as marked by the profiler."""
    return [step for position, rank in enumerate(recording.ranks) for step in of_rank(rank, position)]


def of_rank(rank: Rank, position: int = 0) -> list[MarkedStep]:
    """Return the steps of a rank. A last mark that is short or empty only ends the last step and is not a step."""
    marked = _marks(rank, position)
    if len(marked) > 1:
        slices, last = rank.slices, max(marked, key=lambda step: step.start)
        longest = max(step.end - step.start for step in marked)
        if SHORT * (last.end - last.start) < longest or not (slices.start[slices.what != What.MARK] >= last.start).any():
            marked.remove(last)
    return marked


def _marks(rank: Rank, position: int) -> list[MarkedStep]:
    slices, ends, marked = rank.slices, rank.slices.end, []
    is_step = np.array([name.startswith(STEP) for name in rank.names], bool)[slices.name] & (slices.what == What.MARK)
    for number in np.flatnonzero(is_step).tolist():
        lane = int(slices.lane[number])
        if rank.lanes[lane].device == HOST:
            name = rank.names[slices.name[number]]
            marked.append(MarkedStep(name, position, lane, int(slices.start[number]), int(ends[number])))
    return marked


def count(recording: Recording) -> int:
    """Return the number of marked steps; 1 if none are marked."""
    return max(1, len({step.name for step in steps(recording)}))


def one_step(recording: Recording, number: str) -> Recording:
    """Return the recording of one step: host slices that start in it, and the GPU ops that they launch.

    Raises:
        ValueError: a rank has no such step; the message lists the steps.
    """
    marked = [step for position, rank in enumerate(recording.ranks) for step in _marks(rank, position)]
    windows = {
        step.rank: (step.start, step.end) for step in marked if step.name.removeprefix(STEP).lstrip("#") == number.lstrip("#")
    }
    if len(windows) < len(recording.ranks):
        names = ", ".join(dict.fromkeys(step.name.removeprefix(STEP).lstrip("#") for step in marked)) or "none"
        raise ValueError(f"expected a step that all ranks have, got {number}; the steps are: {names}")
    zero = min(start for start, _ in windows.values())
    ranks = tuple(_window(rank, *windows[position], zero) for position, rank in enumerate(recording.ranks))
    busy = max(_busy(rank, windows[position][0]) for position, rank in enumerate(recording.ranks))
    lag = format_quantity(busy / FEMTO, "s")
    note = f"GPUs are busy for up to {lag} with ops of earlier steps when the step begins: they are replayed as idle"
    return replace(recording, ranks=ranks, notes=(*recording.notes, *((note,) if busy > 0 else ())))


def _busy(rank: Rank, start: int) -> int:
    """Return how long the GPUs of a rank are busy after a time with ops launched before it (fs)."""
    slices, call = rank.slices, link(rank).call
    begins = np.where(call >= 0, slices.start[call], slices.start)
    mine = (slices.what >= What.KERNEL) & (slices.what != What.WAIT) & (begins < start)
    return max(0, int(slices.end[mine].max(initial=start)) - start)


def _window(rank: Rank, start: int, end: int, zero: int) -> Rank:
    slices = rank.slices
    call = link(rank).call
    begins = np.where((call >= 0) & (slices.what >= What.KERNEL), slices.start[call], slices.start)
    kept = np.flatnonzero((begins >= start) & (begins < end))
    columns: dict[str, Any] = {name: getattr(slices, name)[kept] for name in ("what", "name", "lane", "link", "facts")}
    stop = np.where(slices.what[kept] < What.KERNEL, np.minimum(slices.end[kept], end), slices.end[kept])
    times: dict[str, Any] = {"start": slices.start[kept] - zero, "duration": stop - slices.start[kept]}
    return replace(rank, slices=replace(slices, **columns, **times), stated=None)


def replayed(replay: RecordingReplay, marked: list[MarkedStep], start: Ints, end: Ints) -> list[int]:
    """Return the time of each step in a run of the graph, until both its host and its GPUs are done (fs).

    A step begins when the previous step is done, because a host that runs ahead of its GPU marks shorter steps. The first step
    begins with its first GPU op.

    Args:
        start: start of each op in the run.
        end: end of each op in the run.
    """
    times_taken = []
    numbers = [replay.piece_ops(position) for position in range(len(replay.ranks))]
    launched = [_launched(replay, position, start, end) for position in range(len(replay.ranks))]
    done: dict[tuple[int, int], int] = {}
    for step in marked:
        pieces, thread = replay.ranks[step.rank].pieces, (step.rank, step.lane)
        first, last = step.start, step.end
        if step.lane in pieces.lanes:
            times = np.array([step.start, step.end], np.int64)  # fits
            before = pieces.before(np.full(2, pieces.lanes.index(step.lane)), times)
            first, last = (end[numbers[step.rank][before]] + times - pieces.end[before]).tolist()
        at, starts, ends = launched[step.rank]
        since, until = np.searchsorted(at, [step.start, step.end]).tolist()
        earlier, until_done = (int(ends[count - 1]) if count else 0 for count in (since, until))
        if thread in done:
            took = max(last, until_done) - max(done[thread], first)
        elif until > since:
            took = max(last - first, until_done - max(earlier, int(starts[since:until].min())))
        else:
            took = last - first
        done[thread] = max(last, until_done, done.get(thread, 0))
        times_taken.append(max(0, took))
    return times_taken


def _launched(replay: RecordingReplay, position: int, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return, for the GPU ops of a rank in launch order: recorded launch, start, and latest end of the GPU ops so far (fs)."""
    explained = replay.ranks[position]
    mine = np.flatnonzero(replay.is_gpu & (replay.rank == position))
    call = explained.linked.call[replay.slice[mine]]
    mine, call = mine[call >= 0], call[call >= 0]
    at = explained.rank.slices.start[call]
    order = np.argsort(at, kind="stable")
    return at[order], start[mine[order]], np.maximum.accumulate(end[mine[order]])
