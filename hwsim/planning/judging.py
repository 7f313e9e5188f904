"""Requirements of a question held against the numbers of an option: a reason for each that is broken, or that nothing tells."""

from __future__ import annotations

from dataclasses import replace

from hwsim.formats import percent
from hwsim.planning.options import Option
from hwsim.planning.question import Question
from hwsim.planning.reasons import Reason, broken
from hwsim.planning.wants import MEASURES, Quantity, Requirement

USED = ("cost", "energy", "carbon", "cost per million tokens")  # measures of the time that a machine is used


def judged(question: Question, option: Option) -> Option:
    """The option with a reason for each requirement that its numbers break."""
    reasons = list(option.reasons)
    named = {each.constraint for each in reasons}
    for requirement in question.requirements:
        value = option.value(requirement.quantity.key)
        if value is None or requirement.quantity.title in named or requirement.quantity.measure.name in named:
            continue
        reason = broken(requirement, value, _more(option, requirement))
        reasons += [reason] if reason is not None else []
    return replace(option, reasons=tuple(reasons))


def answered(question: Question, option: Option) -> Option:
    """The option with a reason for each number that is asked for and not known, once all that tells it was looked at."""
    wanted = [quantity for objective in question.objectives for quantity, _ in objective.weights]
    needed = dict.fromkeys([*wanted, *(requirement.quantity for requirement in question.requirements)])
    lacking = [each for each in needed if each.key not in option.numbers]
    if option.reasons or not lacking:
        return option
    return replace(option, reasons=tuple(_untold(question, each) for each in lacking))


def _untold(question: Question, quantity: Quantity) -> Reason:
    """Why nothing is known of a number."""
    if quantity.measure.name in USED and not question.period:
        return Reason(quantity.title, "unknown, because the period of use is not stated", lift="period: 1 year")
    return Reason(quantity.title, "not available from the workload or its simulation")


def _more(option: Option, requirement: Requirement) -> str:
    quantity = requirement.quantity
    trained = option.wholes.get(quantity.workload)
    if quantity.measure.name == "training" and trained is not None and trained.good is not None:
        good, ideal = trained.good.share, MEASURES["training"].shown(trained.ideal_s)
        return f" ({percent(good)} goodput; {ideal} without failures)"
    return ""
