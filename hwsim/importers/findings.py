"""Results of a replay: time, critical path, GPU idle time, exposed communication, stragglers, unexplained delay and what-ifs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

import hwsim.engine
from hwsim import ticks
from hwsim.importers.collective_matches import MatchedCollectives
from hwsim.importers.recording import Ints
from hwsim.importers.replay import RecordingReplay, ReplayOpKind
from hwsim.importers.say import span
from hwsim.importers.steps import MarkedStep, replayed, steps
from hwsim.importers.threads import US
from hwsim.records import dataclass
from hwsim.results.critical import critical_path
from hwsim.results.timeline import Timeline

BUSY: Final = 100 * US  # longest delay (fs) of the first op of a stream; a longer one means that the stream was not idle
TRIED: Final = (0.5, 2.0)  # factors on the time of GPU ops: a replay that keeps the gaps hardly changes, one by rules does
NAMES: Final[Mapping[ReplayOpKind, str]] = {
    ReplayOpKind.HOST: "host threads", ReplayOpKind.START: "host threads", ReplayOpKind.DEVICE: "GPU ops",
    ReplayOpKind.COLLECTIVE: "collectives",
    ReplayOpKind.LAUNCH: "launches", ReplayOpKind.GAP: "gaps of streams", ReplayOpKind.DELAY: "unexplained",
    ReplayOpKind.ARRIVE: "collectives",
    ReplayOpKind.MEET: "collectives",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnexplainedDelay:
    """The unexplained delay before GPU ops of one name.

    Args:
        name: name of the GPU ops.
        op: framework op that launched them; "" if unknown.
        count: number of delayed GPU ops.
        delay: sum of their delays (fs).
    """

    name: str
    op: str
    count: int
    delay: int


@dataclass(frozen=True, slots=True)
class Unmapped:
    """GPU ops to which some rules do not apply: the reason, their number and their total time (fs)."""

    why: str
    count: int
    time: int


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """The collective kernels of one kind.

    Args:
        count: number of collectives.
        kernels: total time of their kernels (fs).
        waiting: part of `kernels` that waits for the last rank (fs); -1 if unknown, because only one rank was recorded.
        transfer: the rest, as if every rank transferred as fast as the fastest one (fs); -1 if unknown.
        ranks: largest number of recorded ranks in one collective.
        size: ranks in the group; 0 if unknown.
    """

    kind: str
    count: int
    kernels: int
    waiting: int
    transfer: int
    ranks: int
    size: int


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank for which other ranks wait longest in collectives.

    Args:
        rank: position of the rank in the recording.
        count: number of collectives at which it arrives last.
        waiting: total time that other ranks wait for it there (fs).
    """

    rank: int
    count: int
    waiting: int


