"""The answer of a plan: the best options, the frontier, why not the others, and which change would lift a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hwsim.costs.cost import said_of
from hwsim.planning.choosing import Against
from hwsim.planning.options import Option
from hwsim.planning.question import Question
from hwsim.planning.reasons import Group, Rejected, grouped, nearest_of
from hwsim.records import dataclass
from hwsim.studies.grid import written
from hwsim.views.kit.shown import Drawn

if TYPE_CHECKING:
    from hwsim.planning.outlay import Outlay


@dataclass(frozen=True)
class Answer(Drawn):
    """Options that meet every requirement, and reasons of the others.

    Args:
        best: None if nothing meets the requirements.
        options: the best first, simulated ones before estimates.
        frontier: options that no other is better than in every axis.
        of_each: the best of each kind of machine.
        ratios: objective of an option over the objective of the best, by the number of the option.
        untried: options that were not simulated, because what is known of them is worse than the best.
        left: axes of parallel plans that were not looked at, and whether plans of such trainings usually have more than one.
        otherwise: the best with its nodes in the other order: by chance, or as they stand.
        points, plans, simulations: counts of what was looked at; seconds: of CPU.
    """

    question: Question
    best: Option | None
    options: tuple[Option, ...]
    frontier: tuple[Option, ...]
    of_each: tuple[Option, ...]
    ratios: Mapping[int, Against]
    rejected: tuple[Rejected, ...]
    untried: tuple[Option, ...]
    points: int
    plans: int
    simulations: int
    seconds: float
    outlay: Outlay
    left: Mapping[str, bool]
    otherwise: Option | None = None
    TABLE: ClassVar = "options"

    @property
    def is_best(self) -> bool:
        """Whether the best option may be called that: no plan of a kind that such trainings usually have was left out."""
        return self.best is not None and not any(self.left.values())

    @cached_property
    def nearest(self) -> Rejected | None:
        """The option that misses least, if nothing meets the requirements."""
        return nearest_of(self.rejected) if self.best is None else None

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Equal reasons together, with what would lift them."""
        first = self.rejected[0].values[0][0] if self.rejected and self.rejected[0].values else ""

        def alike(each: Rejected) -> str:
            values = dict(each.values)
            value = values.get(first)
            return written(value) if isinstance(value, str) and not value[:1].isdigit() else ""

        return tuple(lifted(self, group) for group in grouped(self.rejected, alike, lambda each: where(each.values)))

    @property
    def said(self) -> tuple[str, ...]:
        """Prices of the best option and of the best of each kind: who asks them, for which term, and when."""
        found = [item for each in (self.best, *self.of_each) if each is not None for item in each.prices[:3]]
        return tuple(dict.fromkeys(said_of(found)))

    @property
    def given(self) -> Iterator[str]:
        """Values that the user wrote, as tables show them."""
        return (written(value) for axis in self.question.varied.axes for value in axis.values)

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: plan/1`."""
        from hwsim.planning.document import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The frontier."""
        from hwsim.planning.figure import figure
        from hwsim.views.frontier.draw import render

        return render(figure(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser: the best, all that hold, and why not the others; nothing else is needed."""
        from hwsim.planning.page import render
        from hwsim.views.kit.writing import write

        return write(path, render(self))

    def __str__(self) -> str:
        return self.summary()

    def summary(self, *, verbose: bool = False) -> str:
        """The text that `hwsim plan` prints; verbose: as with -v."""
        from hwsim.planning.say import text

        return text(self, verbose=verbose)


def where(values: tuple[tuple[str, object], ...]) -> str:
    """Values of a point in words.

    >>> where((("let.node", "dgx-h100"), ("let.nodes", 64)))
    'node=dgx-h100 nodes=64'
    """
    return " ".join(f"{short(path)}={written(value)}" for path, value in values)


def short(path: str) -> str:
    """A path by what a reader knows it by.

    >>> short("let.nodes"), short("machine.disk.use"), short("machine"), short("workload.infer.parallel.tp")
    ('nodes', 'disk', 'machine', 'tp')
    """
    steps = path.split(".")
    return steps[-2] if steps[-1] == "use" and len(steps) > 1 else f"{steps[-2]}.count" if steps[-1] == "count" else steps[-1]


Values = tuple[tuple[str, object], ...]


def lifted(answer: Answer, group: Group) -> Group:
    """The group with what would lift the reason of its nearest option, if another option shows it."""
    values = next(each.values for each in answer.rejected if each.number == group.nearest)
    nearest = min(_others(answer, group.reason.constraint, values), default=None)
    if nearest is None:
        return group
    _, _, path, value, holds = nearest
    end = "meets it" if holds else "meets it, but breaks another constraint"
    return replace(group, reason=group.reason.lifted(f"{short(path)}={value} {end}"))


def _others(answer: Answer, constraint: str, values_here: Values) -> Iterator[tuple[bool, float, str, str, bool]]:
    """(breaks something else, distance, path, value, holds) of options that differ by one value and do not break it."""
    options: list[tuple[Values, tuple[str, ...]]] = [(option.point.shown, ()) for option in answer.options]
    options += [(each.values, tuple(reason.constraint for reason in each.reasons)) for each in answer.rejected]
    mine = dict(values_here)
    for values, broken in options:
        if (
            len(values) != len(values_here)
            or constraint in broken
            or any(each in ("machine", "workload", "no plan") for each in broken)
        ):
            continue
        different = [(path, value) for path, value in values if mine.get(path) != value]
        if len(different) == 1:
            path, value = different[0]
            yield bool(broken), _distance(mine.get(path), value), path, written(value), not broken


def _distance(a: object, b: object) -> float:
    """The distance of two values; names are further than any numbers."""
    if isinstance(a, int | float) and isinstance(b, int | float) and not isinstance(a, bool):
        return abs(a - b) / max(abs(a), abs(b), 1e-300)
    return 10.0
