"""The change that lifts a reason: the nearest other value that does not break the same constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwsim.planning.answer import Answer, short
from hwsim.planning.reasons import Group
from hwsim.studies.grid import written

Values = tuple[tuple[str, object], ...]


def lifted(answer: Answer, group: Group) -> Group:
    """The group with what would lift the reason of its nearest option, if another option shows it."""
    values = next(each.values for each in answer.rejected if each.number == group.nearest)
    nearest = min(_others(answer, group.reason.constraint, values), default=None)
    if nearest is None:
        return group
    _, _, path, value, holds = nearest
    end = "does" if holds else "does, but breaks another constraint"
    return replace(group, reason=group.reason.lifted(f"{short(path)}={value} {end}"))


def _others(answer: Answer, constraint: str, values_here: Values) -> Iterator[tuple[bool, float, str, str, bool]]:
    """(breaks something else, distance, path, value, holds) of options that differ by one value and do not break it."""
    options: list[tuple[Values, tuple[str, ...]]] = [(each.point.shown, ()) for each in answer.options]
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
