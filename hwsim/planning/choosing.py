"""The best of options: their order, which are as good within what is known, and the frontier of several measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from hwsim.comparing.alike import Known, judged
from hwsim.planning.options import Option, keyed
from hwsim.planning.question import Question
from hwsim.planning.wants import Objective, Quantity
from hwsim.records import dataclass
from hwsim.results.interval import Interval

DIGITS = 6  # by which objectives are compared


@dataclass(frozen=True, slots=True)
class Against:
    """The objective of an option over the objective of the best.

    Args:
        value: ratio; half: half width of its 90 % range, as a logarithm; is_told: whether one of both is better for sure.
        unlike: why no ratio of the two is sure, however large it is.
    """

    value: float
    half: float
    is_told: bool
    unlike: str = ""


def order(question: Question, options: Iterable[Option]) -> list[Option]:
    """Options that have the objective, the best first: by `also`, nodes, what holds for sure, and values as `vary` has them."""
    known = [option for option in options if has_objective(question, option)]
    key = sorting(question, known)
    return sorted(known, key=key)


def has_objective(question: Question, option: Option) -> bool:
    """Whether all that is made small or large is known of an option."""
    return all(option.value(quantity.key) is not None for objective in question.objectives for quantity, _ in objective.weights)


def sorting(question: Question, options: Sequence[Option]) -> Callable[[Option], tuple[object, ...]]:
    """The key that sorts options."""
    bests = {
        quantity.key: best_of(quantity, objective.most, options)
        for objective in question.objectives
        for quantity, _ in objective.weights
    }

    def key(option: Option) -> tuple[object, ...]:
        scores = [rounded(score(each, option, bests)) for each in question.objectives]
        also = [rounded(signed(each, option)) for each in question.also]
        return (*scores, *also, option.value("nodes") or 0.0, doubtful(question, option), option.point.number)

    return key


def doubtful(question: Question, option: Option) -> int:
    """Requirements that the range of a number reaches beyond: of equals those come first that hold for sure."""
    ranges = [
        (requirement, option.numbers[requirement.quantity.key])
        for requirement in question.requirements
        if requirement.quantity.key in option.numbers
    ]
    return sum(each.excess(amount.low) > 0 or each.excess(amount.high) > 0 for each, amount in ranges)  # integers


def best_of(quantity: Quantity, most: bool, options: Iterable[Option]) -> float:
    """The best value of a quantity; 1 without any."""
    values = [value for option in options if (value := option.value(quantity.key)) is not None]
    return (max(values) if most else min(values)) if values else 1.0


def score(objective: Objective, option: Option, bests: Mapping[str, float]) -> float:
    """A number that is small where an option is good."""
    sign = -1.0 if objective.most else 1.0
    if len(objective.weights) == 1:
        return sign * (option.value(objective.weights[0][0].key) or 0.0)
    parts = [
        weight * (option.value(quantity.key) or 0.0) / (bests[quantity.key] or 1.0) for quantity, weight in objective.weights
    ]
    return sign * math.fsum(parts)


def signed(quantity: Quantity, option: Option) -> float:
    """A quantity, negative where more of it is better; infinite if it is not known."""
    value = option.value(quantity.key)
    return math.inf if value is None else -value if quantity.measure.more else value


def rounded(value: float) -> float:
    """A number with six digits."""
    return value if value == 0 or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def axes_of(question: Question) -> tuple[tuple[Quantity, bool], ...]:
    """Axes of the frontier: (quantity, whether more of it is better)."""
    found = {quantity: objective.most for objective in question.objectives for quantity, _ in objective.weights}
    for quantity in question.also:
        found.setdefault(quantity, quantity.measure.more)
    return tuple(found.items())


def frontier(question: Question, options: Sequence[Option]) -> tuple[Option, ...]:
    """Options that no other is at least as good as in every axis, and better in one; of equals the first."""
    axes = axes_of(question)
    points = list[tuple[tuple[float, ...], Option]]()
    for option_ in options:
        signs = [(option_.value(quantity.key), most) for quantity, most in axes]
        values = tuple(rounded(-value if most else value) for value, most in signs if value is not None)
        if len(values) == len(axes):
            points.append((values, option_))
    points.sort(key=lambda pair: pair[0])
    kept: list[tuple[tuple[float, ...], Option]] = []
    for values, option in points:
        if not any(all(a <= b for a, b in zip(better, values, strict=True)) for better, _ in kept):
            kept.append((values, option))
    return tuple(option for _, option in kept)


def against(question: Question, option: Option, best: Option, known_alike: Callable[[Option], Option] | None = None) -> Against:
    """The ratio of an option to the best, and whether it is sure, as `hwsim compare` judges.

    known_alike: an option as if what was measured of its machine were left to its class; None of two options of one machine.
    """
    objective = question.objectives[0]
    bests = {quantity.key: best_of(quantity, objective.most, [option, best]) for quantity, _ in objective.weights}
    score_here, score_best = (rounded(abs(score(objective, entry, bests))) for entry in (option, best))
    if score_here <= 0 or score_best <= 0:
        return Against(1.0, 0.0, is_told=False)
    value, name, pair = score_here / score_best, _timed(question, option, best), (option, best)
    in_money = any(quantity.measure.unit == "USD" for quantity, _ in objective.weights)
    halves = [max(entry.numbers[quantity.key].half for quantity, _ in objective.weights) for entry in pair]
    per_token = objective.weights[0][0].measure.name == "cost per million tokens"  # of a service

    def known(entry: Option, half: float) -> Known:
        time: Interval | float = entry.numbers["tokens_per_s"].half if per_token and "tokens_per_s" in entry.numbers else 0.0
        time = entry.intervals[name].of(_seconds(entry, name)) if name is not None and max(halves) > 0 else time
        besides = math.sqrt(max(0.0, half**2 - (time if isinstance(time, float) else time.half) ** 2))
        return Known(time, besides, entry.prices if in_money else ())

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
    return Against(value, half, found.over.is_told and not found.why and steady, found.why)


def _is_steady(option: Option, best: Option) -> bool:
    """Whether more goodput stays more, whatever the rates of failures are in their range: both have the same rates."""
    goods = [(option.wholes[name].good, best.wholes[name].good) for name in option.wholes if name in best.wholes]
    pairs = [(a, b) for a, b in goods if a is not None and b is not None]
    return all(len({a.share < b.share, a.low < b.low, a.high < b.high}) == 1 for a, b in pairs)


def _timed(question: Question, option: Option, best: Option) -> str | None:
    """The workload whose time the objective hangs on, of those whose time is as unsure as is known of both; None without any."""
    wanted = question.objectives[0].weights[0][0].measure
    whole = not question.period or any(key.rpartition(".")[2] == "training" for key in option.numbers)  # else used for a period
    both = [
        interval for interval in option.intervals if interval in best.intervals and (whole or wanted.of in ("run", "training"))
    ]
    return both[0] if both else None


def _seconds(option: Option, name: str) -> float:
    """Seconds of a token, of a step, or of a run: what the interval is of."""
    rate = option.value(keyed(name, "tokens_per_s"))
    return 1.0 / rate if rate else option.value(keyed(name, "step")) or option.value(keyed(name, "time")) or 1.0
