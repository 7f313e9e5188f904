"""90 % intervals in words and as JSON, and the sources of their uncertainty."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hwsim.formats import format_between, format_change, format_quantity, percent
from hwsim.origins import Case
from hwsim.results.errors import UNLIKE
from hwsim.results.interval import Interval, IntervalPart
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.table import Column, align_columns

PARTS: Final = 3  # largest number of sources in the summary
LEAST: Final = 0.1  # least share of the variance of a source in the summary
WORTH: Final = 0.005  # least half width that is named
SMALL: Final = 0.01  # least share of the variance of a row
ROWS: Final = 8  # largest number of rows
_DTYPE: Final = re.compile(r"\bmatmul\.(\w+)")  # data type in the key of a matmul error
EXACT: Final = 1e-4  # half width below which there is no uncertainty
ALL: Final = 0.995  # share of the time that counts as all of it
ONE: Final = 1e-3  # distance from 1 below which a factor has more digits
AS_WHOLE: Final = "run-level error"
TITLE: Final = "90 % interval"
INPUTS: Final = "not applicable: all times and rates on the critical path are inputs"
NEARLY: Final = "below ±0.01 %: nearly all times and rates on the critical path are inputs"
HEADINGS: Final = ("source of uncertainty", "share of time", "alone", "without it")

CASES: Final[Mapping[Case, str]] = {
    "known": "fitted",
    "source": "measured on other systems",
    "device": "class default",
    "generation": "other GPU generations",
    "outside": "extrapolated",
    "stated": "an input",
}

KINDS: Final[Mapping[str, str]] = {  # short name of an error by the first word of its regime
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
    "network": "collective between nodes",
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
REGIMES: Final[Mapping[str, str]] = {  # text by the second word of a regime
    "big": "large",
    "cpu": "CPU",
    "core": "one core",
    "gpu": "GPU",
    "graph": "CUDA graph",
    "large": "large messages",
    "middle": "medium messages",
    "pairs": "two ranks",
    "read": "reads",
    "small": "small messages",
    "write": "writes",
}
UNPROMISED: Final[Mapping[Case, str]] = {
    "generation": "extrapolated to a GPU generation without measurements (no guarantee)",
    "outside": "extrapolated beyond all measurements (no guarantee)",
}
UNLIKE_COLLECTIVES: Final[Mapping[str, str]] = {  # the same for collectives, by the first word of the regime
    "nccl": "measured with other GPUs, operations or numbers of ranks (no guarantee)",
    "network": "a network without measurements: small messages within a factor of 3",
}


def line(interval: Interval, *, kernels: bool = False) -> str:
    """Return the interval and its basis, such as `59.4–72.7 ms (-10/+11 %), cross-validated on other devices`.

    Args:
        interval: interval.
        kernels: whether it is of the kernel times of a service instead of the run.
    """
    if interval.half < EXACT:
        return (NEARLY if interval.half else INPUTS) if interval.stated > ALL else "not available"
    if kernels:
        return f"kernel times {relative_range(interval)}, {basis(interval)}; queueing: add --interval"
    return f"{range_text(interval)} ({relative_range(interval)}), {basis(interval)}"


def corrected(interval: Interval) -> str:
    """Return the corrected time and the measurements behind it; "" without a correction."""
    if not interval.correction:
        return ""
    return f"{format_quantity(interval.expected, 's')}: {format_change(interval.factor - 1)} from {interval.scored}"


def basis(interval: Interval) -> str:
    """Return the basis of the interval in words."""
    if interval.scored:
        text = f"{'composed, with' if interval.basis == 'composed' else 'from'} {interval.scored}"
    elif interval.case == "generation" and (text := UNLIKE_COLLECTIVES.get("/".join(_worst(interval)), "")):
        pass
    elif interval.case in UNPROMISED:
        text = UNPROMISED[interval.case]
    elif interval.basis == "measured":
        text = f"cross-validated on {'other systems' if interval.case == 'source' else 'held-out devices'}"
    elif interval.case == "device":
        text = "class defaults"
    else:
        text = "composed from the errors of its parts"
    if unlike := [part.key.partition(": ")[2] for part in interval.parts if part.key.startswith(UNLIKE)]:
        text = f"{text}; {UNLIKE}: {', '.join(sorted(unlike))}"
    return f"{text}; {percent(interval.stated, '.0f')} of the time is an input" if interval.stated >= LEAST else text


def _worst(interval: Interval) -> list[str]:
    """Return the first words of the regimes of the parts with the case of the whole interval."""
    return sorted({part.regime.partition("/")[0] for part in interval.parts if part.case == interval.case})


def evidence(interval: Interval) -> str:
    """Return the number of measurements behind a cross-validated interval; "" for others."""
    if interval.scored or interval.basis != "measured" or interval.case in UNPROMISED:
        return ""
    return f"{interval.rows:,} measurements, {interval.units} held out in turn"


def sources(interval: Interval) -> Iterator[str]:
    """Yield the main sources of uncertainty, each with its share of the variance and the gain from measuring it."""
    errors = errors_of(interval) if interval.half >= EXACT else []
    shown = [error for error in errors if error.time_share is not None][:PARTS]
    shown = [error for error in [*shown, *(error for error in errors if error.time_share is None)] if error.share >= LEAST]
    for error in shown:
        left = error.left if error.time_share is not None and WORTH < error.left < 0.9 * interval.half else 0.0
        gain = f"; measuring it narrows the interval to ±{rough(left)}" if left else ""
        yield f"{error.name}: {percent(error.share, '.0f')} of the variance{gain}"


class Error(NamedTuple):
    """Errors of an answer with one name.

    Args:
        name: name.
        time_share: share of the time; None for the run-level error.
        share: share of the variance.
        alone: half width with this error only.
        left: half width without it.
    """

    name: str
    time_share: float | None
    share: float
    alone: float
    left: float


def errors_of(interval: Interval) -> list[Error]:
    """Return the errors of an answer, largest first; parts with one name are joined."""
    by_name: dict[tuple[str, str], list[IntervalPart]] = {}
    for part in interval.parts:
        by_name.setdefault((error_title(part), part.key if part.is_number else ""), []).append(part)
    errors = []
    for (name, _), parts in by_name.items():
        share = math.fsum(interval.share(part) for part in parts)
        errors.append(_error(interval, name, math.fsum(part.time_share for part in parts), share))
    if interval.own > 0:
        errors.append(_error(interval, AS_WHOLE, None, interval.own**2 / interval.variance))
    return sorted(errors, key=lambda error: (-error.share, error.name))


def _error(interval: Interval, name: str, time_share: float | None, share: float) -> Error:
    """Return an error with the half widths of its share of the variance, so that all errors add up to the interval."""
    alone, left = (interval.half * math.sqrt(max(0.0, part)) for part in (share, 1.0 - share))
    return Error(name, time_share, share, alone, left)


def rough(part: float) -> str:
    """Return a fraction in per cent with at most two digits.

    >>> rough(0.123), rough(0.0456), rough(1.8), rough(2e-8)
    ('12 %', '4.6 %', '180 %', '0 %')
    """
    if part < 0.0005:
        return percent(0.0, ".0f")
    return percent(part, ".0f" if part >= 0.0995 else ".2g")


def sides(low: float, high: float) -> str:
    """Return two factors, below and above 1, as relative changes.

    >>> sides(0.94, 1.07), sides(0.2, 5.28), sides(1.0, 12.8)
    ('-6/+7 %', '-80/+428 %', '+0.0/+1,180 %')
    """
    return f"{format_change(low - 1).removesuffix(' %')}/{format_change(high - 1)}"


def factor_text(value: float) -> str:
    """Return a factor with three digits, or more if it is close to 1.

    >>> factor_text(1.3149), factor_text(0.98421), factor_text(1.0004), factor_text(123.4)
    ('1.31', '0.984', '1.0004', '123')
    """
    near = abs(value - 1)
    return f"{value:.5g}" if 0 < near < ONE else f"{value:.3g}"


def range_text(interval: Interval) -> str:
    """Return the range, such as `1.24–1.43 s`."""
    low, high = format_between(interval.low, interval.high, "s")
    number, _, unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


def ends(interval: Interval | None) -> str:
    """Return ` (90 % interval 4–6 ms)`; "" without uncertainty."""
    return "" if interval is None or interval.half < EXACT else f" ({TITLE} {range_text(interval)})"


def relative_range(interval: Interval) -> str:
    """Return the relative range, such as `-9/+10 %`; "" without uncertainty."""
    if interval.half < EXACT:
        return ""
    low, high = (percent(end / interval.value - 1, "+.0f") for end in (interval.low, interval.high))
    return f"{low.removesuffix(' %')}/{high}"


def error_title(part: IntervalPart) -> str:
    """Return the short name of an error with its case.

    >>> error_title(IntervalPart("gpu stream/gpu", "stream/gpu", "device", 0.4, 0.1, 0.0, 1.6))
    'memory traffic, GPU (class default)'
    """
    return short_name(part) if part.is_number else f"{short_name(part)} ({CASES[part.case]})"


def short_name(part: IntervalPart) -> str:
    """Return the name of an error: data type and regime of a model; key and source of a number.

    >>> matmul = "989.4 TFLOP/s, 132 multiprocessors, matmul.fp16 of 79 %"
    >>> short_name(IntervalPart(matmul, "product/big", "known", 0.4, 0.1, 0.0, 1.6))
    'fp16 matmul, large'
    >>> short_name(IntervalPart("latency: guess, as others have it", "number/guess.any", "device", 0.4, 0.1, 0.0, 1.6))
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
    """Yield a row per error: share of the time, interval with this error only, and interval without it."""
    cells = rows(interval)
    if not cells:
        return
    yield ""
    yield from align_columns(
        [Column(heading, [row[place] for row in cells], right=place > 0) for place, heading in enumerate(HEADINGS)]
    )


