"""Steps of the ten models: recorded, timed without recording, and predicted on a machine file.

    python -m hwsim_calibrate.composites.torch_steps here.yaml            a table of predicted and measured steps
    python -m hwsim_calibrate.composites.torch_steps here.yaml --to DIR   and the recordings, as `hwsim record` writes them

A step is timed by the CPU time of its process, on one thread, in rounds over all models: without recording, then operator by
operator. The lowest counts, which other programs disturb least. What a step takes beyond its operators is the host's.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import hwsim
from hwsim_calibrate.composites.torch_models import MODELS, Model
from hwsim_calibrate.recording import writing
from hwsim_calibrate.recording.script import Recording
from hwsim_calibrate.recording.tape import Step, Tape, Timing
from hwsim_calibrate.recording.torch import one_thread, recording_torch

WARM: Final = 2  # steps before anything is recorded
ROUNDS: Final = 6
TURNS: Final = 3  # of a model in each round


@dataclass(frozen=True, slots=True)
class Timed:
    """A model's step: its recording, seconds without recording in each turn, seconds of its operators together."""

    name: str
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


def timed(models: Sequence[Model], rounds: int = ROUNDS, turns: int = TURNS) -> Iterator[Timed]:
    """Record each model's step, and time all of them in rounds: a shared computer is never quiet for long."""
    with one_thread():
        trials = [Trial.of(model) for model in models]
        for _ in range(rounds):
            for trial in trials:
                trial.time(turns)
    yield from (trial.result() for trial in trials)


@dataclass(slots=True)
class Trial:
    """A model's step while it is timed."""

    model: Model
    step: Callable[[], object]
    steps: list[Step]
    seconds: list[float] = field(default_factory=list)
    times: list[list[Timing]] = field(default_factory=list)

    @staticmethod
    def of(model: Model) -> Trial:
        """The step, recorded after a few."""
        step = model.step()
        for _ in range(WARM):
            step()
        return Trial(model, step, recorded(step))

    def time(self, turns: int) -> None:
        """A few turns: without recording, then operator by operator."""
        self.step()
        for _ in range(turns):
            began = time.process_time()
            self.step()
            self.seconds.append(time.process_time() - began)
            tape = Tape(only_times=True)
            with recording_torch(tape):
                self.step()
            if len(tape.times) == len(self.steps):
                self.times.append(tape.times)

    def result(self) -> Timed:
        """The lowest of all turns, operator by operator."""
        turns = self.times or [[Timing(each.name, (), each.wall, each.cpu, int(each.faults)) for each in self.steps]]
        steps = [
            replace(each, cpu=min(timing.cpu for timing in same), wall=min(timing.wall for timing in same),
                    faults=min(timing.faults for timing in same))
            for each, same in zip(self.steps, zip(*turns, strict=True), strict=True)
        ]  # fmt: skip
        inside, least = sum(each.cpu for each in steps), min(self.seconds)
        host = max(least - inside, 0.0) / len(steps)
        name = self.model.name.replace(" ", "-").lower()
        recording = Recording(name, tuple(steps), least, least, len(turns) + 1, 1, "cpu", (), host, ("PyTorch",))
        return Timed(self.model.name, recording, tuple(self.seconds), inside)


def recorded(step: Callable[[], object]) -> list[Step]:
    """The operators of a step, the second of two that are recorded: what lay where is as it is after any step."""
    tape = Tape()
    with recording_torch(tape):
        step()
        tape.start_over()
        step()
    return tape.steps


def predicted(machine: str | Path, step: Timed) -> Predicted:
    """The step on a machine, from its recording as a workload."""
    text, _ = writing.document(step.recording)
    run = hwsim.simulate(str(machine), text)
    host = step.recording.dispatch * len(step.recording.steps)
    sure = run.interval
    return Predicted(run.makespan_s, sure.low, sure.high, run.makespan_s - host)


def table(machine: Path, models: Sequence[Model], folder: Path | None = None) -> list[str]:
    """Lines of a table, a model each."""
    lines = [
        "| model | operators | step | host | operators, predicted | step, predicted | error | nine of ten |",
        "|---|---|---|---|---|---|---|---|",
    ]
    errors = []
    for step in timed(models):
        expected = predicted(machine, step)
        errors.append(abs(expected.seconds / step.step - 1))
        inside = "" if expected.low <= step.step <= expected.high else " (outside)"
        measured_ms, expected_ms = step.step * 1e3, expected.seconds * 1e3
        lines.append(
            f"| {step.name} | {len(step.recording.steps)} | {measured_ms:.1f} ms | {step.recording.dispatch * 1e6:.0f} us |"
            f" {expected.ops / step.inside - 1:+.1%} | {expected_ms:.1f} ms | {expected_ms / measured_ms - 1:+.1%} |"
            f" {expected.low * 1e3:.0f} to {expected.high * 1e3:.0f} ms{inside} |"
        )
        print(lines[-1], flush=True)
        if folder is not None:
            text, measured = writing.document(step.recording)
            (folder / f"{step.recording.name}.yaml").write_text(text)
            writing.measured_path(folder / f"{step.recording.name}.yaml").write_bytes(writing.packed(measured))
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
