"""Energy and cost of an option over its time of use."""

from __future__ import annotations

import math
from dataclasses import replace

from hwsim.costs.amount import Amount
from hwsim.costs.cash_flow import CashFlow
from hwsim.costs.cost import CostItem
from hwsim.planning.axes import REPLICAS
from hwsim.planning.options import PlanOption, option_key
from hwsim.planning.outlay import OptionOutlay, Outlay
from hwsim.planning.payments import OptionUse
from hwsim.planning.question import Question
from hwsim.planning.reasons import Reason


def with_bill(
    question: Question,
    outlay: Outlay,
    option: PlanOption,
    facts: OptionOutlay,
    watts: float | None = None,
    busy: float | None = None,
) -> PlanOption:
    """Return the option with energy and cost over its time of use.

    Args:
        question: the question.
        outlay: prices and site.
        option: the option.
        facts: numbers of its machine.
        watts: average simulated power at the meter; None: closed form.
        busy: share of the time in which GPUs are busy; None: from the option's numbers.
    """
    many, numbers = option.point.replicas, dict(option.numbers)
    option = replace(option, prices=() if facts.priced is None else facts.priced[question.keys.rent].all_items)
    times = [found.mean_s for found in option.wholes.values()]
    ended = [numbers[key] for key in _ended(question, option)]
    times += [amount.value for amount in ended]
    seconds = sum(times) if times else question.period
    halves = [interval.half for interval in option.intervals.values()] + [amount.half for amount in ended]
    half = max(halves, default=0.0) if times else 0.0
    spares = max((found.good.spares for found in option.wholes.values() if found.good is not None), default=0)
    if not seconds and question.keys.rent != "purchase":  # rented for as long as the runs take
        runs = [] if "requests_per_s" in numbers else [numbers[key] for key in numbers if key.rpartition(".")[2] == "time"]
        seconds = math.fsum(run.value for run in runs)
        half = max((math.log(amount.high / amount.value) for amount in runs if amount.value > 0), default=0.0)
    keys = question.keys
    cash = CashFlow(keys.growth, keys.discount, many if option.point.get(REPLICAS) is not None else facts.nodes)
    use = OptionUse(outlay.prices, facts, seconds, None, cash, spares, half, many)
    option = replace(option, use=use)
    if not seconds:
        if facts.priced is not None and question.keys.rent == "purchase" and facts.priced["purchase"].volumes:
            names = ", ".join(volume.name for volume in facts.priced["purchase"].volumes)
            reason = Reason("price", f"{names} is rented, but the period of use is not stated", lift="period: 1 year")
            return replace(option, reasons=(*option.reasons, reason))
        price = outlay.price(facts)
        if price is not None and question.keys.rent == "purchase":
            numbers["cost"] = price * many
        return replace(option, numbers=numbers)
    shares = [numbers[key].value for key in numbers if key.rpartition(".")[2] == "busy"]
    busy = max(shares, default=1.0) if busy is None else busy
    energy = facts.drawing(min(busy, 1.0), seconds)
    if energy is not None and watts is not None and energy.joules.value > 0:
        energy = energy.times(watts * seconds / energy.joules.value)
    use = replace(use, energy=energy)
    cost = None if facts.priced is None else use.cost(facts.priced[keys.rent])
    items: tuple[CostItem, ...] = ()
    if energy is not None:
        grown = many * replace(cash, discount=0.0).used(seconds) / seconds
        numbers["energy"] = energy.joules.wider(half) * grown
        if energy.carbon is not None:
            numbers["carbon"] = energy.carbon.wider(half) * grown
    if cost is not None and cost.total is not None:
        numbers["cost"] = cost.total * many
        items = tuple(replace(item, amount=item.amount * many) for item in cost.items)
        tokens = _tokens(option, replace(cash, machines=1_000_000).used(seconds))  # the demand, which grows without steps
        if tokens.value:
            numbers["cost per million tokens"] = (cost.total * (many * 1e6 / tokens.value)).wider(tokens.half)
    if cost is not None and cost.total is None and not any(cause.constraint == "price" for cause in option.reasons):
        option = replace(option, reasons=(*option.reasons, Reason("price", f"no price of {', '.join(cost.missing[:4])}")))
    return replace(option, numbers=numbers, items=items, use=use)


def _ended(question: Question, option: PlanOption) -> list[str]:
    """Return the keys of training times that require a simulation."""
    keys = [option_key(name, "training") for name in question.workloads if name not in option.wholes]
    return [key for key in keys if key in option.numbers and option.numbers[key].low > 0]


def _tokens(option: PlanOption, seconds: float) -> Amount:
    """Return the tokens of the entire training, or the tokens that a service generates in this time."""
    totals = [trained.ideal_s * option.numbers[option_key(name, "tokens_per_s")].value for name, trained in option.wholes.items()
              if option_key(name, "tokens_per_s") in option.numbers]  # fmt: skip
    return Amount.exact(math.fsum(totals)) if totals else option.numbers.get("tokens_per_s", Amount.exact(0.0)) * seconds
