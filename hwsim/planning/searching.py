"""The search: all points in closed form, ranges looked at again around the best, and what is near simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import product
from typing import Final

from hwsim.planning.axes import REPLICAS, Axis, between
from hwsim.planning.choosing import Against, against, has_objective, order, score, sorting
from hwsim.planning.judging import USED
from hwsim.planning.loads import LOAD
from hwsim.planning.options import Option, keyed
from hwsim.planning.question import Question
from hwsim.planning.running import Row, serves, simulated
from hwsim.planning.screening import Screen
from hwsim.planning.variants import MACHINE, Point, Values, Variants
from hwsim.records import dataclass
from hwsim.results.work import Work
from hwsim.spec import SpecError
from hwsim.studies.ranking import differing, unlike

MOST: Final = 50_000  # points
RANKS: Final = 100  # plans of a point, at the most
SURE: Final = 3  # services whose range is worked out
ROUNDS: Final = 6  # of a range around its best
GROUPS: Final = 40  # ranges that are all looked at again; of more, those whose best is near the best of all
FASTER: Final = 0.03  # part by which a simulation is faster than an estimate, at the most
PER_WORK: Final = "the same work in all options, or maximise: tokens/s, samples/s; `hwsim sweep` compares FLOP/s and B/s"
Progress = Callable[[int, int], None]  # simulations done, simulations known


@dataclass
class Searching:
    """One search."""

    question: Question
    screen: Screen
    rows: dict[int, Row] = field(default_factory=dict)
    keep: Callable[[int, Row], None] | None = None
    progress: Progress | None = None
    options: dict[int, Option] = field(default_factory=dict)
    simulations: int = 0
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _waiting: dict[int, list[Option]] = field(default_factory=dict)  # other plans of points that were simulated
    _ratios: list[tuple[Option, str, float]] = field(default_factory=list)
    _known: dict[tuple[int, int, float], Option] = field(default_factory=dict)
    _alike: dict[int, Option] = field(default_factory=dict)

    def run(self) -> None:
        """Screen and simulate."""
        for values in self._first():
            self._look(*values)
        self._same_work()
        self._refine()
        self._simulate()
        self._same_work()
        if any(serves(tree) for tree in self.question.workloads.values()):
            self._with_ends()

    # ---- points ----

    def _first(self) -> Iterator[tuple[str, Values]]:
        """Points to look at first: (machine, values)."""
        axes = [axis for axis in self.question.varied.axes if axis.kind != "replicas"]
        lists = [axis.first() for axis in axes]
        machines = [name for name, _ in self.question.machines] if len(self.question.machines) > 1 else [""]
        count = len(machines) * math.prod(map(len, lists))
        if count > MOST:
            sizes = " x ".join(str(len(each)) for each in lists)
            raise SpecError.of(None, f"{sizes} = {count:,} points exceed the limit of {MOST:,}", "fewer values: 16..640:x2")
        for machine in machines:
            for values in product(*lists):
                yield machine, tuple((axis.path, value) for axis, value in zip(axes, values, strict=True))

    def _look(self, machine: str, values: Values) -> Option:
        """The option of a point, screened once."""
        number = self._numbers.setdefault((machine, repr(values)), len(self._numbers))
        if number not in self.options:
            self.options[number] = self.screen.of(Point(number, machine, values))
        return self.options[number]

    def _same_work(self) -> None:
        """Check that options do the same work where the least time or cost of it is wanted: else the least work is the best.

        Raises:
            SpecError: they do not.
        """
        held, place = [each for each in self.options.values() if each.is_feasible], self.question.keys.minimise
        for quantity in (quantity for objective in self.question.objectives for quantity, _ in objective.weights):
            for name in (workload for workload in self.question.workloads if quantity.workload in ("", workload)):
                known = [work for option in held if (work := _work(self.question, option, name, quantity.measure.name))]
                if unit := differing(known):
                    message = f"no {quantity.title} is the best: the options do {unlike(known, unit)}"
                    raise SpecError.of(None if place is None else place.place, message, PER_WORK)

    def _refine(self) -> None:
        """Look at further numbers of ranges, around the best and the first that holds of each group."""
        for axis in self.question.varied.axes:
            if axis.kind != "range" or len(axis.first()) > axis.ends[1] - axis.ends[0]:
                continue
            for _ in range(ROUNDS):
                before = len(self.options)
                for members in self._near_groups(axis):
                    self._between(axis, members)
                if len(self.options) == before:
                    break

    def _near_groups(self, axis: Axis) -> list[list[Option]]:
        """Options that differ by one path alone, of groups whose best is near the best of all."""
        groups: dict[tuple[object, ...], list[Option]] = {}
        for option in self.options.values():
            rest = (option.point.machine, *(pair for pair in option.point.values if pair[0] != axis.path))
            groups.setdefault(rest, []).append(option)
        ordered = order(self.question, [each for each in self.options.values() if each.is_feasible])
        if not ordered or len(groups) <= GROUPS:
            return list(groups.values())
        limit = self._limit(ordered[0], 1.0 + self.question.keys.slack)
        return [
            members
            for members in groups.values()
            if any(member.is_feasible and self._score(member) <= limit for member in members)
        ]

    def _between(self, axis: Axis, members: Sequence[Option]) -> None:
        seen = {_count(member, axis.path): member for member in members}
        held = [each for each in members if each.is_feasible and has_objective(self.question, each)]
        if held:
            best = min(held, key=sorting(self.question, held))
            near = {_count(best, axis.path), min(_count(each, axis.path) for each in held)}
        else:
            nearest = min(members, key=lambda each: (_excess(each), each.point.number))
            near = {_count(nearest, axis.path)}
        for value in between(tuple(seen), axis, tuple(near)):
            point = members[0].point
            values = tuple((path, value if path == axis.path else each) for path, each in point.values)
            self._look(point.machine, values)

    # ---- scores ----

    def _score(self, option: Option) -> float:
        """The first objective of an option, small where it is good; infinite if it is not known."""
        if not self.question.objectives or not has_objective(self.question, option):
            return float("inf")
        objective = self.question.objectives[0]
        return score(objective, option, {quantity.key: 1.0 for quantity, _ in objective.weights})

    def _limit(self, best: Option, factor: float) -> float:
        """A score that is worse by a factor."""
        value = self._score(best)
        return value * factor if value >= 0 else value / factor

    # ---- simulations ----

    def _simulate(self) -> None:
        if any(axis.kind == "replicas" for axis in self.question.varied.axes):
            self._replicate()
            return
        open_ones = [option for option in self.options.values() if option.is_feasible and self._is_open(option)]
        for at, each in enumerate(self._cheapest(open_ones)):
            if not self._is_beaten(each):
                self._play(each.point.number, at, len(open_ones))
        self._near()

    def _is_open(self, option: Option) -> bool:
        """Whether only a simulation tells a number that is asked for: of several workloads one may have no closed form."""
        if option.how == "simulation":
            return False
        return option.how == "machine" or any(quantity.key not in option.numbers for quantity in self.question.asked)

    def _with_ends(self) -> None:
        """Simulate the best services again, longer and with the ends of what is known of their kernels."""
        seen = set[int]()
        while True:
            held = [each for each in self.options.values() if each.is_feasible and each.how == "simulation"]
            option = next((each for each in order(self.question, held)[:SURE] if each.point.number not in seen), None)
            if option is None:
                return
            seen.add(option.point.number)
            estimate = replace(option, numbers=option.estimated)
            self.options[option.point.number] = longer = self._played(estimate, 0, SURE, ends=True)
            axis = next((axis for axis in self.question.varied.axes if axis.kind == "replicas"), None)
            if not longer.is_feasible and axis is not None and option.point.replicas < axis.ends[1]:
                self._replicated(option, option.point.replicas + 1)

    def _cheapest(self, options: Iterable[Option]) -> list[Option]:
        """In the order of the objective, as far as the machine alone has it."""
        return sorted(options, key=lambda each: (self._score(each), each.point.number))

    def _is_beaten(self, option: Option) -> bool:
        """Whether an option is worse than one that was simulated, by what is known before its run."""
        if self.question.also or len(self.question.objectives) != 1 or not has_objective(self.question, option):
            return False
        done = [each for each in self.options.values() if each.how == "simulation" and each.is_feasible]
        return any(self._limit(each, 1.0 + self.question.keys.slack) < self._score(option) for each in done)

    def _near(self) -> None:
        """Simulate estimates that could be the best, the most promising first; correct the others by what that shows."""
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

    def _try(self, candidate: Option, budget: int) -> None:
        """Simulate a candidate; of several plans of a point the best stays."""
        number = candidate.point.number
        before = self.options[number]
        result = self._played(candidate, self.simulations, budget)
        for name in candidate.steps:
            self._ratios.append((result, name, _slower(result, name)))
        others = [self.screen.another(candidate, name, 1) for name, steps in candidate.steps.items() if len(steps) > 1]
        self._waiting[number] = others
        if before.how != "simulation" or self._is_better(result, before):
            self.options[number] = result

    def _is_better(self, one: Option, other: Option) -> bool:
        if one.is_feasible != other.is_feasible:
            return one.is_feasible
        return self._score(one) < self._score(other) if one.is_feasible else _excess(one) < _excess(other)

    def _next(self) -> Option | None:
        """The estimate to simulate next: the best of those that could be the answer, then one of each kind of machine."""
        done = [self._score(option) for option in self.options.values() if option.how == "simulation" and option.is_feasible]
        best = min(done, default=float("inf"))
        waiting = [each for each in self.options.values() if each.how == "estimate" and each.steps]
        waiting += [other for others in self._waiting.values() for other in others]
        promising = list[tuple[float, int, int, Option]]()
        for each in waiting:
            if _excess(each) > FASTER:
                continue
            ratio, is_known = self._ratio(each)
            likely = self._corrected(each, ratio) if is_known else each
            if _excess(likely) > FASTER:
                continue
            score = self._score(likely)
            tolerance = FASTER if is_known else self.question.keys.slack
            if score - abs(score) * tolerance < best:
                promising.append((score, each.point.number, each.rank, each))
        if promising:
            return min(promising, key=lambda each: each[:3])[3]
        return self._best_of_each([each for each in waiting if each.how == "estimate"])

    def otherwise(self, best: Option) -> Option | None:
        """The best of several nodes simulated with its nodes in the other order."""
        if best.how != "simulation" or not best.steps or (best.value("nodes") or 1.0) <= 1.0:
            return None
        estimate = replace(best, numbers=best.estimated)
        return self._played(estimate, self.simulations, self.simulations + 1, other=True)

    def _ratio(self, option: Option) -> tuple[float, bool]:
        """(simulated over estimated step, whether that is known) of the nearest option with such a plan that was simulated."""
        nearest: tuple[float, float] | None = None
        for neighbour, name, ratio in self._ratios:
            if name not in option.steps or not _alike(neighbour, option, name):
                continue
            distance = _apart(neighbour, option)
            if distance < float("inf") and (nearest is None or distance < nearest[0]):
                nearest = distance, ratio
        return (1.0, False) if nearest is None else (nearest[1], True)

    def _corrected(self, option: Option, ratio: float) -> Option:
        key = option.point.number, option.rank, ratio
        if key not in self._known:
            name = next(iter(option.steps))
            self._known[key] = self.screen.another(option, name, 0, ratio)
        return self._known[key]

    def _best_of_each(self, waiting: Sequence[Option]) -> Option | None:
        """The best estimate of a kind of machine without a simulation."""
        path = kind_path(self.question)
        if path is None:
            return None
        seen = {kind_of(option, path) for option in self.options.values() if option.how == "simulation"}
        left = [each for each in waiting if each.is_feasible and kind_of(each, path) not in seen]
        return min(left, key=lambda each: (self._score(each), each.point.number), default=None)

    def _play(self, number: int, done: int, total: int) -> Option:
        """Simulate an option in its place."""
        self.options[number] = self._played(self.options[number], done, total)
        return self.options[number]

    def against(self, option: Option, best: Option) -> Against:
        """An option judged against the best."""
        first, second = (self.screen.variants.key(each.point) for each in (option, best))
        return against(self.question, option, best, None if first == second else self._known_alike)

    def _known_alike(self, option: Option) -> Option:
        """An option as if what was measured of its machine were left to its class, without intervals if that cannot be."""
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
    def _of_class(self) -> Screen:
        return Screen(self.question, Variants(self.question, of_class=True), self.screen.outlay, self.screen.failures)

    def _played(
        self, option: Option, done: int, total: int, *, ends: bool = False, other: bool = False, of_class: Screen | None = None
    ) -> Option:
        """The option as simulated, or as an earlier run found it.

        other: with the nodes in the other order, by chance or as they stand.
        """
        scattered = (self.question.keys.placement == "scattered") != other
        rank = RANKS - 1 if ends else RANKS - 2 if other else RANKS - 3 if of_class else option.rank
        key = option.point.number * RANKS + rank
        option, row = simulated(option, of_class or self.screen, self.rows.get(key), ends=ends, scattered=scattered)
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
        """The fewest replicas of each machine that hold: more of them never wait longer."""
        axis = next(axis for axis in self.question.varied.axes if axis.kind == "replicas")
        singles = [option for option in self.options.values() if option.is_feasible]
        rejected = {number: each for number, each in self.options.items() if not each.is_feasible}
        self.options = dict(rejected)
        low, high = axis.ends
        for at, single in enumerate(self._cheapest(singles)):
            self._fewest(single, low, high)
            if self.progress is not None:
                self.progress(at + 1, len(singles))

    def _fewest(self, single: Option, low: int, high: int) -> None:
        """Double until it holds, then bisect."""
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

    def _replicated(self, single: Option, count: int) -> Option:
        """So many of a machine; what is dearer than an answer is not simulated."""
        values = tuple(pair for pair in single.point.values if pair[0] != REPLICAS)
        option = self._look(single.point.machine, (*values, (REPLICAS, count)))
        if option.how == "machine" and option.is_feasible and not self._is_beaten(option):
            option = self._play(option.point.number, self.simulations, self.simulations + 1)
        return option

    def _is_hopeless(self, option: Option) -> bool:
        """Whether more replicas do not help: what is broken does not fall with them."""
        falling = (LOAD, "TTFT", "TPOT", "latency", "requests/s", "tokens/s", "samples/s")
        return not any(reason.constraint.startswith(falling) for reason in option.reasons)


def kind_path(question: Question) -> str | None:
    """The path that says what kind of machine an option is: the machine's file, else the first that takes names."""
    if len(question.machines) > 1:
        return MACHINE
    named = (
        axis.path
        for axis in question.varied.axes
        if any(isinstance(value, str) and not value[:1].isdigit() for value in axis.values)
    )
    return next(named, None)


