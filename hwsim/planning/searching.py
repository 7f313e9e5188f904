"""The search: all points in closed form, ranges looked at again around the best, what is near simulated, the rest with reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from hwsim.planning.answer import Answer
from hwsim.planning.axes import REPLICAS, Axis, between
from hwsim.planning.choosing import against, frontier, has_objective, order, score, sorting
from hwsim.planning.options import Option
from hwsim.planning.outlay import Outlay
from hwsim.planning.question import Question, read_question
from hwsim.planning.reasons import Rejected
from hwsim.planning.running import Row, simulated
from hwsim.planning.screening import Screen
from hwsim.planning.variants import MACHINE, Point, Values, Variants
from hwsim.records import dataclass
from hwsim.spec import Mistake, SpecError, Tree

MOST: Final = 50_000  # points
ROUNDS: Final = 6  # of a range around its best
FASTER: Final = 0.03  # part by which a simulation is faster than an estimate, at the most
Progress = Callable[[int, int], None]  # simulations done, simulations known


@dataclass(slots=True)
class Searching:
    """One search."""

    question: Question
    screen: Screen
    rows: dict[int, Row] = field(default_factory=dict)
    keep: Callable[[int, Row], None] | None = None
    progress: Progress | None = None
    options: dict[int, Option] = field(default_factory=dict)
    simulations: int = 0
    _numbers: dict[tuple[str, Values], int] = field(default_factory=dict)

    def run(self) -> None:
        """Screen and simulate."""
        for values in self._first():
            self._look(*values)
        self._refine()
        self._simulate()

    # ---- points ----

    def _first(self) -> Iterator[tuple[str, Values]]:
        """Points to look at first: (machine, values)."""
        axes = [axis for axis in self.question.varied.axes if axis.kind != "replicas"]
        lists = [axis.first() for axis in axes]
        machines = [name for name, _ in self.question.machines] if len(self.question.machines) > 1 else [""]
        count = len(machines)
        for each in lists:
            count *= len(each)
        if count > MOST:
            sizes = " x ".join(str(len(each)) for each in lists)
            raise SpecError([Mistake(None, f"{sizes} = {count:,} points are more than {MOST:,}", "fewer values: 16..640:x2")])
        for machine, *values in product(machines, *lists):
            yield machine, tuple((axis.path, value) for axis, value in zip(axes, values, strict=True))

    def _look(self, machine: str, values: Values) -> Option:
        """The option of a point, screened once."""
        number = self._numbers.setdefault((machine, values), len(self._numbers))
        if number not in self.options:
            self.options[number] = self.screen.of(Point(number, machine, values))
        return self.options[number]

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
        for each in self.options.values():
            rest = (each.point.machine, *(pair for pair in each.point.values if pair[0] != axis.path))
            groups.setdefault(rest, []).append(each)
        ordered = order(self.question, [each for each in self.options.values() if each.is_feasible])
        if not ordered:
            return list(groups.values())
        limit = self._limit(ordered[0], 1.0 + self.question.keys.slack)
        return [members for members in groups.values() if any(each.is_feasible and self._score(each) <= limit for each in members)]

    def _between(self, axis: Axis, members: Sequence[Option]) -> None:
        seen = {_count(each, axis.path): each for each in members}
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
        return score(self.question.objectives[0], option, self._bests())

    def _bests(self) -> Mapping[str, float]:
        return {quantity.key: 1.0 for objective in self.question.objectives for quantity, _ in objective.weights}

    def _limit(self, best: Option, factor: float) -> float:
        """A score that is worse by a factor."""
        value = self._score(best)
        return value * factor if value >= 0 else value / factor

    # ---- simulations ----

    def _simulate(self) -> None:
        if any(axis.kind == "replicas" for axis in self.question.varied.axes):
            self._replicate()
            return
        open_ones = [each for each in self.options.values() if each.how == "machine" and each.is_feasible]
        for at, each in enumerate(self._cheapest(open_ones)):
            if not self._is_beaten(each):
                self._play(each.point.number, at, len(open_ones))
        self._near()

    def _cheapest(self, options: Iterable[Option]) -> list[Option]:
        """In the order of the objective, as far as the machine alone has it."""
        return sorted(options, key=lambda each: (self._score(each), each.point.number))

    def _is_beaten(self, option: Option) -> bool:
        """Whether an option is worse than one that was simulated, by what is known before its run."""
        if self.question.also or len(self.question.objectives) != 1 or not has_objective(self.question, option):
            return False
        done = [each for each in self.options.values() if each.how == "simulation" and each.is_feasible]
        return any(self._score(each) < self._score(option) for each in done)

    def _near(self) -> None:
        """Simulate estimates near the best, and as many more as could be the best."""
        keys = self.question.keys
        budget = keys.simulate
        for _ in range(budget):
            candidate = self._next()
            if candidate is None:
                return
            self._play(candidate.point.number, self.simulations, budget)

    def _next(self) -> Option | None:
        """The estimate to simulate next: the best of those that could be the answer."""
        slack = 1.0 + self.question.keys.slack
        known = [each for each in self.options.values() if has_objective(self.question, each)]
        waiting = [each for each in known if each.how == "estimate" and (each.is_feasible or _excess(each) <= FASTER)]
        if not waiting:
            return None
        done = [each for each in known if each.how == "simulation" and each.is_feasible]
        feasible = [each for each in known if each.is_feasible]
        first = min(waiting, key=lambda each: (self._score(each), each.point.number))
        if not done:
            return first
        best = min(done, key=self._score)
        of_estimates = min((self._estimated(each) for each in feasible), default=self._score(best))
        limit = max(of_estimates * slack if of_estimates >= 0 else of_estimates / slack, self._score(best))
        if self._score(first) <= limit:
            return first
        return self._best_of_each(waiting)

    def _estimated(self, option: Option) -> float:
        """The score of an option by its closed form."""
        return self._score(replace(option, numbers=option.estimated)) if option.estimated else self._score(option)

    def _best_of_each(self, waiting: Sequence[Option]) -> Option | None:
        """The best estimate of a kind of machine of which nothing was simulated."""
        path = kind_path(self.question)
        if path is None:
            return None
        seen = {kind_of(each, path) for each in self.options.values() if each.how == "simulation"}
        left = [each for each in waiting if each.is_feasible and kind_of(each, path) not in seen]
        return min(left, key=lambda each: (self._score(each), each.point.number), default=None)

    def _play(self, number: int, done: int, total: int) -> Option:
        """Simulate an option, or take what an earlier run found."""
        option, row = simulated(self.options[number], self.screen, self.rows.get(number))
        if number not in self.rows:
            self.rows[number] = row
            if self.keep is not None:
                self.keep(number, row)
        self.simulations += 1
        self.options[number] = option
        if self.progress is not None:
            self.progress(done + 1, total)
        return option

    # ---- replicas ----

    def _replicate(self) -> None:
        """Of each machine the fewest replicas that hold: more of them never wait longer."""
        axis = next(axis for axis in self.question.varied.axes if axis.kind == "replicas")
        singles = [each for each in self.options.values() if each.is_feasible]
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
        option = self._look(single.point.machine, (*single.point.values, (REPLICAS, count)))
        if option.how == "machine" and option.is_feasible and not self._is_beaten(option):
            option = self._play(option.point.number, self.simulations, self.simulations + 1)
        return option

    def _is_hopeless(self, option: Option) -> bool:
        """Whether more replicas do not help: what is broken does not fall with them."""
        falling = ("TTFT", "TPOT", "LATENCY", "requests/s", "tokens/s", "samples/s")
        return not any(each.constraint.startswith(falling) for each in option.reasons)


def kind_path(question: Question) -> str | None:
    """The path that says what kind of machine an option is: the machine's file, else the first that takes names."""
    if len(question.machines) > 1:
        return MACHINE
    named = (axis.path for axis in question.varied.axes if any(isinstance(each, str) and not each[:1].isdigit() for each in axis.values))
    return next(named, None)


