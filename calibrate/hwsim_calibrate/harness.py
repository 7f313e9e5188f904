"""Timing that a busy machine disturbs least: rounds, the CPU's own time, and flags for disturbances.

A machine is never quiet for long, so a hundred samples in a row show one moment only. Every case is measured in several rounds
that are spread over the whole run, in a new order each time, with new arrays. In a round the lowest CPU time of a few samples
counts. Over repeated runs on a busy two-core machine it moves by 1.2 %, the median wall time by 4 % and the mean by 10 %. A case
is steady once two rounds agree on the lowest to 2 %, because one alone may have been luck. The run ends when all are steady, or
with the budget.

Range: the CPU time of a call is meaningful only where one thread does it. Everything else is timed by the wall clock, which
includes other programs.
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

LEAST: Final = 3  # rounds before a case may be called steady
MOST: Final = 12  # rounds
STEADY: Final = 0.02  # relative distance of the two lowest rounds of a steady case, at most
_LONGEST: Final = 0.1  # seconds of samples of one case in one round, after the first two
_EVERY: Final = 10.0  # seconds between two times of saving
_SCOUT: Final = 2e-4  # seconds of calls that show the length of one


@dataclass(slots=True)
class Record:
    """All samples of a case so far, and the part of the time that was stolen, by round."""

    case: Case
    rounds: list[tuple[Sample, ...]] = field(default_factory=list)
    steal: list[float] = field(default_factory=list)
    before: Row | None = None

    def seconds(self) -> tuple[float, ...]:
        """The quiet estimate of each round, with the rounds of an earlier run first."""
        earlier = self.before.seconds if self.before else ()
        return (*earlier, *(min(time_of(self.case, sample) for sample in samples) for samples in self.rounds))

    def wanted(self, most: int) -> bool:
        """Whether a further round is needed: unless there are `most`, or two of them agree on the lowest."""
        lowest = sorted(self.seconds())
        steady = len(lowest) >= LEAST and lowest[1] <= lowest[0] * (1.0 + STEADY)
        return len(lowest) < most and not steady

    def row(self) -> Row:
        """The row to store."""
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
    """Progress of a run: its round, the cases done in it, and seconds left of the budget."""

    round: int
    done: int
    cases: int
    left: float


def time_of(case: Case, sample: Sample) -> float:
    """Seconds of one turn of a call, on the clock of the case; never 0."""
    return max(sample.by(case.clock) / case.loop, 1e-12)


def run(
    cases: Sequence[Case],
    *,
    budget: float,
    seed: int = 0,
    most: int = MOST,
    known: Iterable[Row] = (),
    clocks: Clocks | None = None,
    now: Callable[[], float] = time.monotonic,
    report: Callable[[Progress], None] | None = None,
    keep: Callable[[list[Row]], object] | None = None,
    first: Container[tuple[str, str]] = (),
) -> tuple[list[Row], dict[tuple[str, str], str]]:
    """Measure the cases in rounds; the rows, and the reason for each case that could not be measured.

    Args:
        budget: seconds for all of it; the case in progress is finished.
        known: rows of an earlier run that this one goes on from.
        keep: called with all rows every ten seconds, and before an interruption is passed on.
        first: cases that come before the others in each round.
    """
    earlier = {row.key: row for row in known}
    records = {case.key: Record(case, before=earlier.get(case.key)) for case in cases}
    failed: dict[tuple[str, str], str] = {}
    clocks, began, order = clocks or SystemClocks(), now(), random.Random(seed)
    saved = began

    def rows() -> list[Row]:
        return [record.row() for record in records.values() if record.seconds()]

    try:
        with _collector_off():
            for turn in range(most):
                waiting = [record for key, record in records.items() if key not in failed and record.wanted(most)]
                order.shuffle(waiting)
                # cases without a time come first, and of these the named ones: a budget may end early
                waiting.sort(key=lambda record: (bool(record.seconds()), record.case.key not in first))
                for done, record in enumerate(waiting):
                    if now() - began >= budget:
                        break
                    try:
                        _measure(record, clocks)
                    except (CannotMeasure, MemoryError, OSError, RuntimeError) as error:  # RuntimeError: of a GPU's library
                        failed[record.case.key] = str(error) or type(error).__name__
                    if report:
                        report(Progress(turn + 1, done + 1, len(waiting), budget - (now() - began)))
                    if keep and now() - saved >= _EVERY:
                        keep(rows())
                        saved = now()
    except BaseException:
        if keep:
            keep(rows())
        raise
    return rows(), failed


def _measure(record: Record, clocks: Clocks) -> None:
    """One round of a case."""
    case = record.case
    before = stolen()
    with ExitStack() as stack:
        call = case.make(stack)
        sample: Timer = case.timer or (lambda call, loops: take(clocks, call, loops))
        loops = _loops(case, sample, call)
        samples: list[Sample] = []
        spent = 0.0
        while len(samples) < case.samples and (len(samples) < 2 or spent < _LONGEST):
            samples.append(sample(call, loops))
            spent += _length(case, samples[-1]) * loops
        del call  # its arrays are freed before the device tidies up
    after = stolen()
    record.rounds.append(tuple(samples))
    record.steal.append((after[0] - before[0]) / max(after[1] - before[1], 1))


def _loops(case: Case, sample: Timer, call: Call) -> int:
    """Number of calls in one sample; the first call warms up, and a long one is enough of that."""
    if _length(case, sample(call, 1)) >= case.seconds:
        return 1
    first = _length(case, sample(call, 1))
    if first < _SCOUT:
        first = _length(case, sample(call, min(case.most, max(1, int(_SCOUT / first)))))
    return max(1, min(case.most, int(case.seconds / first)))


def _length(case: Case, sample: Sample) -> float:
    """Seconds of a call: CPU time, which other programs do not change, or the longer of the host's and the device's time."""
    return max(sample.cpu if case.clock == "cpu" else max(sample.wall, sample.device), 2e-8)


@contextmanager
def _collector_off() -> Iterator[None]:
    """No collection of garbage in the middle of a sample."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        with suppress(ValueError):
            gc.collect(0)
        if on:
            gc.enable()