def rows(interval: Interval) -> list[tuple[str, str, str, str]]:
    """Return the rows under `HEADINGS` of the significant errors, largest first; empty without uncertainty."""
    if interval.half < EXACT:
        return []
    return [
        (
            error.name,
            "-" if error.time_share is None else percent(error.time_share, ".0f"),
            f"±{rough(error.alone)}",
            f"±{rough(error.left)}" if error.time_share is not None else "-",
        )
        for error in [error for error in errors_of(interval) if error.share >= SMALL][:ROWS]
    ]


def as_dict(interval: Interval, *, kernels: bool = False) -> dict[str, Any]:
    """Return the interval as a JSON entry.

    Args:
        interval: interval.
        kernels: whether it is of the kernel times of a service; its ends are then factors.
    """
    times = {"low": math.exp(interval.correction - interval.below), "high": math.exp(interval.correction + interval.above)}
    return {
        **({"applies_to": "kernels", **times} if kernels else {"low_s": interval.low, "high_s": interval.high}),
        **({"factor": interval.factor, "scored": interval.scored} if interval.scored else {}),
        "level": interval.level,
        "basis": interval.basis,
        **select_attributes(interval, "case", "regime"),
        "measurements": interval.rows,
        "held_out": interval.units,
        "input_share": interval.stated,
        "sources": [
            {
                **select_attributes(part, "key", "regime", "case", "time_share"),
                "variance_share": interval.share(part),
                "half_width_alone": interval.half * math.sqrt(interval.share(part)),
                "standard_deviation": math.sqrt(part.variance),
                "half_width_without": interval.without(part),
            }
            for part in interval.parts
        ],
        "run_level_share": interval.own**2 / interval.variance if interval.variance > 0 else 0.0,
    }
