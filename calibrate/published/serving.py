"""Models that are served: what clients measured, beside the simulation of the same load.

Nothing is fitted to a run: kernels are those of the library, and what a server's host takes is a handful of constants of each
framework's file. Rows of models and GPUs that the library has not are left out, and counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hwsim.formats import percent
from published import serving_agg, serving_offline, serving_profiles, serving_single
from published.score import Half, Miss, Score, mean_error, worst_of
from published.serving_rows import Kind, Served
from published.serving_runs import Found, all_of

NAMES: Final = {
    "latency": "end to end",
    "first_token": "first token",
    "each_token": "each token",
    "tokens_per_s": "tokens a second",
}


class Bound(NamedTuple):
    """What a figure of some rows may be at most: the median of |error|, or their mean."""

    quantity: str
    bound: float
    mean: bool = False
    reached: float | None = None
    notes: str = ""


class Topic(NamedTuple):
    """Rows that are scored together."""

    name: str
    kind: Kind | None
    bounds: tuple[Bound, ...]


PROFILES: Final = Topic(
    "vLLM at a constant rate", None, (Bound("latency", 0.04), Bound("latency", 0.06, mean=True), Bound("first_token", 0.10))
)
SINGLE: Final = (
    Topic("single requests, dense", "dense", (Bound("latency", 0.03),)),
    Topic("single requests, experts", "MoE", (Bound("latency", 0.08),)),
)
CLOSED: Final = (
    Topic("closed loop, dense", "dense", (Bound("each_token", 0.06), Bound("first_token", 0.15))),
    Topic("closed loop, experts", "MoE", (Bound("each_token", 0.12), Bound("first_token", 0.30))),
)
TABLE: Final = (
    Topic("TensorRT-LLM's table, dense", "dense", (Bound("tokens_per_s", 0.10),)),
    Topic("TensorRT-LLM's table, experts", "MoE", (Bound("tokens_per_s", 0.15),)),
)
MLPERF: Final = Topic("MLPerf Inference offline", None, (Bound("tokens_per_s", 0.14),))


def scores(data: Path) -> tuple[Score, ...]:
    """All sets; the closed loop by a sample of its rows."""
    profiles, singles = serving_profiles.rows(data), serving_single.rows(data)
    closed = sampled(serving_agg.rows(data))
    table, mlperf = serving_offline.overview(data), serving_offline.mlperf(data)
    found: list[Score] = []
    for rows, topics in ((profiles, (PROFILES,)), (singles, SINGLE), (closed, CLOSED), (table, TABLE), (mlperf, (MLPERF,))):
        ran, refused = all_of(each for each in rows if not each.apart)
        for topic in topics:
            found += scored(topic, [each for each in ran if topic.kind in (None, each.served.kind)], len(refused))
    return tuple(found)


def sampled(rows: Sequence[Served], each: int = 6) -> list[Served]:
    """As many rows of each group as the others have, spread over them."""
    groups: dict[str, list[Served]] = {}
    for row in rows:
        if not row.apart:
            groups.setdefault(row.group, []).append(row)
    chosen = []
    for _, group in sorted(groups.items()):
        many = min(each, len(group))
        chosen += [group[at * len(group) // many] for at in range(many)]
    return chosen


def scored(topic: Topic, found: Sequence[Found], refused: int = 0, half: Half = "not fitted") -> list[Score]:
    """The figures of a topic."""
    said = []
    for quantity, bound, mean, reached, notes in topic.bounds:
        misses = [each.miss(quantity) for each in found if each.has(quantity)]
        if misses:
            value = mean_error(misses) if mean else statistics.median(miss.relative for miss in misses)
            metric = f"{'mean' if mean else 'median'} |error|"
            more = f" {refused} rows the library cannot serve." if refused else ""
            said.append(
                Score(
                    name=f"{topic.name}, {NAMES[quantity]}",
                    metric=metric,
                    value=value,
                    bound=bound,
                    rows=len(misses),
                    half=half,
                    reached=reached,
                    worst=worst_of(misses),
                    notes=f"{notes}{more}{bias(misses)}".strip(),
                )
            )
    return said


def bias(misses: Iterable[Miss]) -> str:
    """Whether predictions are too long or too short, in words."""
    middle = statistics.median(miss.predicted / miss.measured for miss in misses) - 1
    return f" Predictions are {percent(abs(middle), '.1f')} {'above' if middle > 0 else 'below'} in the middle."
