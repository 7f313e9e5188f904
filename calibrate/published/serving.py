"""Models that are served: what clients measured, beside the simulation of the same load.

Nothing is fitted to a run: kernels are those of the library, and what a server's host takes is a handful of constants of each
framework's file. Rows of models and GPUs that the library has not are left out, and counted.

    python -m published serving --data DIR                figures of all rows as they are kept, and a sample of them again
    python -m published.serving --data DIR [GROUP ...]    every row whose group or name has these words, a line each
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

from hwsim.formats import percent
from published import (
    serving_agg,
    serving_disagg,
    serving_kept,
    serving_offline,
    serving_peers,
    serving_profiles,
    serving_single,
)
from published.parts import declared
from published.residual import Residual
from published.score import Half, Miss, Score, scored
from published.serving_rows import Kind, Served
from published.serving_runs import Found, all_of, simulated

NAMES: Final = {
    "latency": "end-to-end latency",
    "first_token": "TTFT",
    "each_token": "TPOT",
    "tokens_per_s": "throughput",
}
AGAIN: Final = 0.001  # rows are kept with four digits


class Bound(NamedTuple):
    """What the group median of some rows, the metric of every page, may be at most; reached, notes: as of a score."""

    quantity: str
    bound: float
    reached: float | None = None
    notes: str = ""


class Topic(NamedTuple):
    """Rows that are scored together; kind: of their models, None: of all; half: what the framework's constants saw of them."""

    name: str
    bounds: tuple[Bound, ...]
    kind: Kind | None = None
    half: Half = "not fitted"
    title: str = ""


READERS: Final[Mapping[str, Callable[[Path], list[Served]]]] = {
    "profiles": serving_profiles.rows,
    "experiments": serving_profiles.experiments,
    "single": serving_single.rows,
    "closed": serving_agg.rows,
    "table": serving_offline.overview,
    "mlperf": serving_offline.mlperf,
    "disagg": serving_disagg.rows,
}
SETS: Final[Mapping[str, tuple[Topic, ...]]] = {
    name: tuple(Topic(**{**each, "bounds": tuple(Bound(**bound) for bound in each["bounds"])}) for each in topics)
    for name, topics in declared("serving")["sets"].items()
}
STAGED: Final = ("profiles", "experiments")  # of which other simulators were asked for the same stages


def scores(data: Path) -> tuple[Score, ...]:
    """All sets: every row as it is kept, and some of them simulated again."""
    rows = serving_kept.read()
    kept = {(row.set, row.row): row for row in rows}
    found: list[Score] = []
    staged: list[Found] = []
    again: list[Found] = []
    for key, topics in SETS.items():
        name = set_of(topics)
        asked = [each for each in READERS[key](data) if not each.apart]
        ran = [Found(each, kept[name, each.id].predicted) for each in asked if (name, each.id) in kept]
        for topic in topics:
            mine = [each for each in ran if topic.kind in (None, each.served.kind)]
            found += figures(topic, mine, len(asked) - len(ran), [kept[name, each.served.id] for each in mine])
        if key in STAGED:
            staged += ran
        again += sampled(ran)
    return *found, _peers(data, staged), _again(again)


def residuals(data: Path) -> Iterator[Residual]:  # noqa: ARG001 (all rows are kept: simulating them takes minutes)
    """Errors of served runs, of all rows."""
    return serving_kept.residuals(serving_kept.read())


def sampled(rows: Iterable[Found]) -> list[Found]:
    """Of each framework, and of closed loops of each GPU and model, too, the run with the fewest requests."""
    fewest: dict[tuple[str, ...], Found] = {}
    for row in sorted(rows, key=lambda each: (_requests(each.served), each.served.id)):
        loop = "clients" in str(row.served.infer.get("arrivals"))
        fewest.setdefault((row.served.group,) if loop else (str(row.served.infer["framework"]),), row)
    return list(fewest.values())


def _requests(served: Served) -> int:
    return len(served.trace) or int(served.infer.get("requests", 0))


