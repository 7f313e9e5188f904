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
EACH: Final = 6  # rows of a group that a bounded run has
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
    "Two engines with data-parallel attention. What passes between the two GPUs goes at the 16 GB/s by which the source's own"
    " simulator matches its machine; with the slots of the library's server it was 16 % short. Not here: both engines agree on"
    " the tokens of every step through their hosts, and logits of the router are gathered, too."
)
SAMPLED: Final = (
    "Of few rows most are of models with few. Those of Llama 3.1 8B on four and eight H100 reach a ceiling with 64 clients and"
    " more: a request of 128 and one of 256 tokens each 27 ms, one of 512 each 56 ms; inferred: one process takes requests, and"
    " one gives tokens. NVIDIA's own runs of vLLM on H200 repeat prompts in a way that no column states."
)
COLD: Final = (
    "First tokens of SGLang before its benchmark asked for requests to warm up, 97 rows, are not compared: they wait a minute"
    " and more for its compiler. Runs of SGLang 0.5.10 on B300 take seconds for prompts of 8192 tokens, and those of vLLM on B200"
    " in March 2026 a tenth of a second more than in April; nothing says why."
)
FOUR: Final = (
    "Llama 2 70B in four bits on GB200 is 29 % short: its products were measured by one library, MLPerf's harness has others."
)
APART: Final = (
    "Columns lost the groups of attention, which the recipes state. First tokens of the largest batches wait for prompt workers"
    " that are slower there, and an answer worker of four GPUs with 32 sequences and more takes a third longer here."
)
HOPPER: Final = (
    "gpt-oss on H100: TensorRT-LLM's kernels of four-bit weights there have eight measured calls, and Marlin's are taken;"
    " gpt-oss-20b on GB200 and Qwen3-235B in four bits are 25 % off, one below and the other above."
)
PROFILES: Final = (
    Topic("vLLM at a constant rate", None,
          (Bound("latency", 0.04), Bound("latency", 0.06, mean=True), Bound("first_token", 0.10)), "all"),
)  # fmt: skip
EXPERIMENTS: Final = (Topic("vLLM's experiments", None, (Bound("latency", 0.04), Bound("first_token", 0.10))),)
SINGLE: Final = (
    Topic("single requests, dense", "dense", (Bound("latency", 0.03),)),
    Topic("single requests, experts", "MoE", (Bound("latency", 0.08, reached=0.103, notes=IDLE, of_all=0.103),)),
)
CLOSED: Final = (
    Topic(
        "closed loop, dense",
        "dense",
        (Bound("each_token", 0.06), Bound("first_token", 0.15, reached=0.157, notes=SAMPLED)),
        "all",
    ),
    Topic(
        "closed loop, experts",
        "MoE",
        (Bound("each_token", 0.12), Bound("first_token", 0.30, notes=COLD)),
        "all",
    ),
)
TABLE: Final = (
    Topic("TensorRT-LLM's table, dense", "dense", (Bound("tokens_per_s", 0.10),), "all"),
    Topic("TensorRT-LLM's table, experts", "MoE", (Bound("tokens_per_s", 0.15, reached=0.182, notes=HOPPER, of_all=0.182),)),
)
MLPERF: Final = (Topic("MLPerf Inference offline", None, (Bound("tokens_per_s", 0.14, reached=0.153, notes=FOUR),)),)
DISAGG: Final = (
    Topic(
        "prompts and answers on GPUs of their own",
        None,
        (Bound("each_token", 0.12), Bound("first_token", 0.12, reached=0.22, notes=APART, of_all=0.211)),
    ),
)
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
        chosen = sampled(rows(data), 1000 if topics in (PROFILES, EXPERIMENTS, SINGLE) else 1 if topics is DISAGG else EACH)
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
        text = (
            "As shipped, no constant that a token's time depends on was found on rows of experts: of hosts those of vLLM are of"
        )
        text += (
            " its profiles, those of TensorRT-LLM of dense models. Here a time of each iteration, and of each request, is found"
            " without a model, or without a GPU, from the other rows of this kind, which is worse than none where they differ:"
            " without Llama 3.1 8B three rows of dense models are left of TensorRT-LLM."
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
