"""Models that are served: what clients measured, beside the simulation of the same load.

Nothing is fitted to a run: kernels are those of the library, and what a server's host takes is a handful of constants of each
framework's file. Rows of models and GPUs that the library has not are left out, and counted.

    python -m published serving --data DIR                a sample of each set, bounded in time
    python -m published.serving --data DIR [GROUP ...]    every row whose group or name has these words, a line each
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from published.residual import Residual
from published.score import Half, Miss, Score, mean_error, worst_of
from published.serving_rows import Kind, Served
from published.serving_runs import Found, all_of

NAMES: Final = {
    "latency": "end to end",
    "first_token": "first token",
    "each_token": "each token",
    "tokens_per_s": "tokens a second",
}
EACH: Final = 4  # rows of a group that a bounded run has
Rows = Callable[[Path], list[Served]]


class Bound(NamedTuple):
    """What a figure of some rows may be at most: the median of |error|, or their mean; reached, notes: as of a score.

    of_all: what is reached of all rows, where that is more than the bound.
    """

    quantity: str
    bound: float
    mean: bool = False
    reached: float | None = None
    notes: str = ""
    of_all: float | None = None


class Topic(NamedTuple):
    """Rows that are scored together; kind: of their models, None: of all; half: what the framework's constants saw of them."""

    name: str
    kind: Kind | None
    bounds: tuple[Bound, ...]
    half: Half = "not fitted"


# Why a bound is missed.
IDLE: Final = (
    "Inferred: two engines go in step, and each waits for the other's prompts; kernels of experts on the RTX PRO are short."
)
OWN: Final = (
    "NVIDIA's own runs of vLLM on H200 repeat prompts in a way that no column states. Those of TensorRT-LLM on four and eight"
    " H100 reach a ceiling: with 64 clients and with 128, prompts of 1024 and of 2048 tokens, a request of 128 tokens ends each"
    " 27 to 33 ms, and one of 512 each 55 to 67 ms; inferred: one process takes or gives all tokens. First tokens wait for it, up"
    " to 2 s."
)
EARLY: Final = (
    "First tokens come too early: what a server and its client take before the first kernel is one number for each framework, and"
    " too small for vLLM on B200; TensorRT-LLM's groups of attention on H200 wait twice as long as here; some runs of SGLang on"
    " B300 take seconds for a first token, inferred: they compile."
)
HOPPER: Final = (
    "gpt-oss on H100 and H200: TensorRT-LLM's kernels of four-bit weights there have eight measured calls, and vLLM's are taken."
)
FOUR: Final = (
    "Llama 2 70B in four bits on GB200 is 28 % short: its products were measured by one library, MLPerf's harness has others."
)
PROFILES: Final = (
    Topic("vLLM at a constant rate", None,
          (Bound("latency", 0.04), Bound("latency", 0.06, mean=True), Bound("first_token", 0.10)), "all"),
)  # fmt: skip
EXPERIMENTS: Final = (Topic("vLLM's experiments", None, (Bound("latency", 0.04), Bound("first_token", 0.10))),)
SINGLE: Final = (
    Topic("single requests, dense", "dense", (Bound("latency", 0.03),)),
    Topic("single requests, experts", "MoE", (Bound("latency", 0.08, reached=0.16, notes=IDLE, of_all=0.16),)),
)
CLOSED: Final = (
    Topic(
        "closed loop, dense",
        "dense",
        (Bound("each_token", 0.06), Bound("first_token", 0.15, reached=0.31, notes=OWN, of_all=0.154)),
        "all",
    ),
    Topic(
        "closed loop, experts",
        "MoE",
        (Bound("each_token", 0.12), Bound("first_token", 0.30, reached=0.405, notes=EARLY, of_all=0.333)),
        "all",
    ),
)
TABLE: Final = (
    Topic("TensorRT-LLM's table, dense", "dense", (Bound("tokens_per_s", 0.10),), "all"),
    Topic("TensorRT-LLM's table, experts", "MoE", (Bound("tokens_per_s", 0.15, reached=0.214, notes=HOPPER, of_all=0.183),)),
)
MLPERF: Final = (
    Topic("MLPerf Inference offline", None, (Bound("tokens_per_s", 0.14, reached=0.154, notes=FOUR, of_all=0.141),)),
)
DISAGG: Final = (Topic("decoding on GPUs of its own", None, (Bound("each_token", 0.12),)),)
SETS: Final[tuple[tuple[Rows, tuple[Topic, ...]], ...]] = (
    (serving_profiles.rows, PROFILES),
    (serving_profiles.experiments, EXPERIMENTS),
    (serving_single.rows, SINGLE),
    (serving_agg.rows, CLOSED),
    (serving_offline.overview, TABLE),
    (serving_offline.mlperf, MLPERF),
    (serving_disagg.rows, DISAGG),
)


def scores(data: Path) -> tuple[Score, ...]:
    """All sets, of large ones a sample of every group."""
    found: list[Score] = []
    staged: list[Found] = []
    for rows, topics in SETS:
        chosen = sampled(rows(data), 1000 if topics in (PROFILES, EXPERIMENTS, SINGLE, DISAGG) else EACH)
        ran, refused = all_of(chosen)
        for topic in topics:
            found += scored(topic, [each for each in ran if topic.kind in (None, each.served.kind)], len(refused))
        if topics in (PROFILES, EXPERIMENTS):
            staged += ran
    return *found, _peers(data, staged), *_of_all(serving_kept.read())


