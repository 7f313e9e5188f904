"""A replay in numbers and words: its time, what no rule explains, what collectives wait for, and what scaling shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

import hwsim.engine
from hwsim.formats import format_quantity, percent
from hwsim.importers.recording import Ints
from hwsim.importers.replay import Part, Replay
from hwsim.importers.steps import Step, replayed, steps
from hwsim.importers.threads import IDLE, Piece
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned

TRIED: Final = (0.5, 2.0)  # GPU ops half and twice as long: what tells rules from gaps
_SHOWN: Final = 5
_TRUSTED: Final = 0.05  # share of the run that may stay unexplained
_WORDS: Final = {0.5: "half as long", 2.0: "twice as long"}


class Cause(NamedTuple):
    """Delay before GPU ops of one kind that no rule explains (fs). op: what launched them, "" if unknown."""

    name: str
    op: str
    count: int
    delay: int


class Unmapped(NamedTuple):
    """GPU ops that a part of the rules has no hold on: how many, and their time (fs)."""

    why: str
    count: int
    time: int


class Traffic(NamedTuple):
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


class Trial(NamedTuple):
    """The run with GPU ops of other lengths (fs): by the rules, and with the unexplained delays kept.

    run, step: in all, and of a step on average (0 without steps); kept_run, kept_step: with the delays.
    """

    times: float
    run: int
    step: int
    kept_run: int
    kept_step: int


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What a replay shows; times in fs.

    Args:
        steps: each with its time in the replay.
        busy: time of all GPU ops. unexplained: delay before them that no rule explains.
        host: idle time of threads that no other thread's work ends. causes: the largest of `unexplained`.
    """

    replay: Replay
    recorded: int
    replayed: int
    steps: tuple[tuple[Step, int], ...]
    busy: int
    unexplained: int
    host: int
    causes: tuple[Cause, ...]
    unmapped: tuple[Unmapped, ...]
    traffic: tuple[Traffic, ...]
    trials: tuple[Trial, ...]

    @property
    def share(self) -> float:
        """Unexplained delay, of the time of all ranks."""
        return self.unexplained / max(1, self.recorded) / max(1, len(self.replay.ranks))


def find(replay: Replay, *, gpu_times: float = 1.0, by_name: Mapping[str, float] | None = None) -> Findings:
    """What a replay shows; with GPU ops of other lengths, if they are given."""
    known = steps(replay.recording)
    line = hwsim.engine.simulate(replay.scaled(gpu_times, by_name))
    times = replayed(replay, known, line.end)
    gpu = replay.is_gpu
    length = (replay.recorded_end - replay.recorded)[gpu]
    trials = []
    for factor in TRIED if gpu.any() and gpu_times == 1.0 and not by_name else ():
        trials.append(_trial(replay, known, factor))
    return Findings(
        replay=replay,
        recorded=int(replay.recorded_end.max(initial=0)),
        replayed=line.makespan_fs,
        steps=tuple(zip(known, times, strict=True)),
        busy=int(length.sum()),
        unexplained=int(replay.unexplained[gpu].sum()),
        host=_idle(replay),
        causes=_causes(replay),
        unmapped=_unmapped(replay),
        traffic=_traffic(replay),
        trials=tuple(trials),
    )


def _trial(replay: Replay, known: list[Step], factor: float) -> Trial:
    values: list[int] = []
    for each in (replay.again("rules"), replay.again("exact")):
        line = hwsim.engine.simulate(each.scaled(factor))
        of_steps = replayed(each, known, line.end)
        values += [line.makespan_fs, sum(of_steps) // len(of_steps) if of_steps else 0]
    return Trial(factor, *values)


def _idle(replay: Replay) -> int:
    """Gaps of threads longer than IDLE that end with nothing of another thread."""
    total = 0
    for each in replay.ranks:
        pieces = each.pieces
        is_idle = (pieces.kind == Piece.BETWEEN) & (pieces.end - pieces.start > IDLE)
        is_idle[each.crossings.then] = False
        total += int((pieces.end - pieces.start)[is_idle].sum())
    return total


def _causes(replay: Replay) -> tuple[Cause, ...]:
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    late = np.flatnonzero(replay.is_gpu & (replay.unexplained > 0))
    for position, each in enumerate(replay.ranks):
        mine = late[replay.rank[late] == position]
        slices = replay.slice[mine]
        op = each.linked.outer[slices]
        name = each.rank.slices.name
        keys, index = np.unique(np.column_stack([name[slices], np.where(op < 0, -1, name[op])]), axis=0, return_inverse=True)
        delays, counts = np.zeros(len(keys), np.int64), np.bincount(index.reshape(-1), minlength=len(keys))
        np.add.at(delays, index.reshape(-1), replay.unexplained[mine])
        for (kernel, around), count, delay in zip(keys.tolist(), counts.tolist(), delays.tolist(), strict=True):
            key = each.rank.names[kernel], each.rank.names[around] if around >= 0 else ""
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + count, before[1] + delay
    rows = [Cause(name, op, count, delay) for (name, op), (count, delay) in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.delay, row.name, row.op)))


