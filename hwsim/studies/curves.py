"""The figure of a sweep as data: one path is across, each combination of the others is a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwsim.studies.grid import written
from hwsim.studies.measures import SERVICE, measure
from hwsim.units import COUNT, Quantity, UnitError, parse
from hwsim.views.kit.figure import figure_title
from hwsim.views.sweep.draw import Curve, Curves

if TYPE_CHECKING:
    from hwsim.studies.table import Sweep


def curves(sweep: Sweep) -> Curves:
    """The first path that takes numbers is across, or the first path if none does."""
    across = next((place for place, (_, values) in enumerate(sweep.vary) if numbers(values)), 0)
    path, values = sweep.vary[across]
    measured = numbers(values)
    compared = sweep.ranking.measure or measure("ttft_p95" if "ttft_p95_s" in sweep.measured else SERVICE)
    shown = sweep.ranking.values if sweep.ranking.measure else [dict(row.measures).get(compared.column) for row in sweep.rows]
    times: dict[tuple[str, ...], dict[str, float]] = {}
    for row, value in zip(sweep.rows, shown, strict=True):
        others = tuple(written(value) for place, value in enumerate(row.values) if place != across)
        line = times.setdefault(others, {})
        if value is not None:
            line[written(row.values[across])] = value
    names = [_last(each) for place, each in enumerate(sweep.paths) if place != across]
    return Curves(
        title=figure_title(f"{sweep.workload} on {sweep.machine}", sweep.settings),
        measure=compared.title,
        measure_unit="" if compared.unit == "1" else compared.unit,
        across=path,
        binary=any("iB" in written(value) for value in values),
        unit=measured[0].dimension.unit if measured and not measured[0].dimension.plain else "",
        numbers=tuple(each.value for each in measured),
        names=tuple(map(written, values)),
        legend=", ".join(names),
        lines=tuple(
            Curve(", ".join(others), tuple(line.get(written(value)) for value in values)) for others, line in times.items()
        ),
    )


def numbers(values: Sequence[object]) -> tuple[Quantity, ...]:
    """The values as quantities of one dimension; nothing if some are not."""
    quantities: list[Quantity] = []
    for value in values:
        if isinstance(value, bool) or value is None:
            return ()
        try:
            quantities.append(Quantity(float(value), COUNT) if isinstance(value, int | float) else parse(written(value)))
        except (UnitError, OverflowError):
            return ()
    return tuple(quantities) if all(each.dimension.fits(quantities[0].dimension) for each in quantities) else ()


def _last(path: str) -> str:
    return ".".join(path.split(".")[-2:]) if path.count(".") > 1 else path
