"""Search: evaluate all points in closed form, refine ranges around the best, and simulate options near the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import product
from typing import Final

from hwsim.planning.axes import REPLICAS, PlanAxis, values_between
from hwsim.planning.loads import LOAD
from hwsim.planning.option_simulation import Row, serves, simulate_option
from hwsim.planning.options import PlanOption, option_key
from hwsim.planning.ordering import ObjectiveRatio, compare_options, has_objective, score, sort_key, sort_options
from hwsim.planning.question import Question
from hwsim.planning.requirement_checks import USED
from hwsim.planning.screen import Screening
from hwsim.planning.variants import MACHINE, PlanPoint, Values, Variants
from hwsim.records import dataclass
from hwsim.results.work import WorkAmount
from hwsim.spec import SpecError
from hwsim.studies.ranking import differing_unit, unequal_work

MAX_PLAN_POINTS: Final = 50_000  # maximum number of points
RANKS: Final = 100  # maximum number of plans per point
SURE: Final = 3  # number of services whose interval is simulated
ROUNDS: Final = 6  # maximum refinements of a range
GROUPS: Final = 40  # maximum number of groups that are all refined; of more, only those near the best
FASTER: Final = 0.03  # largest relative gain of a simulation over its estimate
PER_WORK: Final = "the same work in all options, or maximise: tokens/s, samples/s; `hwsim sweep` compares FLOP/s and B/s"
Progress = Callable[[int, int], None]  # simulations done, simulations known


@dataclass
class PlanSearch:
    """A search for the best option of a question."""

    question: Question
    screen: Screening
    rows: dict[int, Row] = field(default_factory=dict)
    keep: Callable[[int, Row], None] | None = None
    progress: Progress | None = None
    options: dict[int, PlanOption] = field(default_factory=dict)
    simulations: int = 0
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _waiting: dict[int, list[PlanOption]] = field(default_factory=dict)  # other plans of points that were simulated
    _ratios: list[tuple[PlanOption, str, float]] = field(default_factory=list)
    _known: dict[tuple[int, int, float], PlanOption] = field(default_factory=dict)
    _alike: dict[int, PlanOption] = field(default_factory=dict)

    def run(self) -> None:
        """Screen and simulate."""
        for values in self._first():
            self._look(*values)
        self._raise_if_none_is_built()
        self._same_work()
        self._refine()
        self._build_near()
        self._simulate()
        self._same_work()
        if any(serves(tree) for tree in self.question.workloads.values()):
            self._with_ends()

    # ---- points ----

    def _first(self) -> Iterator[tuple[str, Values]]:
        """Yield the points to evaluate first: (machine, values)."""
        axes = [axis for axis in self.question.varied.axes if axis.kind != "replicas"]
        lists = [axis.first() for axis in axes]
        machines = [name for name, _ in self.question.machines] if len(self.question.machines) > 1 else [""]
        count = len(machines) * math.prod(map(len, lists))
        if count > MAX_PLAN_POINTS:
            sizes = " x ".join(str(len(values)) for values in lists)
            raise SpecError.of(
                None, f"{sizes} = {count:,} points exceed the limit of {MAX_PLAN_POINTS:,}", "fewer values: 16..640:x2"
            )
        for machine in machines:
            for values in product(*lists):
                yield machine, tuple((axis.path, value) for axis, value in zip(axes, values, strict=True))

    def _look(self, machine: str, values: Values) -> PlanOption:
        """Return the option of a point, evaluated once."""
        number = self._numbers.setdefault((machine, repr(values)), len(self._numbers))
        if number not in self.options:
            self.options[number] = self.screen.of(PlanPoint(number, machine, values))
        return self.options[number]

    def _raise_if_none_is_built(self) -> None:
        """Raise the first mistake if the files of every point have one: a mistake of the question, not an infeasible plan."""
        wrong = [_mistake(option) for option in self.options.values()]
        if wrong and all(wrong):
            raise SpecError.of(None, wrong[0])

    def _same_work(self) -> None:
        """Check that all options do the same work if time or cost is minimised; otherwise the least work would win.

        Raises:
            SpecError: the options do different amounts of work.
        """
        held, place = [choice for choice in self.options.values() if choice.is_feasible], self.question.keys.minimise
        for quantity in (quantity for objective in self.question.objectives for quantity, _ in objective.weights):
            for name in (workload for workload in self.question.workloads if quantity.workload in ("", workload)):
                known = [work for option in held if (work := _work(self.question, option, name, quantity.measure.name))]
                if unit := differing_unit(known):
                    message = f"no {quantity.title} is the best: the options do {unequal_work(known, unit)}"
                    raise SpecError.of(None if place is None else place.place, message, PER_WORK)

    def _refine(self) -> None:
        """Evaluate further numbers of ranges around the best and the first feasible option of each group."""
        for axis in self.question.varied.axes:
            if axis.kind != "range" or len(axis.first()) > axis.ends[1] - axis.ends[0]:
                continue
            for _ in range(ROUNDS):
                before = len(self.options)
                for members in self._near_groups(axis):
                    self._between(axis, members)
                if len(self.options) == before:
                    break

    def _near_groups(self, axis: PlanAxis) -> list[list[PlanOption]]:
        """Return groups of options that differ only in one path, if their best is near the overall best."""
        groups: dict[tuple[object, ...], list[PlanOption]] = {}
        for option in self.options.values():
            rest = (option.point.machine, *(pair for pair in option.point.values if pair[0] != axis.path))
            groups.setdefault(rest, []).append(option)
        ordered = sort_options(self.question, [choice for choice in self.options.values() if choice.is_feasible])
        if not ordered or len(groups) <= GROUPS:
            return list(groups.values())
        limit = self._limit(ordered[0], 1.0 + self.question.keys.slack)
        return [
            members
            for members in groups.values()
            if any(member.is_feasible and self._score(member) <= limit for member in members)
        ]

    def _between(self, axis: PlanAxis, members: Sequence[PlanOption]) -> None:
        seen = {_count(member, axis.path): member for member in members}
        held = [option for option in members if option.is_feasible and has_objective(self.question, option)]
        if held:
            best = min(held, key=sort_key(self.question, held))
            near = {_count(best, axis.path), min(_count(option, axis.path) for option in held)}
        else:
            nearest = min(members, key=lambda each: (_excess(each), each.point.number))
            near = {_count(nearest, axis.path)}
        for value in values_between(tuple(seen), axis, tuple(near)):
            point = members[0].point
            values = tuple((path, value if path == axis.path else old) for path, old in point.values)
            self._look(point.machine, values)

    def _build_near(self) -> None:
        """Evaluate again, without interpolation, the options that could be the best and the best of each machine type.

        The price of a network has steps, so interpolated prices are a few per cent off.
        """
        path = kind_path(self.question)
        while True:
            ordered = sort_options(self.question, [option for option in self.options.values() if option.is_feasible])
            if not ordered:
                return
            limit = self._limit(ordered[0], 1.0 + FASTER)
            near = [option for option in ordered if self._score(option) <= limit][:GROUPS]
            kinds = {kind_of(option, path): option for option in reversed(ordered)} if path is not None else {}
            points = {option.point.number: option.point for option in (*near, *kinds.values())}
            new = [point for point in points.values() if self.screen.interpolates(point)]
            if not new:
                return
            self.screen.built.update(point.number for point in new)
            self.options.update({point.number: self.screen.of(point) for point in new})

    # ---- scores ----

    def _score(self, option: PlanOption) -> float:
        """Return the first objective of an option, smaller is better; infinite if it is unknown."""
        if not self.question.objectives or not has_objective(self.question, option):
            return float("inf")
        objective = self.question.objectives[0]
        return score(objective, option, {quantity.key: 1.0 for quantity, _ in objective.weights})

    def _limit(self, best: PlanOption, factor: float) -> float:
        """Return the score that is worse than the best by a factor."""
        value = self._score(best)
        return value * factor if value >= 0 else value / factor

    # ---- simulations ----

    def _simulate(self) -> None:
        if any(axis.kind == "replicas" for axis in self.question.varied.axes):
            self._replicate()
            return
        open_ones = [option for option in self.options.values() if option.is_feasible and self._is_open(option)]
        for index, option in enumerate(self._cheapest(open_ones)):
            if not self._is_beaten(option):
                self._play(option.point.number, index, len(open_ones))
        self._near()

    def _is_open(self, option: PlanOption) -> bool:
        """Whether a requested number requires a simulation, because a workload has no closed form."""
        if option.how == "simulation":
            return False
        return option.how == "machine" or any(quantity.key not in option.numbers for quantity in self.question.asked)

    def _with_ends(self) -> None:
        """Simulate the best services again, longer and with kernel times at both ends of their interval."""
        seen = set[int]()
        while True:
            held = [choice for choice in self.options.values() if choice.is_feasible and choice.how == "simulation"]
            option = next((plan for plan in sort_options(self.question, held)[:SURE] if plan.point.number not in seen), None)
            if option is None:
                return
            seen.add(option.point.number)
            estimate = replace(option, numbers=option.estimated)
            self.options[option.point.number] = longer = self._played(estimate, 0, SURE, ends=True)
            axis = next((axis for axis in self.question.varied.axes if axis.kind == "replicas"), None)
            if not longer.is_feasible and axis is not None and option.point.replicas < axis.ends[1]:
                self._replicated(option, option.point.replicas + 1)

    def _cheapest(self, options: Iterable[PlanOption]) -> list[PlanOption]:
        """Sort options by the objective as far as it depends only on the machine."""
        return sorted(options, key=lambda each: (self._score(each), each.point.number))

    def _is_beaten(self, option: PlanOption) -> bool:
        """Whether an option is worse than a simulated one by its closed form."""
        if self.question.also or len(self.question.objectives) != 1 or not has_objective(self.question, option):
            return False
        done = [choice for choice in self.options.values() if choice.how == "simulation" and choice.is_feasible]
        return any(self._limit(choice, 1.0 + self.question.keys.slack) < self._score(option) for choice in done)

    def _near(self) -> None:
        """Simulate estimates that could be the best, most promising first, and correct the remaining estimates by the results."""
        budget = self.question.keys.simulate
        while self.simulations < budget:
            candidate = self._next()
            if candidate is None:
                break
            self._try(candidate, budget)
        for number, option in self.options.items():
            if option.how == "estimate" and option.steps:
                ratio, is_known = self._ratio(option)
                if is_known:
                    self.options[number] = self._corrected(option, ratio)

    def _try(self, candidate: PlanOption, budget: int) -> None:
        """Simulate a candidate; keep the best plan of each point."""
        number = candidate.point.number
        before = self.options[number]
        result = self._played(candidate, self.simulations, budget)
        for name in candidate.steps:
            self._ratios.append((result, name, _slower(result, name)))
        others = [self.screen.another(candidate, name, 1) for name, steps in candidate.steps.items() if len(steps) > 1]
        self._waiting[number] = others
        if before.how != "simulation" or self._is_better(result, before):
            self.options[number] = result

    def _is_better(self, one: PlanOption, other: PlanOption) -> bool:
        if one.is_feasible != other.is_feasible:
            return one.is_feasible
        return self._score(one) < self._score(other) if one.is_feasible else _excess(one) < _excess(other)

    def _next(self) -> PlanOption | None:
        """Return the estimate to simulate next: the best that could be the answer, then one of each machine type."""
        done = [self._score(option) for option in self.options.values() if option.how == "simulation" and option.is_feasible]
        best = min(done, default=float("inf"))
        waiting = [choice for choice in self.options.values() if choice.how == "estimate" and choice.steps]
        waiting += [other for others in self._waiting.values() for other in others]
        promising = list[tuple[float, int, int, PlanOption]]()
        for option in waiting:
            if _excess(option) > FASTER:
                continue
            ratio, is_known = self._ratio(option)
            likely = self._corrected(option, ratio) if is_known else option
            if _excess(likely) > FASTER:
                continue
            score = self._score(likely)
            tolerance = FASTER if is_known else self.question.keys.slack
            if score - abs(score) * tolerance < best:
                promising.append((score, option.point.number, option.rank, option))
        if promising:
            return min(promising, key=lambda each: each[:3])[3]
        return self._best_of_each([option for option in waiting if option.how == "estimate"])

    def otherwise(self, best: PlanOption) -> PlanOption | None:
        """Return the best multi-node option, simulated with its nodes in the other order."""
        if best.how != "simulation" or not best.steps or (best.value("nodes") or 1.0) <= 1.0:
            return None
        estimate = replace(best, numbers=best.estimated)
        return self._played(estimate, self.simulations, self.simulations + 1, other=True)

    def _ratio(self, option: PlanOption) -> tuple[float, bool]:
        """Return (simulated / estimated step time, whether it is known) of the nearest simulated option with such a plan."""
        nearest: tuple[float, float] | None = None
        for neighbour, name, ratio in self._ratios:
            if name not in option.steps or not _alike(neighbour, option, name):
                continue
            distance = _apart(neighbour, option)
            if distance < float("inf") and (nearest is None or distance < nearest[0]):
                nearest = distance, ratio
        return (1.0, False) if nearest is None else (nearest[1], True)

    def _corrected(self, option: PlanOption, ratio: float) -> PlanOption:
        key = option.point.number, option.rank, ratio
        if key not in self._known:
            name = next(iter(option.steps))
            self._known[key] = self.screen.another(option, name, 0, ratio)
        return self._known[key]

    def _best_of_each(self, waiting: Sequence[PlanOption]) -> PlanOption | None:
        """Return the best estimate of a machine type that has no simulation yet."""
        path = kind_path(self.question)
        if path is None:
            return None
        seen = {kind_of(option, path) for option in self.options.values() if option.how == "simulation"}
        left = [option for option in waiting if option.is_feasible and kind_of(option, path) not in seen]
        return min(left, key=lambda each: (self._score(each), each.point.number), default=None)

    def _play(self, number: int, done: int, total: int) -> PlanOption:
        """Replace an option by its simulation."""
        self.options[number] = self._played(self.options[number], done, total)
        return self.options[number]

    def against(self, option: PlanOption, best: PlanOption) -> ObjectiveRatio:
        """Return the ratio of an option to the best."""
        first, second = (self.screen.variants.key(choice.point) for choice in (option, best))
        return compare_options(self.question, option, best, None if first == second else self._known_alike)

    def _known_alike(self, option: PlanOption) -> PlanOption:
        """Return an option with class defaults instead of measurements; without intervals if its machine has no class."""
        number = option.point.number
        if number not in self._alike:
            screen = self._of_class
            if option.how == "simulation":
                estimate = replace(option, numbers=option.estimated, intervals={})
                self._alike[number] = self._played(estimate, self.simulations, self.simulations + 1, of_class=screen)
            else:
                found = screen.of(option.point)
                self._alike[number] = screen.another(found, next(iter(found.steps)), 0, option.ratio) if found.steps else found
        return self._alike[number]

    @cached_property
    def _of_class(self) -> Screening:
        return Screening(
            self.question, Variants(self.question, of_class=True), self.screen.outlay, self.screen.failures, self.screen.built
        )

    def _played(
        self,
        option: PlanOption,
        done: int,
        total: int,
        *,
        ends: bool = False,
        other: bool = False,
        of_class: Screening | None = None,
    ) -> PlanOption:
        """Return the simulated option, from the journal if an earlier run simulated it.

        other: whether the nodes are in the other order (random, or as wired).
        """
        scattered = (self.question.keys.placement == "scattered") != other
        rank = RANKS - 1 if ends else RANKS - 2 if other else RANKS - 3 if of_class else option.rank
        key = option.point.number * RANKS + rank
        option, row = simulate_option(option, of_class or self.screen, self.rows.get(key), ends=ends, scattered=scattered)
        if key not in self.rows:
            self.rows[key] = row
            if self.keep is not None:
                self.keep(key, row)
        self.simulations += 1
        if self.progress is not None:
            self.progress(done + 1, total)
        return option

    # ---- replicas ----

    def _replicate(self) -> None:
        """Find the fewest feasible replicas of each machine; waiting times never grow with more replicas."""
        axis = next(axis for axis in self.question.varied.axes if axis.kind == "replicas")
        singles = [option for option in self.options.values() if option.is_feasible]
        rejected = {number: choice for number, choice in self.options.items() if not choice.is_feasible}
        self.options = dict(rejected)
        low, high = axis.ends
        for index, single in enumerate(self._cheapest(singles)):
            self._fewest(single, low, high)
            if self.progress is not None:
                self.progress(index + 1, len(singles))

    def _fewest(self, single: PlanOption, low: int, high: int) -> None:
        """Double the number of replicas until it is feasible, then bisect."""
        below, above = low - 1, low
        while not self._replicated(single, above).is_feasible:
            if above == high or self._is_hopeless(self._replicated(single, above)):
                return
            below, above = above, min(high, above * 2)
        while above - below > 1:
            middle = (below + above) // 2
            if self._replicated(single, middle).is_feasible:
                above = middle
            else:
                below = middle

    def _replicated(self, single: PlanOption, count: int) -> PlanOption:
        """Return `count` replicas of a machine; options more expensive than a known answer are not simulated."""
        values = tuple(pair for pair in single.point.values if pair[0] != REPLICAS)
        option = self._look(single.point.machine, (*values, (REPLICAS, count)))
        if option.how == "machine" and option.is_feasible and not self._is_beaten(option):
            option = self._play(option.point.number, self.simulations, self.simulations + 1)
        return option

    def _is_hopeless(self, option: PlanOption) -> bool:
        """Whether more replicas do not help, because no violated constraint depends on them."""
        falling = (LOAD, "TTFT", "TPOT", "latency", "requests/s", "tokens/s", "samples/s")
        return not any(reason.constraint.startswith(falling) for reason in option.reasons)


def kind_path(question: Question) -> str | None:
    """Return the path that defines the machine type: the machine file, else the first path with names as values."""
    if len(question.machines) > 1:
        return MACHINE
    named = (
        axis.path
        for axis in question.varied.axes
        if any(isinstance(value, str) and not value[:1].isdigit() for value in axis.values)
    )
    return next(named, None)


def kind_of(option: PlanOption, path: str) -> object:
    """Return the machine type of an option."""
    return dict(option.point.shown).get(path)


def _count(option: PlanOption, path: str) -> int:
    value = option.point.get(path)
    assert isinstance(value, int)
    return value


def _excess(option: PlanOption) -> float:
    return max((reason.excess for reason in option.reasons), default=0.0)


def _slower(option: PlanOption, name: str) -> float:
    """Return simulated / closed-form step time; 1 if there is no step."""
    key = f"{name}.tokens_per_s" if name else "tokens_per_s"
    found, estimated = option.numbers.get(key), option.steps[name][0].tokens_per_second
    return estimated / found.value if found is not None and found.value > 0 else 1.0


def _alike(one: PlanOption, other: PlanOption, name: str) -> bool:
    """Whether two options have the same parallel plan."""
    first, second = (option.steps[name][0].laid.plan for option in (one, other))
    return (first.tp, first.pp > 1, first.level) == (second.tp, second.pp > 1, second.level)


def _apart(first: PlanOption, second: PlanOption) -> float:
    """Return the distance of two options that differ only in their node count; infinite if they differ in more."""
    if first.point.machine != second.point.machine:
        return math.inf
    different = [pair for pair in zip(first.point.values, second.point.values, strict=True) if pair[0] != pair[1]]
    nodes = first.value("nodes") or 1.0, second.value("nodes") or 1.0
    if not different:
        return 0.0
    return abs(math.log(nodes[0] / nodes[1])) if len(different) == 1 and nodes[0] != nodes[1] else math.inf


def _work(question: Question, option: PlanOption, name: str, measure: str) -> tuple[WorkAmount, ...]:
    """Return the work that a measure refers to: of a run, a step or an entire training; none for a period of use."""
    whole = option.wholes.get(name)
    trained = option.value(option_key(name, "training")) if whole is None else whole.ideal_s
    rented = measure in USED and not trained and not question.period and question.keys.rent != "purchase"
    if measure == "time" or rented:
        return option.work.get(name, ())
    times = {"step": option.value(option_key(name, "step")), **dict.fromkeys((*USED, "training", "gpu_hours"), trained)}
    rates = {unit: option.value(option_key(name, f"{unit}_per_s")) or 0.0 for unit in ("tokens", "samples")}
    return tuple(WorkAmount(unit, amount, rate) for unit, rate in rates.items() if (amount := rate * (times.get(measure) or 0.0)))


def _mistake(option: PlanOption) -> str:
    """Return the mistake in the files of an option; "" if there is none."""
    texts = {reason.constraint: reason.text for reason in option.reasons}
    return texts.get("workload") or ("" if option.numbers else texts.get("machine", ""))
