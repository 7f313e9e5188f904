"""The two sides of the comparison: a recording, replayed exactly, and a simulated run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hwsim.api import Run, simulate
from hwsim.comparing.recorded import families
from hwsim.comparing.recorded.compared_run import ComparedRun, of_timeline
from hwsim.formats import format_quantity
from hwsim.graph.files import load_graph
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.aten import meaning
from hwsim.importers.recording import Recording
from hwsim.importers.replay import RecordingReplay, explain
from hwsim.importers.steps import count, steps
from hwsim.spec import SpecError
from hwsim.ticks import FEMTO

APART: Final = 0.02  # relative difference between marked steps and the run, from which on it has a note
CPU: Final = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 GFLOP/s"}, "memory": {"bandwidth": "1 GB/s"}}
NOWHERE: Final = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": CPU}}  # the op graph has all times


def of_recording(recording: Recording) -> ComparedRun:
    """Replay a recording exactly.

    Raises:
        SpecError: the recording has no ops or no times.
    """
    replay = explain(recording, "exact")
    files = ", ".join(rank.file for rank in recording.ranks[:3])
    if not recording.clocked or (len(replay) and replay.recorded_end.max(initial=0) <= 0):
        raise SpecError.of(None, f"{files}: the recording has no start times")
    if not len(replay):
        hint = "profile a step with its operators or kernels"
        raise SpecError.of(None, f"{files}: the recording has no ops", hint)
    run = simulate(NOWHERE, replay.graph, expect=False, interval=False)
    return of_timeline(
        run,
        "recorded",
        _title(recording),
        count(recording),
        _families(replay),
        (*_apart(recording, run.timeline.makespan_fs), *_notes(recording)),
    )


def of_run(run: Run, many: int = 1, title: str = "") -> ComparedRun:
    """Return the side of a simulated run.

    Args:
        many: number of steps.
        title: description; default: names of workload and machine.
    """
    return of_timeline(run, "simulated", title or f"{run.workload}, on {run.machine}", many, {}, ())


def saved(path: Path) -> tuple[int, OpGraph]:
    """Return the number of steps and the op graph of a file of `hwsim import`.

    Raises:
        SpecError: the file is not an import.
    """
    from hwsim.importers.saved import steps_in

    return steps_in(path), load_graph(path)


def turns_of(run: Run, first: ComparedRun) -> int:
    """Return the number of steps of a run: steps of its training, else loop iterations if the recording has steps."""
    if len(trainings := run.simulated.flat.graph.trainings) == 1:
        return max(1, trainings[0].steps)
    turns = run.timeline.flat.iteration
    return int(turns.max()) + 1 if first.steps > 1 and len(turns) else 1


def _title(recording: Recording) -> str:
    ranks = recording.ranks
    files = ranks[0].file.rpartition("/")[2] + (f" to {ranks[-1].file.rpartition('/')[2]}" if len(ranks) > 1 else "")
    world = max(rank.world for rank in ranks)
    rank_count = f"{len(ranks)} ranks" if len(ranks) > 1 else "1 rank"
    of_world = f" of {world}" if world > len(ranks) else ""
    gpus = ", ".join(dict.fromkeys(name for rank in ranks for _, name in rank.devices[:1] if name))
    return f"{files}: {recording.format}, {rank_count}{of_world}" + (f", {gpus}" if gpus else "")


def _notes(recording: Recording) -> tuple[str, ...]:
    left = [f"{left.count:,} x {left.name}: {left.why}" for left in recording.left]
    return (*recording.notes, *left)


def _apart(recording: Recording, makespan: int) -> Iterator[str]:
    """Yield a note if the marked steps and the run differ in time per step."""
    marked = steps(recording)
    if marked:
        mean = sum(step.end - step.start for step in marked) // len(marked)  # integers
        run = makespan // count(recording)
        if abs(run - mean) > APART * mean:
            by_marks, by_run = (format_quantity(time / FEMTO, "s") for time in (mean, run))
            yield f"time outside the step marks: a marked step takes {by_marks}, the whole run {by_run} per step"


def _families(replay: RecordingReplay) -> dict[str, str]:
    """Return the kind of work of each kernel name, from the operators that launched it; the one with most time."""
    spent: dict[tuple[str, str], int] = {}
    for explained in replay.ranks:
        rank, linked = explained.rank, explained.linked
        slices = rank.slices
        ops = explained.ops.slice
        outer = linked.shaped[ops]
        outer = np.where(outer < 0, linked.outer[ops], outer)
        keys = np.column_stack(
            [slices.name[ops], np.where(outer < 0, -1, slices.name[outer]), np.where(outer < 0, -1, slices.facts[outer])]
        )
        distinct, index = np.unique(keys, axis=0, return_inverse=True)
        took = np.bincount(index.reshape(-1), slices.duration[ops].astype(np.float64), len(distinct)) if len(ops) else ()
        for (kernel, op, facts), time in zip(distinct.tolist(), took, strict=True):
            name = "" if op < 0 else rank.names[op]
            work = meaning(name, None if facts < 0 else rank.facts[facts]).kind if name else families.OTHER
            shown = rank.names[kernel]
            key = shown if len(shown) <= 100 else shown[:97] + "...", families.of_operator(name, work, shown)
            spent[key] = spent.get(key, 0) + int(time)
    longest: dict[str, str] = {}
    for (kernel, family), _ in sorted(spent.items(), key=lambda pair: -pair[1]):
        longest.setdefault(kernel, family)
    return longest
