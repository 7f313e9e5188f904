"""Check the requirements of a question: a reason for each requirement that an option violates, or whose number is unknown."""

from __future__ import annotations

from dataclasses import replace

from hwsim.formats import percent
from hwsim.planning.options import PlanOption
from hwsim.planning.question import Question
from hwsim.planning.reasons import Reason, broken_reason
from hwsim.planning.requirements import MEASURES, PlanQuantity, Requirement

USED = ("cost", "energy", "carbon", "cost per million tokens")  # measures that depend on the time of use


def judge_requirements(question: Question, option: PlanOption) -> PlanOption:
    """Return the option with a reason for each requirement that its numbers violate."""
    reasons = list(option.reasons)
    named = {cause.constraint for cause in reasons}
    for requirement in question.requirements:
        value = option.value(requirement.quantity.key)
        if value is None or requirement.quantity.title in named or requirement.quantity.measure.name in named:
            continue
        reason = broken_reason(requirement, value, _more(option, requirement))
        reasons += [reason] if reason is not None else []
    return replace(option, reasons=tuple(reasons))


def with_unknown_reasons(question: Question, option: PlanOption) -> PlanOption:
    """Return the option with a reason for each requested number that is still unknown after the search."""
    wanted = [quantity for objective in question.objectives for quantity, _ in objective.weights]
    needed = dict.fromkeys([*wanted, *(requirement.quantity for requirement in question.requirements)])
    lacking = [quantity for quantity in needed if quantity.key not in option.numbers]
    if option.reasons or not lacking:
        return option
    return replace(option, reasons=tuple(_untold(question, quantity) for quantity in lacking))


def _untold(question: Question, quantity: PlanQuantity) -> Reason:
    """Return the reason why a number is unknown."""
    if quantity.measure.name in USED and not question.period:
        return Reason(quantity.title, "unknown, because the period of use is not stated", lift="period: 1 year")
    return Reason(quantity.title, "not available from the workload or its simulation")


def _more(option: PlanOption, requirement: Requirement) -> str:
    quantity = requirement.quantity
    trained = option.wholes.get(quantity.workload)
    if quantity.measure.name == "training" and trained is not None and trained.good is not None:
        good, ideal = trained.good.share, MEASURES["training"].shown(trained.ideal_s)
        return f" ({percent(good)} goodput; {ideal} without failures)"
    return ""
