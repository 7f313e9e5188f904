"""The Pareto frontier of a plan as a scatter plot: the objective over the first further axis, by machine type."""

from __future__ import annotations

from hwsim.planning.answer import PlanAnswer, short_path, values_text
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import frontier_axes
from hwsim.planning.plan_text import heading
from hwsim.planning.requirements import MEASURES, PlanQuantity
from hwsim.planning.search import kind_of, kind_path
from hwsim.studies.grid import value_text
from hwsim.views.frontier.draw import Cloud, Scatter, ScatterAxis


def figure(answer: PlanAnswer) -> Scatter:
    """Return the scatter plot of an answer."""
    axes = [quantity for quantity, _ in frontier_axes(answer.question)]
    up = axes[0]
    others = [
        *axes[1:],
        *(requirement.quantity for requirement in answer.question.requirements),
        PlanQuantity("", MEASURES["nodes"]),
    ]
    across = next((other for other in others if other.key != up.key and _varies(answer, other)), others[-1])
    path = kind_path(answer.question)
    kinds: dict[str, list[PlanOption]] = {}
    for option in answer.options:
        kinds.setdefault(value_text(kind_of(option, path)) if path else "", []).append(option)
    front = {option.point.number for option in answer.frontier}
    clouds = []
    for name, members in kinds.items():
        points = [(x, y, member.point.number in front) for member in members
                  if (x := member.value(across.key)) is not None and (y := member.value(up.key)) is not None]  # fmt: skip
        clouds.append(Cloud(name, tuple(points)))
    return Scatter(
        title=_finding(answer, up, len(front)),
        below=heading(answer),
        across=ScatterAxis(across.title, across.measure.unit),
        up=ScatterAxis(up.title, up.measure.unit),
        legend=short_path(path) if path else "",
        clouds=tuple(clouds),
    )


def _finding(answer: PlanAnswer, up: PlanQuantity, many: int) -> str:
    """Return the title: the best option, and the number of others on the frontier."""
    best = answer.best
    value = None if best is None else best.value(up.key)
    if best is None or value is None:
        return "no option holds"
    more = f"; {many} of {len(answer.options)} options are on the frontier" if len(answer.options) > 1 else ""
    return f"Best {up.title}: {up.measure.shown(value)} with {values_text(best.point.shown) or 'the files as they are'}{more}"


def _varies(answer: PlanAnswer, quantity: PlanQuantity) -> bool:
    values = {option.value(quantity.key) for option in answer.options}
    return None not in values and len(values) > 1
