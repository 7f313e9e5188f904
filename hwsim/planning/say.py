"""The answer of a plan as text: the best in a sentence, the options, the frontier, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

from hwsim.costs.cost import CostItem
from hwsim.formats import percent
from hwsim.models.search import not_tried
from hwsim.planning.answer import Answer, short, where
from hwsim.planning.choosing import axes_of
from hwsim.planning.options import Option
from hwsim.planning.reasons import off_by
from hwsim.planning.wants import MEASURES, Quantity, money
from hwsim.results import invariants
from hwsim.studies.grid import written
from hwsim.units import DAY
from hwsim.views.kit.lines import TITLE, titled
from hwsim.views.kit.table import Column, aligned, shortened

FEW: Final = 5  # options of the first table
MANY: Final = 10  # rows of the frontier and of reasons
OF_ONE: Final = ("training", "gpu_hours", "step", "mfu", "memory")
OF_ALL: Final = ("gpu_hours",)
WIDE: Final = 200  # letters of a reason
# **Source**: 6.4 million hours of Llama 3 70B (its model card, 2024), where steps as benchmarks have them come to 5.0.
CAMPAIGN: Final = "evaluation, stragglers, ramps of the batch, restarts to older data: Llama 3 70B took 1.3 times its steps"


@invariants.guarded
def text(answer: Answer) -> str:
    """The answer in a screenful or two."""
    question = answer.question
    out = [heading(answer)]
    lines = list(facts(answer))
    letters = max(TITLE, *(len(title) for title, _ in lines))
    for title, line in lines:
        out += titled(title, line, letters)
    if len(answer.of_each) > 1:
        out += ["", "best of each", *_table(answer, answer.of_each)]
    if answer.best is not None and len(answer.options) > 1:
        out += ["", "best" if answer.is_best else "best tried", *_table(answer, answer.options[:FEW])]
        left = len(answer.options) - FEW
        out += [f"  and {left:,} more that hold"] if left > 0 else []
    if len(axes_of(question)) > 1 and len(answer.frontier) > 1:
        axes = ", ".join(quantity.title for quantity, _ in axes_of(question))
        out += ["", f"frontier of {axes}", *_table(answer, answer.frontier[:MANY])]
        left = len(answer.frontier) - MANY
        out += [f"  and {left:,} more"] if left > 0 else []
    if answer.groups:
        out += ["", f"why not the other {len(answer.rejected):,}", *_reasons(answer)]
    if answer.untried:
        out += [f"  not simulated, worse than the best by what the machine alone says: {len(answer.untried):,}"]
    return "\n".join(out) + "\n"


def heading(answer: Answer) -> str:
    """The name of the question, or what it is about."""
    question = answer.question
    names = ", ".join(name or "the workload" for name in question.workloads)
    machines = ", ".join(name or "the machine" for name, _ in question.machines)
    return question.keys.name or f"{names} on {machines}"


def facts(answer: Answer) -> Iterator[tuple[str, str]]:
    """(title, sentence): what was looked at, the best option, what it rests on."""
    question = answer.question
    yield "looked at", f"{answer.points:,} points, {answer.plans:,} parallel plans, {answer.simulations:,} simulated"
    objective = ", then ".join(each.title for each in question.objectives)
    yield "wanted", ("most " if question.objectives[0].most else "least ") + objective
    if question.requirements:
        yield "must hold", "; ".join(each.text for each in question.requirements)
    yield from _none(answer) if answer.best is None else _best(answer, answer.best)
    if answer.left:
        yield "not tried", not_tried(answer.left)
    if any(answer.left.values()):
        claim = "plans with them may be faster" if answer.best is not None else "plans with them may meet the requirements"
        yield "no claim", f"sequences this long are usually split: {claim}; state some under vary: workload.train.parallel"
    yield from question.keys.compare.items()
    yield from _assumed(answer)


def _best(answer: Answer, best: Option) -> Iterator[tuple[str, str]]:
    yield "best" if answer.is_best else "best tried", where(best.point.shown) or "as the files say"
    for name, each in best.plans.items():
        yield f"plan of {name}" if name else "plan", each
    for quantity in _shown(answer):
        amount = best.numbers.get(quantity.key)
        if amount is None:
            continue
        line = quantity.measure.shown(amount.value)
        if amount.low < amount.value * 0.999 or amount.high > amount.value * 1.001:
            line += f", 9 of 10: {quantity.measure.between(amount.low, amount.high)}"
        yield quantity.title, line + _margin(answer, quantity)
        if quantity.measure.name == "cost" and len(best.items) > 1:
            yield "of it", "; ".join(_item(each) for each in best.items)
    training = next(iter(best.wholes.values()), None)
    if training is not None and training.good is not None:
        good = training.good
        shown = MEASURES["time"].shown
        spares = f"{good.spares} spare node{'' if good.spares == 1 else 's'}"
        often = f"a failure every {shown(good.mtbf_s)}, a checkpoint every {shown(good.every_s)}"
        yield "goodput", f"{percent(good.share)}: {often}, {spares}"
        yield "checkpoint", str(training.saved)
    if training is not None:
        yield "not counted", CAMPAIGN
    yield from _placed(answer, best)
    for note in best.notes:
        yield "simulated", note
    if best.how == "estimate":
        yield "known from", "closed forms alone: nothing was simulated"
    ratios = answer.ratios.items()
    for reason in dict.fromkeys(each.unlike for _, each in ratios if each.unlike):
        yield "not told", f"{_named(answer, {number for number, each in ratios if each.unlike == reason})}: {reason}"
    if alike := {number for number, each in ratios if not each.is_told and not each.unlike}:
        yield "as good", f"within what is known: {_named(answer, alike)}"


def _named(answer: Answer, numbers: Set[int]) -> str:
    named = [where(each.point.shown) for each in answer.options if each.point.number in numbers]
    return "; ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")


def _item(item: CostItem) -> str:
    return f"{item.name} {money(item.amount.value)}" + (f" ({item.basis})" if item.basis else "")


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


def _margin(answer: Answer, quantity: Quantity) -> str:
    """The bound of a requirement, and whether the whole range of the number holds it."""
    best = answer.best
    for requirement in answer.question.requirements:
        if best is not None and requirement.quantity == quantity:
            amount = best.numbers[quantity.key]
            sure = not requirement.excess(amount.low) and not requirement.excess(amount.high)
            bound = quantity.measure.shown(requirement.bound)
            side = "at most" if requirement.bound == requirement.high else "at least"
            return f" ({side} {bound}: {'holds' if sure else 'holds, but not for sure'})"
    return ""


def _none(answer: Answer) -> Iterator[tuple[str, str]]:
    yield (
        "best",
        "nothing meets the requirements" if not any(answer.left.values()) else "none of the plans tried meets the requirements",
    )
    nearest = answer.nearest
    if nearest is None:
        return
    off = f", {off_by(nearest.excess)} off" if nearest.excess < float("inf") else ""
    yield "nearest", (where(nearest.values) or "the files as they are") + off
    for reason in nearest.reasons:
        yield reason.constraint, reason.text


def _assumed(answer: Answer) -> Iterator[tuple[str, str]]:
    """Sources behind the numbers."""
    best, question = answer.best, answer.question
    has_end = best is not None and any(key.rpartition(".")[2] == "training" for key in best.numbers)
    if question.needs_money and best is not None and not has_end and question.period:
        digits = 4 if question.period >= 1000 * DAY else 3  # three years are 1095 days, as they were asked for
        yield "period", f"{MEASURES['time'].shown(question.period, digits)} of use, for it has no end of its own"
    if question.needs_money and best is not None:
        for price in answer.said:
            yield "price", price
    if best is not None and best.wholes and question.keys.failures != "none":
        job = next((whole.job for whole in best.wholes.values() if whole.job is not None), None)
        if job is not None:
            yield "failures", job.name


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


def _table(answer: Answer, options: Sequence[Option]) -> list[str]:
    return aligned([
        Column(column.heading, [text for text, _ in column.cells], right=column.right, widest=column.widest)
        for column in columns(answer, options)
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
            made.append(Shown(f"plan of {name}" if name else "plan", plans, right=False, widest=50))
    for quantity in _shown(answer, more=False):
        if quantity.key in {column.heading for column in made}:
            continue
        amounts = [each.numbers.get(quantity.key) for each in options]
        shown = quantity.measure.shown
        made.append(Shown(quantity.title, [("-", None) if each is None else (shown(each.value), each.value) for each in amounts]))
    against = [(_against(answer, each), None) for each in options]
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
        verdict = f"{_change(quotient.value)}, cannot be told"
    else:
        verdict = "as good" if not quotient.is_told else f"{_change(quotient.value)}, worse for sure"
    return f"{verdict}; {how}" if how else verdict


def _change(ratio: float) -> str:
    return f"x {ratio:.2f}" if ratio >= 2 else percent(ratio - 1, "+.1f" if abs(ratio - 1) < 0.1 else "+.0f")


def _reasons(answer: Answer) -> Iterator[str]:
    groups = answer.groups
    for group in groups[:MANY]:
        many = len(group.numbers)
        place = f"{group.where}, " if group.where and group.where not in group.nearest_where else ""
        start = f"{many:,} x, nearest {place}{group.nearest_where}" if many > 1 else f"{place}{group.nearest_where}"
        yield f"  {shortened(': '.join(filter(None, (start, str(group.reason)))), WIDE)}"
    if len(groups) > MANY:
        yield f"  and {sum(len(group.numbers) for group in groups[MANY:]):,} more, of {len(groups) - MANY} other reasons: --json"
    if any("no multiple of dp" in group.reason.text for group in groups) and not answer.question.varied.batches:
        yield "  a batch that may differ lets others divide it: vary workload.train.global_batch: {tokens: 4 M, within: 10 %}"
