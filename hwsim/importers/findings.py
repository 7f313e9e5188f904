"""Findings of a replay: its time, delay that no rule explains, waits of collectives, and what other lengths of GPU ops show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

import hwsim.engine
from hwsim import ticks
from hwsim.importers.replay import Replay
from hwsim.importers.steps import Step, replayed, steps
from hwsim.importers.threads import US
from hwsim.records import dataclass

BUSY: Final = 100 * US  # fs after which a stream's first op may start by the rules, beyond which the stream was not idle
TRIED: Final = (0.5, 2.0)  # GPU ops half and twice as long: what tells rules from gaps


@dataclass(frozen=True, slots=True)
class Cause:
    """Delay before GPU ops of one kind that no rule explains (fs). op: what launched them, "" if unknown."""

    name: str
    op: str
    count: int
    delay: int


@dataclass(frozen=True, slots=True)
class Unmapped:
    """GPU ops that a part of the rules has no hold on: how many, and their time (fs)."""

    why: str
    count: int
    time: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Kernels of collectives of a kind (fs): in all, waiting for the last rank, and transferring at the fastest rank's pace.

    ranks: those whose kernels are known, at most; size: of the group, 0 if unknown. waiting is -1 where one rank's file
    cannot tell it from the transfer.
    """

    kind: str
    count: int
    kernels: int
    waiting: int
    transfer: int
    ranks: int
    size: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The run with GPU ops of other lengths (fs): by the rules, and with the unexplained delays kept.

    Args:
        times: factor on all GPU ops. by_name: more factors on those whose name contains a text.
        run, step: in all, and of a step on average (0 without steps).
        kept_run, kept_step: the same with the delays.
    """

    times: float
    by_name: tuple[tuple[str, float], ...]
    run: int
    step: int
    kept_run: int
    kept_step: int


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Numbers of a replay; times in fs.

    Args:
        steps: each with its time in the recording and in the replay.
        busy: time of all GPU ops. unexplained: delay before them that no rule explains.
        causes: the largest of `unexplained`.
    """

    replay: Replay
    recorded: int
    replayed: int
    steps: tuple[tuple[Step, int, int], ...]
    busy: int
    unexplained: int
    causes: tuple[Cause, ...]
    unmapped: tuple[Unmapped, ...]
    traffic: tuple[Traffic, ...]
    trials: tuple[Trial, ...]

    @property
    def share(self) -> float:
        """Unexplained delay, of the time of all ranks."""
        return self.unexplained / max(1, self.recorded) / max(1, len(self.replay.ranks))

    def of_name(self, text: str) -> tuple[int, int]:
        """Number of the GPU ops with a text in their name, and their time (fs)."""
        named = self.replay.named(text)
        return int(named.sum()), ticks.total((self.replay.recorded_end - self.replay.recorded)[named])


def find(replay: Replay, *, gpu_times: float = 1.0, by_name: Mapping[str, float] | None = None) -> Findings:
    """The findings of a replay; GPU ops are tried with other lengths: those given, else half and twice as long."""
    marked = steps(replay.recording)
    line = hwsim.engine.simulate(replay.graph)
    recorded = replayed(replay, marked, replay.recorded, replay.recorded_end)
    times = replayed(replay, marked, line.start, line.end)
    gpu = replay.is_gpu
    length = (replay.recorded_end - replay.recorded)[gpu]
    tried = [(gpu_times, dict(by_name or {}))] if by_name or gpu_times != 1.0 else [(factor, {}) for factor in TRIED]
    return Findings(
        replay=replay,
        recorded=int(replay.recorded_end.max(initial=0)),
        replayed=line.makespan_fs,
        steps=tuple(zip(marked, recorded, times, strict=True)),
        busy=ticks.total(length),
        unexplained=ticks.total(replay.unexplained[gpu]),
        causes=_causes(replay),
        unmapped=_unmapped(replay),
        traffic=_traffic(replay),
        trials=tuple(_trial(replay, marked, *each) for each in tried) if length.any() else (),
    )


def _trial(replay: Replay, marked: list[Step], factor: float, by_name: dict[str, float]) -> Trial:
    values: list[int] = []
    for variant in (replay.again("rules"), replay.again("exact")):
        line = hwsim.engine.simulate(variant.scaled(factor, by_name))
        of_steps = replayed(variant, marked, line.start, line.end)
        values += [line.makespan_fs, sum(of_steps) // len(of_steps) if of_steps else 0]  # integers
    return Trial(factor, tuple(by_name.items()), *values)


def _causes(replay: Replay) -> tuple[Cause, ...]:
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
    rows = [Cause(name, op, count, delay) for (name, op), (count, delay) in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.delay, row.name, row.op)))


def _unmapped(replay: Replay) -> tuple[Unmapped, ...]:
    rows = []
    parts: dict[str, list[tuple[int, int]]] = {}
    for explained in replay.ranks:
        ops = explained.ops
        length = ops.end - ops.start
        tests = {
            "without a launch in the file: they follow their stream": (ops.call < 0) & bool(len(explained.pieces)),
            "first of their stream, and late: it worked on, or waited for, what is not in the file": (ops.call >= 0)
            & (ops.previous < 0)
            & (ops.start - explained.ready > BUSY),
            "launched outside every op: they have no shape": (ops.call >= 0) & (explained.linked.op[ops.slice] < 0),
            "that start before their launch: the clocks of host and GPU differ": (ops.call >= 0) & (ops.start < ops.at),
        }
        for why, chosen in tests.items():
            parts.setdefault(why, []).append((int(chosen.sum()), ticks.total(length[chosen])))
    for why, counts in parts.items():
        count, time = (sum(values) for values in zip(*counts, strict=True))  # integers
        if count:
            rows.append(Unmapped(why, count, time))
    return tuple(rows)


def _traffic(replay: Replay) -> tuple[Traffic, ...]:
    met, rows = replay.meetings, {}
    ops = [explained.ops for explained in replay.ranks]
    members_of = list(zip(met.rank.tolist(), met.op.tolist(), strict=True))
    member_end = ticks.column([int(ops[rank].end[op]) for rank, op in members_of])
    member_start = ticks.column([int(ops[rank].start[op]) for rank, op in members_of])
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
        rows[kind, True] = Traffic(kind, int(mine.sum()), *totals, int(members[mine].max()), size)
    for position, explained in enumerate(replay.ranks):
        joined = set(met.op[met.rank == position].tolist())
        for op, exchange in zip(explained.exchanges.ops.tolist(), explained.exchanges.known, strict=True):
            if op in joined:
                continue
            old = rows.get((exchange.name, False), Traffic(exchange.name, 0, 0, -1, -1, 1, exchange.size))
            rows[exchange.name, False] = replace(
                old, count=old.count + 1, kernels=old.kernels + int(explained.ops.end[op] - explained.ops.start[op])
            )
    return tuple(rows.values())
