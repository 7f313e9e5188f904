"""The figure of a sweep as data: one path on the x axis, one line per combination of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hwsim.formats import family, format_quantity, format_share
from hwsim.studies.grid import quantity_of, value_text
from hwsim.studies.measures import SERVICE, TIME, StudyMeasure, measure
from hwsim.studies.ranking import value_of
from hwsim.units import Quantity
from hwsim.views.kit.figure import run_caption
from hwsim.views.sweep.curves import BITS, Curves, StudyCurve

if TYPE_CHECKING:
    from hwsim.studies.table import Sweep

COUNTED: Final = re.compile(r"(^|[._])(count|nodes|gpus|devices|servers|workers|ranks)$")  # paths of counts


def curves(sweep: Sweep) -> Curves:
    """Return the figure of a sweep, with the first numeric path on the x axis, or the first path if none is numeric."""
    across = next((place for place, (_, values) in enumerate(sweep.vary) if numbers(values)), 0)
    path, values = sweep.vary[across]
    measured = numbers(values)
    served = "ttft_p95" if "ttft_p95_s" in sweep.measured else SERVICE if SERVICE in sweep.measured else TIME
    compared = sweep.ranking.measure or measure(served)
    shown = [value_of(row, compared) for row in sweep.rows] if sweep.ranking.measure is None else sweep.ranking.values
    times: dict[tuple[str, ...], dict[str, float]] = {}
    for row, value in zip(sweep.rows, shown, strict=True):
        others = tuple(value_text(value) for place, value in enumerate(row.values) if place != across)
        line = times.setdefault(others, {})
        if value is not None:
            line[value_text(row.values[across])] = value
    lines = tuple(
        StudyCurve(", ".join(others), tuple(line.get(value_text(value)) for value in values)) for others, line in times.items()
    )
    limits = (
        tuple(family(row.bottleneck or "") for row in sweep.rows) if len(lines) == 1 and len(sweep.rows) == len(values) else ()
    )
    names = [called(name) for place, name in enumerate(sweep.paths) if place != across]
    in_bits = bool(measured) and _is_in_bits(path, measured[0])
    perfect = _perfect(path, measured, lines, compared) if sweep.ranking.measure is not None else ()
    return Curves(
        title=_scaling(path, measured, lines, perfect, compared)
        if perfect and sweep.is_conclusive
        else _finding(sweep, compared, shown),
        below=run_caption(sweep.workload, sweep.machine, sweep.settings),
        measure=compared.title,
        measure_unit="" if compared.unit in ("1", "h") else compared.unit,
        across=called(path),
        binary=any("iB" in value_text(value) for value in values),
        unit=BITS if in_bits else measured[0].dimension.unit if measured and not measured[0].dimension.plain else "",
        numbers=tuple(8.0 * quantity.value if in_bits else quantity.value for quantity in measured),
        names=tuple(map(value_text, values)),
        legend=", ".join(names),
        lines=lines,
        limits=limits,
        perfect=perfect,
    )


def _finding(sweep: Sweep, compared: StudyMeasure, shown: Sequence[float | None]) -> str:
    """Return the title: the best row, and its ratio to the worst."""
    measured = [(value, row) for value, row in zip(shown, sweep.rows, strict=True) if value is not None]
    if len(measured) < 2:
        return f"{compared.title}: {compared.shown(measured[0][0])}" if measured else f"no row has {compared.title}"
    ordered = sorted(measured, key=lambda each: each[0], reverse=compared.most)
    (best, row), (worst, _) = ordered[0], ordered[-1]
    if best == worst:
        return f"{compared.title} is {compared.shown(best)} in every row"
    where = ", ".join(f"{called(path)} {_value(path, value)}" for path, value in zip(sweep.paths, row.values, strict=True))
    if compared.column == TIME and sweep.ranking.measure is None:
        return f"{compared.shown(best)} to {compared.shown(worst)}, for different amounts of work"
    slowest = max((over for over in sweep.over_best if over is not None), key=lambda over: over.value, default=None)
    if slowest is not None and not slowest.is_conclusive:
        return f"{compared.shown(best)}{_each(compared)} to {compared.shown(worst)}: statistically tied"
    if compared.is_pace and min(best, worst) > 0:
        factor = best / worst if compared.most else worst / best
        return f"{compared.shown(best)}{_each(compared)} with {where}: {factor:.3g}x faster than the slowest"
    extreme, other = ("Highest", "lowest") if compared.most else ("Lowest", "highest")
    return f"{extreme} {compared.title}: {compared.shown(best)} with {where} ({other} {compared.shown(worst)})"


def _is_in_bits(path: str, quantity: Quantity) -> bool:
    """Whether a path is the rate of a network link, which is printed in bits per second."""
    return path.rpartition(".")[2] == "rate" and quantity.dimension.unit == "B/s"


def _value(path: str, value: object) -> str:
    """Return a value as text for a title."""
    known = numbers([value])
    if known and _is_in_bits(path, known[0]):
        return format_quantity(8.0 * known[0].value, "B/s").replace("B", "b")
    return value_text(value)


def _each(compared: StudyMeasure) -> str:
    return f" {compared.title}" if compared.unit == "1" else ""


def _scaling(
    path: str, measured: Sequence[Quantity], lines: Sequence[StudyCurve], perfect: Sequence[float], compared: StudyMeasure
) -> str:
    """Return the speedup of the largest over the smallest number, and its scaling efficiency."""
    pairs = zip(measured, lines[0].values, perfect, strict=True)
    values = [(quantity.value, value, ideal) for quantity, value, ideal in pairs if value]
    (few, first, _), (many, last, ideal) = min(values), max(values)
    factor, part = (last / first, last / ideal) if compared.most else (first / last, ideal / last)
    return f"{called(path)} {many:g} is {factor:.3g}x faster than {few:g}: {format_share(part)} scaling efficiency"


def _perfect(path: str, measured: Sequence[Quantity], lines: Sequence[StudyCurve], compared: StudyMeasure) -> tuple[float, ...]:
    """Return the measure at each value under perfect scaling, for a single line over a count."""
    if len(lines) != 1 or not measured or not compared.is_pace or not COUNTED.search(path):
        return ()
    first = min(range(len(measured)), key=lambda place: measured[place].value)
    start, many = lines[0].values[first], measured[first].value
    if not start or many <= 0 or not measured[first].dimension.plain:
        return ()
    return tuple(start * count.value / many if compared.most else start * many / count.value for count in measured)


def numbers(values: Sequence[object]) -> tuple[Quantity, ...]:
    """Return the values as quantities of one dimension; empty if they are not."""
    found = [quantity_of(value) for value in values]
    quantities = tuple(quantity for quantity in found if quantity is not None)
    is_one = len(quantities) == len(found) and all(quantity.dimension.fits(quantities[0].dimension) for quantity in quantities)
    return quantities if is_one else ()


UNLABELLED: Final = frozenset({"machine", "workload", "let", "links", "parts", "program"})  # keys that are not part of a label
WORDS: Final = {"use": "type"}


def called(path: str) -> str:
    """Return the name of the quantity that a path changes.

    >>> called("machine.links.slot.bandwidth"), called("machine.gpu.count"), called("machine.node.gpu.use")
    ('slot bandwidth', 'gpu count', 'node gpu type')
    >>> called("workload.train.parallel.tp"), called("let.nodes"), called("workload.program.0.busy.time"), called("cache_share")
    ('train parallel tp', 'nodes', 'busy time', 'cache share')
    """
    steps = [step for step in path.split(".") if step not in UNLABELLED and not step.isdigit()] or [path]
    return " ".join([*steps[:-1], WORDS.get(steps[-1], steps[-1])]).replace("_", " ")