def residuals(data: Path) -> Iterator[Residual]:  # noqa: ARG001 (all rows are kept: simulating them takes minutes)
    """Errors of served runs, of all rows."""
    return serving_kept.residuals(serving_kept.read())


def sampled(rows: Sequence[Served], each: int = EACH) -> list[Served]:
    """As many rows of each group as the others have, spread over them; none of those that are apart."""
    groups: dict[str, list[Served]] = {}
    for row in rows:
        if not row.apart:
            groups.setdefault(row.group, []).append(row)
    chosen = []
    for _, group in sorted(groups.items()):
        many = min(each, len(group))
        chosen += [group[at * len(group) // many] for at in range(many)]
    return chosen


def scored(topic: Topic, found: Sequence[Found], refused: int = 0) -> list[Score]:
    """The figures of a topic."""
    out = []
    for quantity, bound, mean, reached, notes, _ in topic.bounds:
        misses = [each.miss(quantity) for each in found if each.has(quantity)]
        if misses:
            value = mean_error(misses) if mean else statistics.median(miss.relative for miss in misses)
            more = f" {refused} rows the library cannot serve." if refused else ""
            out.append(
                Score(
                    name=f"{topic.name}, {NAMES[quantity]}",
                    metric=f"{'mean' if mean else 'median'} |error|",
                    value=value,
                    bound=bound,
                    rows=len(misses),
                    half=topic.half,
                    reached=reached,
                    worst=worst_of(misses),
                    notes=f"{notes}{more} {bias(misses)}".strip(),
                )
            )
    return out


def bias(misses: Iterable[Miss]) -> str:
    """Whether predictions are too long or too short, in words."""
    middle = statistics.median(miss.predicted / miss.measured for miss in misses) - 1
    return f"In the middle, predictions are {percent(abs(middle), '.1f')} {'above' if middle > 0 else 'below'}."


def _of_all(rows: Sequence[serving_kept.Kept]) -> Iterator[Score]:
    """Figures of all rows, as they are kept; closed loops also with models and GPUs left out of what is known of hosts."""
    for topics in (topics for _, topics in SETS):
        name = set_of(topics)
        for topic in topics:
            mine = [row for row in rows if row.set == name and (topic.kind is None or row.kind == serving_kept.KINDS[topic.kind])]
            for bound in (each for each in topic.bounds if not each.mean):
                misses = [row.miss(bound.quantity) for row in mine if bound.quantity in row.both]
                if misses:
                    yield _whole(topic, bound, misses, mine)


def set_of(topics: Sequence[Topic]) -> str:
    """What the rows of some topics are called together."""
    return topics[0].name.partition(",")[0]


def _whole(topic: Topic, bound: Bound, misses: Sequence[Miss], rows: Sequence[serving_kept.Kept]) -> Score:
    notes = f"{bound.notes} {bias(misses)}".strip()
    if topic in CLOSED and bound.quantity == "each_token":
        text = "Host constants are a handful for each framework; here they are found again without a model, or without a"
        text += (
            " GPU, from the other rows of this kind: without Llama 3.1 8B three rows of dense models are left of TensorRT-LLM."
        )
        tables = (serving_kept.left_out(rows, lambda row: row.model), serving_kept.left_out(rows, lambda row: row.gpu))
        notes = "\n\n".join((f"{notes} {text}", *tables))
    return Score(
        name=f"{topic.name}, {NAMES[bound.quantity]}, all rows",
        metric="median |error|",
        value=statistics.median(miss.relative for miss in misses),
        bound=bound.bound,
        rows=len(misses),
        half=topic.half,
        reached=bound.of_all,
        notes=notes,
    )


def _peers(data: Path, staged: Sequence[Found]) -> Score:
    """Ours beside what other simulators said of the same stages."""
    said = serving_peers.said(data, staged)
    ours = [each for each in said if each.simulator == serving_peers.OURS and each.quantity == "latency"]
    text = f"{serving_peers.as_table(said)}\n\n![predicted over measured, by simulator](serving.png)"
    return Score(
        name="the stages that other simulators were asked for, end to end",
        metric="median |error|",
        value=statistics.median(abs(each.ratio - 1) for each in ours),
        bound=0.04,
        rows=len(ours),
        notes=text,
    )


def main() -> None:
    """Simulate every row that the command line names, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of published measurements")
    parser.add_argument("--write", action="store_true", help="keep them, for errors and the page")
    parser.add_argument("words", nargs="*", help="of the groups or names of rows; all rows without")
    arguments = parser.parse_args()
    kept: list[serving_kept.Kept] = []
    for rows, topics in SETS:
        chosen = [
            each for each in rows(arguments.data)
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
            for score in scored(topic, [each for each in ran if topic.kind in (None, each.served.kind)], len(refused)):
                print(f"{score.name}: {percent(score.value)} {score.metric}, {score.rows} rows. {score.notes}")
        if chosen:
            print(f"{(process_time() - began) / len(chosen):.2f} s of CPU a row")
    if arguments.write:
        serving_kept.write(kept)


if __name__ == "__main__":
    main()
