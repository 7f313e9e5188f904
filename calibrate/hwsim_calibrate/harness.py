"""Timing in shuffled rounds by CPU time, which is robust on a busy machine.

Consecutive samples share their disturbances. Therefore each case is measured in several rounds that are spread over the run, in
random order and with new arrays. The minimum CPU time of a round counts. Over repeated runs on a busy two-core machine, this
minimum varies by 1.2 %, the median wall time by 4 % and the mean wall time by 10 %. A case is steady when its two fastest rounds
agree to 2 %. The run ends when all cases are steady, or when the budget is spent.

Range: CPU time is valid for single-thread cases. Other cases are timed by the wall clock, which includes other programs.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from hwsim_calibrate.case import CannotMeasure, Case, Timer
from hwsim_calibrate.clocks import Call, Clocks, Sample, SystemClocks, stolen, take
from hwsim_calibrate.flags import flags_of
from hwsim_calibrate.store import Row

MIN_ROUNDS: Final = 3  # before a case can be steady
MAX_ROUNDS: Final = 12
STEADY: Final = 0.02  # maximum relative difference between the two fastest rounds of a steady case
_MAX_ROUND_S: Final = 0.1  # seconds of samples of one case in one round, after the first two samples
_SAVE_INTERVAL: Final = 10.0  # seconds
_PROBE: Final = 2e-4  # seconds of calls that determine the duration of one call


@dataclass(slots=True)
class CaseRecord:
    """The samples of a case so far, and the share of stolen CPU time in each round."""

    case: Case
    rounds: list[tuple[Sample, ...]] = field(default_factory=list)
    steal: list[float] = field(default_factory=list)
    before: Row | None = None

    def seconds(self) -> tuple[float, ...]:
        """Return the undisturbed time of each round (s), starting with the rounds of an earlier run."""
        earlier = self.before.seconds if self.before else ()
        return (*earlier, *(min(time_of(self.case, sample) for sample in samples) for samples in self.rounds))

    def needs_round(self, max_rounds: int) -> bool:
        """Return whether the case is not steady and has fewer than `max_rounds` rounds."""
        lowest = sorted(self.seconds())
        is_steady = len(lowest) >= MIN_ROUNDS and lowest[1] <= lowest[0] * (1.0 + STEADY)
        return len(lowest) < max_rounds and not is_steady

    def row(self) -> Row:
        """Return the row to store."""
        case, before = self.case, self.before
        samples = tuple(tuple(time_of(case, sample) for sample in taken) for taken in self.rounds)
        faults = tuple(median(sample.faults for sample in taken) for taken in self.rounds)
        flags = flags_of(case.clock, self.seconds(), self.rounds, self.steal)
        if before:
            samples, faults = before.samples + samples, before.faults + faults
            flags = tuple(dict.fromkeys((*(flag for flag in before.flags if flag not in ("few", "unsteady")), *flags)))
        return Row(case.suite, case.name, case.op, case.params, case.work, self.seconds(), case.clock, flags, samples, faults)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Args:
        round: current round, from 1.
        done: cases that are finished in this round.
        cases: cases of this round.
        left: remaining budget (s).
    """

    round: int
    done: int
    cases: int
    left: float


def time_of(case: Case, sample: Sample) -> float:
    """Return the time of one iteration of a call (s) on the clock of the case; it is positive."""
    return max(sample.by(case.clock) / case.loop, 1e-12)


def run(
    cases: Sequence[Case],
    *,
    budget: float,
    seed: int = 0,
    max_rounds: int = MAX_ROUNDS,
    known: Iterable[Row] = (),
    clocks: Clocks | None = None,
    now: Callable[[], float] = time.monotonic,
    report: Callable[[Progress], None] | None = None,
    keep: Callable[[list[Row]], object] | None = None,
    first: Container[tuple[str, str]] = (),
) -> tuple[list[Row], dict[tuple[str, str], str]]:
    """Measure the cases in rounds.

    Args:
        cases: the cases to measure.
        budget: time limit (s); the case in progress is finished.
        seed: seed of the random order.
        max_rounds: maximum number of rounds.
        known: rows of an earlier run to resume from.
        clocks: clocks for the cases; default: the system's.
        now: clock for the budget.
        report: called after each case of a round.
        keep: called with all rows every ten seconds, and before an interruption is passed on.
        first: keys of cases to measure before other cases that have no time yet.

    Returns:
        The rows, and the key of each case that cannot be measured -> the reason.
    """
    earlier = {row.key: row for row in known}
    records = {case.key: CaseRecord(case, before=earlier.get(case.key)) for case in cases}
    failed: dict[tuple[str, str], str] = {}
    clocks, began, order = clocks or SystemClocks(), now(), random.Random(seed)
    saved = began

    def rows() -> list[Row]:
        return [record.row() for record in records.values() if record.seconds()]

    try:
        with _collector_off():
            for round_index in range(max_rounds):
                waiting = [record for key, record in records.items() if key not in failed and record.needs_round(max_rounds)]
                order.shuffle(waiting)
                # cases without a time first, the named cases among them before the rest: the budget may end early
                waiting.sort(key=lambda record: (bool(record.seconds()), record.case.key not in first))
                for done, record in enumerate(waiting):
                    if now() - began >= budget:
                        break
                    try:
                        _measure(record, clocks)
                    except (CannotMeasure, MemoryError, OSError, RuntimeError) as error:  # RuntimeError: from a GPU library
                        failed[record.case.key] = str(error) or type(error).__name__
                    if report:
                        report(Progress(round_index + 1, done + 1, len(waiting), budget - (now() - began)))
                    if keep and now() - saved >= _SAVE_INTERVAL:
                        keep(rows())
                        saved = now()
    except BaseException:
        if keep:
            keep(rows())
        raise
    return rows(), failed


def _measure(record: CaseRecord, clocks: Clocks) -> None:
    """Measure one round of a case."""
    case = record.case
    before = stolen()
    with ExitStack() as stack:
        call = case.make(stack)
        sample: Timer = case.timer or (lambda call, loops: take(clocks, call, loops))
        loops = _loops(case, sample, call)
        samples: list[Sample] = []
        spent = 0.0
        while len(samples) < case.samples and (len(samples) < 2 or spent < _MAX_ROUND_S):
            samples.append(sample(call, loops))
            spent += _duration(case, samples[-1]) * loops
        del call  # its arrays are freed before the device tidies up
    after = stolen()
    record.rounds.append(tuple(samples))
    record.steal.append((after[0] - before[0]) / max(after[1] - before[1], 1))


def _loops(case: Case, sample: Timer, call: Call) -> int:
    """Return the number of calls per sample. The first call warms up; if it is long, it also determines the duration."""
    if _duration(case, sample(call, 1)) >= case.seconds:
        return 1
    duration = _duration(case, sample(call, 1))
    if duration < _PROBE:
        duration = _duration(case, sample(call, min(case.max_calls, max(1, int(_PROBE / duration)))))
    return max(1, min(case.max_calls, int(case.seconds / duration)))


def _duration(case: Case, sample: Sample) -> float:
    """Return the duration of a call (s): CPU time, or the longer of wall time and device time."""
    return max(sample.cpu if case.clock == "cpu" else max(sample.wall, sample.device), 2e-8)


@contextmanager
def _collector_off() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        with suppress(ValueError):
            gc.collect(0)
        if was_enabled:
            gc.enable()
