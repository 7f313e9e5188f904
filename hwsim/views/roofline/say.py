"""Rooflines as text, JSON (`hwsim: roofline/1`) or a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hwsim import invariants
from hwsim.units import format_quantity, format_share, precise
from hwsim.views.kit.figure import COLOURS, figure_bytes
from hwsim.views.kit.title import figure_title
from hwsim.views.kit.warned import as_dicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation, Text

    from hwsim.spec import Warning
    from hwsim.views.roofline.ceilings import Ceiling
    from hwsim.views.roofline.find import Point, Roofline

MARKERS: Final = "osD^v<>Pp*hX"
LINES: Final = ("-", "--", "-.", ":")
APART: Final = 13.0  # points between two labels, at least
DRAWN: Final = 12  # points with a marker and a line in the legend of their own
INK: Final = "#333333"


@invariants.guarded
def text(found: Sequence[Roofline], machine: str, workload: str = "") -> str:
    """The ceilings of each device, with a workload a line for each op below them."""
    out = [f"rooflines  of  {machine}" + (f"  under  {workload}" if workload else "")]
    for one in found:
        out += ["", f"{one.device}" + (f" and {one.alike - 1} alike" if one.alike > 1 else "")]
        widest = max(len(each.key) for each in (*one.memory, *one.compute))
        out += [f"  {'':<{widest}}  {'peak':>12}  {'sustained':>12}"]
        out += [
            f"  {each.key:<{widest}}  {_rate(each.peak, 'B/s'):>12}  {_rate(each.sustained, 'B/s'):>12}" for each in one.memory
        ]
        out += [f"  {'':<{widest}}  {'':>12}  {'':>12}  bound by memory below"]
        for each in one.compute:
            peak, sustained = _rate(each.peak, "FLOP/s"), _rate(each.sustained, "FLOP/s")
            out += [f"  {each.key:<{widest}}  {peak:>12}  {sustained:>12}  {_intensity(one.ridge(each))}"]
        out += _ops(one)
    if workload and not any(one.points for one in found):
        out += ["", "  no op of the workload does arithmetic on these devices"]
    return "\n".join(line.rstrip() for line in out) + "\n"


def document(found: Sequence[Roofline], machine: str, workload: str = "", warnings: Sequence[Warning] = ()) -> str:
    """The same as JSON, keys sorted."""
    said = {**as_dict(found, machine, workload), "warnings": as_dicts(warnings)}
    return invariants.document(said)


def as_dict(found: Sequence[Roofline], machine: str, workload: str = "") -> dict[str, Any]:
    """As dicts and lists.  Rates in B/s and FLOP/s; an intensity is null where nothing crosses to memory."""
    return {
        "hwsim": "roofline/1",
        "machine": machine,
        "workload": workload or None,
        "devices": [
            {
                "device": one.device,
                "alike": one.alike,
                "memory": [_ceiling(each) for each in one.memory],
                "compute": [{**_ceiling(each), "ridge_flop_per_byte": one.ridge(each)} for each in one.compute],
                "ops": [_point(one, each) for each in one.points],
                "without_arithmetic": [{"name": name, "count": count} for name, count in one.idle],
            }
            for one in found
        ],
    }


def render(
    found: Sequence[Roofline], title: str, suffix: str = ".png", settings: Iterable[tuple[str, str]] = ()
) -> Iterable[bytes]:
    """A figure with a panel per device: FLOP per second over FLOP per byte, both logarithmic.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    rows = [5.2 + 0.2 * math.ceil(len(one.points) / 2) for one in found]
    with figure_bytes(suffix, width=9, height=math.fsum(rows)) as (figure, buffer):
        panels = figure.subplots(len(found), 1, squeeze=False, height_ratios=rows)[:, 0]
        placed = []
        for axes, one in zip(panels, found, strict=True):
            placed.append(_panel(axes, one))
            axes.set_title(figure_title(f"{title}: {one.device}", settings), fontsize="medium", loc="left")
            axes.set_title("thin dashes: sustained", fontsize="small", loc="right", color=INK)
        figure.draw_without_rendering()  # sizes are known only now: turn the labels along their lines, push others apart
        for axes, (along, beside) in zip(panels, placed, strict=True):
            _along(axes, along)
            _apart(axes, beside)
    return (buffer.getvalue(),)


# ---- text ----


def _ops(one: Roofline) -> list[str]:
    if not one.points and not one.idle:
        return []
    widest = max([len("op"), *(len(each.name) for each in one.points)])
    head = (
        f"  {'op':<{widest}}  {'times':>6}  {'work':>11}  {'bytes':>8}  {'FLOP/B':>7}  {'attained':>12}  {'of roof':>7}  bound by"
    )
    out = ["", head] if one.points else [""]
    for each in one.points:
        cells = (
            f"{each.count:>6,}",
            f"{format_quantity(each.flop, 'FLOP'):>11}",
            f"{format_quantity(each.bytes, 'B') if each.bytes > 0 else '0 B':>8}",
            f"{_intensity(each.intensity, unit=False):>7}",
            f"{_rate(each.attained, 'FLOP/s'):>12}",
            f"{format_share(each.attained / one.roof(each)):>7}",
        )
        out.append(f"  {each.name:<{widest}}  {'  '.join(cells)}  {each.bound}")
    if one.idle:
        out.append("  without arithmetic: " + ", ".join(f"{name} x {count:,}" for name, count in one.idle))
    return out


def _rate(value: float, unit: str) -> str:
    return format_quantity(value, unit)


def _intensity(value: float, *, unit: bool = True) -> str:
    if math.isinf(value):
        return "inf"
    return f"{value:.3g}" + (" FLOP/B" if unit else "")


