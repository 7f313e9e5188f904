"""Coverage: share of measurements inside the predicted intervals, cross-validated by unit; and claims about the faster device.

The rows of a unit (a device, a generation, a source, or a fold of rows) are not used to calibrate the intervals that judge
them.
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
FEWER: Final = 5  # bootstrap draws of pairs of devices in cross-validation over pairs
# Label of each case: for the reader of an answer, held-out devices and held-out generations are the same case.
SHOWN: Final[Mapping[Case, str]] = {"known": "interpolated", "source": "held-out source", "device": "held-out device",
                                    "generation": "held-out device"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Coverage of one topic and case.

    Args:
        rows, units, groups: number of each.
        inside: share of rows inside the interval, by level.
        half: median half width, (upper - lower) / (2 x prediction), by level.
        low, high: 5th and 95th percentile of the coverage in a bootstrap over units, by level.
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
    """Rows of one topic and case: whether the interval contains them, half widths as logarithms by level, and units."""

    topic: str
    case: Case
    rows: Sequence[Residual]
    inside: Mapping[float, Floats]
    half: Mapping[float, Floats]
    unit: Sequence[str]


def judged(found: Sequence[Residual]) -> list[Judged]:
    """Return every topic and case with at least two units, without the case `outside`, which has no promised coverage."""
    out = []
    for (topic, case), mine in mapped(found).items():
        rows = columns(mine)
        if case == "outside" or len(np.unique(rows.unit)) < 2:
            continue
        by = {level: held(rows, level) for level in LEVELS}
        # Folds are not independent units, so the groups (source x device) are used instead.
        unit = [f"{topic} {row.group if case == 'known' else row.unit}" for row in mine]
        inside = {level: outcome.inside.astype(float) for level, outcome in by.items()}
        half = {level: outcome.half for level, outcome in by.items()}
        out.append(Judged(topic, mine[0].case, mine, inside, half, unit))
    return out


def covers(found: Iterable[Judged]) -> list[Cover]:
    """Return coverage by topic and case, then for all topics together."""
    by: dict[tuple[str, str], list[Judged]] = {}
    for part in found:
        for topic in (part.topic, "all"):
            by.setdefault((topic, SHOWN[part.case]), []).append(part)
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
        inside={level: float(column.mean()) for level, column in inside.items()},
        half={level: float(np.median(column)) for level, column in half.items()},
        low={level: span[0] for level, span in ranges.items()},
        high={level: span[1] for level, span in ranges.items()},
    )  # fmt: skip


def redrawn(values: Floats, units: Sequence[str] | NDArray[np.str_]) -> tuple[float, float]:
    """Return the 5th and 95th percentile of the mean over rows in a bootstrap over units."""
    _, place = np.unique(np.asarray(units), return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    drawn = np.random.default_rng(SEED).integers(0, len(counts), (DRAWS, len(counts)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return float(np.quantile(means, 0.05)), float(np.quantile(means, 0.95))


# ---- which device is faster ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Pairs of equal work on two devices: claims about the faster device, and how many are correct.

    Args:
        works, pairs: number of equal works, and of pairs of devices.
        claims, right: number of claims, and of correct claims.
        holds: share of works whose measured ratio lies inside the 90 % interval of the ratio.
        half: median half width of this interval.
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
    """Return claims by topic and case: "B is faster" if |ln ratio| exceeds the half width of the ratio's 90 % interval.

    Half widths are calibrated on other units, and the correlation on other pairs of devices of the topic and case.

    apart: by regime, for pairs within one regime.
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
    """Return pairs of rows of equal work by topic and case, with both half widths. apart: by regime, for pairs within one
    regime.
    """
    out: Paired = {}
    for part in found:
        halves = dict(zip(map(id, part.rows), part.half[LEVEL].tolist(), strict=True))
        for a, b in pairs(part.rows):
            if apart and a.regime != b.regime:
                continue
            topic = f"{part.topic}/{a.regime}" if apart else part.topic
            both, sides = out.setdefault((topic, shown[part.case]), ([], []))
            both.append((a, b))
            sides.append((halves[id(a)], halves[id(b)]))
    return dict(sorted(out.items()))


def total(found: Iterable[Claims]) -> tuple[int, int]:
    """Return the number of claims and of correct claims."""
    both = [(claim.claims, claim.right) for claim in found]
    return sum(a for a, _ in both), sum(b for _, b in both)
