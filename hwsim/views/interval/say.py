"""90 % intervals in words and as JSON, and the sources of their uncertainty."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hwsim.formats import format_between, format_change, percent
from hwsim.origins import Case
from hwsim.results.interval import NORMAL, Interval, Part
from hwsim.views.kit.document import picked
from hwsim.views.kit.table import Column, aligned

PARTS: Final = 3  # shown
LEAST: Final = 0.1  # part of the variance that is worth a word
WORTH: Final = 0.005  # half width that is worth a word
SMALL: Final = 0.01  # part of the variance of a row
ROWS: Final = 8
_DTYPE: Final = re.compile(r"\bmatmul\.(\w+)")  # of a matmul, in the key of its error
EXACT: Final = 1e-4  # half widths below are none
ALL: Final = 0.995
ONE: Final = 1e-3  # a ratio nearer to 1 is written with more digits
AS_WHOLE: Final = "run-level error"
TITLE: Final = "90 % interval"
INPUTS: Final = "not applicable: every time and rate on the critical path is an input"
HEADINGS: Final = ("source of uncertainty", "share of time", "alone", "without it")

CASES: Final[Mapping[Case, str]] = {
    "known": "fitted",
    "source": "measured on other systems",
    "device": "class default",
    "generation": "other GPU generations",
    "outside": "extrapolated",
    "stated": "an input",
}

KINDS: Final[Mapping[str, str]] = {  # first word of a regime -> short name of the error
    "attention": "attention",
    "cache": "cache bandwidth",
    "conv": "convolution",
    "copy": "host-device copy",
    "cpuproduct": "CPU matmul",
    "disk": "disk",
    "elementwise": "elementwise kernel",
    "infer": "model iteration",
    "latency": "access latency",
    "launch": "kernel launch",
    "moe": "expert kernel",
    "mpi": "MPI collective",
    "nccl": "NCCL collective",
    "pcie": "PCIe transfer",
    "product": "matmul",
    "product4": "4-bit matmul",
    "product8": "8-bit matmul",
    "program": "recorded call",
    "reduce": "custom all-reduce",
    "send": "message",
    "stream": "memory traffic",
    "weightonly": "matmul with quantized weights",
}
REGIMES: Final[Mapping[str, str]] = {  # its second word, where that needs explaining
    "big": "large",
    "cpu": "CPU",
    "core": "one core",
    "gpu": "GPU",
    "graph": "CUDA graph",
    "large": "large messages",
    "middle": "medium messages",
    "read": "reads",
    "small": "small messages",
    "write": "writes",
}
UNPROMISED: Final[Mapping[Case, str]] = {
    "generation": "extrapolated to a GPU generation without measurements (no guarantee)",
    "outside": "extrapolated beyond all measurements (no guarantee)",
}


def line(interval: Interval, *, kernels: bool = False) -> str:
    """The interval and its basis: `59.4–72.7 ms (-10/+11 %), cross-validated on other devices`.

    Args:
        kernels: it is of the kernels of a service, not of the run.
    """
    if interval.half < EXACT:
        return INPUTS if interval.stated > ALL else "not available"
    if kernels:
        return f"kernel times {within(interval)}, {basis(interval)}; queueing: add --interval"
    return f"{range_text(interval)} ({within(interval)}), {basis(interval)}"


def basis(interval: Interval) -> str:
    """What the interval rests on, in words."""
    if interval.case in UNPROMISED:
        text = UNPROMISED[interval.case]
    elif interval.basis == "measured":
        text = f"cross-validated on {'other systems' if interval.case == 'source' else 'held-out devices'}"
    elif interval.case == "device":
        text = "class defaults"
    else:
        text = "composed from the errors of its parts"
    return f"{text}; {percent(interval.stated, '.0f')} of the time is an input" if interval.stated >= LEAST else text


def evidence(interval: Interval) -> str:
    """The measurements behind an interval that was cross-validated; "" of another."""
    if interval.basis != "measured" or interval.case in UNPROMISED:
        return ""
    return f"{interval.rows:,} measurements, {interval.units} held out in turn"


def sources(interval: Interval) -> Iterator[str]:
    """The sources of most of the uncertainty, each with its share of the variance; then what a measurement would gain."""
    errors = errors_of(interval) if interval.half >= EXACT else []
    shown = [error for error in errors if error.of_time is not None][:PARTS]
    shown = [each for each in [*shown, *(each for each in errors if each.of_time is None)] if each.share >= LEAST]
    for each in shown:
        left = each.left if each.of_time is not None and WORTH < each.left < 0.9 * interval.half else 0.0
        gain = f"; measured, the interval narrows to ±{rough(left)}" if left else ""
        yield f"{each.name}: {percent(each.share, '.0f')} of the variance{gain}"


class Error(NamedTuple):
    """Errors of an answer that have one name.

    Args:
        of_time: part of the time; None of what a run misses by as a whole.
        share: part of the variance. alone: half width that it makes. left: half width without it.
    """

    name: str
    of_time: float | None
    share: float
    alone: float
    left: float


def errors_of(interval: Interval) -> list[Error]:
    """Errors of an answer, the largest first; parts of one name are joined."""
    by_name: dict[tuple[str, str], list[Part]] = {}
    for part in interval.parts:
        by_name.setdefault((named(part), part.key if part.is_number else ""), []).append(part)
    errors = []
    for (name, _), parts in by_name.items():
        share = math.fsum(interval.share(part) for part in parts)
        alone = math.sqrt(math.fsum(part.quantile**2 * part.variance for part in parts))
        errors.append(Error(name, math.fsum(part.of_time for part in parts), share, alone, _without(interval, share)))
    if interval.own > 0:
        share = interval.own**2 / interval.variance
        errors.append(Error(AS_WHOLE, None, share, NORMAL[interval.level] * interval.own, _without(interval, share)))
    return sorted(errors, key=lambda each: (-each.share, each.name))


def _without(interval: Interval, share: float) -> float:
    return interval.half * math.sqrt(max(0.0, 1.0 - share))


def rough(part: float) -> str:
    """A fraction in per cent with two digits at most.

    >>> rough(0.123), rough(0.0456), rough(1.8), rough(2e-8)
    ('12 %', '4.6 %', '180 %', '0 %')
    """
    if part < 0.0005:
        return percent(0.0, ".0f")
    return percent(part, ".0f" if part >= 0.0995 else ".2g")


def sides(low: float, high: float) -> str:
    """Factors on a number, below 1 and above it, as changes of it.

    >>> sides(0.94, 1.07), sides(0.2, 5.28), sides(1.0, 12.8)
    ('-6/+7 %', '-80/+428 %', '+0.0/+1,180 %')
    """
    return f"{format_change(low - 1).removesuffix(' %')}/{format_change(high - 1)}"


def factor_text(value: float) -> str:
    """A factor with three digits, and with those that tell it from 1.

    >>> factor_text(1.3149), factor_text(0.98421), factor_text(1.0004), factor_text(123.4)
    ('1.31', '0.984', '1.0004', '123')
    """
    near = abs(value - 1)
    return f"{value:.5g}" if 0 < near < ONE else f"{value:.3g}"


def range_text(interval: Interval) -> str:
    """`1.24–1.43 s`."""
    low, high = format_between(interval.low, interval.high, "s")
    number, _, its_unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {its_unit}') else low}–{high}"


def ends(interval: Interval | None) -> str:
    """` (90 % interval 4–6 ms)`; "" where nothing is uncertain."""
    return "" if interval is None or interval.half < EXACT else f" ({TITLE} {range_text(interval)})"


def within(interval: Interval) -> str:
    """`-9/+10 %`, of the answer; "" where nothing is uncertain."""
    if interval.half < EXACT:
        return ""
    low, high = (percent(end / interval.value - 1, "+.0f") for end in (interval.low, interval.high))
    return f"{low.removesuffix(' %')}/{high}"


def named(part: Part) -> str:
    """The short name of an error, and how well its numbers are known.

    >>> named(Part("gpu stream/gpu", "stream/gpu", "device", 0.4, 0.1, 0.0, 1.6))
    'memory traffic, GPU (class default)'
    """
    return short_name(part) if part.is_number else f"{short_name(part)} ({CASES[part.case]})"


def short_name(part: Part) -> str:
    """The name of an error: of a model by its data type and regime, of a number of a file by its key and source.

    >>> short_name(Part("989.4 TFLOP/s, 132 multiprocessors, matmul.fp16 of 79 %", "product/big", "known", 0.4, 0.1, 0.0, 1.6))
    'fp16 matmul, large'
    >>> short_name(Part("latency: guess, as others have it", "number/guess.any", "device", 0.4, 0.1, 0.0, 1.6))
    'latency (guess)'
    """
    if part.is_number:
        number, colon, cited = part.key.partition(": ")
        return f"{number} ({cited.partition(',')[0]})" if colon else number
    kind, _, regime = part.regime.partition("/")
    dtype = _DTYPE.search(part.key)
    name = f"{f'{dtype[1]} ' if dtype else ''}{KINDS.get(kind, kind)}"
    return name if regime in ("", "*") else f"{name}, {REGIMES.get(regime, regime)}"


def table(interval: Interval) -> Iterator[str]:
    """A row for each error: what it alone makes of the answer, and what would be left if it were measured."""
    cells = rows(interval)
    if not cells:
        return
    yield ""
    yield from aligned(
        [Column(heading, [row[place] for row in cells], right=place > 0) for place, heading in enumerate(HEADINGS)]
    )


def rows(interval: Interval) -> list[tuple[str, str, str, str]]:
    """Under `HEADINGS`, the errors that matter, the largest first; none where nothing is unsure."""
    if interval.half < EXACT:
        return []
    return [
        (
            each.name,
            "-" if each.of_time is None else percent(each.of_time, ".0f"),
            f"±{rough(each.alone)}",
            f"±{rough(each.left)}" if each.of_time is not None else "-",
        )
        for each in [each for each in errors_of(interval) if each.share >= SMALL][:ROWS]
    ]


def as_dict(interval: Interval, *, kernels: bool = False) -> dict[str, Any]:
    """The entry of a document; kernels: it is of a service's kernels, whose ends are parts of their time."""
    times = {"low": math.exp(-interval.below), "high": math.exp(interval.above)}
    return {
        **({"of": "kernels", **times} if kernels else {"low_s": interval.low, "high_s": interval.high}),
        "level": interval.level,
        "basis": interval.basis,
        "case": interval.case,
        "rows": interval.rows,
        "units": interval.units,
        "stated": interval.stated,
        "doubt": [
            {
                **picked(part, "key", "regime", "case", "of_time"),
                "share": interval.share(part),
                "half_alone": part.quantile * math.sqrt(part.variance),
                "half_if_known": interval.without(part),
            }
            for part in interval.parts
        ],
        "own": interval.own**2 / interval.variance if interval.variance > 0 else 0.0,
    }