def _ceiling(each: Ceiling) -> dict[str, Any]:
    unit = "b_per_s" if each.sort == "memory" else "flop_per_s"
    return {"name": each.key, f"peak_{unit}": each.peak, f"sustained_{unit}": each.sustained, "source": each.source}


def _point(one: Roofline, each: Point) -> dict[str, Any]:
    return {
        "name": each.name,
        "kind": each.kind,
        "count": each.count,
        "flop": each.flop,
        "bytes": each.bytes,
        "time_s": each.seconds,
        "intensity_flop_per_byte": None if math.isinf(each.intensity) else each.intensity,
        "attained_flop_per_s": each.attained,
        "roof_flop_per_s": one.roof(each),
        "bound_by": each.bound,
    }


# ---- figure ----


def _panel(axes: Axes, one: Roofline) -> tuple[list[Text], list[Annotation]]:
    """Draws it; the labels along the slopes, and those beside the ceilings, highest first."""
    compute = _distinct(one.compute)
    known = [each.intensity for each in one.points if not math.isinf(each.intensity)]
    top = max(each.peak for each, _ in compute)
    fastest = max(each.peak for each in one.memory)
    least = min(each.peak for each, _ in compute) / fastest / 4  # room for the names along the slopes
    low = 10.0 ** math.floor(math.log10(min([0.1, least, *(value * 0.8 for value in known)])))
    slowest = min(each.peak for each in one.memory)
    high = 10.0 ** math.ceil(math.log10(max([top / slowest * 2, *(value * 2 for value in known)])))
    floor = min([low * slowest, *(each.attained for each in one.points)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(10.0 ** math.floor(math.log10(floor)), top * 3)
    along = [_slope(axes, each, number, low, top) for number, each in enumerate(one.memory)]
    first = next(each.peak for each in one.memory if each.key == "memory")
    for each, _ in compute:
        axes.plot([each.peak / fastest, high], [each.peak, each.peak], color=INK, linewidth=1.3)
        if each.sustained < 0.97 * each.peak:
            axes.plot([each.sustained / first, high], [each.sustained] * 2, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    beside = _beside(axes, [(each.peak, f"{names}  {precise(float(f'{each.peak:.3g}'), 'FLOP/s')}") for each, names in compute])
    _points(axes, one, high)
    axes.set_xlabel("FLOP per byte that crosses to memory")
    axes.set_ylabel("FLOP/s")
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return along, beside


def _slope(axes: Axes, each: Ceiling, number: int, low: float, top: float) -> Text:
    """A line of one level of memory, with its name along the left end of it."""
    colour, style = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
    axes.plot([low, top / each.peak], [low * each.peak, top], color=colour, linewidth=1.8, linestyle=style)
    if each.sustained < 0.97 * each.peak:
        axes.plot([low, top / each.peak], [low * each.sustained, top * each.sustained / each.peak], color=colour, linewidth=0.8,
                  linestyle=(0, (4, 3)))  # fmt: skip
    at = low * 1.3
    return axes.text(
        at,
        at * each.peak,
        f"{each.key}  {precise(float(f'{each.peak:.3g}'), 'B/s')}",
        rotation_mode="anchor",
        fontsize=8,
        color=colour,
        fontweight="bold",
        ha="left",
        va="center_baseline",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _distinct(ceilings: Sequence[Ceiling]) -> list[tuple[Ceiling, str]]:
    """Ceilings of one height as one line: (the first, all their names)."""
    found: list[tuple[Ceiling, str]] = []
    for each in ceilings:
        same = next((at for at, (one, _) in enumerate(found) if abs(one.peak / each.peak - 1) < 0.02), None)
        if same is None:
            found.append((each, each.key))
        else:
            found[same] = (found[same][0], f"{found[same][1]}, {each.key}")
    return found


def _beside(axes: Axes, labels: Sequence[tuple[float, str]]) -> list[Annotation]:
    """Labels at the right of their lines, highest first."""
    return [
        axes.annotate(
            label,
            (1.0, value),
            (8, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            va="center",
            ha="left",
            annotation_clip=False,
        )
        for value, label in sorted(labels, reverse=True)
    ]


def _along(axes: Axes, labels: Sequence[Text]) -> None:
    """Turn labels to the slope of a line of constant bandwidth."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    for each in labels:
        each.set_rotation(math.degrees(math.atan2(y1 - y0, x1 - x0)))


def _apart(axes: Axes, labels: Sequence[Annotation]) -> None:
    """Push labels down from the top where lines are close."""
    figure = axes.get_figure()
    to_points = 72.0 / (figure.dpi if figure is not None else 100.0)
    above = math.inf
    for each in labels:
        true = float(axes.transData.transform((1.0, each.xy[1]))[1]) * to_points
        above = min(true, above - APART)
        each.set_position((8, above - true))


def _points(axes: Axes, one: Roofline, high: float) -> None:
    shown = one.points[:DRAWN]
    for number, each in enumerate(shown):
        inside = math.isinf(each.intensity)
        axes.plot(
            [high if inside else each.intensity],
            [each.attained],
            marker=MARKERS[number],
            color=COLOURS[number % 8],
            markeredgecolor="black",
            markersize=8,
            linestyle="none",
            zorder=5,
            clip_on=False,
            label=f"{each.name}: {format_share(each.attained / one.roof(each))} of its roof" + (" (caches)" if inside else ""),
        )
    if len(one.points) > DRAWN:
        rest = [each for each in one.points[DRAWN:] if not math.isinf(each.intensity)]
        axes.plot([each.intensity for each in rest], [each.attained for each in rest], ".", color="#777777",
                  label=f"{len(one.points) - DRAWN} others")  # fmt: skip
    if one.points:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize="small")
