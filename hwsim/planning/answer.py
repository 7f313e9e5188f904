"""The answer to a plan: the best options, the Pareto frontier, and rejected options with a change that makes them feasible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hwsim.costs.cost import cost_assumptions
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import ObjectiveRatio
from hwsim.planning.question import Question
from hwsim.planning.reasons import Rejected, RejectionGroup, group_rejections, nearest_rejection
from hwsim.records import dataclass
from hwsim.studies.grid import value_text
from hwsim.views.kit.answer_forms import FigureAnswer

if TYPE_CHECKING:
    from hwsim.planning.outlay import Outlay


@dataclass(frozen=True)
class PlanAnswer(FigureAnswer):
    """An answer that lists the feasible options, best first, and the reasons of the rejected ones.

    Args:
        best: best option; None if no option meets the requirements.
        options: feasible options, best first; simulated options precede estimates.
        frontier: options on the Pareto frontier.
        of_each: best option of each machine type.
        ratios: objective of an option / objective of the best, by option number.
        untried: options that were not simulated, because their closed form is worse than the best.
        otherwise: the best option with its nodes in the other order (random, or as wired).
        points: number of configurations evaluated.
        searched: what became of the combinations of the parallel plan, in all configurations.
        axes: axes of the parallel plan that were searched.
        simulations: number of simulations.
        seconds: CPU time of the search (seconds).
    """

    question: Question
    best: PlanOption | None
    options: tuple[PlanOption, ...]
    frontier: tuple[PlanOption, ...]
    of_each: tuple[PlanOption, ...]
    ratios: Mapping[int, ObjectiveRatio]
    rejected: tuple[Rejected, ...]
    untried: tuple[PlanOption, ...]
    points: int
    searched: Counter[str]
    axes: tuple[str, ...]
    simulations: int
    seconds: float
    outlay: Outlay
    otherwise: PlanOption | None = None
    TABLE: ClassVar = "options"

    @cached_property
    def nearest(self) -> Rejected | None:
        """Rejected option closest to feasibility; None if an option meets the requirements."""
        return nearest_rejection(self.rejected) if self.best is None else None

    @cached_property
    def groups(self) -> tuple[RejectionGroup, ...]:
        """Rejected options grouped by reason, each group with a change that would remove the reason."""
        first = self.rejected[0].values[0][0] if self.rejected and self.rejected[0].values else ""

        def alike(each: Rejected) -> str:
            values = dict(each.values)
            value = values.get(first)
            return value_text(value) if isinstance(value, str) and not value[:1].isdigit() else ""

        return tuple(
            with_feasible_values(self, group)
            for group in group_rejections(self.rejected, alike, lambda each: values_text(each.values))
        )

    @property
    def said(self) -> tuple[str, ...]:
        """Provider, term and date of the prices of the best options."""
        found = [item for option in (self.best, *self.of_each) if option is not None for item in option.prices[:3]]
        return tuple(dict.fromkeys(cost_assumptions(found)))

    @property
    def given(self) -> Iterator[str]:
        """Values from the question, as tables print them."""
        return (value_text(value) for axis in self.question.varied.axes for value in axis.values)

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: plan/2`."""
        from hwsim.planning.document import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure of the Pareto frontier, as chunks of a file."""
        from hwsim.planning.figure import figure
        from hwsim.views.frontier.draw import render

        return render(figure(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: the best option, all feasible options, and the reasons of the rejected ones."""
        from hwsim.planning.page import render
        from hwsim.views.kit.file_output import write

        return write(path, render(self))

    def __str__(self) -> str:
        return self.summary()

    def summary(self, *, verbose: bool = False) -> str:
        """Return the text that `hwsim plan` prints; `verbose` corresponds to -v."""
        from hwsim.planning.plan_text import text

        return text(self, verbose=verbose)


def values_text(values: tuple[tuple[str, object], ...]) -> str:
    """Return the values of a point as text.

    >>> values_text((("let.node", "dgx-h100"), ("let.nodes", 64)))
    'node=dgx-h100 nodes=64'
    """
    return " ".join(f"{short_path(path)}={value_text(value)}" for path, value in values)


def short_path(path: str) -> str:
    """Return the last meaningful key of a path.

    >>> short_path("let.nodes"), short_path("machine.disk.use"), short_path("machine"), short_path("workload.infer.parallel.tp")
    ('nodes', 'disk', 'machine', 'tp')
    """
    steps = path.split(".")
    return steps[-2] if steps[-1] == "use" and len(steps) > 1 else f"{steps[-2]}.count" if steps[-1] == "count" else steps[-1]


Values = tuple[tuple[str, object], ...]


def with_feasible_values(answer: PlanAnswer, group: RejectionGroup) -> RejectionGroup:
    """Return the group with a change that would remove the reason of its nearest option, if another option shows one."""
    values = next(option.values for option in answer.rejected if option.number == group.nearest)
    nearest = min(_others(answer, group.reason.constraint, values), default=None)
    if nearest is None:
        return group
    _, _, path, value, holds = nearest
    end = "meets it" if holds else "meets it, but breaks another constraint"
    return replace(group, reason=group.reason.lifted(f"{short_path(path)}={value} {end}"))


def _others(answer: PlanAnswer, constraint: str, values_here: Values) -> Iterator[tuple[bool, float, str, str, bool]]:
    """Yield (breaks another constraint, distance, path, value, is feasible) of options that differ by one value and meet it."""
    options: list[tuple[Values, tuple[str, ...]]] = [(option.point.shown, ()) for option in answer.options]
    options += [(option.values, tuple(reason.constraint for reason in option.reasons)) for option in answer.rejected]
    mine = dict(values_here)
    for values, broken in options:
        if (
            len(values) != len(values_here)
            or constraint in broken
            or any(name in ("machine", "workload", "no plan") for name in broken)
        ):
            continue
        different = [(path, value) for path, value in values if mine.get(path) != value]
        if len(different) == 1:
            path, value = different[0]
            yield bool(broken), _distance(mine.get(path), value), path, value_text(value), not broken


def _distance(a: object, b: object) -> float:
    """Return the relative distance of two values; 10 for names."""
    if isinstance(a, int | float) and isinstance(b, int | float) and not isinstance(a, bool):
        return abs(a - b) / max(abs(a), abs(b), 1e-300)
    return 10.0
