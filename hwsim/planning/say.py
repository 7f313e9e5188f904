"""The answer of a plan as text: the best option, its risk, what ties with it, and why the others are rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

from hwsim.costs.amount import Amount
from hwsim.doors import Fact
from hwsim.formats import many, percent
from hwsim.models.search import not_tried
from hwsim.planning.answer import Answer, short, where
from hwsim.planning.choosing import axes_of
from hwsim.planning.options import Option
from hwsim.planning.reasons import off_by
from hwsim.planning.wants import MEASURES, Quantity, money
from hwsim.results import invariants
from hwsim.studies.grid import written
from hwsim.units import DAY
from hwsim.views.kit.lines import LABEL, WIDTH, titled
from hwsim.views.kit.table import Column, aligned, continued, room

FEW: Final = 5  # options of the first table
LEAST: Final = 4  # columns of a table that are never left out
PLAN: Final = 64  # letters of a parallel plan in a table
MANY: Final = 10  # rows of the frontier and of reasons
OF_ONE: Final = ("training", "gpu_hours", "step", "mfu", "memory")
OF_ALL: Final = ("gpu_hours",)
SOME: Final = 6  # reasons
BRIEF: Final = frozenset({"training", "gpu_hours", "step", "gpus", "mfu", "tokens_per_s", "samples_per_s", "requests_per_s"})
# **Source**: 6.4 million hours of Llama 3 70B (its model card, 2024), where steps as benchmarks have them come to 5.0.
CAMPAIGN: Final = "evaluation, stragglers, ramps of the batch, restarts to older data: Llama 3 70B took 1.3 times its steps"


@invariants.guarded
def text(answer: Answer, *, verbose: bool = False) -> str:
    """The answer in a screenful; verbose: with the best options, the frontier, all numbers, prices and reasons."""
    question = answer.question
    out = [heading(answer), ""]
    for fact in facts(answer):
        if verbose or not fact.verbose:
            out += titled(fact.label, fact.text, LABEL)
    if answer.best is not None and question.requirements:
        out += ["", *_requirements(answer, answer.best)]
    if len(answer.of_each) > 1:
        out += ["", "best of each", *_table(answer, answer.of_each, verbose=verbose)]
    if answer.best is not None and len(answer.options) > 1 and (verbose or len(answer.of_each) <= 1):
        out += [
            "",
            "best options" if answer.is_best else "best options tried",
            *_table(answer, answer.options[:FEW], verbose=verbose),
        ]
        left = len(answer.options) - FEW
        out += [f"  {left:,} more meet the requirements (--json)"] if left > 0 else []
    if len(axes_of(question)) > 1 and len(answer.frontier) > 1 and verbose:
        axes = ", ".join(quantity.title for quantity, _ in axes_of(question))
        out += ["", f"Pareto frontier: {axes}", *_table(answer, answer.frontier[:MANY], verbose=True)]
        left = len(answer.frontier) - MANY
        out += [f"  {left:,} more (--json)"] if left > 0 else []
    if answer.groups:
        out += ["", f"rejected ({len(answer.rejected):,})", *_reasons(answer, MANY if verbose else SOME)]
    if answer.untried:
        out += [f"  {len(answer.untried):,} not simulated: worse than the best in closed form"]
    return "\n".join(out) + "\n"


def heading(answer: Answer) -> str:
    """The name of the question, or what it is about."""
    question = answer.question
    names = ", ".join(name or "the workload" for name in question.workloads)
    machines = ", ".join(name or "the machine" for name, _ in question.machines)
    return question.keys.name or f"{names} on {machines}"


def facts(answer: Answer) -> Iterator[Fact]:
    """The labelled lines: the best option, what ties with it and what is ruled out, its risk, cost and plan, and the search."""
    yield from _none(answer) if answer.best is None else _best(answer, answer.best)
    yield Fact("evaluated", _evaluated(answer))
    if answer.left:
        yield Fact("not searched", not_tried(answer.left))
    if any(answer.left.values()):
        claim = "may be faster" if answer.best is not None else "may meet the requirements"
        text = f"such long sequences are usually split, and these plans {claim}: add them under vary: workload.train.parallel"
        yield Fact("", text)
    for label, text in answer.question.keys.compare.items():
        yield Fact(label, text)
    yield from _assumed(answer)


def _evaluated(answer: Answer) -> str:
    """How many options were looked at, and how."""
    objective = ", then ".join(each.title for each in answer.question.objectives)
    goal = f"{'maximum' if answer.question.objectives[0].most else 'minimum'} {objective}"
    how = f"{answer.simulations:,} simulated" if answer.simulations else "closed form only, none simulated"
    plans = f", {many(answer.plans, 'parallel plan')}" if answer.plans else ""
    return f"{many(answer.points, 'configuration')}{plans} for {goal}; {how}"


def _best(answer: Answer, best: Option) -> Iterator[Fact]:
    weights = answer.question.objectives[0].weights
    goal = weights[0][0] if len(weights) == 1 else None
    objective = None if goal is None else best.numbers.get(goal.key)
    value = "" if goal is None or objective is None else f": {_amount(goal, objective)}"
    yield Fact("best" if answer.is_best else "best tried", (where(best.point.shown) or "as the files are") + value)
    yield from _ties(answer)
    for name, each in best.plans.items():
        yield Fact("parallel plan", f"{name}: {each}" if name else each)
    limits = {requirement.quantity for requirement in answer.question.requirements}
    for quantity in _shown(answer):
        amount = best.numbers.get(quantity.key)
        if amount is None or quantity in limits or quantity == goal:
            continue
        yield Fact(quantity.title, _amount(quantity, amount), verbose=quantity.measure.name not in BRIEF)
        if quantity.measure.name == "cost":
            yield from _breakdown(best)
    if goal is not None and goal.measure.name == "cost":
        yield from _breakdown(best)
    training = next(iter(best.wholes.values()), None)
    if training is not None and training.good is not None:
        good, shown = training.good, MEASURES["time"].shown
        often = f"MTBF {shown(good.mtbf_s)}, checkpoint every {shown(good.every_s)}"
        yield Fact("failures", f"goodput {percent(good.share)}: {often}, {many(good.spares, 'spare node')}")
        yield Fact("checkpoint", str(training.saved), verbose=True)
    if training is not None:
        yield Fact("not included", CAMPAIGN, verbose=True)
    yield from (Fact(label, text) for label, text in _placed(answer, best))
    for note in best.notes:
        yield Fact("simulation", note)


def _breakdown(best: Option) -> Iterator[Fact]:
    if len(best.items) > 1:
        yield Fact("cost breakdown", ", ".join(f"{each.name} {money(each.amount.value)}" for each in best.items))
        for item in best.items:
            if item.basis:
                yield Fact("", f"{item.name}: {item.basis}", verbose=True)


def _amount(quantity: Quantity, amount: Amount) -> str:
    """A number with its interval."""
    text = quantity.measure.shown(amount.value)
    if amount.low < amount.value * 0.999 or amount.high > amount.value * 1.001:
        text += f" (90 % interval {quantity.measure.between(amount.low, amount.high)})"
    return text


def _ties(answer: Answer) -> Iterator[Fact]:
    """Options whose difference from the best is within the uncertainty, and those that cannot be compared with it."""
    ratios = answer.ratios.items()
    if tied := {number for number, each in ratios if not each.is_told and not each.unlike}:
        options = f"{many(len(tied), 'other option')}{', among them' if len(tied) > 1 else ':'} {_named(answer, tied, 1)}"
        yield Fact("tied with", f"{options}: the difference is within the uncertainty")
        if len(tied) > 1:
            yield Fact("", _named(answer, tied), verbose=True)
    for reason in dict.fromkeys(each.unlike for _, each in ratios if each.unlike):
        yield Fact("not compared", f"{_named(answer, {number for number, each in ratios if each.unlike == reason})}: {reason}")
    apart = [(each, answer.ratios[each.point.number]) for each in answer.of_each if each.point.number in answer.ratios]
    out = [
        f"{where(each.point.shown[:1])} ({_change(ratio.value)})" for each, ratio in apart if ratio.is_told and not ratio.unlike
    ]
    if out:
        yield Fact("ruled out", f"{', '.join(out)}, with 95 % confidence")


def _requirements(answer: Answer, best: Option) -> list[str]:
    """A row for each requirement: value, interval, limit, status."""
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
    return aligned([
        Column("requirement", cells[0], right=False), Column("value", cells[1]), Column("90 % interval", cells[2]),
        Column("limit", cells[3]), Column("status", cells[4], right=False),
    ])  # fmt: skip


def _named(answer: Answer, numbers: Set[int], most: int = 3) -> str:
    named = [where(option.point.shown) for option in answer.options if option.point.number in numbers]
    return "; ".join(named[:most]) + (f"; {len(named) - most} more" if len(named) > most > 1 else "")


def _placed(answer: Answer, best: Option) -> Iterator[tuple[str, str]]:
    """The step with the nodes in the other order."""
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
        line = f"{MEASURES['step'].shown(step_there)} a step, {change}: "
        line += (
            "nodes next to each other" if order == "in order" else "nodes by chance, so that rings cross the leaves of the fabric"
        )
        broken = "; ".join(f"{reason.constraint} does not hold" for reason in placed.reasons)
        yield order, line + (f"; {broken}" if broken else "")


def _none(answer: Answer) -> Iterator[Fact]:
    tried = "" if not any(answer.left.values()) else " of the plans that were tried"
    yield Fact("best", f"no option{tried} meets the requirements")
    nearest = answer.nearest
    if nearest is None:
        return
    off = f", off by {off_by(nearest.excess)}" if nearest.excess < float("inf") else ""
    yield Fact("closest", (where(nearest.values) or "the files as they are") + off)
    for reason in nearest.reasons:
        yield Fact(reason.constraint, reason.text)


def _assumed(answer: Answer) -> Iterator[Fact]:
    """Sources behind the numbers."""
    best, question = answer.best, answer.question
    has_end = best is not None and any(key.rpartition(".")[2] == "training" for key in best.numbers)
    if question.needs_money and best is not None and not has_end and question.period:
        digits = 4 if question.period >= 1000 * DAY else 3  # three years are 1095 days, as they were asked for
        yield Fact("period", f"{MEASURES['time'].shown(question.period, digits)} of use, as the workload has no end")
    if question.needs_money and best is not None:
        for price in answer.said:
            yield Fact("price", price, verbose=True)
    if best is not None and best.wholes and question.keys.failures != "none":
        job = next((whole.job for whole in best.wholes.values() if whole.job is not None), None)
        if job is not None:
            yield Fact("failure rates", job.name)


def _shown(answer: Answer, more: bool = True) -> list[Quantity]:
    """Quantities that are asked for, and what a reader of a plan wants to see.

    more: for the best option; else for a table.
    """
    best = answer.best or next(iter(answer.options), None)
    quantities = list(answer.question.asked)
    for name in answer.question.workloads:
        quantities += [Quantity(name, MEASURES[each]) for each in (OF_ONE if more else OF_ALL)]
    quantities += [Quantity("", MEASURES[each]) for each in (("gpus", "cost", "power", "energy") if more else ("cost",))]
    named = dict.fromkeys(quantities)
    if best is not None and (best.value("gpus") or 0.0) <= 1 and not any(each.key == "gpus" for each in answer.question.asked):
        named.pop(Quantity("", MEASURES["gpus"]), None)
    return [each for each in named if best is not None and each.key in best.numbers]


def _table(answer: Answer, options: Sequence[Option], *, verbose: bool) -> list[str]:
    """A row for each option; without -v only the columns that fit."""
    made = columns(answer, options)
    while not verbose and len(made) > LEAST and max(map(len, _lines(made))) > WIDTH:
        plans = [column for column in made if column.widest == PLAN]
        made.remove(plans[0] if plans else made[-2])
    return _lines(made)


def _lines(made: Sequence[Shown]) -> list[str]:
    return aligned([
        Column(column.heading, [text for text, _ in column.cells], right=column.right, widest=column.widest) for column in made
    ])  # fmt: skip


class Shown(NamedTuple):
    """A column of options: its heading, and for each the text and the number behind it."""

    heading: str
    cells: Sequence[tuple[str, float | None]]
    right: bool = True
    widest: int | None = None


def columns(answer: Answer, options: Sequence[Option]) -> list[Shown]:
    """The columns: what differs, the parallel plan, the numbers that matter, and how each option compares with the best."""
    paths = [path for path, _ in options[0].point.shown]
    several = [path for path in paths if len({written(dict(each.point.shown).get(path)) for each in options}) > 1]
    made = []
    for path in several or paths[:1]:
        values = [dict(each.point.shown).get(path) for each in options]
        made.append(Shown(short(path), [(written(value), _number(value)) for value in values], right=False, widest=30))
    for name in answer.question.workloads:
        plans = [(each.plans.get(name, ""), None) for each in options]
        if any(plan for plan, _ in plans):
            made.append(Shown(f"plan of {name}" if name else "plan", plans, right=False, widest=PLAN))
    for quantity in _shown(answer, more=False):
        if quantity.key in {column.heading for column in made}:
            continue
        amounts = [each.numbers.get(quantity.key) for each in options]
        shown = quantity.measure.shown
        made.append(
            Shown(quantity.title, [("-", None) if amount is None else (shown(amount.value), amount.value) for amount in amounts])
        )
    against = [(_against(answer, option), None) for option in options]
    return [*made, Shown("", against, right=False)]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _against(answer: Answer, option: Option) -> str:
    """The comparison of an option with the best, and the source of its numbers."""
    quotient = answer.ratios.get(option.point.number)
    how = "" if option.how == "simulation" else "estimate" if option.ratio == 1.0 else f"estimate x {option.ratio:.2f}"
    if quotient is None:
        return how
    if quotient.unlike:
        verdict = f"{_change(quotient.value)}, not comparable"
    else:
        verdict = "tied" if not quotient.is_told else _change(quotient.value)
    return f"{verdict}; {how}" if how else verdict


def _change(ratio: float) -> str:
    return f"x {ratio:.2f}" if ratio >= 2 else percent(ratio - 1, "+.1f" if abs(ratio - 1) < 0.1 else "+.0f")


def _reasons(answer: Answer, most: int) -> Iterator[str]:
    """A row for each reason: how many options it rejects, and the one that misses least."""
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
    yield from aligned(continued(table, 2, room(table[:2], 2)))
    if rest := answer.groups[most:]:
        yield f"  {sum(len(group.numbers) for group in rest):,} more for {len(rest)} other reasons (-v)"
    if any("no multiple of dp" in group.reason.text for group in answer.groups) and not answer.question.varied.batches:
        yield "  a batch that may differ lets others divide it: vary workload.train.global_batch: {tokens: 4 M, within: 10 %}"
