"""Points in closed form: what is cheap comes first, and every constraint that is known to be broken becomes a reason.

machine can be built -> its nodes, power and price -> plans that divide, and fit -> time of the step -> failures -> cost
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from hwsim.costs.amount import Amount
from hwsim.devices import CannotCompute, Gpu
from hwsim.failures import Failures, NoProgress
from hwsim.models import Cluster, NotAlike, Step, WrongPlan
from hwsim.models.plan_words import assumed, plan_text
from hwsim.planning.axes import Axis
from hwsim.planning.judging import judged
from hwsim.planning.options import Option, keyed
from hwsim.planning.outlay import Facts, Outlay
from hwsim.planning.paying import paid
from hwsim.planning.question import Question, ends, train_of
from hwsim.planning.reasons import Reason
from hwsim.planning.storing import Stored, stored
from hwsim.planning.trainings import Training, Whole, computing, memory_reason, plan_reason, settings_of, whole
from hwsim.planning.variants import Point, Unbuilt, Variants, counted, in_a_line, scaled
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, resolve
from hwsim.views.estimate.find import of_step

NEAR = 0.03  # part of a limit within which a machine between two others is built
HOUR = 3600.0


@dataclass(slots=True)
class Screen:
    """Closed forms of the points of a question."""

    question: Question
    variants: Variants
    outlay: Outlay
    failures: Failures | None
    _trainings: dict[tuple[str, int], Training | None] = field(default_factory=dict)
    _strange: dict[str, str] = field(default_factory=dict)
    _kept: list[Tree] = field(default_factory=list)

    @property
    def margin(self) -> float:
        """Part of the memory that stays free, by the requirements."""
        bounds = [requirement.high for requirement in self.question.requirements if requirement.quantity.measure.name == "memory"]
        return max(0.0, 1.0 - min(bounds, default=1.0))

    def of(self, point: Point) -> Option:
        """A point with what closed forms know of it."""
        try:
            machine, workloads = self.variants.trees(point)
            invented = self._invented(machine, self.variants.key(point))
            if invented:
                return Option(point, "machine", {}, (Reason("library", invented, lift="unchanged parts of the library"),))
            cluster, facts = self._machine(point)
            trainings = {name: self.training(point, name) for name in workloads}
        except Unbuilt as error:
            return Option(point, "machine", {}, (Reason("machine", str(error)),))
        except SpecError as error:
            return Option(point, "machine", {}, (Reason("workload", in_a_line(error.mistakes)),))
        numbers = self.of_machine(facts, point)
        option = Option(point, "machine", numbers, tuple(self._unpriced(facts)))
        if any(trainings.values()):
            option = self._trained(option, cluster, facts, trainings)
        if any(made is None and ends(workloads[name]) for name, made in trainings.items()):
            return judged(self.question, option)  # only a run tells how long it is used
        option = paid(
            self.question, self.outlay, option, facts, busy=None if all(trainings.values()) else 0.0
        )  # at rest: the least it can be
        return judged(self.question, option)

    # ---- machines ----

    def _invented(self, machine: Tree, key: str) -> str:
        """The first part or number of a machine that is not of the library, where the question allows no other."""
        if not self.question.keys.strict_library:
            return ""
        if key not in self._strange:
            from hwsim.machine.strict import invented

            resolved = resolve(machine, Mistakes(), kind="machine")
            self._strange[key] = next((each.message for each in invented(resolved)), "")
        return self._strange[key]

    def _machine(self, point: Point) -> tuple[Cluster | None, Facts]:
        """The cluster and the facts of a machine; between two of a count where nothing else differs."""
        axis = self._between(point)
        if axis is None:
            return self.exact(point)
        low, high, value = max(2, axis.ends[0]), axis.ends[1], point.get(axis.path)
        assert isinstance(value, int)
        (first, at_low), (last, at_high) = (self.exact(with_value(point, axis.path, end)) for end in (low, high))
        per_step = scaled(first, last, low, high) if first is not None and last is not None else 0
        if not per_step or first is None:
            return self.exact(point)
        facts = at_low.between(at_high, (value - low) / (high - low))
        if self._is_close(facts, point):
            return replace(first, gpus=per_step * value), self.exact(point)[1]
        return replace(first, gpus=per_step * value), facts

    def _between(self, point: Point) -> Axis | None:
        """The count whose ends a machine lies between; None if it is built itself."""
        axis = next((each for each in self.question.varied.axes if counted(each) and self._counts(point, each)), None)
        value = None if axis is None else point.get(axis.path)
        if axis is None or not isinstance(value, int):
            return None
        low, high = max(2, axis.ends[0]), axis.ends[1]
        return axis if low <= value <= high and low < high else None

    def _counts(self, point: Point, axis: Axis) -> bool:
        values = [(path, value) for path, value in point.values if path != axis.path]
        return self.variants.key(point) != self.variants.key(Point(point.number, point.machine, tuple(values)))

    def exact(self, point: Point) -> tuple[Cluster | None, Facts]:
        """The same of the machine itself.

        Raises:
            Unbuilt: it cannot be.
        """
        key = self.variants.key(point)
        machine = self.variants.of_point(point)
        try:
            cluster: Cluster | None = self.variants.cluster(machine, key)
        except NotAlike:
            cluster = None
        return cluster, self.outlay.facts(key, lambda: machine)

    def _is_close(self, facts: Facts, point: Point) -> bool:
        """Whether a limit is so near that the machine between two others has to be built."""
        numbers = self.of_machine(facts, point)
        for requirement in self.question.requirements:
            value = numbers.get(requirement.quantity.key)
            if value is not None and abs(value.value - requirement.bound) <= NEAR * requirement.bound:
                return True
        return False

    def of_machine(self, facts: Facts, point: Point) -> dict[str, Amount]:
        """Numbers of the machines of a point."""
        many = point.replicas
        numbers = {"nodes": Amount.exact(float(many * facts.nodes)), "gpus": Amount.exact(float(many * facts.gpus))}
        if facts.power is not None:
            numbers["power"] = facts.power * many
        if facts.capacity:
            numbers["capacity"] = Amount.exact(many * facts.capacity)
        price = self.outlay.price(facts)
        if price is not None:
            numbers["price"] = price * many
        return numbers

    def _unpriced(self, facts: Facts) -> Iterator[Reason]:
        names = self.outlay.lacking(facts)
        if names:
            rent = {"purchase": "to buy", "on_demand": "by the hour", "reserved": "for a term"}[self.question.keys.rent]
            who = f" of {self.question.keys.provider}" if self.question.keys.provider else ""
            listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
            yield Reason("price", f"{listed} has no price{who} {rent}", lift="prices: FILE, a price list of your own")

    # ---- trainings ----

    def training(self, point: Point, name: str) -> Training | None:
        """The training that a workload is; None if it is none that closed forms know.

        Raises:
            Unbuilt: a value leads nowhere; SpecError: the workload has mistakes.
        """
        tree = self.variants.trees(point)[1][name]
        key = name, id(tree)
        if key not in self._trainings:
            self._kept.append(tree)
            mistakes = Mistakes()
            train = train_of(tree, mistakes)
            mistakes.raise_if_any()
            made = None if train is None else Training(name, tree, self.question)
            self._trainings[key] = made if made is not None and made.is_transformer() else None
        return self._trainings[key]

    def _trained(self, option: Option, cluster: Cluster | None, facts: Facts, trainings: Mapping[str, Training | None]) -> Option:
        for name, training in trainings.items():
            if training is None:
                continue
            if cluster is None:
                reason = Reason("machine", f"no closed form: the GPUs are not a homogeneous cluster {name}".strip())
                return replace(option, reasons=(*option.reasons, reason))
            option = self._with_plan(option, cluster, facts, name, training)
        return option

    def _with_plan(self, option: Option, cluster: Cluster, facts: Facts, name: str, training: Training) -> Option:
        size = cluster.gpu.memory.size
        try:
            plans = training.best(cluster, self.margin)
        except WrongPlan as error:
            return replace(option, reasons=(*option.reasons, plan_reason(error)))
        except CannotCompute as error:
            return replace(option, reasons=(*option.reasons, Reason("gpu", error.message, lift=error.hint or "")))
        except SpecError as error:
            return replace(option, reasons=(*option.reasons, Reason("workload", in_a_line(error.mistakes))))
        option = replace(option, tried=option.tried + plans.tried, left={**option.left, **plans.left})
        if not plans.steps:
            reason = memory_reason(plans, size or float("inf"), self.margin)
            share = {} if plans.nearest is None or size is None else {keyed(name, "memory"): Amount.exact(reason.needed or 0.0)}
            return replace(option, reasons=(*option.reasons, reason), numbers={**option.numbers, **share})
        others = tuple(step for step in plans.steps[1:] if self._is_near(step, plans.steps[0]))
        return self._stepped(option, cluster, facts, name, training, (plans.steps[0], *others))

    def _is_near(self, step: Step, best: Step) -> bool:
        """Whether a simulation might turn two steps round."""
        return step.seconds / step.laid.tokens <= (1.0 + self.question.keys.slack) * best.seconds / best.laid.tokens

    def _stepped(
        self,
        option: Option,
        cluster: Cluster,
        facts: Facts,
        name: str,
        training: Training,
        steps: tuple[Step, ...],
        ratio: float = 1.0,
    ) -> Option:
        """The option with the first of some steps, and all that follows from it.

        ratio: simulated over estimated step, at the nearest option that was simulated.
        """
        step, size = steps[0], cluster.gpu.memory.size
        sure = of_step(step, cluster, training.stated(cluster.gpu).framework)
        option = replace(
            option,
            how="estimate",
            numbers={**option.numbers, **self.of_step(step, name, size, sure.half, ratio)},
            steps={**option.steps, name: steps},
            intervals={**option.intervals, name: sure},
            plans={**option.plans, name: plan_text(step.laid, short=True) + assumed(step.laid)},
            settings={**option.settings, **settings_of(step.laid, name)},
            ratio=ratio,
        )
        return self.with_whole(option, facts, name, training, cluster.gpu, step.laid.tokens, ratio * step.seconds, sure.half)

    def another(self, option: Option, name: str, place: int = 0, ratio: float = 1.0) -> Option:
        """The option in closed form with another of its plans, or with a step that takes longer by a ratio."""
        cluster, facts = self._machine(option.point)
        training = self.training(option.point, name)
        if cluster is None or training is None:
            return option
        numbers = self.of_machine(facts, option.point)
        steps = option.steps[name][place:]
        fresh = Option(
            option.point, "estimate", numbers, steps=option.steps, tried=option.tried, left=option.left, rank=option.rank + place
        )
        return judged(
            self.question,
            paid(self.question, self.outlay, self._stepped(fresh, cluster, facts, name, training, steps, ratio), facts),
        )

    def of_step(self, step: Step, name: str, size: float | None, half: float, ratio: float = 1.0) -> dict[str, Amount]:
        """Numbers of a step."""
        numbers = {
            "step": Amount.exact(ratio * step.seconds).wider(half),
            "mfu": Amount.exact(step.mfu / ratio).wider(half),
            "tokens_per_s": Amount.exact(step.tokens_per_second / ratio).wider(half),
            "busy": Amount.exact(computing(step) / max(1.0, ratio)),
        }
        if size is not None:
            numbers["memory"] = Amount.within(step.memory.total / size, step.memory.spread)
        return {keyed(name, key): value for key, value in numbers.items()}

    def with_whole(
        self, option: Option, facts: Facts, name: str, training: Training, gpu: Gpu, count: float, seconds: float, half: float
    ) -> Option:
        """The option with the time of its whole training, failures among it.

        Args:
            count, seconds: tokens and time of a step.
        """
        total = training.total(gpu)
        if not total:
            return option
        ideal = total / count * seconds
        counts = {"gpu": facts.gpus * option.point.replicas, "node": facts.nodes * option.point.replicas}

        try:
            failures = self.failures
            if self.question.keys.failures is None:
                failures = training.failures(gpu) or failures
            trained = whole(ideal, counts, failures, self._stored(option, facts, name, training, gpu, seconds))
        except NoProgress as error:
            return replace(option, reasons=(*option.reasons, Reason("goodput", error.message, lift=error.hint or "")))
        except SpecError as error:
            return replace(option, reasons=(*option.reasons, Reason("workload", in_a_line(error.mistakes))))
        numbers = whole_numbers(trained, facts.gpus, half, self._percentiles(name))
        numbers = {keyed(name, key): value for key, value in numbers.items()}
        return replace(option, numbers={**option.numbers, **numbers}, wholes={**option.wholes, name: trained})

    def _stored(self, option: Option, facts: Facts, name: str, training: Training, gpu: Gpu, seconds: float) -> Stored:
        """The time of checkpoints of a training; the machine need not be built if its neighbours are."""
        point, axis = option.point, self._between(option.point)
        ends = () if axis is None else (max(2, axis.ends[0]), axis.ends[1])
        points = [point] if axis is None else [with_value(point, axis.path, end) for end in ends]
        machines = [self.variants.of_point(each) for each in points]
        keys = training.stated(gpu).keys
        return stored(keys, option.steps[name][0].laid, machines, facts.nodes, seconds, self.question.keys.storage)

    def _percentiles(self, name: str) -> tuple[int, ...]:
        asked = [each for each in self.question.asked if each.workload == name and each.percentile is not None]
        return tuple(dict.fromkeys(each.percentile for each in asked if each.percentile is not None))


def with_value(point: Point, path: str, value: object) -> Point:
    """The point with another value of a path."""
    return Point(point.number, point.machine, tuple((name, value if name == path else each) for name, each in point.values))


def whole_numbers(training: Whole, gpus: int, half: float, percentiles: tuple[int, ...]) -> dict[str, Amount]:
    """Numbers of a whole training.

    half: error of its time, half as a logarithm.
    """
    numbers = {"training": Amount.exact(training.mean_s), "gpu_hours": Amount.exact(training.mean_s * gpus)}
    for level in percentiles:
        numbers[f"training p{level}"] = Amount.exact(training.percentile(level))
        numbers[f"gpu_hours p{level}"] = Amount.exact(training.percentile(level) * gpus)
    good = training.good
    if good is not None:
        unsure = Amount(1.0, good.share / good.high, good.share / good.low)
        numbers = {name: value.of(unsure) for name, value in numbers.items()}
    numbers = {name: value.wider(half) for name, value in numbers.items()}
    if good is not None:
        numbers["goodput"] = Amount(good.share, good.low, good.high)
    return numbers
