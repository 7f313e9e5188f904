"""The answer of `--find`: the largest value that meets all expectations, its sampling error, and the limiting resource."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, ClassVar, Literal

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.results.batches import ConfidenceRange
from hwsim.results.expect import HOUR
from hwsim.studies.knob import Knob
from hwsim.views.kit.answer_forms import NotebookAnswer
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns

Status = Literal["held", "violated", "overloaded", "failed"]


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """An expectation in one run: its bounds, its value and, for services, the interval of the value (SI units).

    half: half width of the 90 % interval of the value's logarithm; 0 if it is unknown.
    """

    quantity: str
    expected: str
    low: float
    high: float
    unit: str
    value: float
    confidence_range: ConfidenceRange | None = None
    too_short: bool = False
    half: float = 0.0

    @property
    def said(self) -> float:
        """Value in the unit of its name, such as hours of GPU-hours."""
        return self.value / HOUR if self.unit == "h" else self.value

    @property
    def strain(self) -> float:
        """Value / bound; the bound is violated above 1."""
        return self._strain(self.value)

    @property
    def strains(self) -> tuple[float, float]:
        """Strains at both ends of the sampling interval."""
        if self.confidence_range is None:
            return self.strain, self.strain
        ends = sorted((self._strain(self.confidence_range.low), self._strain(self.confidence_range.high)))
        return ends[0], ends[1]

    @property
    def unsure(self) -> tuple[float, float]:
        """Strains at both ends of the 90 % interval."""
        ends = sorted((self._strain(self.value * math.exp(-self.half)), self._strain(self.value * math.exp(self.half))))
        return ends[0], ends[1]

    def _strain(self, value: float) -> float:
        above = value / self.high if 0 < self.high < math.inf else (math.inf if value > self.high else 0.0)
        below = (self.low / value if value > 0 else math.inf) if self.low > 0 else 0.0
        return max(above, below)

    def text(self, digits: int = 3) -> str:
        """Return the value and, for services, its sampling error, as text."""
        shown = format_quantity(self.value, self.unit, digits) if math.isfinite(self.value) else "unbounded"
        if self.confidence_range is None:
            return shown
        low = format_quantity(self.confidence_range.low, self.unit)
        number, _, unit = low.rpartition(" ")
        if math.isinf(self.confidence_range.high):
            ends = f"at least {low}"
        else:
            high = format_quantity(self.confidence_range.high, self.unit)
            ends = f"{number if number and high.endswith(f' {unit}') else low}–{high}"
        return f"{shown} ({ends}{', run too short' if self.too_short else ''})"


@dataclass(frozen=True, slots=True)
class TriedValue:
    """A run with one value, and its outcome.

    Args:
        reason: reason of a failure, or of a missing steady state.
        limits: resource or cause with most of the time of the tightest expectation.
        more: request counts needed for a verdict, by path.
        brief: whether the run ended before the steady state.
    """

    value: float
    status: Status
    expected: tuple[SearchLimit, ...] = ()
    reason: str = ""
    limits: str = ""
    more: tuple[tuple[str, int], ...] = ()
    brief: bool = False

    @property
    def held(self) -> bool:
        return self.status == "held"

    @property
    def tightest(self) -> SearchLimit | None:
        """Expectation closest to its bound, or furthest beyond it."""
        return max(self.expected, key=lambda each: each.strain, default=None)

    def text(self, digits: int = 3) -> str:
        """Return the outcome as text."""
        if self.status == "overloaded":
            return f"overloaded: {self.reason}"
        if self.status == "failed":
            return f"failed: {self.reason}"
        return ", ".join(f"{limit.quantity} {limit.text(digits)}" for limit in self.expected)


@dataclass(frozen=True, slots=True)
class FindResult(NotebookAnswer):
    """The largest value that meets all expectations.

    Args:
        value: largest value; None if no value meets the expectations.
        next: smallest tried value above it that does not; None if all tried values do.
        low: lower end of the 95 % sampling interval; None if it is unknown.
        high: upper end of the 95 % sampling interval; None if it is unknown.
        tried: last round of runs, by value.
        runs: number of runs in all rounds.
        interval: 90 % interval from the prediction errors of the service; None: beyond the values tried.
        counts: request counts of the runs if those in the files were too small, by path.
        changed: paths and values that were set in all runs.
    """

    machine: str
    workload: str
    knob: Knob
    value: float | None
    next: float | None
    low: float | None
    high: float | None
    tried: tuple[TriedValue, ...]
    runs: int
    counts: tuple[tuple[str, int], ...] = ()
    interval: tuple[float | None, float | None] = (None, None)
    changed: tuple[tuple[str, str], ...] = ()
    TABLE: ClassVar = "tried"

    def of(self, value: float | None) -> TriedValue | None:
        """Return the run of a value."""
        return next((run for run in self.tried if run.value == value), None)

    @property
    def sampled(self) -> bool:
        """Whether the expected quantities are random with a known sampling error."""
        return any(limit.confidence_range is not None for run in self.tried for limit in run.expected)

    def __str__(self) -> str:
        lines = [*wrap_lines(f"{self.workload}, on {self.machine}: highest {self.knob.name} that meets all requirements", 0), ""]
        for label, text in self._lines():
            lines += labelled_lines(label, text, LABEL)
        return "\n".join([*lines, *self._table()]) + "\n"

    def _lines(self) -> Iterator[tuple[str, str]]:
        name, shown = self.knob.name, self.knob.shown
        if self.changed:
            yield "set", ", ".join(f"{path}={value}" for path, value in self.changed)
        runs = f"({self.runs} run{'s' if self.runs > 1 else ''})"
        at, beyond = self.of(self.value), self.of(self.next)
        if self.value is None or at is None:
            yield "highest", f"none: {name} {shown(self.tried[0].value)} violates a requirement {runs}"
            if name not in ("rate", "clients"):
                yield (
                    "",
                    f"values above {shown(self.tried[-1].value)} were not tried, because lower values are assumed to be easier",
                )
            if self.tried[0].limits:
                yield "bottleneck", self.tried[0].limits
            return
        if beyond is None:
            yield "highest", f"at least {shown(self.value)}, the highest value tried: no requirement depends on {name} {runs}"
        else:
            yield "highest", f"{shown(self.value)} {runs}"
        if self.sampled and beyond is not None:
            yield "sampling error", self._between()
        if any(limit.half for limit in at.expected):
            low, high = (None if end is None else self.knob.shown(end, 2) for end in self.interval)
            yield "90 % interval", f"{low or 'below all values tried'} to {high or 'above all values tried'}"
        if self.limit:
            yield "limit", self.limit
        for path, count in self.counts:
            yield "requests", f"{count:,} in each run, more than the file has, to resolve the requirement ({path})"
        if at.brief:
            yield "not steady", "the runs end before they reach a steady state: use more requests or a lower load"

    def _table(self) -> Iterator[str]:
        """Return the table of expectations at the value and at the next one, with sampling errors."""
        at = [tried for value in (self.value, self.next) if value is not None and (tried := self.of(value)) is not None]
        at = at or list(self.tried[:1])
        texts = [[tried.text(digits) for tried in at] for digits in (3, 4, 5, 6)]
        results = next((found for found in texts if len({*found}) == len(found)), texts[0])
        yield ""
        yield from align_columns([
            Column(self.knob.name, [self.knob.shown(tried.value) for tried in at]),
            Column("status", ["met" if tried.held else tried.status for tried in at], right=False),
            Column("requirements (sampling error, 95 % CI)" if self.sampled else "requirements", results, right=False),
        ])  # fmt: skip

    @property
    def limit(self) -> str:
        """Reason against a larger value, as text."""
        beyond = self.of(self.next)
        if beyond is None or beyond.status == "failed":
            return "" if beyond is None else beyond.reason
        tightest = beyond.tightest
        if tightest is None or beyond.status == "overloaded":
            return f"overloaded above: {beyond.reason}"
        return f"{tightest.quantity} {tightest.expected}" + (f"; {beyond.limits}" if beyond.limits else "")

    def _end(self, end: float) -> str:
        """Return an end of the interval, to three digits, or to all digits if rounding would move it past the value."""
        near = float(f"{end:.3g}")
        value = end if self.value is None else self.value
        return self.knob.shown(end) if end <= value < near or near < value <= end else self.knob.shown(end, 3)

    def _between(self) -> str:
        low, high = (None if end is None else self._end(end) for end in (self.low, self.high))
        if low is not None and high is not None:
            return f"{low} to {high} (95 % CI)"
        if low is None and high is None:
            return "unknown: the runs are too short"
        return f"at most {high} (95 % CI); the runs are too short for a lower end" if low is None else f"at least {low} (95 % CI)"

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: find/2`."""
        return {
            "hwsim": "find/2",
            **select_attributes(self, "machine", "workload"),
            "find": self.knob.name,
            "unit": "1" if self.knob.whole else self.knob.dimension.unit,
            **select_attributes(self, "value", "next", "low", "high"),
            "interval": {"low": self.interval[0], "high": self.interval[1]},
            "runs": self.runs,
            "requests": dict(self.counts),
            "settings": {} if self.value is None else self.knob.settings(self.value),
            "set": dict(self.changed),
            "limit": self.limit or None,
            "tried": [_run(run) for run in self.tried],
        }


def _run(tried: TriedValue) -> dict[str, Any]:
    return {
        **select_attributes(tried, "value", "status"),
        "reason": tried.reason or None,
        "limits": tried.limits or None,
        "expect": [
            {
                **select_attributes(limit, "quantity", "expected", "too_short"),
                "value": limit.said if math.isfinite(limit.value) else None,
                "confidence_range": None
                if limit.confidence_range is None
                else {key: end if math.isfinite(end) else None for key, end in asdict(limit.confidence_range).items()},
            }
            for limit in tried.expected
        ],
    }
