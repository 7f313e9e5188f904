"""Residuals of topics that do not say their own: what a model says of rows it was not fitted to, and with a device left out.

A topic with a function `residuals(data)` speaks for itself; these stand in for the others.
"""

# ruff: noqa: SLF001  (it looks into topics that do not say this themselves yet)

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from hwsim.devices import Gpu
from hwsim.origins import Case
from published import TOPICS
from published.parts import part
from published.residual import Residual

FOLDS: Final = 5
TINY_PRODUCT: Final = 20e-6  # seconds
TINY: Final = 10e-6
SKINNY: Final = 128


def residuals(data: Path, topics: Iterable[str] = ()) -> list[Residual]:
    """Residuals of all topics, or of these."""
    found: list[Residual] = []
    for topic in topics or TOPICS:
        found += of_topic(topic, data)
    return found


def of_topic(topic: str, data: Path) -> list[Residual]:
    """Residuals of one topic: its own, or those that stand in for them; none for a topic that has neither."""
    own = getattr(importlib.import_module(f"published.{topic}"), "residuals", None) or STANDING_IN.get(topic)
    return list(folded(own(data))) if own is not None else []


def folded(found: Iterable[Residual]) -> Iterator[Residual]:
    """Known rows in folds: every fifth row of a group is left out together, so that the others of its device calibrate."""
    seen: dict[str, int] = {}
    for each in found:
        if each.case != "known":
            yield each
            continue
        at = seen[each.group] = seen.get(each.group, -1) + 1
        yield replace(each, unit=f"fold {at % FOLDS}")


# ---- products and inference ----


def _said(row: Any, topic: str, regime: str, case: Case, unit: str, work: str, seconds: float) -> Residual:
    """What is said of a row of a table of kernels."""
    return Residual(
        topic=topic,
        regime=regime,
        case=case,
        unit=unit,
        group=row.group,
        row=row.name(),
        work=work,
        device=row.part,
        predicted=seconds,
        measured=row.seconds,
    )


def shape_regime(m: float, n: float, seconds: float) -> str:
    """Regime of a product."""
    return "tiny" if seconds < TINY_PRODUCT else "skinny" if min(m, n) <= SKINNY else "big"


def _gemm(data: Path) -> Iterator[Residual]:
    from published import gemm
    from published.products import rows, seconds_of

    found = rows(data)
    _, held = gemm.parted(found)
    sheet = {name: gemm.from_datasheet(name) for name in {row.part for row in found}}
    twins = {
        name: any(other != name and gemm.GENERATIONS.get(other) == gemm.GENERATIONS.get(name, name) for other in gemm.FITTED)
        for name in sheet
    }

    def made(row: Any, case: Case, unit: str, gpu: Gpu) -> Residual:
        shape, seconds = row.product, seconds_of(gpu, row)
        topic = "product8" if row.dtype in ("fp8", "int8") else "product"
        regime = shape_regime(shape.m, shape.n, seconds_of(part(Gpu, row.part), row))
        return _said(row, topic, regime, case, unit, f"{row.source} {row.name().partition(': ')[2]}", seconds)

    seen: dict[str, int] = {}
    for row in held:
        at = seen[row.group] = seen.get(row.group, -1) + 1
        yield made(row, "known", f"fold {at % FOLDS}", part(Gpu, row.part))
    for row in found:
        yield made(row, "device" if twins[row.part] else "generation", row.part, sheet[row.part])


def _inference(data: Path) -> Iterator[Residual]:
    from hwsim.models.framework import Style
    from published import bare, gemm, inference

    found = inference.rows(data)
    _, held = inference.parted(found)
    frameworks = sorted({row.framework for row in found})
    plain = {}
    for name in frameworks:
        own = inference._framework(name)
        ops = {}
        for op in own.ops:
            others = [inference._framework(each).ops.get(op) for each in frameworks if each != name]
            near = [each for each in others if each is not None and each.kernels]  # one that fuses it says nothing of its time
            ops[op] = (
                Style(
                    kernels=statistics.median_low([each.kernels for each in near]),
                    **{
                        key: statistics.median([getattr(each, key) for each in near])
                        for key in ("moved", "flop", "start", "walk")
                    },
                )
                if near
                else Style()
            )
        plain[name] = replace(own, ops=ops)

    @cache
    def without(name: str) -> Gpu:
        return replace(gemm.from_datasheet(name), attention=bare.gpu(name, "generation").attention)

    def made(row: Any, case: Case, unit: str, seconds: float) -> Residual:
        alone = inference.seconds_of(row)
        if row.what == "product":
            shape = row.kernel.work.product
            topic, regime = "product", shape_regime(shape.m, shape.n, alone) if shape else "big"
        elif row.op == "attention":
            topic, regime = "attention", "decode" if row.what == "decode" else "prefill"
        else:
            topic, regime = "elementwise", "tiny" if alone < TINY else "big"
        return _said(row, topic, regime, case, unit, f"{row.framework} {row.said}", seconds)

    seen: dict[str, int] = {}
    for row in held:
        at = seen[row.group] = seen.get(row.group, -1) + 1
        yield made(row, "known", f"fold {at % FOLDS}", inference.seconds_of(row))
    for row in found:
        case: Case = "generation" if row.op == "attention" else "device"  # kernels of attention are its vendor's then
        yield made(row, case, row.part, inference.seconds_of(row, gpu=without(row.part)))
        if row.what != "product":
            yield made(row, "source", row.framework, inference.seconds_of(row, framework=plain[row.framework]))


def _bert(data: Path) -> Iterator[Residual]:
    from published import bert

    _, held = bert.parted(bert.rows(data))
    yield from _known(
        "infer", lambda _: "prefill", ((row.group, row.said, row.part, bert.seconds_of(row), row.seconds) for row in held)
    )


def _cnn_inference(data: Path) -> Iterator[Residual]:
    from published import cnn_inference

    _, held = cnn_inference.parted(cnn_inference.rows(data))
    rows = [
        (row.group, row.said().partition(": ")[2], row.gpu, row.batch / cnn_inference.predicted(row), row.batch / row.images)
        for row in held
    ]
    yield from _known("infer", lambda _: "cnn", rows)


Plain = tuple[str, str, str, float, float]  # group, work, device, predicted, measured


def _known(topic: str, regime: Callable[[Plain], str], found: Iterable[Plain]) -> Iterator[Residual]:
    """Rows of the half that no number was fitted to."""
    seen: dict[str, int] = {}
    for row in found:
        group, work, device, predicted, measured = row
        at = seen[group] = seen.get(group, -1) + 1
        yield Residual(
            topic=topic,
            regime=regime(row),
            case="known",
            unit=f"fold {at % FOLDS}",
            group=group,
            row=f"{device}: {work}",
            work=work,
            device=device,
            predicted=predicted,
            measured=measured,
        )


STANDING_IN: Final[Mapping[str, Callable[[Path], Iterator[Residual]]]] = {
    "gemm": _gemm,
    "inference": _inference,
    "bert": _bert,
    "cnn_inference": _cnn_inference,
}