def _unmapped(replay: Replay) -> tuple[Unmapped, ...]:
    rows = []
    parts: dict[str, list[tuple[int, int]]] = {}
    for each in replay.ranks:
        ops = each.ops
        length = ops.end - ops.start
        tests = {
            "without a launch in the file: they follow their stream": ops.call < 0,
            "launched outside every op: they have no shape": (ops.call >= 0) & (each.linked.op[ops.slice] < 0),
            "that start before their launch: the clocks of host and GPU differ": (ops.call >= 0) & (ops.start < ops.at),
        }
        for why, chosen in tests.items():
            parts.setdefault(why, []).append((int(chosen.sum()), int(length[chosen].sum())))
    for why, found in parts.items():
        count, time = (sum(values) for values in zip(*found, strict=True))
        if count:
            rows.append(Unmapped(why, count, time))
    return tuple(rows)


def _traffic(replay: Replay) -> tuple[Traffic, ...]:
    met, rows = replay.meetings, {}
    ops = [each.ops for each in replay.ranks]
    member_end = np.array([ops[rank].end[op] for rank, op in zip(met.rank.tolist(), met.op.tolist(), strict=True)], np.int64)
    member_start = np.array([ops[rank].start[op] for rank, op in zip(met.rank.tolist(), met.op.tolist(), strict=True)], np.int64)
    least = np.full(len(met), np.iinfo(np.int64).max)
    np.minimum.at(least, met.meeting, member_end - met.latest)
    members = np.bincount(met.meeting, minlength=len(met))
    kernels, waiting = np.zeros(len(met), np.int64), np.zeros(len(met), np.int64)
    np.add.at(kernels, met.meeting, member_end - member_start)
    np.add.at(waiting, met.meeting, met.latest - member_start)
    kinds = np.array(met.kinds, str)
    for kind in dict.fromkeys(met.kinds):
        mine = kinds == kind
        size = max(size for size, name in zip(met.sizes, met.kinds, strict=True) if name == kind)
        totals = (int(kernels[mine].sum()), int(waiting[mine].sum()), int((least * members)[mine].sum()))
        rows[kind, True] = Traffic(kind, int(mine.sum()), *totals, int(members[mine].max()), size)
    for position, each in enumerate(replay.ranks):
        joined = set(met.op[met.rank == position].tolist())
        for op, known in zip(each.exchanges.ops.tolist(), each.exchanges.known, strict=True):
            if op in joined:
                continue
            old = rows.get((known.kind, False), Traffic(known.kind, 0, 0, -1, -1, 1, known.size))
            rows[known.kind, False] = old._replace(count=old.count + 1, kernels=old.kernels + int(each.ops.end[op] - each.ops.start[op]))
    return tuple(rows.values())


def as_dict(found: Findings) -> dict[str, Any]:
    """The part `replay` of the document `hwsim: import/1`."""
    return {
        "mode": found.replay.mode,
        "recorded_s": found.recorded / FEMTO,
        "replayed_s": found.replayed / FEMTO,
        "gpu_busy_s": found.busy / FEMTO,
        "unexplained_s": found.unexplained / FEMTO,
        "unexplained_share": found.share,
        "host_idle_without_reason_s": found.host / FEMTO,
        "unexplained": [
            {"name": cause.name, "op": cause.op, "count": cause.count, "delay_s": cause.delay / FEMTO}
            for cause in found.causes
        ],
        "unmapped": [
            {"why": row.why, "count": row.count, "time_s": row.time / FEMTO, "share": row.time / max(1, found.busy)}
            for row in found.unmapped
        ],
        "steps": [
            {
                "name": step.name, "rank": found.replay.recording.ranks[step.rank].number,
                "recorded_s": (step.end - step.start) / FEMTO, "replayed_s": time / FEMTO,
            }
            for step, time in found.steps
        ],
        "collectives": [
            {
                "kind": row.kind, "count": row.count, "ranks": row.ranks, "group": row.size, "kernels_s": row.kernels / FEMTO,
                "waiting_s": None if row.waiting < 0 else row.waiting / FEMTO,
                "transfer_s": None if row.transfer < 0 else row.transfer / FEMTO,
            }
            for row in found.traffic
        ],
        "gpu_times": [
            {
                "times": trial.times, "run_s": trial.run / FEMTO, "run_with_delays_s": trial.kept_run / FEMTO,
                "step_s": trial.step / FEMTO if trial.step else None,
                "step_with_delays_s": trial.kept_step / FEMTO if trial.kept_step else None,
            }
            for trial in found.trials
        ],
    }  # fmt: skip