def kind_of(option: Option, path: str) -> object:
    """The kind of machine of an option."""
    return dict(option.point.shown).get(path)


def _count(option: Option, path: str) -> int:
    value = option.point.get(path)
    assert isinstance(value, int)
    return value


def _excess(option: Option) -> float:
    return max((each.excess for each in option.reasons), default=0.0)


def plan(
    question: Question | str | Path | Mapping[str, Any] | Tree,
    *,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Answer a question: the best options, the frontier, and why not the others.

    Args:
        question: a file `plan/1`, or what it would say.
        journal: a file that keeps simulations, so that a run that was ended goes on from there.

    Raises:
        SpecError: mistakes of the question, of its machines or of its workloads.
    """
    asked = question if isinstance(question, Question) else read_question(question)
    began = time.process_time()
    variants = Variants(asked)
    screen = Screen(asked, variants, Outlay(asked), _failures(asked))
    searching = Searching(asked, screen, progress=progress)
    if journal is None:
        searching.run()
    else:
        from hwsim.planning.keeping import kept

        with kept(journal, asked) as notes:
            searching.rows = dict(notes.rows)
            searching.keep = notes.add
            searching.run()
    return _answer(searching, time.process_time() - began)


def _failures(question: Question) -> Any:
    """Rates of failures; None if the question leaves them out, or nothing trains."""
    if question.keys.failures == "none":
        return None
    from hwsim.failures import load_failures

    return load_failures(question.keys.failures, question.folder)


def _answer(searching: Searching, seconds: float) -> Answer:
    question, options = searching.question, searching.options
    feasible = [each for each in options.values() if each.is_feasible and each.how != "machine"]
    simulated_ones = [each for each in feasible if each.how == "simulation"]
    ordered = order(question, feasible)
    if simulated_ones:  # the best is simulated: estimates stand behind those that are
        first = order(question, simulated_ones)
        ordered = first + [each for each in ordered if each.how != "simulation"]
    best = ordered[0] if ordered else None
    rejected = [Rejected(number, each.point.shown, each.reasons) for number, each in options.items() if each.reasons]
    path = kind_path(question)
    kinds: dict[object, Option] = {}
    if path is not None:
        for each in ordered:
            kinds.setdefault(kind_of(each, path), each)
    return Answer(
        question=question,
        best=best,
        options=tuple(ordered),
        frontier=frontier(question, ordered),
        of_each=tuple(kinds.values()),
        ratios={} if best is None else {each.point.number: against(question, each, best) for each in ordered[1:]},
        rejected=tuple(rejected),
        untried=tuple(each for each in options.values() if each.how == "machine" and each.is_feasible),
        points=len(options),
        plans=sum(each.tried for each in options.values()),
        simulations=searching.simulations,
        seconds=seconds,
        outlay=searching.screen.outlay,
    )
