"""Sort options by the objective, test which are tied within the uncertainty, and find the Pareto frontier."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from hwsim.comparing.class_defaults import ResultUncertainty, judged
from hwsim.planning.options import PlanOption, option_key
from hwsim.planning.question import Question
from hwsim.planning.requirements import Objective, PlanQuantity
from hwsim.records import dataclass
from hwsim.results.interval import Interval

COMPARED_DIGITS = 6  # digits to which objectives are compared


@dataclass(frozen=True, slots=True)
class ObjectiveRatio:
    """A ratio of an option's objective to the best one, with its uncertainty.

    Args:
        value: ratio.
        half: half width of the 90 % interval of the ratio's logarithm.
        is_conclusive: whether the difference is conclusive.
        unlike: reason why the two options cannot be compared; "" if they can.
    """

    value: float
    half: float
    is_conclusive: bool
    unlike: str = ""


def sort_options(question: Question, options: Iterable[PlanOption]) -> list[PlanOption]:
    """Return the options with a known objective, best first.

    Ties are sorted by `also`, node count, number of inconclusive requirements, and order in `vary`.
    """
    known = [option for option in options if has_objective(question, option)]
    key = sort_key(question, known)
    return sorted(known, key=key)


def has_objective(question: Question, option: PlanOption) -> bool:
    """Whether every objective of an option is known."""
    return all(option.value(quantity.key) is not None for objective in question.objectives for quantity, _ in objective.weights)


def sort_key(question: Question, options: Sequence[PlanOption]) -> Callable[[PlanOption], tuple[object, ...]]:
    """Return the sort key of options."""
    bests = {
        quantity.key: best_measure_value(quantity, objective.most, options)
        for objective in question.objectives
        for quantity, _ in objective.weights
    }

    def key(option: PlanOption) -> tuple[object, ...]:
        scores = [round_objective(score(objective, option, bests)) for objective in question.objectives]
        also = [round_objective(signed_objective(objective, option)) for objective in question.also]
        return (*scores, *also, option.value("nodes") or 0.0, inconclusive_count(question, option), option.point.number)

    return key


def inconclusive_count(question: Question, option: PlanOption) -> int:
    """Return the number of requirements whose limit lies inside the 90 % interval of the option's number."""
    ranges = [
        (requirement, option.numbers[requirement.quantity.key])
        for requirement in question.requirements
        if requirement.quantity.key in option.numbers
    ]
    return sum(limit.excess(amount.low) > 0 or limit.excess(amount.high) > 0 for limit, amount in ranges)  # integers


def best_measure_value(quantity: PlanQuantity, most: bool, options: Iterable[PlanOption]) -> float:
    """Return the best value of a quantity; 1 if it is unknown for all options."""
    values = [value for option in options if (value := option.value(quantity.key)) is not None]
    return (max(values) if most else min(values)) if values else 1.0


def score(objective: Objective, option: PlanOption, bests: Mapping[str, float]) -> float:
    """Return the score of an option for an objective; smaller is better."""
    sign = -1.0 if objective.most else 1.0
    if len(objective.weights) == 1:
        return sign * (option.value(objective.weights[0][0].key) or 0.0)
    parts = [
        weight * (option.value(quantity.key) or 0.0) / (bests[quantity.key] or 1.0) for quantity, weight in objective.weights
    ]
    return sign * math.fsum(parts)


def signed_objective(quantity: PlanQuantity, option: PlanOption) -> float:
    """Return a quantity with a sign such that smaller is better; infinite if it is unknown."""
    value = option.value(quantity.key)
    return math.inf if value is None else -value if quantity.measure.more else value


def round_objective(value: float) -> float:
    """Round a number to six digits."""
    return value if value == 0 or not math.isfinite(value) else float(f"{value:.{COMPARED_DIGITS}g}")


def frontier_axes(question: Question) -> tuple[tuple[PlanQuantity, bool], ...]:
    """Return the axes of the Pareto frontier: (quantity, whether more is better)."""
    found = {quantity: objective.most for objective in question.objectives for quantity, _ in objective.weights}
    for quantity in question.also:
        found.setdefault(quantity, quantity.measure.more)
    return tuple(found.items())


