"""The answer to a plan as JSON (`hwsim: plan/2`): numbers in SI units, each with its 90 % interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hwsim.costs.amount import Amount
from hwsim.models.search import search_document
from hwsim.planning.answer import PlanAnswer
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import ObjectiveRatio, frontier_axes
from hwsim.planning.payment_text import payments_dict
from hwsim.planning.reasons import Reason, Rejected, RejectionGroup
from hwsim.views.kit.document import select_attributes

CHECKPOINT: Final = ("bytes", "pause_s", "write_s", "load_s", "interval_s", "storage")


def as_dict(answer: PlanAnswer) -> dict[str, Any]:
    """Return the document."""
    question = answer.question
    return {
        "hwsim": "plan/2",
        "name": question.keys.name,
        "machines": [name for name, _ in question.machines],
        "workloads": list(question.workloads),
        "require": [requirement.text for requirement in question.requirements],
        "objectives": [objective.title for objective in question.objectives],
        "direction": "maximise" if question.objectives and question.objectives[0].most else "minimise",
        "axes": [quantity.key for quantity, _ in frontier_axes(question)],
        "met": answer.best is not None,
        "searched": search_document(answer.searched, answer.axes),
        **select_attributes(answer, "points", "simulations"),
        "options": [_option(option, answer.ratios.get(option.point.number)) for option in answer.options],
        "frontier": [option.point.number for option in answer.frontier],
        "best_of_each": [option.point.number for option in answer.of_each],
        "not_simulated": [option.point.number for option in answer.untried],
        "rejected": [_rejected(option) for option in answer.rejected],
        "reasons": [_group(group) for group in answer.groups],
        "closest": None if answer.nearest is None else _rejected(answer.nearest),
        "payments": {best.point.number: payments_dict(best.use) for best in answer.of_each or answer.options[:1] if best.use},
        "other_placement": None if answer.otherwise is None else _option(answer.otherwise, None),
        "compare": dict(question.keys.compare),
    }


def _option(option: PlanOption, ratio: ObjectiveRatio | None) -> dict[str, Any]:
    return {
        "number": option.point.number,
        "values": dict(option.point.shown),
        **select_attributes(option, "how", "plans", "settings"),
        "numbers": _numbers(option.numbers),
        "cost_items": _numbers({item.name: item.amount for item in option.items}),
        "checkpoints": {name: select_attributes(training.saved, *CHECKPOINT) for name, training in option.wholes.items()},
        "estimated": _numbers(option.estimated),
        "notes": list(option.notes),
        "ratio": None if ratio is None else _ratio(ratio),
    }


def _ratio(ratio: ObjectiveRatio) -> dict[str, Any]:
    return select_attributes(ratio, "value", "is_conclusive", not_comparable="unlike") | {"half_width": _finite(ratio.half)}


def _numbers(numbers: Mapping[str, Amount]) -> dict[str, Any]:
    return {name: {"value": number.value, "low": number.low, "high": _finite(number.high)} for name, number in numbers.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        **select_attributes(reason, "constraint", "text", "needed", "allowed"),
        "excess": _finite(reason.excess) if reason.needed is not None else None,
        "remedy": reason.lift,
    }


def _rejected(rejected: Rejected) -> dict[str, Any]:
    return {
        "number": rejected.number,
        "values": dict(rejected.values),
        "reasons": [_reason(reason) for reason in rejected.reasons],
    }


def _group(group: RejectionGroup) -> dict[str, Any]:
    return {
        "where": group.where,
        "count": len(group.numbers),
        **select_attributes(group, "numbers", closest="nearest"),
        "reason": _reason(group.reason),
    }
