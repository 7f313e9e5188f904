"""The frontier of a plan as points of a figure: the objective over the first further axis, by kind of machine."""

from __future__ import annotations

from hwsim.planning.answer import Answer, short, where
from hwsim.planning.choosing import axes_of
from hwsim.planning.options import Option
from hwsim.planning.say import heading
from hwsim.planning.searching import kind_of, kind_path
from hwsim.planning.wants import MEASURES, Quantity
from hwsim.studies.grid import written
from hwsim.views.frontier.draw import Axis, Cloud, Scatter


def figure(answer: Answer) -> Scatter:
    """The points of the figure."""
    axes = [quantity for quantity, _ in axes_of(answer.question)]
    up = axes[0]
    others = [*axes[1:], *(requirement.quantity for requirement in answer.question.requirements), Quantity("", MEASURES["nodes"])]
    across = next((other for other in others if other.key != up.key and _varies(answer, other)), others[-1])
    path = kind_path(answer.question)
    kinds: dict[str, list[Option]] = {}
    for option in answer.options:
        kinds.setdefault(written(kind_of(option, path)) if path else "", []).append(option)
    front = {each.point.number for each in answer.frontier}
    clouds = []
    for name, members in kinds.items():
        points = [(x, y, member.point.number in front) for member in members
                  if (x := member.value(across.key)) is not None and (y := member.value(up.key)) is not None]  # fmt: skip
        clouds.append(Cloud(name, tuple(points)))
    return Scatter(
        title=_finding(answer, up, len(front)),
        below=heading(answer),
        across=Axis(across.title, across.measure.unit),
        up=Axis(up.title, up.measure.unit),
        legend=short(path) if path else "",
        clouds=tuple(clouds),
    )


def _finding(answer: Answer, up: Quantity, many: int) -> str:
    """The best option, and how many more are worth a look."""
    best = answer.best
    value = None if best is None else best.value(up.key)
    if best is None or value is None:
        return "no option holds"
    more = f"; {many} of {len(answer.options)} options are on the frontier" if len(answer.options) > 1 else ""
    return f"Best {up.title}: {up.measure.shown(value)} with {where(best.point.shown) or 'the files as they are'}{more}"


def _varies(answer: Answer, quantity: Quantity) -> bool:
    values = {option.value(quantity.key) for option in answer.options}
    return None not in values and len(values) > 1