def figures(topic: Topic, found: Sequence[Found], refused: int = 0, rows: Sequence[serving_kept.Kept] = ()) -> list[Score]:
    """The figures of a topic.  rows: as they are kept: closed loops also without models and GPUs."""
    out = []
    for quantity, bound, reached, notes in topic.bounds:
        misses = [each.miss(quantity) for each in found if each.has(quantity)]
        if misses:
            pooled = percent(statistics.median(miss.error for miss in misses), ".3g")
            more = f" {refused} rows cannot be simulated with the library." if refused else ""
            without = _without(rows) if topic in SETS["closed"] and quantity == "each_token" and rows else ""
            out.append(
                scored(
                    f"{topic.title or topic.name}, {NAMES[quantity]}",
                    misses,
                    bound,
                    topic.half,
                    reached=reached,
                    notes=f"Median over all rows: {pooled}. {bias(misses)} {notes}{more}{without}".strip(),
                )
            )
    return out


def bias(misses: Iterable[Miss]) -> str:
    """Whether predictions are too long or too short, in words."""
    middle = statistics.median(miss.predicted / miss.measured for miss in misses) - 1
    return f"In the median, predictions are {percent(abs(middle), '.1f')} {'above' if middle > 0 else 'below'} measurements."


def _again(found: Sequence[Found]) -> Score:
    """Runs simulated again, beside what is kept of them: that figures of kept rows are of this model."""
    misses = [
        Miss(f"{each.served.id}, {NAMES[quantity]}", now.predicted[quantity], predicted, each.served.group)
        for each in found
        for now in (simulated(each.served),)
        for quantity, predicted in each.predicted.items()
        if quantity in now.predicted and quantity in each.served.measured
    ]
    return scored(
        "stored against repeated simulations",
        misses,
        AGAIN,
        metric="largest relative difference",
        shown=0,
        notes="This page uses simulations stored by `python -m published.serving --write`; a sample is repeated here.",
    )


def set_of(topics: Sequence[Topic]) -> str:
    """What the rows of some topics are called together."""
    return topics[0].name.partition(",")[0]


def _without(rows: Sequence[serving_kept.Kept]) -> str:
    """Tables of errors with each model, and each GPU, held out of the host constants."""
    tables = (serving_kept.left_out(rows, lambda row: row.model), serving_kept.left_out(rows, lambda row: row.gpu))
    return "\n\n".join(("", *tables))


def _peers(data: Path, staged: Sequence[Found]) -> Score:
    """Ours beside what other simulators said of the same stages."""
    said = serving_peers.said(data, staged)
    ours = [each for each in said if each.simulator == serving_peers.OURS and each.quantity == "latency"]
    return Score(
        name="end-to-end latency of the stages that other simulators also predict",
        metric="median relative error",
        value=statistics.median(abs(our.ratio - 1) for our in ours),
        bound=0.04,
        rows=len(ours),
        notes=serving_peers.as_table(said),
    )


def main() -> None:
    """Simulate every row that the command line names, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of published measurements")
    parser.add_argument("--write", action="store_true", help="keep them, for errors and the page")
    parser.add_argument("words", nargs="*", help="of the groups or names of rows; all rows without")
    arguments = parser.parse_args()
    kept: list[serving_kept.Kept] = []
    for key, topics in SETS.items():
        chosen = [
            each for each in READERS[key](arguments.data)
            if not each.apart and all(word in f"{each.group} {each.id}" for word in arguments.words)
        ]  # fmt: skip
        began = process_time()
        ran, refused = all_of(chosen)
        kept += [serving_kept.kept(set_of(topics), each) for each in ran]
        for each in ran:
            said = ", ".join(
                f"{NAMES[name]} {each.predicted[name]:.4g} of {measured:.4g} ({each.predicted[name] / measured - 1:+.1%})"
                for name, measured in each.served.measured.items()
                if name in each.predicted
            )
            print(f"{each.served.id}: {said}")
        for name, why in refused.items():
            print(f"{name}: {why}")
        for topic in topics:
            for score in figures(topic, [each for each in ran if topic.kind in (None, each.served.kind)], len(refused)):
                print(f"{score.name}: {percent(score.value)} {score.metric}, {score.rows} rows. {score.notes}")
        if chosen:
            print(f"{(process_time() - began) / len(chosen):.2f} s of CPU a row")
    if arguments.write:
        serving_kept.write(kept)


if __name__ == "__main__":
    main()