def kind_of(option: Option, path: str) -> object:
    """The kind of machine of an option."""
    return dict(option.point.shown).get(path)


def _count(option: Option, path: str) -> int:
    value = option.point.get(path)
    assert isinstance(value, int)
    return value


def _excess(option: Option) -> float:
    return max((reason.excess for reason in option.reasons), default=0.0)


def _slower(option: Option, name: str) -> float:
    """The simulated step over the one in closed form; 1 if there is none."""
    key = f"{name}.tokens_per_s" if name else "tokens_per_s"
    found, estimated = option.numbers.get(key), option.steps[name][0].tokens_per_second
    return estimated / found.value if found is not None and found.value > 0 else 1.0


def _alike(one: Option, other: Option, name: str) -> bool:
    """Whether two plans are split alike."""
    first, second = (each.steps[name][0].laid.plan for each in (one, other))
    return (first.tp, first.pp > 1, first.level) == (second.tp, second.pp > 1, second.level)


def _apart(first: Option, second: Option) -> float:
    """The distance of two options that differ by the number of their nodes; infinite where more differs."""
    if first.point.machine != second.point.machine:
        return math.inf
    different = [pair for pair in zip(first.point.values, second.point.values, strict=True) if pair[0] != pair[1]]
    nodes = first.value("nodes") or 1.0, second.value("nodes") or 1.0
    if not different:
        return 0.0
    return abs(math.log(nodes[0] / nodes[1])) if len(different) == 1 and nodes[0] != nodes[1] else math.inf


def _work(question: Question, option: Option, name: str, measure: str) -> tuple[Work, ...]:
    """The work that a measure of a workload is of: a run, a step, or a whole training; none of what is used for a period."""
    whole = option.wholes.get(name)
    trained = option.value(keyed(name, "training")) if whole is None else whole.ideal_s
    rented = measure in USED and not trained and not question.period and question.keys.rent != "purchase"
    if measure == "time" or rented:
        return option.work.get(name, ())
    times = {"step": option.value(keyed(name, "step")), **dict.fromkeys((*USED, "training", "gpu_hours"), trained)}
    rates = {unit: option.value(keyed(name, f"{unit}_per_s")) or 0.0 for unit in ("tokens", "samples")}
    return tuple(Work(unit, amount, rate) for unit, rate in rates.items() if (amount := rate * (times.get(measure) or 0.0)))
