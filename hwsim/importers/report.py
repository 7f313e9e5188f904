"""Findings of a replay in words and as a part of a document."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hwsim import ticks
from hwsim.formats import format_quantity, percent
from hwsim.importers.findings import Findings, Trial
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned, shortened

_SHOWN: Final = 5
_TRUSTED: Final = 0.05  # share of the run that may stay unexplained
_WORDS: Final = {0.5: "half as long", 2.0: "twice as long"}


def as_dict(findings: Findings) -> dict[str, Any]:
    """The part `replay` of the document `hwsim: import/1`."""
    return {
        "mode": findings.replay.mode,
        "recorded_s": findings.recorded / FEMTO if findings.replay.recording.clocked else None,
        "replayed_s": findings.replayed / FEMTO,
        "gpu_busy_s": findings.busy / FEMTO,
        "unexplained_s": findings.unexplained / FEMTO,
        "unexplained_share": findings.share,
        "unexplained": [
            {"name": cause.name, "op": cause.op, "count": cause.count, "delay_s": cause.delay / FEMTO}
            for cause in findings.causes
        ],
        "unmapped": [
            {"why": row.why, "count": row.count, "time_s": row.time / FEMTO, "share": row.time / max(1, findings.busy)}
            for row in findings.unmapped
        ],
        "steps": [
            {
                "name": step.name, "rank": findings.replay.recording.ranks[step.rank].number,
                "recorded_s": recorded / FEMTO, "replayed_s": time / FEMTO,
            }
            for step, recorded, time in findings.steps
        ],
        "collectives": [
            {
                "kind": row.kind, "count": row.count, "ranks": row.ranks, "group": row.size, "kernels_s": row.kernels / FEMTO,
                "waiting_s": None if row.waiting < 0 else row.waiting / FEMTO,
                "transfer_s": None if row.transfer < 0 else row.transfer / FEMTO,
            }
            for row in findings.traffic
        ],
        "notes": list(findings.replay.meetings.notes),
        "gpu_times": [
            {
                "times": trial.times, "by_name": dict(trial.by_name),
                "ops": {name: findings.of_name(name)[0] for name, _ in trial.by_name}, "run_s": trial.run / FEMTO,
                "run_with_delays_s": trial.kept_run / FEMTO,
                "step_s": trial.step / FEMTO if trial.step else None,
                "step_with_delays_s": trial.kept_step / FEMTO if trial.kept_step else None,
            }
            for trial in findings.trials
        ],
    }  # fmt: skip


def text(findings: Findings) -> list[str]:
    """Lines for people."""
    clocked = findings.replay.recording.clocked
    if not findings.recorded:
        why = "marks, and neither calls nor GPU ops" if clocked else "no times; give a machine to have them"
        return [f"  replay      none: the files have {why}"]
    if clocked:
        lines = [f"  replay      {_pair(findings.recorded, findings.replayed)}"]
    else:
        lines = [f"  replay      {_time(findings.replayed)} by rules: the files have durations, and no starts"]
    lines += _of_steps(findings)
    if findings.busy:
        length = findings.recorded if clocked else findings.replayed
        rank_time = max(1, length * len(findings.replay.ranks))
        lines.append(f"  GPU ops     {_time(findings.busy)}, {percent(findings.busy / rank_time)} of the run")
        lines.append(f"  unexplained {_time(findings.unexplained)} before GPU ops, {percent(findings.share)} of the run")
        for cause in [each for each in findings.causes[:_SHOWN] if each.delay * 100 > findings.unexplained]:
            around = f" of {cause.op}" if cause.op else ""
            lines.append(f"    {_time(cause.delay):>8}  before {cause.count} x {shortened(cause.name, 60)}{around}")
    lines += [
        f"  unmapped    {row.count} GPU ops, {percent(row.time / max(1, findings.busy))} of GPU time, {row.why}"
        for row in findings.unmapped
    ]
    lines += _of_traffic(findings)
    lines += [_of_trial(findings, trial) for trial in findings.trials]
    if findings.share > _TRUSTED:
        stated = sum(len(rank.waits.named) for rank in findings.replay.ranks)  # integers
        guessed = sum(each.waits.guessed for each in findings.replay.ranks)  # integers
        lines.append(
            f"  {percent(findings.share)} is more than {percent(_TRUSTED)}: do not trust the replay with GPU ops of other lengths"
        )
        lines.append(f"    the files have {stated} waits of streams for named events, and {guessed} for events without a name")
    return lines


def _of_trial(findings: Findings, trial: Trial) -> str:
    values = [("the run", findings.replayed, trial.run, trial.kept_run)]
    if findings.steps:
        mean = sum(time for _, _, time in findings.steps) // len(findings.steps)  # integers
        values.append(("a step", mean, trial.step, trial.kept_step))
    words = []
    for name, base, time, kept in values:
        more = f"; {_time(kept)} if unexplained delays stay" if _time(kept) != _time(time) else ""
        words.append(f"{name} would take {_time(time)} ({_change(time, base)}{more})")
    return f"  with {_which(findings, trial)} " + ", ".join(words)


def _which(findings: Findings, trial: Trial) -> str:
    """The GPU ops of a trial and their lengths, in words; of those chosen by name how many, and their share of GPU time."""
    every = f"GPU ops {_WORDS.get(trial.times, f'{trial.times:g} times as long')}"
    named = []
    for name, times in trial.by_name:
        count, time = findings.of_name(name)
        share = percent(time / max(1, findings.busy))
        named.append(f"'{name}' ({count:,} ops, {share} of GPU time) {_WORDS.get(times, f'{times:g} times as long')}")
    return " and ".join(named if named and trial.times == 1.0 else [every, *named])


def _change(time: int, base: int) -> str:
    return percent(time / max(1, base) - 1, "+.1f")


def _of_steps(findings: Findings) -> list[str]:
    if not findings.steps:
        return []
    recorded, times = (ticks.column(each) for each in list(zip(*findings.steps, strict=True))[1:])
    worst = percent(float(np.abs(times - recorded).max() / max(1.0, float(recorded.mean()))))
    return [f"  a step      {_pair(int(recorded.mean()), int(times.mean()))}, mean of {len(times)}; the worst is off by {worst}"]


def _of_traffic(findings: Findings) -> list[str]:
    if not findings.traffic:
        return []
    rows = findings.traffic
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
        lines.append(
            "    unknown: a rank alone cannot tell waiting for the others from transfer; give the files of all ranks, or"
        )
        lines.append("    the --machine that was recorded, for the transfer that it should take")
    return [*lines, *(f"    note: {note}" for note in findings.replay.meetings.notes)]


def _time(fs: int) -> str:
    return format_quantity(fs / FEMTO, "s")


def _pair(recorded: int, time: int) -> str:
    return f"{_time(recorded)} recorded, {_time(time)} replayed ({percent(time / max(1, recorded) - 1, '+.2f')})"
