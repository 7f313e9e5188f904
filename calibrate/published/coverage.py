"""Coverage: how many measurements lie inside the intervals, judged with the unit itself left out; and claims of who is faster.

A unit (a device, a generation, a source, a fold of rows) calibrates nothing of the intervals that it is judged by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.origins import Case
from published.intervals import LEVELS, Floats, columns, held, mapped
from published.ratios import LEVEL, PAIRS, Pair, pairs, ratio_half, works
from published.residual import Residual

DRAWS: Final = 500
SEED: Final = 20
FEWER: Final = 5  # draws of pairs of devices, where each pair is left out in turn
# What the cases are called together: devices and generations left out are one question to a reader of an answer.
SHOWN: Final[Mapping[Case, str]] = {"known": "interpolated", "source": "held-out source", "device": "held-out device",
                                    "generation": "held-out device"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Coverage of one topic and case.

    Args:
        rows, units, groups: behind it.
        inside: part of the rows inside, by level.
        half: median half width, half of (high - low) over the prediction, by level.
        low, high: 5 and 95 % of the coverage when whole units are drawn anew, by level: what so few units allow to say.
    """

    topic: str
    case: str
    rows: int
    units: int
    groups: int
    inside: Mapping[float, float]
    half: Mapping[float, float]
    low: Mapping[float, float]
    high: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows of one topic and case: inside or not, half widths as logarithms by level, and whose."""

    topic: str
    case: Case
    rows: Sequence[Residual]
    inside: Mapping[float, Floats]
    half: Mapping[float, Floats]
    unit: Sequence[str]


def judged(found: Sequence[Residual]) -> list[Judged]:
    """Every topic and case with two units or more; nothing is promised `outside`."""
    out = []
    for (topic, case), mine in mapped(found).items():
        rows = columns(mine)
        if case == "outside" or len(np.unique(rows.unit)) < 2:
            continue
        by = {level: held(rows, level) for level in LEVELS}
        # Units that are folds are no independent groups: for those the devices and sources stand.
        unit = [f"{topic} {each.group if case == 'known' else each.unit}" for each in mine]
        inside = {level: each.inside.astype(float) for level, each in by.items()}
        half = {level: each.half for level, each in by.items()}
        out.append(Judged(topic, mine[0].case, mine, inside, half, unit))
    return out


def covers(found: Iterable[Judged]) -> list[Cover]:
    """By topic and case, then "all" topics together."""
    by: dict[tuple[str, str], list[Judged]] = {}
    for each in found:
        for topic in (each.topic, "all"):
            by.setdefault((topic, SHOWN[each.case]), []).append(each)
    return [
        _cover(topic, case, parts) for (topic, case), parts in sorted(by.items(), key=lambda item: (item[0][0] == "all", item[0]))
    ]


def _cover(topic: str, case: str, parts: Sequence[Judged]) -> Cover:
    units = np.array([name for part in parts for name in part.unit])
    groups = {row.group for part in parts for row in part.rows}
    inside = {level: np.concatenate([part.inside[level] for part in parts]) for level in LEVELS}
    half = {level: np.sinh(np.concatenate([part.half[level] for part in parts])) for level in LEVELS}
    ranges = {level: redrawn(inside[level], units) for level in LEVELS}
    return Cover(
        topic=topic, case=case, rows=len(units), units=len(set(units.tolist())), groups=len(groups),
        inside={level: float(each.mean()) for level, each in inside.items()},
        half={level: float(np.median(each)) for level, each in half.items()},
        low={level: each[0] for level, each in ranges.items()},
        high={level: each[1] for level, each in ranges.items()},
    )  # fmt: skip


def redrawn(values: Floats, units: Sequence[str] | NDArray[np.str_]) -> tuple[float, float]:
    """5 and 95 % of the mean over rows when whole units are drawn with replacement."""
    _, place = np.unique(np.asarray(units), return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    drawn = np.random.default_rng(SEED).integers(0, len(counts), (DRAWS, len(counts)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return float(np.quantile(means, 0.05)), float(np.quantile(means, 0.95))


# ---- which is faster ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Pairs of equal work on two devices: what is said of them, and how often it is right.

    Args:
        works, pairs: equal work on two devices, and pairs of devices.
        claims, right: works of which one device is called faster, and those where it is.
        holds: part of the works whose measured ratio lies inside the ratio's interval of 90 %.
        half: its median half width.
        alike: correlation of the two errors, see `Works.alike`.
    """

    topic: str
    case: str
    works: int
    pairs: int
    claims: int
    right: int
    holds: float
    half: float
    alike: float


def claims(found: Iterable[Judged], *, apart: bool = False) -> Iterator[Claims]:
    """By topic and case: "B is faster, 95 %" is said where |ln ratio| is beyond the half width of the ratio's interval of 90 %.

    Half widths come from the other units, and the correlation from the other pairs of devices of the topic and case.

    apart: by regime, of pairs of one.
    """
    for (topic, case), (both, halves) in paired(found, apart=apart).items():
        seen = works(both, halves)
        codes = np.unique(seen.pair)
        if len(both) < PAIRS or len(codes) < 2:
            continue
        rho = {code: seen.without(code).alike(FEWER) for code in codes.tolist()}
        half = np.array([ratio_half(*sides, rho[code]) for sides, code in zip(halves, seen.pair.tolist(), strict=True)])
        said = np.array([math.log(a.predicted / b.predicted) for a, b in both])
        off = np.array([a.log - b.log for a, b in both])
        claimed = np.abs(said) > half
        yield Claims(
            topic=topic, case=case, works=len(both), pairs=len(codes), claims=int(claimed.sum()),
            right=int((claimed & seen.right).sum()), holds=float((np.abs(off) <= half).mean()),
            half=float(np.sinh(np.median(half))), alike=seen.alike(),
        )  # fmt: skip


Paired = dict[tuple[str, str], tuple[list[Pair], list[tuple[float, float]]]]


def paired(found: Iterable[Judged], *, apart: bool = False, shown: Mapping[Case, str] = SHOWN) -> Paired:
    """By topic and case: pairs of rows of equal work, and the half widths of both.  apart: by regime, of pairs of one."""
    out: Paired = {}
    for each in found:
        halves = dict(zip(map(id, each.rows), each.half[LEVEL].tolist(), strict=True))
        for a, b in pairs(each.rows):
            if apart and a.regime != b.regime:
                continue
            topic = f"{each.topic}/{a.regime}" if apart else each.topic
            both, sides = out.setdefault((topic, shown[each.case]), ([], []))
            both.append((a, b))
            sides.append((halves[id(a)], halves[id(b)]))
    return dict(sorted(out.items()))


def total(found: Iterable[Claims]) -> tuple[int, int]:
    """(claims, right ones) of all."""
    both = [(each.claims, each.right) for each in found]
    return sum(a for a, _ in both), sum(b for _, b in both)
