"""Timing that a busy machine disturbs least: rounds, the CPU's own time, and a word on what disturbed it.

A machine is never quiet for long, so that a hundred samples in a row are one look at one moment.  Every case is measured in
several rounds that are spread over the whole run, in a new order each time, prepared anew.  In a round, the lowest CPU time of
a few samples counts: measured against repeated runs on a busy two-core machine, it moves by 1.2 % where the median wall time
moves by 4 % and the mean by 10 %.  A case is steady once two rounds agree on the lowest to 2 %, for one alone
may have been luck; the run ends when all are, or when the budget is spent.

Range: the CPU time of a call is its own only where one thread does it; everything else is timed by the wall clock, which
counts what others did meanwhile.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from hwsim_calibrate.case import CannotMeasure, Case, Timer
from hwsim_calibrate.clocks import Call, Clocks, Sample, SystemClocks, stolen, take
from hwsim_calibrate.flags import flags_of
from hwsim_calibrate.store import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST: Final = 3  # rounds before a case may be called steady
MOST: Final = 12  # rounds
STEADY: Final = 0.02  # how far apart the two lowest rounds of a steady case are, at most
_LONGEST: Final = 0.1  # seconds of samples of one case in one round, but for the first two
_EVERY: Final = 10.0  # seconds between two times that what is known is kept
_SCOUT: Final = 2e-4  # seconds of calls by which the length of one is found


@dataclass(slots=True)
class Record:
    """All that was timed of a case so far, and what was seen around it, by round."""

    case: Case
    rounds: list[tuple[Sample, ...]] = field(default_factory=list)
    steal: list[float] = field(default_factory=list)
    before: Row | None = None

    def seconds(self) -> tuple[float, ...]:
        """The quiet estimate of each round, those of an earlier run first."""
        known = self.before.seconds if self.before else ()
        return (*known, *(min(time_of(self.case, each) for each in samples) for samples in self.rounds))

    def steady(self) -> bool:
        """Whether a further round would tell nothing new: two of them agree on the lowest."""
        lowest = sorted(self.seconds())
        return len(lowest) >= LEAST and lowest[1] <= lowest[0] * (1.0 + STEADY)

    def wanted(self, most: int) -> bool:
        """Whether it is measured in a further round."""
        return len(self.seconds()) < most and not self.steady()

    def row(self) -> Row:
        """What is stored of it."""
        case, before = self.case, self.before
        samples = tuple(tuple(time_of(case, each) for each in taken) for taken in self.rounds)
        faults = tuple(median(each.faults for each in taken) for taken in self.rounds)
        flags = flags_of(case.clock, self.seconds(), self.rounds, self.steal, busy=case.busy)
        if before:
            samples, faults = before.samples + samples, before.faults + faults
            flags = tuple(dict.fromkeys((*(each for each in before.flags if each not in ("few", "unsteady")), *flags)))
        return Row(case.suite, case.name, case.op, case.params, case.work, self.seconds(), case.clock, flags, samples, faults)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    round: int
    done: int
    cases: int
    left: float  # seconds of the budget


def time_of(case: Case, sample: Sample) -> float:
    """Seconds of one turn of a call, on the clock of the case; never 0."""
    found = {"cpu": sample.cpu, "wall": sample.wall, "device": sample.device}[case.clock]
    return max(found / case.loop, 1e-12)


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
    keep: Callable[[list[Row]], None] | None = None,
    first: Container[tuple[str, str]] = (),
) -> tuple[list[Row], dict[tuple[str, str], str]]:
    """Measure the cases in rounds; the rows, and for each that could not be measured the reason.

    budget: seconds for all of it, kept but for the case under way.  known: rows of an earlier run that this one goes on from.
    keep: called with all rows every ten seconds, and before an interruption goes on its way.  first: cases that come before the
    others in each round.
    """
    earlier = {row.key: row for row in known}
    records = {case.key: Record(case, before=earlier.get(case.key)) for case in cases}
    failed: dict[tuple[str, str], str] = {}
    clocks, began, order = clocks or SystemClocks(), now(), random.Random(seed)
    kept = began

    def rows() -> list[Row]:
        return [record.row() for record in records.values() if record.seconds()]

    try:
        with _collector_off():
            for turn in range(most):
                waiting = [each for each in records.values() if each.case.key not in failed and each.wanted(most)]
                if not waiting or now() - began >= budget:
                    break
                order.shuffle(waiting)
                # what was never seen comes first, and of that what was asked for by name: a budget may end early
                waiting.sort(key=lambda each: (bool(each.seconds()), each.case.key not in first))
                for done, record in enumerate(waiting):
                    if now() - began >= budget:
                        break
                    try:
                        _measure(record, clocks)
                    except (
                        CannotMeasure,
                        MemoryError,
                        OSError,
                        RuntimeError,
                    ) as error:  # RuntimeError: what a GPU's library raises
                        failed[record.case.key] = str(error) or type(error).__name__
                    if report:
                        report(Progress(turn + 1, done + 1, len(waiting), budget - (now() - began)))
                    if keep and now() - kept >= _EVERY:
                        keep(rows())
                        kept = now()
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
    after = stolen()
    record.rounds.append(tuple(samples))
    record.steal.append((after[0] - before[0]) / max(after[1] - before[1], 1))


def _loops(case: Case, sample: Timer, call: Call) -> int:
    """How many calls last as long as a sample should; the first call warms up, and one that is long is enough of that."""
    if _length(case, sample(call, 1)) >= case.seconds:
        return 1
    first = _length(case, sample(call, 1))
    if first < _SCOUT:
        first = _length(case, sample(call, min(case.most, max(1, int(_SCOUT / first)))))
    return max(1, min(case.most, int(case.seconds / first)))


def _length(case: Case, sample: Sample) -> float:
    """Seconds of a call: on the CPU, which nobody interrupts; else on the host, or on the device that it only enqueues for."""
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
