"""LLM training: runs published by Megatron-LM, BigScience, MosaicML, PyTorch, InternLM and others.

Alternate rows of every source and machine, in the order of their size, are used for fitting: the efficiency of GEMMs, attention
and collectives in training relative to single kernels, by GPU generation, and the memory traffic and overlap of each framework.
For "held-out source", the constants are fitted again without any row of the source.

The step time is nearly linear in these constants. A fit solves for all of them together from the derivatives of each row. Rows
with large errors have less weight, and constants are regularized towards their typical values.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hwsim.formats import percent
from hwsim.models import (
    GENERATIONS,
    Framework,
    KernelTimes,
    ParallelPlan,
    TrainingStep,
    estimate,
    load_framework,
    load_transformer,
)
from hwsim.models.cluster import KNEE, NETWORK
from hwsim.models.generations import THROTTLED, generation, throttle
from hwsim.origins import Case
from hwsim.results.errors import NORMAL
from hwsim.results.errors import table as errors_table
from published.llm_kinds import errors_of, recent, small
from published.llm_rows import MACHINES, Row, rows
from published.parts import declared
from published.residual import Residual, misses, of_miss
from published.score import WORST, Half, Miss, Score, held_out, scored

SCALE: Final = 0.06  # larger errors have less weight in the fit
ALIKE: Final = 0.15  # prior spread (a logarithm) between generations in the efficiency of kernels in training
LOOSE: Final = 0.5  # prior spread (a logarithm) of a constant around its typical value
KINDS: Final = ("framework", "family", "format", "generation")
NEW_KINDS: Final = {"automodel", "megatron-bridge", "experts", "fp4", "fp8", "blackwell"}  # of one framework, or without a regime
COLUMNS: Final = ("held out", "kind", "rows", "median error", "bias", "90 % interval (factor)", "inside",
                  "earlier model (error, factor, inside)")  # fmt: skip
NOTE: Final = declared("llm_training")["note"]
BEFORE: Final = declared("llm_training")["before"]
FRAMEWORKS: Final = declared("llm_training")["frameworks"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A fitted constant: its typical value and limits. like: framework files that share it."""

    name: str
    typical: float
    least: float = 0.02
    most: float = 20.0
    like: tuple[str, ...] = ()


CONSTANTS: Final = tuple(Constant(**record) for record in declared("llm_training")["constants"])


@dataclass(slots=True)
class Model:
    """The library's model with other constants, and a cache of kernel times."""

    values: dict[str, float]
    frameworks: dict[str, Framework]
    timed: dict[str, dict[Any, float]] = field(default_factory=dict)

    def with_values(self, values: Mapping[str, float]) -> Model:
        found = dict(self.frameworks)
        for constant in CONSTANTS:
            whose, what = constant.name.split(".")
            if whose in found:
                for name in (whose, *constant.like):
                    if name in found:
                        changed: dict[str, Any] = {what: values[constant.name]}
                        found[name] = replace(found[name], **changed)
        return Model(dict(values), found, self.timed)

    def step(self, row: Row) -> TrainingStep:
        """Return a row's step with these constants."""
        framework, cluster = self.frameworks[row.software], row.cluster
        name = generation(cluster.gpu)
        values, constants = self.values, GENERATIONS[name]
        flash = values.get(f"{name}.flash", constants.flash)
        constants = replace(
            constants,
            products=values.get(f"{name}.products", constants.products),
            flash=flash,
            flash_backward=flash * constants.flash_backward / constants.flash,
            plain=values["all.plain"],
        )
        left = throttle(cluster.gpu, name, values["all.throttled"])
        speed = KernelTimes(cluster.gpu, framework, constants, left, self.timed.setdefault(row.machine, {}))
        there = replace(cluster, network=values["all.network"], knee=values["all.knee"])
        return estimate(row.model, row.plan, there, framework, speed)


