"""LLM serving: client-side measurements against simulations of the same load.

Nothing is fitted to a run: kernels are those of the library, and the host time consists of a few constants in each framework's
file. Rows whose model or GPU is not in the library are excluded and counted.

    python -m published serving --data DIR                scores of all rows from stored simulations, and a repeated sample
    python -m published.serving --data DIR [GROUP ...]    simulates rows whose group or name contains these words
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
    serving_leaderboard,
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
AGAIN: Final = 0.001  # stored rows have four digits


class Bound(NamedTuple):
    """The bound of a quantity's group median; reached, notes: as in a score."""

    quantity: str
    bound: float
    reached: float | None = None
    notes: str = ""


class Topic(NamedTuple):
    """Rows that are scored together; kind: kind of their models, None for all; half: use of the rows in fitting."""

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
    "leaderboard": serving_leaderboard.rows,
    "table": serving_offline.overview,
    "mlperf": serving_offline.mlperf,
    "disagg": serving_disagg.rows,
}
SETS: Final[Mapping[str, tuple[Topic, ...]]] = {
    name: tuple(Topic(**{**record, "bounds": tuple(Bound(**bound) for bound in record["bounds"])}) for record in topics)
    for name, topics in declared("serving")["sets"].items()
}
STAGED: Final = ("profiles", "experiments")  # sets whose stages other simulators also predict


def scores(data: Path) -> tuple[Score, ...]:
    """Return the scores of all sets from stored simulations, and of a sample simulated again."""
    rows = serving_kept.read()
    kept = {(row.set, row.row): row for row in rows}
    found: list[Score] = []
    staged: list[Found] = []
    again: list[Found] = []
    for key, topics in SETS.items():
        name = set_of(topics)
        asked = [row for row in READERS[key](data) if not row.apart]
        ran = [Found(row, kept[name, row.id].predicted) for row in asked if (name, row.id) in kept]
        for topic in topics:
            mine = [run for run in ran if topic.kind in (None, run.served.kind)]
            found += figures(topic, mine, len(asked) - len(ran), [kept[name, run.served.id] for run in mine])
        if key in STAGED:
            staged += ran
        again += sampled(ran)
    return *found, _peers(data, staged), _again(again)


def residuals(data: Path) -> Iterator[Residual]:  # noqa: ARG001 (all rows are stored: simulating them takes minutes)
    """Return residuals of all served runs."""
    return serving_kept.residuals(serving_kept.read())


def sampled(rows: Iterable[Found]) -> list[Found]:
    """Return the run with the fewest requests of each framework, and for closed loops of each GPU and model."""
    fewest: dict[tuple[str, ...], Found] = {}
    for row in sorted(rows, key=lambda each: (_requests(each.served), each.served.id)):
        loop = "clients" in str(row.served.infer.get("arrivals"))
        fewest.setdefault((row.served.group,) if loop else (str(row.served.infer["framework"]),), row)
    return list(fewest.values())


def _requests(served: Served) -> int:
    return len(served.trace) or int(served.infer.get("requests", 0))


def figures(topic: Topic, found: Sequence[Found], refused: int = 0, rows: Sequence[serving_kept.Kept] = ()) -> list[Score]:
    """Return the scores of a topic. rows: stored simulations, for the tables of held-out models and GPUs in closed loops."""
    out = []
    for quantity, bound, reached, notes in topic.bounds:
        misses = [run.miss(quantity) for run in found if run.has(quantity)]
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
    """Return a sentence on the median of predicted / measured."""
    middle = statistics.median(miss.predicted / miss.measured for miss in misses) - 1
    return f"In the median, predictions are {percent(abs(middle), '.1f')} {'above' if middle > 0 else 'below'} measurements."


def _again(found: Sequence[Found]) -> Score:
    """Return the score of repeated simulations against stored ones."""
    misses = [
        Miss(f"{run.served.id}, {NAMES[quantity]}", now.predicted[quantity], predicted, run.served.group)
        for run in found
        for now in (simulated(run.served),)
        for quantity, predicted in run.predicted.items()
        if quantity in now.predicted and quantity in run.served.measured
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
    """Return the common name of the rows of some topics."""
    return topics[0].name.partition(",")[0]


def _without(rows: Sequence[serving_kept.Kept]) -> str:
    """Tables of errors with each model, and each GPU, held out of the host constants."""
    tables = (serving_kept.left_out(rows, lambda row: row.model), serving_kept.left_out(rows, lambda row: row.gpu))
    return "\n\n".join(("", *tables))


def _peers(data: Path, staged: Sequence[Found]) -> Score:
    """Return the score of stages that other simulators also predict, with a table."""
    said = serving_peers.said(data, staged)
    ours = [figure for figure in said if figure.simulator == serving_peers.OURS and figure.quantity == "latency"]
    return Score(
        name="end-to-end latency of the stages that other simulators also predict",
        metric="median relative error",
        value=statistics.median(abs(our.ratio - 1) for our in ours),
        bound=0.04,
        rows=len(ours),
        notes=serving_peers.as_table(said),
    )


def main() -> None:
    """Simulate the rows selected on the command line, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of published measurements")
    parser.add_argument("--write", action="store_true", help="store the simulations for the page and for errors.yaml")
    parser.add_argument("words", nargs="*", help="words in groups or names of rows; default: all rows")
    arguments = parser.parse_args()
    kept: list[serving_kept.Kept] = []
    for key, topics in SETS.items():
        chosen = [
            row for row in READERS[key](arguments.data)
            if not row.apart and all(word in f"{row.group} {row.id}" for word in arguments.words)
        ]  # fmt: skip
        began = process_time()
        ran, refused = all_of(chosen)
        kept += [serving_kept.kept(set_of(topics), run) for run in ran]
        for run in ran:
            said = ", ".join(
                f"{NAMES[name]} {run.predicted[name]:.4g} of {measured:.4g} ({run.predicted[name] / measured - 1:+.1%})"
                for name, measured in run.served.measured.items()
                if name in run.predicted
            )
            print(f"{run.served.id}: {said}")
        for name, why in refused.items():
            print(f"{name}: {why}")
        for topic in topics:
            for score in figures(topic, [run for run in ran if topic.kind in (None, run.served.kind)], len(refused)):
                print(f"{score.name}: {percent(score.value)} {score.metric}, {score.rows} rows. {score.notes}")
        if chosen:
            print(f"{(process_time() - began) / len(chosen):.2f} s of CPU a row")
    if arguments.write:
        serving_kept.write(kept)


if __name__ == "__main__":
    main()
