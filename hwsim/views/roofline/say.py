"""Rooflines as text and JSON (`hwsim: roofline/2`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from hwsim.formats import format_count, format_quantity, format_share
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.table import Column, align_columns, cut_middle, free_width, table
from hwsim.views.kit.view import Heading
from hwsim.views.roofline.ceilings import Ceiling
from hwsim.views.roofline.find import DeviceRoofline, RooflinePoint

MOST_IDLE: Final = 6  # largest number of named ops without arithmetic


def text(rooflines: Sequence[DeviceRoofline], heading: Heading, **_: object) -> str:
    """Return the ceilings of each device, and with a workload a line per op."""
    lines = [f"roofline{f' of {heading.workload}' if heading.workload else 's'}, on {heading.machine}"]
    for roofline in rooflines:
        lines += ["", roofline.device + (f" (and {more} identical)" if (more := roofline.identical_count - 1) else "")]
        rows = [("", "peak", "sustained", ""), *(_row(ceiling, "B/s", "") for ceiling in roofline.memory)]
        rows.append(("", "", "", "ridge point"))
        rows += [_row(ceiling, "FLOP/s", _intensity(roofline.ridge(ceiling)) + " FLOP/B") for ceiling in roofline.compute]
        lines += table(rows, "< >12 >12 <")
        if roofline.points:
            names = ("op", "count", "work", "bytes", "FLOP/B", "attained", "of roof", "bound by")
            ops = (_op(roofline, point) for point in roofline.points)
            columns = list(map(Column, names, zip(*ops, strict=True), (False, *[True] * 6, False)))
            shown = [cut_middle(point.name, free_width(columns, 0)) for point in roofline.points]
            lines += ["", *align_columns([columns[0]._replace(cells=shown), *columns[1:]])]
        if roofline.idle:
            idle = ", ".join(f"{name} x {count:,}" for name, count in roofline.idle[:MOST_IDLE])
            idle += f", and {len(roofline.idle) - MOST_IDLE:,} more" if len(roofline.idle) > MOST_IDLE else ""
            lines += [*([] if roofline.points else [""]), f"  without arithmetic: {idle}"]
    if heading.workload and not any(roofline.points for roofline in rooflines):
        lines += ["", "  no op of the workload does arithmetic on these devices"]
    return "\n".join(lines) + "\n"


def document(rooflines: Sequence[DeviceRoofline]) -> dict[str, Any]:
    """Return the rooflines as dicts and lists: B/s and FLOP/s; an intensity is null without memory traffic."""
    return {
        "devices": [
            {
                "device": roofline.device,
                "identical_count": roofline.identical_count,
                "memory": [_ceiling(ceiling) for ceiling in roofline.memory],
                "compute": [{**_ceiling(level), "ridge_flop_per_byte": roofline.ridge(level)} for level in roofline.compute],
                "ops": [_point(roofline, point) for point in roofline.points],
                "without_arithmetic": [{"name": name, "count": count} for name, count in roofline.idle],
            }
            for roofline in rooflines
        ],
    }


def _row(ceiling: Ceiling, unit: str, ridge: str) -> tuple[str, ...]:
    return ceiling.key, format_quantity(ceiling.peak, unit), format_quantity(ceiling.sustained, unit), ridge


def _op(roofline: DeviceRoofline, point: RooflinePoint) -> tuple[str, ...]:
    return (
        point.name,
        f"{point.count:,}",
        format_quantity(point.flop, "FLOP"),
        format_quantity(point.bytes, "B") if point.bytes > 0 else "0 B",
        _intensity(point.intensity),
        format_quantity(point.attained, "FLOP/s"),
        format_share(point.attained / roofline.roof(point)),
        point.bound,
    )


def _intensity(value: float) -> str:
    return "inf" if math.isinf(value) else format_count(value)


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    unit = "bytes_per_s" if ceiling.sort == "memory" else "flop_per_s"
    rates = {f"peak_{unit}": ceiling.peak, f"sustained_{unit}": ceiling.sustained}
    return {"name": ceiling.key, **rates, "source": ceiling.source}


def _point(roofline: DeviceRoofline, point: RooflinePoint) -> dict[str, Any]:
    rates = {"attained_flop_per_s": point.attained, "roof_flop_per_s": roofline.roof(point)}
    intensity = None if math.isinf(point.intensity) else point.intensity
    names = select_attributes(point, "name", "kind", "count", "flop", "bytes", time_s="seconds", bound_by="bound")
    return {**names, **rates, "intensity_flop_per_byte": intensity}