def library() -> Model:
    """Return the model with the library's constants."""
    frameworks = {name: load_framework(name) for name in FRAMEWORKS}
    values = {"all.throttled": THROTTLED, "all.knee": KNEE, "all.network": NETWORK}
    for constant in CONSTANTS:
        whose, what = constant.name.split(".")
        if whose in frameworks:
            values[constant.name] = getattr(frameworks[whose], what)
        elif whose in GENERATIONS:
            values[constant.name] = getattr(GENERATIONS[whose], what)  # type: ignore[index]
    values |= {"all.plain": GENERATIONS["ampere"].plain}
    return Model(values, frameworks).with_values(values)


def held_rows(found: Sequence[Row]) -> list[Row]:
    """Return alternate sizes of every source and machine."""
    return held_out(found, lambda row: row.size, lambda row: row.group)


def missed(model: Model, found: Iterable[Row]) -> list[Miss]:
    """Return each row with its prediction."""
    return [Miss(row.name(), model.step(row).seconds, row.seconds, row.group) for row in found]


# ---- the fit ----


def derivatives(model: Model, found: Sequence[Row]) -> tuple[list[float], list[list[float]]]:
    """Return (ln(predicted / measured) of each row, its derivatives by the logarithm of each constant)."""
    base = [math.log(model.step(row).seconds / row.seconds) for row in found]
    columns = []
    for constant in CONSTANTS:
        step = 0.02 if model.values[constant.name] * 1.02 <= constant.most else -0.02
        moved = model.with_values({**model.values, constant.name: model.values[constant.name] * math.exp(step)})
        whose = constant.name.split(".")[0]
        columns.append(
            [
                (math.log(moved.step(row).seconds / row.seconds) - ln) / step
                if whose not in model.frameworks or row.software in (whose, *constant.like)
                else 0.0
                for row, ln in zip(found, base, strict=True)
            ]
        )
    return base, [list(row) for row in zip(*columns, strict=True)]


def weights(found: Sequence[Row]) -> Any:
    """Return the weight of each row; rows of large groups have less weight."""
    import numpy as np

    counts: dict[str, int] = {}
    for row in found:
        counts[row.group] = counts.get(row.group, 0) + 1
    return np.array([1.0 / math.sqrt(counts[row.group]) for row in found])


def _hold() -> Any:
    """Return the regularization: towards typical values, and between the constants of generations."""
    import numpy as np

    hold = np.eye(len(CONSTANTS)) * (SCALE / LOOSE) ** 2
    for what in ("products", "flash"):
        at = [place for place, term in enumerate(CONSTANTS) if term.name in {f"{name}.{what}" for name in GENERATIONS}]
        hold[np.ix_(at, at)] += (np.eye(len(at)) - 1.0 / len(at)) * (SCALE / ALIKE) ** 2
    return hold


