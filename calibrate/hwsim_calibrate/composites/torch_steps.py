"""Steps of the ten models: recorded, timed without recording, and predicted on a machine file.

    python -m hwsim_calibrate.composites.torch_steps here.yaml            a table of predicted and measured steps
    python -m hwsim_calibrate.composites.torch_steps here.yaml --to DIR   and the recordings, as `hwsim record` writes them

A step is timed by the CPU time of its process, on one thread, in turns: without recording, then operator by operator. The lowest
of the turns counts, which other programs disturb least. What a step takes beyond its operators is the host's.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import hwsim
from hwsim_calibrate.composites.torch_models import MODELS, Model
from hwsim_calibrate.recording import writing
from hwsim_calibrate.recording.script import Recording
from hwsim_calibrate.recording.tape import Step, Tape
from hwsim_calibrate.recording.torch import one_thread, recording_torch

WARM: Final = 2  # steps before anything is recorded
TURNS: Final = 7


@dataclass(frozen=True, slots=True)
class Timed:
    """A model's step: its recording, seconds without recording in each turn, seconds of its operators together."""

    recording: Recording
    seconds: tuple[float, ...]
    inside: float

    @property
    def step(self) -> float:
        """Seconds of a step, undisturbed."""
        return min(self.seconds)


@dataclass(frozen=True, slots=True)
class Predicted:
    """Seconds that a machine file says, with its interval; ops: of the operators alone."""

    seconds: float
    low: float
    high: float
    ops: float


def timed(model: Model, turns: int = TURNS) -> Timed:
    """Record a model's step and time it."""
    with one_thread():
        step = model.step()
        for _ in range(WARM):
            step()
        steps = recorded(step)
        seconds, times = [], []
        for _ in range(turns):
            began = time.process_time()
            step()
            seconds.append(time.process_time() - began)
            tape = Tape(only_times=True)
            with recording_torch(tape):
                step()
            if len(tape.times) == len(steps):
                times.append(tape.times)
    lowest = [min(each[at].cpu for each in times) for at in range(len(steps))] if times else [each.cpu for each in steps]
    pages = [min(each[at].faults for each in times) for at in range(len(steps))] if times else [each.faults for each in steps]
    steps = [replace(each, cpu=cpu, wall=cpu, faults=faults) for each, cpu, faults in zip(steps, lowest, pages, strict=True)]
    inside = sum(lowest)
    host = max(min(seconds) - inside, 0.0) / len(steps)
    name = model.name.replace(" ", "-").lower()
    whole = Recording(name, tuple(steps), min(seconds), min(seconds), len(times) + 1, 1, "cpu", (), host, ("PyTorch",))
    return Timed(whole, tuple(seconds), inside)


def recorded(step: Callable[[], object]) -> list[Step]:
    """The operators of a step, the second of two that are recorded: what lay where is as it is after any step."""
    tape = Tape()
    with recording_torch(tape):
        step()
        tape.start_over()
        step()
    return tape.steps


def predicted(machine: str | Path, one: Timed) -> Predicted:
    """The step on a machine, from its recording as a workload."""
    text, _ = writing.document(one.recording)
    run = hwsim.simulate(str(machine), text)
    host = one.recording.dispatch * len(one.recording.steps)
    sure = run.interval
    return Predicted(run.makespan_s, sure.low, sure.high, run.makespan_s - host)


def table(machine: Path, models: Sequence[Model], folder: Path | None = None) -> list[str]:
    """Lines of a table, a model each."""
    lines = [
        "| model | operators | step | host | operators, predicted | step, predicted | error | nine of ten |",
        "|---|---|---|---|---|---|---|---|",
    ]
    errors = []
    for model in models:
        one = timed(model)
        told = predicted(machine, one)
        errors.append(abs(told.seconds / one.step - 1))
        inside = "" if told.low <= one.step <= told.high else " (outside)"
        lines.append(
            f"| {model.name} | {len(one.recording.steps)} | {one.step * 1e3:.1f} ms | {one.recording.dispatch * 1e6:.0f} us |"
            f" {told.ops / one.inside - 1:+.1%} | {told.seconds * 1e3:.1f} ms | {told.seconds / one.step - 1:+.1%} |"
            f" {told.low * 1e3:.0f} to {told.high * 1e3:.0f} ms{inside} |"
        )
        print(lines[-1], flush=True)
        if folder is not None:
            text, measured = writing.document(one.recording)
            (folder / f"{one.recording.name}.yaml").write_text(text)
            writing.measured_path(folder / f"{one.recording.name}.yaml").write_bytes(writing.packed(measured))
    errors.sort()
    middle = len(errors) // 2
    median = (errors[middle] + errors[-middle - 1]) / 2
    return [*lines, "", f"median {median:.1%}, worst {errors[-1]:.1%}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"]


def main() -> None:
    """Read the arguments, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("machine", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    gc.disable()
    for line in table(given.machine, [each for each in MODELS if not given.only or each.name in given.only], given.to):
        print(line)


if __name__ == "__main__":
    main()