def frontier(question: Question, options: Sequence[PlanOption]) -> tuple[PlanOption, ...]:
    """Return the options that no other option dominates; of equal options, the first."""
    axes = frontier_axes(question)
    points = list[tuple[tuple[float, ...], PlanOption]]()
    for option_ in options:
        signs = [(option_.value(quantity.key), most) for quantity, most in axes]
        values = tuple(round_objective(-value if most else value) for value, most in signs if value is not None)
        if len(values) == len(axes):
            points.append((values, option_))
    points.sort(key=lambda pair: pair[0])
    kept: list[tuple[tuple[float, ...], PlanOption]] = []
    for values, option in points:
        if not any(all(a <= b for a, b in zip(better, values, strict=True)) for better, _ in kept):
            kept.append((values, option))
    return tuple(option for _, option in kept)


def compare_options(
    question: Question, option: PlanOption, best: PlanOption, known_alike: Callable[[PlanOption], PlanOption] | None = None
) -> ObjectiveRatio:
    """Return the ratio of an option to the best, and whether it is conclusive by the rules of `hwsim compare`.

    Args:
        question: the question.
        option: option to compare.
        best: best option.
        known_alike: function that returns an option with class defaults instead of measurements of its machine; None if both
            options have the same machine.
    """
    objective = question.objectives[0]
    bests = {quantity.key: best_measure_value(quantity, objective.most, [option, best]) for quantity, _ in objective.weights}
    score_here, score_best = (round_objective(abs(score(objective, entry, bests))) for entry in (option, best))
    if score_here <= 0 or score_best <= 0:
        return ObjectiveRatio(1.0, 0.0, is_conclusive=False)
    value, name, pair = score_here / score_best, _timed(question, option, best), (option, best)
    in_money = any(quantity.measure.unit == "USD" for quantity, _ in objective.weights)
    halves = [max(entry.numbers[quantity.key].half for quantity, _ in objective.weights) for entry in pair]
    per_token = objective.weights[0][0].measure.name == "cost per million tokens"  # of a service

    def known(entry: PlanOption, half: float) -> ResultUncertainty:
        time: Interval | float = entry.numbers["tokens_per_s"].half if per_token and "tokens_per_s" in entry.numbers else 0.0
        time = entry.intervals[name].of(_seconds(entry, name)) if name is not None and max(halves) > 0 else time
        besides = math.sqrt(max(0.0, half**2 - (time if isinstance(time, float) else time.half) ** 2))
        return ResultUncertainty(time, besides, entry.prices if in_money else ())

    def alike() -> float | None:
        slower = []
        for entry in pair:
            of_class = entry if known_alike is None else known_alike(entry)
            if name is None or name not in of_class.intervals:
                return None
            slower.append(_seconds(of_class, name) / _seconds(entry, name))
        return value * (slower[1] / slower[0] if objective.most else slower[0] / slower[1])

    found = judged(value, known(option, halves[0]), known(best, halves[1]), None if known_alike is None else alike)
    half = found.over.half
    steady = half > 0 or max(halves) == 0 or _is_steady(option, best)
    return ObjectiveRatio(value, half, found.over.is_conclusive and not found.why and steady, found.why)


def _is_steady(option: PlanOption, best: PlanOption) -> bool:
    """Whether the order of the two goodputs is the same for all failure rates in their interval, because both share the rates."""
    goods = [(option.wholes[name].good, best.wholes[name].good) for name in option.wholes if name in best.wholes]
    pairs = [(a, b) for a, b in goods if a is not None and b is not None]
    return all(len({a.share < b.share, a.low < b.low, a.high < b.high}) == 1 for a, b in pairs)


def _timed(question: Question, option: PlanOption, best: PlanOption) -> str | None:
    """Return the workload whose time determines the objective and has an interval in both options; None if there is none."""
    wanted = question.objectives[0].weights[0][0].measure
    whole = not question.period or any(key.rpartition(".")[2] == "training" for key in option.numbers)  # else used for a period
    both = [
        interval for interval in option.intervals if interval in best.intervals and (whole or wanted.of in ("run", "training"))
    ]
    return both[0] if both else None


def _seconds(option: PlanOption, name: str) -> float:
    """Return the time that the interval refers to: of a token, a step or a run (seconds)."""
    rate = option.value(option_key(name, "tokens_per_s"))
    return 1.0 / rate if rate else option.value(option_key(name, "step")) or option.value(option_key(name, "time")) or 1.0
