"""Screen points in closed form: cheap checks first; each violated constraint becomes a reason for rejection.

build the machine -> nodes, power and price -> parallel plans that divide and fit -> step time -> failures -> cost
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from hwsim.costs.amount import Amount
from hwsim.devices import CannotCompute, Gpu
from hwsim.failures import Failures, NoProgress
from hwsim.models import Cluster, TrainingStep, UnequalCluster, WrongPlan
from hwsim.models.cluster import FEW
from hwsim.models.plan_text import assumed_sequence_text, plan_text
from hwsim.planning.axes import PlanAxis
from hwsim.planning.checkpoint_storage import CheckpointTimes, checkpoint_storage_times
from hwsim.planning.option_bill import with_bill
from hwsim.planning.options import PlanOption, option_key
from hwsim.planning.outlay import OptionOutlay, Outlay
from hwsim.planning.question import Question, has_stated_length, train_of
from hwsim.planning.reasons import Reason
from hwsim.planning.requirement_checks import judge_requirements
from hwsim.planning.training_screen import (
    TrainingScreen,
    TrainingTotal,
    computing_share,
    memory_reason,
    plan_reason,
    settings_of,
    training_total,
)
from hwsim.planning.variants import PlanPoint, Unbuilt, Variants, gpus_per_unit, is_interpolated, on_one_line
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, resolve
from hwsim.views.estimate.find import step_interval

NEAR_FACTOR = 0.03  # relative distance to a limit within which an interpolated machine is built
HOUR = 3600.0


@dataclass(slots=True)
class Screening:
    """The closed forms of the points of a question."""

    question: Question
    variants: Variants
    outlay: Outlay
    failures: Failures | None
    built: set[int] = field(default_factory=set)  # numbers of the points whose machine is not interpolated
    _trainings: dict[tuple[str, int], TrainingScreen | None] = field(default_factory=dict)
    _strange: dict[str, str] = field(default_factory=dict)
    _kept: list[Tree] = field(default_factory=list)

    @property
    def margin(self) -> float:
        """Share of GPU memory that must stay free, by the requirements."""
        bounds = [requirement.high for requirement in self.question.requirements if requirement.quantity.measure.name == "memory"]
        return max(0.0, 1.0 - min(bounds, default=1.0))

    def of(self, point: PlanPoint) -> PlanOption:
        """Return the option of a point, evaluated in closed form."""
        try:
            machine, workloads = self.variants.trees(point)
            invented = self._invented(machine, self.variants.key(point))
            if invented:
                return PlanOption(point, "machine", {}, (Reason("library", invented, lift="unchanged parts of the library"),))
            cluster, facts = self._machine(point)
            trainings = {name: self.training(point, name) for name in workloads}
        except Unbuilt as error:
            return PlanOption(point, "machine", {}, (Reason("machine", str(error)),))
        except SpecError as error:
            return PlanOption(point, "machine", {}, (Reason("workload", on_one_line(error.mistakes)),))
        numbers = self.of_machine(facts, point)
        option = PlanOption(point, "machine", numbers, tuple(self._unpriced(facts)))
        if any(trainings.values()):
            option = self._trained(option, cluster, facts, trainings)
        if any(made is None and has_stated_length(workloads[name]) for name, made in trainings.items()):
            return judge_requirements(self.question, option)  # only a run tells how long it is used
        option = with_bill(
            self.question, self.outlay, option, facts, busy=None if all(trainings.values()) else 0.0
        )  # at rest: the least it can be
        return judge_requirements(self.question, option)

    # ---- machines ----

    def _invented(self, machine: Tree, key: str) -> str:
        """Return the first part or number outside the library, for `strict_library`; "" if there is none."""
        if not self.question.keys.strict_library:
            return ""
        if key not in self._strange:
            from hwsim.machine.strict import values_outside_library

            resolved = resolve(machine, Mistakes(), kind="machine")
            self._strange[key] = next((mistake.message for mistake in values_outside_library(resolved)), "")
        return self._strange[key]

    def interpolates(self, point: PlanPoint) -> bool:
        """Return whether the machine of a point is interpolated instead of built."""
        return point.number not in self.built and self._between(point) is not None

    def _machine(self, point: PlanPoint) -> tuple[Cluster | None, OptionOutlay]:
        """Return cluster and numbers of a machine; interpolated between two machines that differ only in a count."""
        axis = self._between(point)
        if axis is None:
            return self.exact(point)
        low, high, value = max(2, axis.ends[0]), axis.ends[1], point.get(axis.path)
        assert isinstance(value, int)
        (first, at_low), (last, at_high) = (self.exact(with_value(point, axis.path, end)) for end in (low, high))
        per_step = gpus_per_unit(first, last, low, high) if first is not None and last is not None else 0
        is_built = point.number in self.built
        if not per_step or last is None or (is_built and per_step * value <= FEW):
            return self.exact(point)
        facts = at_low.between(at_high, (value - low) / (high - low))
        cluster = replace(last, gpus=per_step * value)  # of a large machine, exchanges between nodes have a closed form
        return cluster, self._facts(point) if is_built or self._is_close(facts, point) else facts

    def _facts(self, point: PlanPoint) -> OptionOutlay:
        return self.outlay.facts(self.variants.key(point), lambda: self.variants.of_point(point))

    def _between(self, point: PlanPoint) -> PlanAxis | None:
        """Return the count over which a machine is interpolated; None if it is built."""
        axis = next((knob for knob in self.question.varied.axes if is_interpolated(knob) and self._counts(point, knob)), None)
        value = None if axis is None else point.get(axis.path)
        if axis is None or not isinstance(value, int):
            return None
        low, high = max(2, axis.ends[0]), axis.ends[1]
        return axis if low <= value <= high and low < high else None

    def _counts(self, point: PlanPoint, axis: PlanAxis) -> bool:
        values = [(path, value) for path, value in point.values if path != axis.path]
        return self.variants.key(point) != self.variants.key(PlanPoint(point.number, point.machine, tuple(values)))

    def exact(self, point: PlanPoint) -> tuple[Cluster | None, OptionOutlay]:
        """Return cluster and numbers of the machine itself, built without interpolation.

        Raises:
            Unbuilt: the machine cannot be built.
        """
        machine = self.variants.of_point(point)
        try:
            cluster: Cluster | None = self.variants.cluster(machine, self.variants.key(point))
        except UnequalCluster:
            cluster = None
        return cluster, self._facts(point)

    def _is_close(self, facts: OptionOutlay, point: PlanPoint) -> bool:
        """Whether a number is so near its limit that the interpolated machine must be built."""
        numbers = self.of_machine(facts, point)
        for requirement in self.question.requirements:
            value = numbers.get(requirement.quantity.key)
            if value is not None and abs(value.value - requirement.bound) <= NEAR_FACTOR * requirement.bound:
                return True
        return False

    def of_machine(self, facts: OptionOutlay, point: PlanPoint) -> dict[str, Amount]:
        """Return the numbers of the machines of a point, all replicas included."""
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

    def _unpriced(self, facts: OptionOutlay) -> Iterator[Reason]:
        if text := self.outlay.lacking(facts):
            yield Reason("price", text, lift="prices: FILE, a price list of your own")

    # ---- trainings ----

    def training(self, point: PlanPoint, name: str) -> TrainingScreen | None:
        """Return the training of a workload; None if the closed form does not support it.

        Raises:
            Unbuilt: a path does not exist.
            SpecError: the workload has mistakes.
        """
        tree = self.variants.trees(point)[1][name]
        key = name, id(tree)
        if key not in self._trainings:
            self._kept.append(tree)
            mistakes = Mistakes()
            train = train_of(tree, mistakes)
            mistakes.raise_if_any()
            made = None if train is None else TrainingScreen(name, tree, self.question)
            self._trainings[key] = made if made is not None and made.is_transformer() else None
        return self._trainings[key]

    def _trained(
        self, option: PlanOption, cluster: Cluster | None, facts: OptionOutlay, trainings: Mapping[str, TrainingScreen | None]
    ) -> PlanOption:
        for name, training in trainings.items():
            if training is None:
                continue
            if cluster is None:
                reason = Reason("machine", f"no closed form: the GPUs are not a homogeneous cluster {name}".strip())
                return replace(option, reasons=(*option.reasons, reason))
            option = self._with_plan(option, cluster, facts, name, training)
        return option

    def _with_plan(
        self, option: PlanOption, cluster: Cluster, facts: OptionOutlay, name: str, training: TrainingScreen
    ) -> PlanOption:
        size = cluster.gpu.memory.size
        try:
            plans = training.best(cluster, self.margin)
        except WrongPlan as error:
            return replace(option, reasons=(*option.reasons, plan_reason(error)))
        except CannotCompute as error:
            return replace(option, reasons=(*option.reasons, Reason("gpu", error.message, lift=error.hint or "")))
        except SpecError as error:
            return replace(option, reasons=(*option.reasons, Reason("workload", on_one_line(error.mistakes))))
        option = replace(option, searched=option.searched + plans.counts, axes=tuple(dict.fromkeys((*option.axes, *plans.axes))))
        if not plans.steps:
            reason = memory_reason(plans, size or float("inf"), self.margin)
            share = (
                {} if plans.nearest is None or size is None else {option_key(name, "memory"): Amount.exact(reason.needed or 0.0)}
            )
            return replace(option, reasons=(*option.reasons, reason), numbers={**option.numbers, **share})
        others = tuple(step for step in plans.steps[1:] if self._is_near(step, plans.steps[0]))
        return self._stepped(option, cluster, facts, name, training, (plans.steps[0], *others))

    def _is_near(self, step: TrainingStep, best: TrainingStep) -> bool:
        """Whether a simulation could reverse the order of two steps."""
        return step.seconds / step.laid.tokens <= (1.0 + self.question.keys.slack) * best.seconds / best.laid.tokens

    def _stepped(
        self,
        option: PlanOption,
        cluster: Cluster,
        facts: OptionOutlay,
        name: str,
        training: TrainingScreen,
        steps: tuple[TrainingStep, ...],
        ratio: float = 1.0,
    ) -> PlanOption:
        """Return the option with the first of several steps, and the numbers that follow from it.

        ratio: simulated / estimated step time of the nearest simulated option.
        """
        step, size = steps[0], cluster.gpu.memory.size
        sure = step_interval(step, cluster, training.stated(cluster.gpu).framework)
        corrected = ratio * sure.factor
        option = replace(
            option,
            how="estimate",
            numbers={**option.numbers, **self.of_step(step, name, size, sure.half, corrected)},
            steps={**option.steps, name: steps},
            intervals={**option.intervals, name: sure},
            plans={**option.plans, name: self._plan_text(step, name)},
            settings={**option.settings, **settings_of(step.laid, name)},
            ratio=ratio,
        )
        return self.with_whole(option, facts, name, training, cluster.gpu, step.laid.tokens, corrected * step.seconds, sure.half)

    def _plan_text(self, step: TrainingStep, name: str) -> str:
        batches, plan = self.question.varied.batches or {}, step.laid.plan
        batch = f", global batch {plan.global_batch:,} ({step.laid.tokens:,} {step.laid.unit})"
        text = plan_text(step.laid, short=True) + (batch if name in batches else "")
        return text + assumed_sequence_text(step.laid)

    def another(self, option: PlanOption, name: str, place: int = 0, ratio: float = 1.0) -> PlanOption:
        """Return the option in closed form with another of its plans, or with a step time corrected by a ratio."""
        cluster, facts = self._machine(option.point)
        training = self.training(option.point, name)
        if cluster is None or training is None:
            return option
        numbers = self.of_machine(facts, option.point)
        steps = option.steps[name][place:]
        fresh = PlanOption(
            option.point,
            "estimate",
            numbers,
            steps=option.steps,
            searched=option.searched,
            axes=option.axes,
            rank=option.rank + place,
        )
        return judge_requirements(
            self.question,
            with_bill(self.question, self.outlay, self._stepped(fresh, cluster, facts, name, training, steps, ratio), facts),
        )

    def of_step(self, step: TrainingStep, name: str, size: float | None, half: float, ratio: float = 1.0) -> dict[str, Amount]:
        """Return the numbers of a training step."""
        numbers = {
            "step": Amount.exact(ratio * step.seconds).wider(half),
            "mfu": Amount.exact(step.mfu / ratio).wider(half),
            "tokens_per_s": Amount.exact(step.tokens_per_second / ratio).wider(half),
            "busy": Amount.exact(computing_share(step) / max(1.0, ratio)),
        }
        if size is not None:
            numbers["memory"] = Amount.within(step.memory.total / size, step.memory.spread)
        return {option_key(name, key): value for key, value in numbers.items()}

    def with_whole(
        self,
        option: PlanOption,
        facts: OptionOutlay,
        name: str,
        training: TrainingScreen,
        gpu: Gpu,
        count: float,
        seconds: float,
        half: float,
    ) -> PlanOption:
        """Return the option with the time of its entire training, including failures.

        Args:
            option: the option.
            facts: numbers of its machine.
            name: name of the workload.
            training: the training.
            gpu: its GPU.
            count: tokens per step.
            seconds: step time (seconds).
            half: half width of the 90 % interval of the step time's logarithm.
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
            trained = training_total(ideal, counts, failures, self._stored(option, facts, name, training, gpu, seconds))
        except NoProgress as error:
            return replace(option, reasons=(*option.reasons, Reason("goodput", error.message, lift=error.hint or "")))
        except SpecError as error:
            return replace(option, reasons=(*option.reasons, Reason("workload", on_one_line(error.mistakes))))
        numbers = whole_numbers(trained, facts.gpus, half, self._percentiles(name))
        numbers = {option_key(name, key): value for key, value in numbers.items()}
        return replace(option, numbers={**option.numbers, **numbers}, wholes={**option.wholes, name: trained})

    def _stored(
        self, option: PlanOption, facts: OptionOutlay, name: str, training: TrainingScreen, gpu: Gpu, seconds: float
    ) -> CheckpointTimes:
        """Return the checkpoint times of a training, interpolated if the machine is not built."""
        point, axis = option.point, self._between(option.point)
        ends = () if axis is None else (max(2, axis.ends[0]), axis.ends[1])
        points = [point] if axis is None else [with_value(point, axis.path, end) for end in ends]
        machines = [self.variants.of_point(plan_point) for plan_point in points]
        keys = training.stated(gpu).keys
        return checkpoint_storage_times(
            keys, option.steps[name][0].laid, machines, facts.nodes, seconds, self.question.keys.storage
        )

    def _percentiles(self, name: str) -> tuple[int, ...]:
        asked = [metric for metric in self.question.asked if metric.workload == name and metric.percentile is not None]
        return tuple(dict.fromkeys(metric.percentile for metric in asked if metric.percentile is not None))


def with_value(point: PlanPoint, path: str, value: object) -> PlanPoint:
    """Return the point with another value of a path."""
    return PlanPoint(point.number, point.machine, tuple((name, value if name == path else old) for name, old in point.values))


def whole_numbers(training: TrainingTotal, gpus: int, half: float, percentiles: tuple[int, ...]) -> dict[str, Amount]:
    """Return the numbers of an entire training.

    half: half width of the 90 % interval of the time's logarithm.
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
