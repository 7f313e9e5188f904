"""The answer to a plan as text: the best option, its risk, tied options, and reasons for rejection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

from hwsim.costs.amount import Amount
from hwsim.families_interface import SummaryLine
from hwsim.formats import percent, pluralized
from hwsim.models.search import NOT_SEARCHED, search_text
from hwsim.planning.answer import PlanAnswer, short_path, values_text
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import frontier_axes
from hwsim.planning.payment_text import materials_lines, payment_lines
from hwsim.planning.reasons import relative_miss
from hwsim.planning.requirements import MEASURES, PlanQuantity, money
from hwsim.results import invariants
from hwsim.studies.grid import value_text
from hwsim.units import DAY
from hwsim.views.kit.lines import LABEL, WIDTH, labelled_lines
from hwsim.views.kit.table import Column, align_columns, free_width, wrap_column

FEW: Final = 5  # options in the first table
LEAST: Final = 4  # minimum number of table columns
PLAN: Final = 64  # width of a parallel plan in a table (characters)
MAX_ROWS: Final = 10  # maximum rows of the frontier, and of reasons with -v
OF_ONE: Final = ("training", "gpu_hours", "step", "mfu", "memory")
OF_ALL: Final = ("gpu_hours",)
SOME: Final = 6  # maximum rows of reasons
BRIEF: Final = frozenset({"training", "gpu_hours", "step", "gpus", "mfu", "tokens_per_s", "samples_per_s", "requests_per_s"})
# **Source**: 6.4 million hours of Llama 3 70B (its model card, 2024), where steps as benchmarks have them come to 5.0.
CAMPAIGN: Final = "evaluation, stragglers, ramps of the batch, restarts to older data: Llama 3 70B took 1.3 times its steps"


@invariants.check_report
def text(answer: PlanAnswer, *, verbose: bool = False) -> str:
    """Return the answer in a screenful; `verbose` adds the best options, the frontier, all numbers, prices and reasons."""
    question = answer.question
    out = [heading(answer), ""]
    for fact in facts(answer):
        if verbose or not fact.verbose:
            out += labelled_lines(fact.label, fact.text, LABEL)
    if answer.best is not None and question.requirements:
        out += ["", *_requirements(answer, answer.best)]
    out += payment_lines(answer.best)
    if len(answer.of_each) > 1:
        out += ["", "best of each", *_table(answer, answer.of_each, verbose=verbose)]
    if answer.best is not None and len(answer.options) > 1 and (verbose or len(answer.of_each) <= 1):
        out += [
            "",
            "best options",
            *_table(answer, answer.options[:FEW], verbose=verbose),
        ]
        left = len(answer.options) - FEW
        out += [f"  {left:,} more meet the requirements (--json)"] if left > 0 else []
    if len(frontier_axes(question)) > 1 and len(answer.frontier) > 1 and verbose:
        axes = ", ".join(quantity.title for quantity, _ in frontier_axes(question))
        out += ["", f"Pareto frontier: {axes}", *_table(answer, answer.frontier[:MAX_ROWS], verbose=True)]
        left = len(answer.frontier) - MAX_ROWS
        out += [f"  {left:,} more (--json)"] if left > 0 else []
    if answer.groups:
        out += ["", f"rejected ({len(answer.rejected):,})", *_reasons(answer, MAX_ROWS if verbose else SOME)]
    if answer.untried:
        out += [f"  {len(answer.untried):,} not simulated: worse than the best in closed form"]
    return "\n".join(out) + "\n"


def heading(answer: PlanAnswer) -> str:
    """Return the name of the question, else its workloads and machines."""
    question = answer.question
    names = ", ".join(name or "the workload" for name in question.workloads)
    machines = ", ".join(name or "the machine" for name, _ in question.machines)
    return question.keys.name or f"{names} on {machines}"


def facts(answer: PlanAnswer) -> Iterator[SummaryLine]:
    """Yield the labelled lines: the best option, tied and ruled-out options, risk, cost, parallel plan, and the search."""
    yield from _none(answer) if answer.best is None else _best(answer, answer.best)
    yield SummaryLine("evaluated", _evaluated(answer))
    if answer.axes:
        yield SummaryLine("search", search_text(answer.searched, answer.axes))
        yield SummaryLine("not searched", NOT_SEARCHED)
    for label, text in answer.question.keys.compare.items():
        yield SummaryLine(label, text)
    yield from _assumed(answer)


def _evaluated(answer: PlanAnswer) -> str:
    """Return the number of evaluated options, the objective and the number of simulations."""
    objective = ", then ".join(aim.title for aim in answer.question.objectives)
    goal = f"{'maximum' if answer.question.objectives[0].most else 'minimum'} {objective}"
    how = f"{answer.simulations:,} simulated" if answer.simulations else "closed form only, none simulated"
    return f"{pluralized(answer.points, 'configuration')} for {goal}; {how}"


def _best(answer: PlanAnswer, best: PlanOption) -> Iterator[SummaryLine]:
    weights = answer.question.objectives[0].weights
    goal = weights[0][0] if len(weights) == 1 else None
    objective = None if goal is None else best.numbers.get(goal.key)
    value = "" if goal is None or objective is None else f": {_amount(goal, objective)}"
    yield SummaryLine("best", (values_text(best.point.shown) or "as the files are") + value)
    yield from _ties(answer)
    for name, plan in best.plans.items():
        yield SummaryLine("parallel plan", f"{name}: {plan}" if name else plan)
    limits = {requirement.quantity for requirement in answer.question.requirements}
    for quantity in _shown(answer):
        amount = best.numbers.get(quantity.key)
        if amount is None or quantity in limits or quantity == goal:
            continue
        yield SummaryLine(quantity.title, _amount(quantity, amount), verbose=quantity.measure.name not in BRIEF)
        if quantity.measure.name == "cost":
            yield from _breakdown(best)
    if goal is not None and goal.measure.name == "cost":
        yield from _breakdown(best)
    yield from materials_lines(best)
    training = next(iter(best.wholes.values()), None)
    if training is not None and training.good is not None:
        good, shown = training.good, MEASURES["time"].shown
        often = f"MTBF {shown(good.mtbf_s)}, checkpoint every {shown(good.every_s)}"
        yield SummaryLine("failures", f"goodput {percent(good.share)}: {often}, {pluralized(good.spares, 'spare node')}")
        yield SummaryLine("checkpoint", str(training.saved), verbose=True)
    if training is not None:
        yield SummaryLine("not included", CAMPAIGN, verbose=True)
    yield from (SummaryLine(label, text) for label, text in _placed(answer, best))
    for note in best.notes:
        yield SummaryLine("simulation", note)


def _breakdown(best: PlanOption) -> Iterator[SummaryLine]:
    if len(best.items) > 1:
        yield SummaryLine("cost breakdown", ", ".join(f"{cost.name} {money(cost.amount.value)}" for cost in best.items))
        for item in best.items:
            if item.basis:
                yield SummaryLine("", f"{item.name}: {item.basis}", verbose=True)


def _amount(quantity: PlanQuantity, amount: Amount) -> str:
    """Return a number with its interval."""
    text = quantity.measure.shown(amount.value)
    if amount.low < amount.value * 0.999 or amount.high > amount.value * 1.001:
        text += f" (90 % interval {quantity.measure.between(amount.low, amount.high)})"
    return text


def _ties(answer: PlanAnswer) -> Iterator[SummaryLine]:
    """Yield options that are tied with the best within the uncertainty, not comparable with it, or ruled out."""
    ratios = answer.ratios.items()
    if tied := {number for number, gap in ratios if not gap.is_conclusive and not gap.unlike}:
        options = f"{pluralized(len(tied), 'other option')}{', among them' if len(tied) > 1 else ':'} {_named(answer, tied, 1)}"
        yield SummaryLine("tied with", f"{options}: the difference is within the uncertainty")
        if len(tied) > 1:
            yield SummaryLine("", _named(answer, tied), verbose=True)
    for reason in dict.fromkeys(gap.unlike for _, gap in ratios if gap.unlike):
        yield SummaryLine(
            "not compared", f"{_named(answer, {number for number, gap in ratios if gap.unlike == reason})}: {reason}"
        )
    apart = [(pick, answer.ratios[pick.point.number]) for pick in answer.of_each if pick.point.number in answer.ratios]
    out = [
        f"{values_text(pick.point.shown[:1])} ({_change(ratio.value)})"
        for pick, ratio in apart
        if ratio.is_conclusive and not ratio.unlike
    ]
    if out:
        yield SummaryLine("ruled out", f"{', '.join(out)}, with 95 % confidence")


def _requirements(answer: PlanAnswer, best: PlanOption) -> list[str]:
    """Return the table of requirements: value, interval, limit, status."""
    rows = []
    for requirement in answer.question.requirements:
        measure, amount = requirement.quantity.measure, best.numbers.get(requirement.quantity.key)
        if amount is None:
            continue
        certain = not requirement.excess(amount.low) and not requirement.excess(amount.high)
        status = "met" if certain else "likely met" if not requirement.excess(amount.value) else "missed"
        side = "<=" if requirement.bound == requirement.high else ">="
        around = measure.between(amount.low, amount.high) if amount.high > amount.low else "-"
        bound = f"{side} {measure.shown(requirement.bound)}"
        rows.append((requirement.quantity.title, measure.shown(amount.value), around, bound, status))
    if not rows:
        return []
    cells = list(zip(*rows, strict=True))
    return align_columns([
        Column("requirement", cells[0], right=False), Column("value", cells[1]), Column("90 % interval", cells[2]),
        Column("limit", cells[3]), Column("status", cells[4], right=False),
    ])  # fmt: skip


def _named(answer: PlanAnswer, numbers: Set[int], most: int = 3) -> str:
    named = [values_text(option.point.shown) for option in answer.options if option.point.number in numbers]
    return "; ".join(named[:most]) + (f"; {len(named) - most} more" if len(named) > most > 1 else "")


def _placed(answer: PlanAnswer, best: PlanOption) -> Iterator[tuple[str, str]]:
    """Yield the step time with the nodes in the other order."""
    placed = answer.otherwise
    if placed is None:
        return
    for name in best.steps:
        key = f"{name}.step" if name else "step"
        step_here, step_there = best.value(key), placed.value(key)
        if step_here is None or step_there is None:
            continue
        order = "in order" if answer.question.keys.placement == "scattered" else "scattered"
        change = "no slower" if step_there <= step_here * 1.001 else f"{percent(step_there / step_here - 1, '.3g')} slower"
        nodes = "neighbouring nodes" if order == "in order" else "nodes in random order"
        line = f"{MEASURES['step'].shown(step_there)} a step, {change}: {nodes}"
        broken = "; ".join(f"{reason.constraint} does not hold" for reason in placed.reasons)
        yield order, line + (f"; {broken}" if broken else "")


def _none(answer: PlanAnswer) -> Iterator[SummaryLine]:
    yield SummaryLine("best", "no option meets the requirements")
    nearest = answer.nearest
    if nearest is None:
        return
    off = f", off by {relative_miss(nearest.excess)}" if nearest.excess < float("inf") else ""
    yield SummaryLine("closest", (values_text(nearest.values) or "the files as they are") + off)
    for reason in nearest.reasons:
        yield SummaryLine(reason.constraint, reason.text)


def _assumed(answer: PlanAnswer) -> Iterator[SummaryLine]:
    """Yield the assumptions: period of use, prices, failure rates."""
    best, question = answer.best, answer.question
    has_end = best is not None and any(key.rpartition(".")[2] == "training" for key in best.numbers)
    if question.needs_money and best is not None and not has_end and question.period:
        digits = 4 if question.period >= 1000 * DAY else 3  # three years are 1095 days, as they were asked for
        yield SummaryLine("period", f"{MEASURES['time'].shown(question.period, digits)} of use, as the workload has no end")
    if question.needs_money and best is not None:
        for price in answer.said:
            yield SummaryLine("price", price, verbose=True)
    if best is not None and best.wholes and question.keys.failures != "none":
        job = next((whole.job for whole in best.wholes.values() if whole.job is not None), None)
        if job is not None:
            yield SummaryLine("failure rates", job.name)


def _shown(answer: PlanAnswer, more: bool = True) -> list[PlanQuantity]:
    """Return the quantities to print: the quantities of the question, and common ones.

    more: whether they are for the best option, instead of for a table.
    """
    best = answer.best or next(iter(answer.options), None)
    quantities = list(answer.question.asked)
    for name in answer.question.workloads:
        quantities += [PlanQuantity(name, MEASURES[key]) for key in (OF_ONE if more else OF_ALL)]
    quantities += [PlanQuantity("", MEASURES[key]) for key in (("gpus", "cost", "power", "energy") if more else ("cost",))]
    named = dict.fromkeys(quantities)
    if best is not None and (best.value("gpus") or 0.0) <= 1 and not any(ask.key == "gpus" for ask in answer.question.asked):
        named.pop(PlanQuantity("", MEASURES["gpus"]), None)
    return [quantity for quantity in named if best is not None and quantity.key in best.numbers]


def _table(answer: PlanAnswer, options: Sequence[PlanOption], *, verbose: bool) -> list[str]:
    """Return the table of options; without -v, only the columns that fit."""
    made = columns(answer, options)
    while not verbose and len(made) > LEAST and max(map(len, _lines(made))) > WIDTH:
        plans = [column for column in made if column.widest == PLAN]
        made.remove(plans[0] if plans else made[-2])
    return _lines(made)


def _lines(made: Sequence[OptionColumn]) -> list[str]:
    return align_columns([
        Column(column.heading, [text for text, _ in column.cells], right=column.right, widest=column.widest) for column in made
    ])  # fmt: skip


class OptionColumn(NamedTuple):
    """A column of a table of options: heading, and a text and number for each option."""

    heading: str
    cells: Sequence[tuple[str, float | None]]
    right: bool = True
    widest: int | None = None


def columns(answer: PlanAnswer, options: Sequence[PlanOption]) -> list[OptionColumn]:
    """Return the columns: differing values, parallel plan, main numbers, and the comparison with the best option."""
    paths = [path for path, _ in options[0].point.shown]
    several = [path for path in paths if len({value_text(dict(pick.point.shown).get(path)) for pick in options}) > 1]
    made = []
    for path in several or paths[:1]:
        values = [dict(pick.point.shown).get(path) for pick in options]
        made.append(
            OptionColumn(short_path(path), [(value_text(value), _number(value)) for value in values], right=False, widest=30)
        )
    for name in answer.question.workloads:
        plans = [(pick.plans.get(name, ""), None) for pick in options]
        if any(plan for plan, _ in plans):
            made.append(OptionColumn(f"plan of {name}" if name else "plan", plans, right=False, widest=PLAN))
    for quantity in _shown(answer, more=False):
        if quantity.key in {column.heading for column in made}:
            continue
        amounts = [pick.numbers.get(quantity.key) for pick in options]
        shown = quantity.measure.shown
        made.append(
            OptionColumn(
                quantity.title, [("-", None) if amount is None else (shown(amount.value), amount.value) for amount in amounts]
            )
        )
    against = [(_against(answer, option), None) for option in options]
    return [*made, OptionColumn("", against, right=False)]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _against(answer: PlanAnswer, option: PlanOption) -> str:
    """Return the comparison of an option with the best, and the origin of its numbers."""
    quotient = answer.ratios.get(option.point.number)
    how = "" if option.how == "simulation" else "estimate" if option.ratio == 1.0 else f"estimate x {option.ratio:.2f}"
    if quotient is None:
        return how
    if quotient.unlike:
        verdict = f"{_change(quotient.value)}, not comparable"
    else:
        verdict = "tied" if not quotient.is_conclusive else _change(quotient.value)
    return f"{verdict}; {how}" if how else verdict


def _change(ratio: float) -> str:
    return f"x {ratio:.2f}" if ratio >= 2 else percent(ratio - 1, "+.1f" if abs(ratio - 1) < 0.1 else "+.0f")


def _reasons(answer: PlanAnswer, most: int) -> Iterator[str]:
    """Yield the table of reasons: number of options rejected, and the option with the smallest miss."""
    groups = answer.groups[:most]
    closest = []
    for group in groups:
        place = f"{group.where}, " if group.where and group.where not in group.nearest_where else ""
        closest.append(f"{place}{group.nearest_where}: {group.reason.brief}")
    table = [
        Column("options", [f"{len(group.numbers):,}" for group in groups]),
        Column("reason", [group.reason.constraint for group in groups], right=False),
        Column("closest miss", closest, right=False),
    ]
    yield from align_columns(wrap_column(table, 2, free_width(table[:2], 2)))
    if rest := answer.groups[most:]:
        yield f"  {sum(len(group.numbers) for group in rest):,} more for {len(rest)} other reasons (-v)"
    if any("no multiple of dp" in group.reason.text for group in answer.groups) and not answer.question.varied.batches:
        yield "  a batch that may differ lets others divide it: vary workload.train.global_batch: {tokens: 4 M, within: 10 %}"