def text(found: Findings) -> list[str]:
    """Lines for people."""
    lines = [f"  replay      {_pair(found.recorded, found.replayed)}"]
    lines += _of_steps(found)
    if found.busy:
        lines.append(f"  GPU ops     {_time(found.busy)}, {percent(found.busy / max(1, found.recorded * len(found.replay.ranks)))} of the run")
        lines.append(f"  unexplained {_time(found.unexplained)} before GPU ops, {percent(found.share)} of the run")
        for cause in found.causes[:_SHOWN]:
            around = f" of {cause.op}" if cause.op else ""
            lines.append(f"    {_time(cause.delay):>8}  before {cause.count} x {_short(cause.name)}{around}")
    lines += [
        f"  unmapped    {row.count} GPU ops, {percent(row.time / max(1, found.busy))} of GPU time, {row.why}" for row in found.unmapped
    ]
    lines += _of_traffic(found)
    lines += [_of_trial(found, trial) for trial in found.trials]
    if found.share > _TRUSTED:
        stated = sum(each.waits.stated for each in found.replay.ranks)
        guessed = sum(each.waits.guessed for each in found.replay.ranks)
        lines.append(f"  {percent(found.share)} is more than {percent(_TRUSTED)}: do not trust the replay with GPU ops of other lengths")
        lines.append(f"    the files have {stated} waits of streams for named events, and {guessed} for events without a name")
    return lines


def _of_trial(found: Findings, trial: Trial) -> str:
    values = [("the run", found.replayed, trial.run, trial.kept_run)]
    if found.steps:
        mean = sum(time for _, time in found.steps) // len(found.steps)
        values.append(("a step", mean, trial.step, trial.kept_step))
    words = []
    for name, base, time, kept in values:
        more = f"; {_time(kept)} if unexplained delays stay" if _time(kept) != _time(time) else ""
        words.append(f"{name} would take {_time(time)} ({_change(time, base)}{more})")
    return f"  with GPU ops {_WORDS[trial.times]} " + ", ".join(words)


def _change(time: int, base: int) -> str:
    return f"{100 * (time / max(1, base) - 1):+.1f} %"


def _of_steps(found: Findings) -> list[str]:
    if not found.steps:
        return []
    recorded = np.array([step.end - step.start for step, _ in found.steps], np.int64)
    times: Ints = np.array([time for _, time in found.steps], np.int64)
    worst = np.abs(times / np.maximum(1, recorded) - 1).max()
    lines = [f"  a step      {_pair(int(recorded.mean()), int(times.mean()))}, mean of {len(times)}; the worst is off by {percent(float(worst))}"]
    return lines


def _of_traffic(found: Findings) -> list[str]:
    if not found.traffic:
        return []
    rows = found.traffic
    lines = ["  kernels of collectives, over all ranks in the files"]
    lines += aligned(
        [
            Column("kind", [row.kind for row in rows], right=False),
            Column("times", [str(row.count) for row in rows]),
            Column("ranks", [f"{row.ranks} of {row.size}" if row.size > row.ranks else str(row.ranks) for row in rows]),
            Column("kernels", [_time(row.kernels) for row in rows]),
            Column("waiting", [_time(row.waiting) if row.waiting >= 0 else "unknown" for row in rows]),
            Column("transfer", [_time(row.transfer) if row.transfer >= 0 else f"0 to {_time(row.kernels)}" for row in rows]),
        ],
        indent=4,
    )
    if any(row.waiting < 0 for row in rows):
        lines.append("    unknown: a rank alone cannot tell waiting for the others from transfer; give the files of all ranks")
    return lines


def _time(fs: int) -> str:
    return format_quantity(fs / FEMTO, "s")


def _pair(recorded: int, time: int) -> str:
    return f"{_time(recorded)} recorded, {_time(time)} replayed ({100 * (time / max(1, recorded) - 1):+.2f} %)"


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."