def solved(model: Model, found: Sequence[Row], base: Sequence[float], slopes: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the constants with the least linearized error; groups are weighted, and large errors have less weight."""
    import numpy as np

    weight = weights(found)
    error, slope = np.array(base), np.array(slopes)
    here = np.array([math.log(model.values[constant.name]) for constant in CONSTANTS])
    low = np.array([math.log(constant.least) for constant in CONSTANTS])
    high = np.array([math.log(constant.most) for constant in CONSTANTS])
    near = np.array([math.log(constant.typical) for constant in CONSTANTS])
    move = np.zeros(len(here))
    hold = _hold()
    for _ in range(40):
        off = error + slope @ move
        heed = weight / np.sqrt(1.0 + (off / (SCALE / 2)) ** 2)
        left = slope.T @ (heed[:, None] * slope) + hold
        right = -slope.T @ (heed * error) + hold @ (near - here)
        move = np.clip(np.linalg.solve(left, right), low - here, high - here)
    move = np.clip(move, -0.7, 0.7)
    return {constant.name: float(math.exp(log)) for constant, log in zip(CONSTANTS, here + move, strict=True)}


# ---- residuals ----


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with a source or a GPU generation held out of the fit."""
    found = [*rows(data), *recent(data)]
    model = library()
    held = held_rows(rows(data))
    base, slopes = derivatives(model, found)
    kept = [_residual(row, "known", "", model.step(row).seconds) for row in held]
    kept += [_residual(row, "source", row.source, model.step(row).seconds) for row in small(data)]
    cases: tuple[tuple[Case, Callable[[Row], str]], ...] = (("source", _source), ("generation", _generation))
    for case, unit in cases:
        for name in sorted(set(map(unit, found))):
            at = [index for index, row in enumerate(found) if unit(row) != name]
            seen, slope = [found[index] for index in at], [slopes[index] for index in at]
            other = model.with_values(solved(model, seen, [base[index] for index in at], slope))
            kept += [_residual(row, case, name, other.step(row).seconds) for index, row in enumerate(found) if unit(row) == name]
    return kept


def new_kinds(data: Path) -> Iterator[tuple[str, list[Residual]]]:
    """Yield (property, residuals) of kinds whose rows are held out of the fit, if they are no part of the errors of a regime."""
    found, model = [*rows(data), *recent(data)], library()
    base, slopes = derivatives(model, found)
    kinds = [errors_of(row)[1] for row in found]
    for index, what in enumerate(KINDS):
        for name in sorted({kind[index] for kind in kinds} & NEW_KINDS):
            at = [place for place, kind in enumerate(kinds) if kind[index] != name]
            fit = solved(model, [found[place] for place in at], [base[place] for place in at], [slopes[place] for place in at])
            other = model.with_values(fit)
            held = [row for row, kind in zip(found, kinds, strict=True) if kind[index] == name]
            yield f"{what} {name}", [_residual(row, "source", name, other.step(row).seconds) for row in held]


def covered(data: Path, every: Sequence[Residual]) -> str:
    """Return a table of errors by kind: of held-out models, GPUs and sources within a kind, and of held-out kinds."""
    known = errors_table()
    lines = ["", "", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    groups: dict[tuple[str, str], list[Residual]] = {}
    for row in every:
        if row.case == "source":
            groups.setdefault(("models, GPUs, sources", f"{row.topic}/{row.regime}"), []).append(row)
    groups |= {("kind", name): held for name, held in new_kinds(data)}
    for (what, name), held in sorted(groups.items(), reverse=True):
        wider = known.kinds.spread * NORMAL[90] if what == "kind" else 0.0
        regimes = (known.errors(f"{row.topic}/{row.regime}", "source") for row in held)
        half = [math.hypot(errors.half[90], wider) for errors in regimes if errors]
        logs = [row.log for row in held]
        inside = sum(abs(log) <= wide for log, wide in zip(logs, half, strict=True)) / len(logs)
        error, bias = percent(statistics.median(map(abs, logs)), ".2g"), percent(statistics.median(logs), "+.2g")
        factor = f"{math.exp(statistics.median(half)):.2f}"
        cells = (what, name, str(len(held)), error, bias, factor, percent(inside, ".0f"), BEFORE.get(name, ""))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _source(row: Row) -> str:
    return row.source


def _generation(row: Row) -> str:
    return generation(row.cluster.gpu)


def _residual(row: Row, case: Case, unit: str, seconds: float) -> Residual:
    topic, regime = errors_of(row)[0].split("/")
    return of_miss(
        Miss(row.name(), seconds, row.seconds, row.group),
        topic,
        regime,
        case,
        unit=unit,
        work=f"{row.said}, {row.software}, {row.gpus} GPUs, {row.plan}",
        device=row.group.rpartition(", NVIDIA ")[2],
    )


# ---- the scores ----

SELENE: Final = declared("llm_training")["selene"]
SELENE_CONSTANTS: Final = ("ampere.products", "all.plain", "megatron.moved", "megatron.scores", "all.knee")


def selene() -> list[Row]:
    """Return the eight runs for which Calculon was made."""
    found = []
    for name, gpus, tp, pp, batch, micro, chunks, full, selective in SELENE:
        for recompute, seconds in (("full", full), ("selective", selective)):
            plan = ParallelPlan(
                tp=tp,
                pp=pp,
                global_batch=batch,
                microbatch=micro,
                chunks=chunks,
                schedule="interleaved" if chunks > 1 else "1f1b",
                recompute="full" if recompute == "full" else "selective",
                sequence_parallel=recompute == "selective",
                dtype="fp16",
            )
            machine = MACHINES["NVIDIA A100-SXM4-80GB (Selene)"]
            said = f"{name}, {recompute}"
            found.append(
                Row("Selene", "Korthikanti", "Selene", "megatron", load_transformer(name), plan, machine, gpus, seconds, said)
            )
    return found


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, sources and generations, of MoE models, and of Selene's eight runs."""
    every = residuals(data)
    host = misses([residual for residual in every if residual.group.startswith("VIA-Research")], "source")
    found = [residual for residual in every if residual.topic != "experts" and not residual.group.startswith("VIA-Research")]
    experts = misses([residual for residual in every if residual.topic == "experts"], "source")
    by_source, by_generation = misses(found, "source"), misses(found, "generation")
    return (
        _score("training steps, held-out sizes", misses(found, "known"), 0.06, "interpolated"),
        _score("training steps, held-out source", by_source, 0.06, "cross-validated"),
        _score("training steps, held-out GPU generation", by_generation, 0.08, "cross-validated"),
        _score("training steps of small models on one node", host, 0.12, "interpolated"),
        _score(
            "training steps of mixture-of-experts models, held-out model",
            experts,
            0.1,
            "cross-validated",
            notes=f"{NOTE}{covered(data, every)}",
        ),
        *_selene(library(), rows(data)),
    )


def _score(name: str, mine: Sequence[Miss], bound: float, half: Half, notes: str = "") -> Score:
    return scored(name, mine, bound, half, why=reason, notes=notes)


def _selene(model: Model, found: Sequence[Row]) -> tuple[Score, ...]:
    points = selene()
    others = [row for row in found if "Korthikanti" not in row.source]
    base, slopes = derivatives(model, others)
    without = model.with_values(solved(model, others, base, slopes))
    fixed = {constant.name for constant in CONSTANTS} - set(SELENE_CONSTANTS)
    calibrated = model
    for _ in range(3):
        base, slopes = derivatives(calibrated, points)
        kept = [[0.0 if term.name in fixed else slope for term, slope in zip(CONSTANTS, row, strict=True)] for row in slopes]
        values = solved(calibrated, points, base, kept)
        calibrated = calibrated.with_values(
            {name: model.values[name] if name in fixed else value for name, value in values.items()}
        )
    made = []
    cases: tuple[tuple[str, Model, Half, float], ...] = (
        ("eight runs on Selene, held-out source", without, "cross-validated", 0.05),
        ("eight runs on Selene, calibrated on them", calibrated, "partly fitted", 0.04),
    )
    for name, which, half, bound in cases:
        mine = missed(which, points)
        for metric, most, shown in (("mean relative error", bound, WORST), ("largest relative error", 0.09, 0)):
            made.append(scored(name, mine, most, half, metric=metric, why=reason, shown=shown))
    return tuple(made)


def reason(miss: Miss) -> str:
    """Return the cause of a large error, as far as other rows of its source suggest one."""
    slow = miss.predicted < miss.measured
    if miss.error < SCALE:
        return "within the spread of repeated runs"
    if "Narayanan" in miss.group and "tp 1 pp 1" in miss.row and slow:
        return "weights sharded over many nodes; only this program is as slow as with one NIC of eight"
    if "bigscience" in miss.group:
        return "equal configurations on this cluster differ by 14 %; cause not published"
    if "mosaicml" in miss.group and "b 1 " in miss.row and slow:
        return "micro-batch of 1 near the memory limit; slow on every GPU, as if the allocator freed memory and waited"
    if "mosaicml" not in miss.group and ("rowwise" in miss.row or "torchtitan" in miss.group):
        return "8-bit GEMMs and attention of this PyTorch version were fitted to few rows"
    return ""
