"""Sensitivity analysis of a run or of a choice between two options: tornado, break-even values and value of measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.api import Run, Source, load_machine, simulated
from hwsim.costs.bill import Paying, bill_of
from hwsim.costs.machine_price import price_of, unlike_prices
from hwsim.costs.prices import load_prices
from hwsim.devices.offers import PaymentOption
from hwsim.engine import Deadlock
from hwsim.results.interval import Interval, IntervalPart
from hwsim.results.ratio import ratio, shares_of
from hwsim.results.work import UNCOUNTED, WorkAmount, work_of
from hwsim.sensitivities.answer import BreakEvenPrice, BreakEvenValue, Sensitivity, UncertaintyShare
from hwsim.sensitivities.choice import break_even, wrong_after, wrong_now
from hwsim.sensitivities.terms import UncertainInput, joined, short, terms_of
from hwsim.sensitivities.tornado import End, Settings, TornadoBar, ordered, tornado
from hwsim.spec import SpecError, Tree, distinct_warnings
from hwsim.spec.memo import with_memo
from hwsim.studies.measures import TIME, NoSuchNumber, StudyMeasure, measure, number, throughput
from hwsim.studies.ranking import differing_unit, unranked_reason
from hwsim.views.interval.say import AS_WHOLE, CASES, short_name, sides
from hwsim.workload import sources

OF_TIME: Final = frozenset({TIME, "step_s", "mfu"})  # measures with the uncertainty of the time; throughputs have it, too
LEAST: Final = 0.005  # share of the variance; smaller errors have no bar
SAID: Final = 40  # characters of a source by which an error is matched with a number
PAID: Final[tuple[PaymentOption, ...]] = ("purchase", "on_demand")
TRIED: Final = 4  # number of inputs for which a break-even value is searched


class AnalysisOption(NamedTuple):
    """An option: machine and workload with settings applied, and the settings."""

    machine: Tree
    workload: Tree
    settings: Mapping[str, object]


@with_memo
def sensitivity(
    machine: Source,
    workload: Source,
    *,
    against: Sequence[tuple[Source, Source]] = (),
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    set_b: Mapping[str, object] | None = None,
    by: str = "",
    paying: Paying | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sensitivity:
    """Rank the uncertain inputs of a run by their effect on its result; with a second option, by their effect on the choice.

    Args:
        machine: machine of option A.
        workload: workload of option A.
        against: (machine, workload) of option B; at most one.
        set: settings of both options.
        set_b: settings of option B; without `against`, it has the files of A.
        by: measure, as in a sweep; default: time, or throughput if the options do different amounts of work.
        paying: prices, way to pay and site (`hwsim.Paying`); default: prices of the library, for break-even prices only.
        progress: function that is called with (inputs done, total).

    Raises:
        SpecError: a file has errors, or there is no such measure.
    """
    given = [(machine, workload, dict(set or {}))]
    if against or set_b:
        given.append((*(against[0] if against else (machine, workload)), {**dict(set or {}), **dict(set_b or {})}))
    return _Analysis([AnalysisOption(*sources.with_settings(*side), side[2]) for side in given], by, paying, progress).run()


class _Analysis:
    def __init__(
        self, options: Sequence[AnalysisOption], by: str, paying: Paying | None, progress: Callable[[int, int], None] | None
    ) -> None:
        self._options, self._paying, self._progress = tuple(options), paying, progress
        self._runs = 0
        self._known: dict[tuple[int, tuple[tuple[str, str], ...]], float | None] = {}
        self.first = [self._simulated(option, {}) for option in options]
        self._works = [work_of(run) for run in self.first]
        self._measure = measure(by) if by else self._chosen()
        try:
            self._values = [self._value(run, work) for run, work in zip(self.first, self._works, strict=True)]
        except NoSuchNumber as error:
            raise SpecError.of(None, str(error), error.hint) from None
        if by and (why := unranked_reason(self._measure, self._works, self._values)):
            raise SpecError.of(None, why)
        costs = [bill_of(run).cost for run in self.first] if self._measure.column == "cost_usd" else []
        if len(costs) > 1 and (why := unlike_prices(*(() if cost is None else cost.prices for cost in costs))):
            raise SpecError.of(None, f"cost cannot rank the options: {why}")
        if min(self._values) <= 0:
            raise SpecError.of(None, f"{self._measure.title} is 0, so it has no ratio")

    def _chosen(self) -> StudyMeasure:
        if any(run.of_kernels for run in self.first):
            raise SpecError.of(None, "choose a measure of the service: --by ttft_p95, tpot_p95 or requests/s")
        unit = differing_unit(self._works)
        if unit in UNCOUNTED:
            raise SpecError.of(
                None, "the options do different amounts of work, which no op counts", "choose a measure: --by MEASURE"
            )
        return throughput(unit) if unit else measure(TIME)

    def _simulated(self, option: AnalysisOption, settings: Settings) -> Run:
        self._runs += 1
        return simulated(option.machine, option.workload, set=settings, paying=self._paying)

    def _value(self, run: Run, work: Sequence[WorkAmount]) -> float:
        pace = next((row.per_s for row in work if throughput(row.unit).column == self._measure.column), None)
        return pace if pace is not None else number(run, self._measure, run.to_json)

    def _of(self, at: int, settings: Settings) -> float | None:
        """Return the measure of an option with some settings; None if its files do not allow them."""
        if not settings:
            return self._values[at]
        key = (at, tuple(sorted(settings.items())))
        if key not in self._known:
            try:
                run = self._simulated(self._options[at], settings)
                self._known[key] = self._value(run, work_of(run))
            except (SpecError, Deadlock, NoSuchNumber):
                self._known[key] = None
        return self._known[key]

    def _answer(self, values: Sequence[float | None]) -> float | None:
        if None in values:
            return None
        first, *rest = (value or 0.0 for value in values)
        if not rest:
            return first
        if first <= 0 or rest[0] <= 0:
            return None
        return rest[0] / first if self._measure.most else first / rest[0]

    def run(self) -> Sensitivity:
        answer = self._answer(self._values)
        assert answer is not None
        intervals = self._intervals()
        half, is_outside, shares = self._unsure(intervals)
        terms = joined([terms_of(option.machine, option.workload) for option in self._options])
        bars = list(tornado(answer, terms, self._evaluate, self._progress))
        matched = [_own(bar.term, shares) for bar in bars if bar.term is not None]
        bars = [replace(bar, is_counted=bool(own)) for bar, own in zip(bars, matched, strict=True)]
        moved = len(bars)
        ends = _ends(answer, half or 0.0, intervals, is_pace=self._measure.most)
        unmatched = [pair for pair in shares if pair[0] not in [*itertools.chain(*matched)]]
        bars += _of_models(answer, ends, unmatched, intervals)
        wrong = None if half is None or len(intervals) < 2 else wrong_now(answer, half)
        breaks, unbroken = self._breaks(bars) if len(self._options) > 1 else ((), ())
        worth, unpriced = self._worth(answer) if len(self._options) > 1 else ((), ())
        return Sensitivity(
            titles=tuple((run.workload, run.machine) for run in self.first),
            measure=self._measure,
            values=tuple(self._values),
            answer=answer,
            half=half,
            ends=ends,
            is_outside=is_outside,
            bars=ordered(bars),
            doubts=tuple(_doubts(answer, half, shares, intervals)) if half else (),
            wrong=wrong,
            breaks=breaks,
            unbroken=unbroken,
            worth=worth,
            unpriced=unpriced,
            idle=len(terms) - moved,
            runs=self._runs,
            warnings=distinct_warnings(*(run.warnings for run in self.first)),
            settings=tuple(tuple((path, str(value)) for path, value in side.settings.items()) for side in self._options),
        )

    def _intervals(self) -> list[Interval]:
        """Return the intervals of the options if the measure has the uncertainty of the time; else none."""
        is_pace = self._measure.column in OF_TIME or any(
            throughput(w.unit).column == self._measure.column for w in self._works[0]
        )
        if not is_pace or any(run.of_kernels for run in self.first):
            return []
        if self._measure.column in OF_TIME:
            return [run.interval for run in self.first]
        return [run.interval.of(1 / value) for run, value in zip(self.first, self._values, strict=True)]

    def _unsure(self, intervals: Sequence[Interval]) -> tuple[float | None, bool, list[tuple[IntervalPart | None, float]]]:
        """Return (half width, whether an option is extrapolated, errors with their shares of the variance)."""
        if not intervals:
            return None, False, []
        if len(intervals) == 1:
            sure = intervals[0]
            shares: list[tuple[IntervalPart | None, float]] = [
                (part, sure.share(part)) for part in sure.parts if sure.share(part) > 0
            ]
            if sure.own > 0:
                shares.append((None, sure.own**2 / sure.variance))
            return sure.reach, sure.case == "outside", sorted(shares, key=lambda pair: -pair[1])
        over = ratio(intervals[0], intervals[1])
        return over.half, over.outside, list(shares_of(intervals[0], intervals[1]))

    def _evaluate(self, group: Sequence[UncertainInput], end: End) -> float | None:
        settings = [dict(getattr(term, end) for term in group if index in term.options) for index in range(len(self._options))]
        return self._answer([self._of(index, own) for index, own in enumerate(settings)])

    def _breaks(self, bars: Sequence[TornadoBar]) -> tuple[tuple[BreakEvenValue, ...], tuple[str, ...]]:
        """Return break-even values of inputs of B, and the inputs without one between a quarter and four times their value."""
        longest = sorted(bars, key=lambda bar: (-bar.swing, bar.name))
        mine = [bar.term for bar in longest if bar.term is not None and 1 in bar.term.options][:TRIED]
        crossed, none = [], []
        for term in mine:
            name = term.name.removeprefix("B ")

            def gain(factor: float, term: UncertainInput = term) -> float | None:
                settings = dict([term.times(factor)]) if factor != 1.0 else {}
                return self._answer([self._values[0], self._of(1, settings)])

            factor = break_even(gain)
            if factor is None:
                none.append(name)
            else:
                crossed.append(BreakEvenValue(name, factor, _short(term.number.times(factor))))
        return tuple(crossed), tuple(none)

    def _worth(self, answer: float) -> tuple[tuple[BreakEvenPrice, ...], tuple[str, ...]]:
        """Return break-even prices for both ways to pay, and the machines without a price."""
        if not (self._measure.is_pace or self._measure.column == "step_s"):
            return (), ()
        prices = (None if self._paying is None else self._paying.lists) or load_prices()
        priced = [price_of(load_machine(option.machine), prices, PAID) for option in self._options]
        ways = []
        for way in PAID:
            first, second = (price[way].amount for price in priced)
            unlike = unlike_prices(priced[0][way].items, priced[1][way].items)
            if first is not None and second is not None and first.value > 0 and second.value > 0:
                ways.append(BreakEvenPrice(way, (first, second), answer * first.value / second.value, unlike))
        names = [run.machine for run, price in zip(self.first, priced, strict=True) if not any(price[way].amount for way in PAID)]
        return tuple(ways), tuple(dict.fromkeys(names))


def _short(text: str) -> str:
    digits, space, unit = text.partition(" ")
    return f"{short(float(digits))}{space}{unit}"


def _ends(answer: float, half: float, intervals: Sequence[Interval], *, is_pace: bool) -> tuple[float, float]:
    """Return the ends of the interval; for one run, of its time, reversed for a throughput."""
    below, above = (intervals[0].below, intervals[0].above) if len(intervals) == 1 else (half, half)
    less, more = (above, below) if is_pace else (below, above)
    return answer * math.exp(-less), answer * math.exp(more)


def _of_models(
    answer: float, ends: tuple[float, float], shares: Sequence[tuple[IntervalPart | None, float]], intervals: Sequence[Interval]
) -> Iterator[TornadoBar]:
    """Yield bars of errors that are not varied as inputs: of models, of whole runs, and of inputs that cannot be set."""
    for part, share in shares:
        if share < LEAST or ends[0] == ends[1]:
            continue
        low, high = ((end / answer) ** math.sqrt(share) for end in ends)
        source = "measured runs" if part is None else CASES[part.case] + (f" ({part.rows:,})" if part.rows else "")
        yield TornadoBar(_named(part, intervals), answer * low, answer * high, answer, sides(low, high), source)


def _named(part: IntervalPart | None, intervals: Sequence[Interval]) -> str:
    """Return the short name of an error, with the letter of the option if only one has it."""
    if part is None:
        return AS_WHOLE
    having = [
        letter for letter, interval in zip("AB", intervals, strict=False) if part.doubt in {own.doubt for own in interval.parts}
    ]
    return f"{having[0]} {short_name(part)}" if len(having) == 1 < len(intervals) else short_name(part)


def _own(term: UncertainInput, shares: Sequence[tuple[IntervalPart | None, float]]) -> list[IntervalPart]:
    """Return the errors of the interval that a number of a file causes."""
    source = str(term.number.source)[:SAID]
    return [part for part, _ in shares if part is not None and part.is_number and source in part.key]


def _doubts(
    answer: float, half: float, shares: Sequence[tuple[IntervalPart | None, float]], intervals: Sequence[Interval]
) -> Iterator[UncertaintyShare]:
    for part, share in shares:
        left = half * math.sqrt(max(0.0, 1.0 - share))
        yield UncertaintyShare(
            _named(part, intervals), share, left, wrong_after(answer, half, share) if len(intervals) > 1 else None
        )
