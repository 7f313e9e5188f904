"""The results of a replay as text and as a part of the JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hwsim.formats import format_quantity, format_share, percent
from hwsim.importers.findings import Findings, WhatIfTrial
from hwsim.ticks import FEMTO
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_end

TITLES: Final = {"kineto": "PyTorch profile", "nsys": "Nsight Systems report", "chakra": "Chakra trace"}
MAX_CAUSES: Final = 3
MIN_SHARE: Final = 0.02  # share of the critical path; smaller ones are not printed
MAX_UNEXPLAINED: Final = 0.05  # share of the run


def as_dict(findings: Findings) -> dict[str, Any]:
    """Return the part `replay` of the document `hwsim: import/2`."""
    ranks, last = findings.replay.recording.ranks, findings.straggler
    straggler = last and {"rank": ranks[last.rank].number, "count": last.count, "waiting_s": last.waiting / FEMTO}
    return {
        "mode": findings.replay.mode,
        "recorded_s": findings.recorded / FEMTO if findings.replay.recording.clocked else None,
        "replayed_s": findings.replayed / FEMTO,
        "gpu_busy_s": findings.busy / FEMTO,
        "gpu_time": dict(findings.gpu_time),
        "critical_path": dict(findings.shares),
        "straggler": straggler,
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
                "name": step.name, "rank": ranks[step.rank].number,
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
    """Return the title, the facts of the recorded run, the what-ifs and the collectives."""
    recording = findings.replay.recording
    count = len(recording.ranks)
    gpus = sorted({name for rank in recording.ranks for _, name in rank.devices if name})
    kind = TITLES.get(recording.format, "recording")
    title = f"{kind} of {count} rank{'s' * (count != 1)}{', ' * bool(gpus)}{cut_end(', '.join(gpus), 60)}"
    if not findings.recorded:
        why = "marks, and neither runtime calls nor GPU ops" if recording.clocked else "no times: add --machine to predict them"
        return [title, "", *_fact("replay", f"none; the files have {why}")]
    lines = [title, "", *_times(findings)]
    if findings.shares:
        (first, share), *others = findings.shares.items()
        more = ", ".join(f"{name} {format_share(part)}" for name, part in others if part >= MIN_SHARE)
        lines += _fact("bottleneck", f"{first}, {format_share(share)} of the critical path{f' ({more})' * bool(more)}")
    if findings.busy:
        lines += _fact("GPU time", ", ".join(f"{name} {format_share(share)}" for name, share in findings.gpu_time.items()))
    if findings.straggler:
        last = findings.straggler
        rank, waiting = recording.ranks[last.rank].number, _time(last.waiting)
        lines += _fact("straggler", f"rank {rank}: last to arrive {last.count:,}x; the other ranks wait {waiting} for it")
    lines += validity(findings)
    if findings.trials:
        lines += ["", *_what_if(findings)]
    return [*lines, *_traffic(findings)]


def validity(findings: Findings) -> list[str]:
    """Return the facts that show how well the rules explain the recorded run."""
    lines, (recorded, replayed) = [], (findings.recorded, findings.replayed)
    if findings.replay.recording.clocked and recorded:
        steps = [abs(replayed - recorded) / max(1, recorded) for _, recorded, replayed in findings.steps]
        worst = f"; largest step error {percent(max(steps))}" if steps else ""
        lines += _fact("replay", f"{_time(replayed)}, {_change(replayed, recorded, '+.2f')} from the recorded run{worst}")
    if not findings.busy:
        return lines
    share = percent(findings.share)
    lines += _fact("unexplained", f"{_time(findings.unexplained)} of delay before GPU ops, {share} of the run; not replayed")
    for cause in findings.causes[: MAX_CAUSES if findings.share > MAX_UNEXPLAINED / 5 else 0]:
        op = f" (launched by {cut_end(cause.op, 30)})" if cause.op else ""
        lines += _fact("", f"{_time(cause.delay)} before {cause.count} x {cut_end(cause.name, 60)}{op}")
    for row in findings.unmapped:
        share = percent(row.time / max(1, findings.busy))
        lines += _fact("unmapped", f"{row.count:,} GPU ops, {share} of GPU time: {row.why}")
    return lines


def warnings(findings: Findings, assumed: Iterable[str] = ()) -> list[str]:
    """Return the assumptions of reader, rules and prediction, and a warning if much of the run is unexplained."""
    notes = dict.fromkeys((*findings.replay.recording.notes, *findings.replay.meetings.notes, *assumed))
    lines = [line for note in notes for line in wrap_lines(f"note: {note}", 2, deeper=8)]
    if findings.busy and findings.share > MAX_UNEXPLAINED:
        named = sum(len(rank.waits.named) for rank in findings.replay.ranks)  # integers
        guessed = sum(rank.waits.guessed for rank in findings.replay.ranks)  # integers
        lines += wrap_lines(
            f"warning: {percent(findings.share)} of the run is unexplained (limit {percent(MAX_UNEXPLAINED)}): do not rely on "
            f"what-ifs. The files have {named} stream waits for named events and {guessed} for unnamed ones; record with "
            "enable_cuda_sync_events=True",
            2,
            deeper=11,
        )
    return lines


def _times(findings: Findings) -> list[str]:
    clocked = findings.replay.recording.clocked
    run = _time(findings.recorded) if clocked else f"{_time(findings.replayed)} by rules, because the files have no start times"
    if not findings.steps:
        return _fact("time", run)
    count = len(findings.steps)
    step = sum(recorded for _, recorded, _ in findings.steps) // count  # integers
    return _fact("step time", f"{_time(step)}, average of {count} (run {run})")


def _what_if(findings: Findings) -> list[str]:
    """Return a table of runs with other durations of GPU ops; columns for kept delays only where they matter."""
    trials = findings.trials
    columns = [Column("what if", [_label(findings, trial) for trial in trials], right=False, widest=52)]
    spans = [("run", findings.replayed, [(trial.run, trial.kept_run) for trial in trials])]
    if findings.steps:
        average = sum(time for _, _, time in findings.steps) // len(findings.steps)  # integers
        spans.append(("step", average, [(trial.step, trial.kept_step) for trial in trials]))
    for name, base, times in spans:
        columns += [
            Column(name, [_time(time) for time, _ in times]),
            Column("change", [_change(time, base, "+.1f") for time, _ in times]),
        ]
        if any(_time(kept) != _time(time) for time, kept in times):
            columns.append(Column("with delays", [_time(kept) for _, kept in times]))
    return align_columns(columns)


def _label(findings: Findings, trial: WhatIfTrial) -> str:
    named = []
    for name, factor in trial.by_name:
        count, time = findings.of_name(name)
        named.append(f"'{name}' x {factor:g} ({count:,} ops, {percent(time / max(1, findings.busy))} of GPU time)")
    every = [f"GPU op times x {trial.times:g}"] if trial.times != 1.0 or not named else []
    return ", ".join([*every, *named])


def _traffic(findings: Findings) -> list[str]:
    rows = findings.traffic
    if not rows:
        return []
    columns = [
        Column("collective", [row.kind for row in rows], right=False),
        Column("count", [str(row.count) for row in rows]),
        Column("ranks", [f"{row.ranks} of {row.size}" if row.size > row.ranks else str(row.ranks) for row in rows]),
        Column("kernel time", [_time(row.kernels) for row in rows]),
        Column("waiting", [_time(row.waiting) if row.waiting >= 0 else "unknown" for row in rows]),
        Column("transfer", [_time(row.transfer) if row.transfer >= 0 else f"0 to {_time(row.kernels)}" for row in rows]),
    ]
    lines = ["", *align_columns(columns)]
    if any(row.waiting < 0 for row in rows):
        lines.append("  unknown: one rank's file cannot separate waiting from transfer. Import the files of all ranks,")
        lines.append("      or add --machine with the recorded machine, which estimates the transfer")
    return lines


def _fact(label: str, value: str) -> list[str]:
    return labelled_lines(label, value, LABEL)


def _time(fs: int) -> str:
    return format_quantity(fs / FEMTO, "s")


def _change(time: int, base: int, form: str) -> str:
    return percent(time / max(1, base) - 1, form)