@dataclass(frozen=True, slots=True)
class WhatIfTrial:
    """A what-if: the run with longer or shorter GPU ops.

    Args:
        times: factor on the time of all GPU ops.
        by_name: further factors, on GPU ops whose name contains a text.
        run: time of the run (fs).
        step: average step time (fs); 0 without steps.
        kept_run: time of the run if the unexplained delays stay (fs).
        kept_step: average step time if the unexplained delays stay (fs).
    """

    times: float
    by_name: tuple[tuple[str, float], ...]
    run: int
    step: int
    kept_run: int
    kept_step: int


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The results of a replay; times in fs.

    Args:
        recorded: time of the recorded run.
        replayed: time of the replay.
        steps: (step, recorded time, replayed time).
        busy: total time of all GPU ops.
        shares: share of the critical path by kind of op, largest first.
        gpu_time: shares of the ranks' time: compute and copies, exposed communication, idle.
        straggler: None if no rank waits for another.
        unexplained: total delay before GPU ops that no rule explains.
        causes: parts of `unexplained`, largest first.
    """

    replay: RecordingReplay
    recorded: int
    replayed: int
    steps: tuple[tuple[MarkedStep, int, int], ...]
    busy: int
    shares: Mapping[str, float]
    gpu_time: Mapping[str, float]
    straggler: Straggler | None
    unexplained: int
    causes: tuple[UnexplainedDelay, ...]
    unmapped: tuple[Unmapped, ...]
    traffic: tuple[CollectiveTime, ...]
    trials: tuple[WhatIfTrial, ...]

    @property
    def share(self) -> float:
        """Unexplained delay as a share of the time of all ranks."""
        return self.unexplained / max(1, self.recorded) / max(1, len(self.replay.ranks))

    def of_name(self, text: str) -> tuple[int, int]:
        """Return the number of GPU ops whose name contains a text, and their total time (fs)."""
        named = self.replay.named(text)
        return int(named.sum()), ticks.total((self.replay.recorded_end - self.replay.recorded)[named])


def find(replay: RecordingReplay, *, gpu_times: float = 1.0, by_name: Mapping[str, float] | None = None) -> Findings:
    """Simulate a replay and evaluate it.

    Args:
        gpu_times: factor on the time of all GPU ops in the what-if; if neither factor is set, 0.5 and 2 are tried.
        by_name: further factors, on GPU ops whose name contains a text.
    """
    marked = steps(replay.recording)
    gpu = replay.is_gpu
    length = (replay.recorded_end - replay.recorded)[gpu]
    tried = [(gpu_times, dict(by_name or {}))] if by_name or gpu_times != 1.0 else [(factor, {}) for factor in TRIED]
    trials = _trials(replay, marked, tried) if length.any() else []  # first: their graphs take memory
    line = hwsim.engine.simulate(replay.graph)
    recorded = replayed(replay, marked, replay.recorded, replay.recorded_end)
    times = replayed(replay, marked, line.start, line.end)
    start, end = (replay.recorded, replay.recorded_end) if replay.recording.clocked else (line.start, line.end)
    return Findings(
        replay=replay,
        recorded=int(replay.recorded_end.max(initial=0)),
        replayed=line.makespan_fs,
        steps=tuple(zip(marked, recorded, times, strict=True)),
        busy=ticks.total(length),
        shares=path_shares(line, replay.part.astype(np.int64)),
        gpu_time=_gpu_time(replay, start, end),
        straggler=_straggler(replay),
        unexplained=ticks.total(replay.unexplained[gpu]),
        causes=_causes(replay),
        unmapped=_unmapped(replay),
        traffic=_traffic(replay),
        trials=tuple(trials),
    )


def path_shares(timeline: Timeline, part: Ints) -> dict[str, float]:
    """Return the shares of the critical path with recorded times, by kind of op, largest first.

    Args:
        part: `ReplayOpKind` of each op.
    """
    path = critical_path(timeline, pools=False)
    if not len(path):
        return {}
    durations = (path.end - path.start).astype(np.float64)
    recorded = timeline.flat.cost[path.op] < 0  # only a predicted op has a derivation
    kinds, kind_indices = np.unique(part[path.op[recorded]], return_inverse=True)
    shares: dict[str, float] = {}
    for kind, seconds in zip(kinds.tolist(), np.bincount(kind_indices, durations[recorded]).tolist(), strict=True):
        shares[NAMES[ReplayOpKind(kind)]] = shares.get(NAMES[ReplayOpKind(kind)], 0.0) + seconds
    length = math.fsum(durations.tolist())
    rows = [(name, seconds / length) for name, seconds in shares.items() if seconds > 0]
    return dict(sorted(rows, key=lambda row: -row[1]))


def _gpu_time(replay: RecordingReplay, start: Ints, end: Ints) -> dict[str, float]:
    computing = active = total = 0
    for position, explained in enumerate(replay.ranks):
        mine = replay.is_gpu & (replay.rank == position)
        kernels = mine & (replay.part == ReplayOpKind.DEVICE)
        computing += ticks.covered(start[kernels], end[kernels])
        active += ticks.covered(start[mine], end[mine])
        total += span(explained.rank) if replay.recording.clocked else int(end.max(initial=0))
    times = {"compute and copies": computing, "exposed communication": active - computing, "idle": max(0, total - active)}
    return {name: time / max(1, total) for name, time in times.items()}


def _straggler(replay: RecordingReplay) -> Straggler | None:
    met, found = replay.meetings, dict.fromkeys(range(len(replay.ranks)), (0, 0))
    starts = _member_times(replay.meetings, [explained.ops.start for explained in replay.ranks])
    firsts = np.searchsorted(met.meeting, np.arange(len(met)))
    waits = ticks.group_totals(met.latest - starts, firsts).tolist()
    last = np.flatnonzero(starts == met.latest)
    for meeting, member in dict(zip(met.meeting[last].tolist(), last.tolist(), strict=True)).items():
        count, waiting = found[int(met.rank[member])]
        found[int(met.rank[member])] = count + (waits[meeting] > 0), waiting + waits[meeting]
    rank, (count, waiting) = max(found.items(), key=lambda row: row[1][1], default=(0, (0, 0)))
    return Straggler(rank, count, waiting) if waiting else None


def _member_times(met: MatchedCollectives, times: list[Ints]) -> Ints:
    return ticks.column([int(times[rank][op]) for rank, op in zip(met.rank.tolist(), met.op.tolist(), strict=True)])


def _trials(replay: RecordingReplay, marked: list[MarkedStep], tried: list[tuple[float, dict[str, float]]]) -> list[WhatIfTrial]:
    def times(variant: RecordingReplay, factor: float, by_name: dict[str, float]) -> tuple[int, int]:
        line = hwsim.engine.simulate(variant.scaled(factor, by_name))
        of_steps = replayed(variant, marked, line.start, line.end)
        return line.makespan_fs, sum(of_steps) // len(of_steps) if of_steps else 0  # integers

    rules, exact = ([times(variant, *factors) for factors in tried] for variant in (replay.again("rules"), replay.again("exact")))
    rows = zip(tried, rules, exact, strict=True)
    return [WhatIfTrial(factor, tuple(by_name.items()), *by_rules, *kept) for (factor, by_name), by_rules, kept in rows]


def _causes(replay: RecordingReplay) -> tuple[UnexplainedDelay, ...]:
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    late = np.flatnonzero(replay.is_gpu & (replay.unexplained > 0))
    for position, explained in enumerate(replay.ranks):
        mine = late[replay.rank[late] == position]
        slices = replay.slice[mine]
        op = explained.linked.outer[slices]
        name = explained.rank.slices.name
        keys, index = np.unique(np.column_stack([name[slices], np.where(op < 0, -1, name[op])]), axis=0, return_inverse=True)
        delays, counts = np.zeros(len(keys), np.int64), np.bincount(index.reshape(-1), minlength=len(keys))
        np.add.at(delays, index.reshape(-1), replay.unexplained[mine])
        for (kernel, around), count, delay in zip(keys.tolist(), counts.tolist(), delays.tolist(), strict=True):
            key = explained.rank.names[kernel], explained.rank.names[around] if around >= 0 else ""
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + count, before[1] + delay
    rows = [UnexplainedDelay(name, op, count, delay) for (name, op), (count, delay) in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.delay, row.name, row.op)))


def _unmapped(replay: RecordingReplay) -> tuple[Unmapped, ...]:
    rows = []
    parts: dict[str, list[tuple[int, int]]] = {}
    for explained in replay.ranks:
        ops = explained.ops
        length = ops.end - ops.start
        tests = {
            "no launch in the file, so they start when their stream is free": (ops.call < 0) & bool(len(explained.pieces)),
            "first op of a stream, and late: it waited for work that is not in the file": (ops.call >= 0)
            & (ops.previous < 0)
            & (ops.start - explained.ready > BUSY),
            "launched outside any framework op, so they have no shapes": (ops.call >= 0) & (explained.linked.op[ops.slice] < 0),
            "start before their launch, so host and GPU clocks differ": (ops.call >= 0) & (ops.start < ops.at),
        }
        for why, chosen in tests.items():
            parts.setdefault(why, []).append((int(chosen.sum()), ticks.total(length[chosen])))
    for why, counts in parts.items():
        count, time = (sum(values) for values in zip(*counts, strict=True))  # integers
        if count:
            rows.append(Unmapped(why, count, time))
    return tuple(rows)


def _traffic(replay: RecordingReplay) -> tuple[CollectiveTime, ...]:
    met, rows = replay.meetings, {}
    member_end = _member_times(met, [explained.ops.end for explained in replay.ranks])
    member_start = _member_times(met, [explained.ops.start for explained in replay.ranks])
    least = np.full(len(met), np.iinfo(np.int64).max)
    np.minimum.at(least, met.meeting, member_end - met.latest)
    members = np.bincount(met.meeting, minlength=len(met))
    firsts = np.searchsorted(met.meeting, np.arange(len(met)))
    kernels = ticks.group_totals(member_end - member_start, firsts)
    waiting = ticks.group_totals(met.latest - member_start, firsts)
    kinds = np.array(met.kinds, str)
    for kind in dict.fromkeys(met.kinds):
        mine = kinds == kind
        size = max(size for size, name in zip(met.sizes, met.kinds, strict=True) if name == kind)
        totals = (ticks.total(kernels[mine]), ticks.total(waiting[mine]), ticks.total(ticks.multiply(least, members)[mine]))
        rows[kind, True] = CollectiveTime(kind, int(mine.sum()), *totals, int(members[mine].max()), size)
    for position, explained in enumerate(replay.ranks):
        joined = set(met.op[met.rank == position].tolist())
        for op, exchange in zip(explained.exchanges.ops.tolist(), explained.exchanges.known, strict=True):
            if op in joined:
                continue
            old = rows.get((exchange.name, False), CollectiveTime(exchange.name, 0, 0, -1, -1, 1, exchange.size))
            rows[exchange.name, False] = replace(
                old, count=old.count + 1, kernels=old.kernels + int(explained.ops.end[op] - explained.ops.start[op])
            )
    return tuple(rows.values())
