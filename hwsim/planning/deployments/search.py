"""Search for the deployments on the frontier of throughput and latency, and for the fewest GPUs that meet the requirements.

    legal (divides, supported) -> weights and the longest request fit -> steady state in closed form -> simulation

All deployments that fit are estimated (`families.serving.steady_state`). An estimate becomes a simulation while it could extend
the frontier by more than 1 %. Its possible error is `slack`, and less once several plans were simulated: twice their largest
error. If the same GPUs were simulated with another load, the estimate is corrected by that simulation, and half the largest error
remains. The fewest replicas that meet the requirements are found by bisection: waiting times never grow with more replicas.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final

from hwsim.api import simulate
from hwsim.families.serving.results.errors import serving_intervals
from hwsim.families.serving.steady_state import KnownParts, SteadyService, SteadyState
from hwsim.families.serving.workload.placement import plan_service
from hwsim.planning.deployments.site import DeploymentSite
from hwsim.planning.deployments.space import Deployment, unit_workload
from hwsim.planning.question import Question
from hwsim.planning.requirements import Requirement
from hwsim.planning.variants import PlanPoint
from hwsim.records import dataclass
from hwsim.spec import Mistakes, resolve

RULES: Final = ("not legal", "do not fit", "worse by the estimate", "not simulated", "simulated")
KNOWN: Final = 0.02  # least error of an estimate that is corrected by a simulation of the same GPUs
ENOUGH: Final = 4  # simulated plans from whose errors those of other plans are inferred
SPREAD_GROUPS: Final = 2.5  # error of estimates with data-parallel attention, whose prompts are uneven, relative to others
SAME: Final = 0.01  # difference of two estimates of the same GPUs that are simulated once
GAIN: Final = 1.01  # smallest extension of the frontier that is worth a simulation
BEST_SHARE: Final = 0.6  # share of the simulations that look for the best before the frontier
SAMPLE: Final = 256  # requests of an estimate


@dataclass(frozen=True, slots=True)
class DeploymentNumbers:
    """The numbers of a deployment with a number of replicas.

    Args:
        per_gpu: output tokens/s per GPU.
        per_user: output tokens/s of a user after the first token: 1 / mean TPOT.
        values: latencies by measure (s).
        kv: largest share of the KV cache in use; None for an estimate.
        ranges: 90 % interval by measure, relative to the value.
        grows: the requests in flight grow: no steady state.
    """

    per_gpu: float
    per_user: float
    values: Mapping[str, float]
    kv: float | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    grows: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentOption:
    """A deployment, and the replicas of it that share the load."""

    site: DeploymentSite
    deployment: Deployment
    replicas: int

    @property
    def key(self) -> tuple[PlanPoint, Deployment, int]:
        """Key of the option."""
        return self.site.point, self.deployment, self.replicas

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.replicas * self.deployment.gpus


@dataclass
class DeploymentSearch:
    """A search among the deployments of one or several sites.

    Args:
        rows: simulated numbers of an earlier run, by their order.
        keep: function that saves a row.
    """

    question: Question
    sites: tuple[DeploymentSite, ...]
    rows: dict[int, Any] = field(default_factory=dict)
    keep: Callable[[int, Any], None] | None = None
    progress: Callable[[int, int], None] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    simulated: dict[Any, DeploymentNumbers] = field(default_factory=dict)
    options: dict[Any, DeploymentOption] = field(default_factory=dict)
    unfit: list[tuple[Deployment, str]] = field(default_factory=list)
    is_settled: bool = True  # the simulations sufficed to find the fewest GPUs
    open_count: int = 0  # estimates that could extend the frontier, when the simulations were used up
    _services: dict[Any, SteadyService] = field(default_factory=dict)
    _states: dict[Any, SteadyState | None] = field(default_factory=dict)
    _errors: dict[Any, list[tuple[float, dict[str, float]]]] = field(default_factory=dict)
    _same: defaultdict[Any, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        """Estimate all deployments, and simulate those that could be the best or on the frontier."""
        for site in self.sites:
            self._estimate(site)
        budget = self.question.keys.simulate
        if self.question.requirements and budget:
            self._seek(max(1, round(BEST_SHARE * budget)))
        while (following := self._following()) is not None:
            if len(self.simulated) >= budget:
                break
            self.play(following)
        self.open_count = sum(1 for option in self._fresh() if self._gain(option) > GAIN)
        self.counts["simulated"], self.counts["not simulated"] = len(self.simulated), self.open_count
        self.counts["worse by the estimate"] = len(self.options) - len(self.simulated) - self.open_count

    # ---- estimates ----

    def _estimate(self, site: DeploymentSite) -> None:
        grid, known = site.replica_counts, KnownParts()
        per_shape = len(site.space.budgets) * len(site.space.dtypes) * len(grid)
        self.counts["not legal"] += per_shape * sum(not is_legal for _, is_legal in site.space.shapes())
        for deployment in site.space.all():
            mistakes = Mistakes()
            tree = resolve(unit_workload(site.workload, deployment, site.gpus, 1, SAMPLE), mistakes, kind="workload").get("infer")
            plan = None if tree is None else plan_service(tree, site.machine, mistakes)
            if plan is None:
                self.counts["do not fit"] += len(grid)
                self.unfit += [(deployment, mistake.message) for mistake in list(mistakes)[:1]]
                continue
            self._services[site.point, deployment] = SteadyService(plan, site.machine, known)
            for replicas in grid or self._rates(site, deployment):
                option = DeploymentOption(site, deployment, replicas)
                self.options[option.key] = option
                self.state(option)

    def _rates(self, site: DeploymentSite, deployment: Deployment) -> Iterator[int]:
        """Yield replica counts, from the fewest that sustain the arrival rate to one replica per concurrent request."""
        replicas, service = 1, self._services[site.point, deployment]
        while service.at_rate(site.per_s / replicas) is None:
            replicas *= 2
        low = replicas // 2
        while replicas - low > 1:
            middle = (low + replicas) // 2
            low, replicas = (middle, replicas) if service.at_rate(site.per_s / middle) is None else (low, middle)
        while True:
            yield replicas
            state = service.at_rate(site.per_s / replicas)
            output = 0.0 if state is None else state.tokens_per_s / state.requests_per_s
            if state is None or site.per_s / replicas * (state.ttft_s + output * state.tpot_s) < 1.0:
                return
            replicas = max(replicas + 1, round(replicas * math.sqrt(2.0)))

    def state(self, option: DeploymentOption) -> SteadyState | None:
        """Return the steady state of a replica; None if it does not complete its share of the requests."""
        key = option.key
        if key not in self._states:
            service, site = self._services[key[:2]], option.site
            users = site.users_of(option.replicas)
            self._states[key] = service.with_users(users) if users else service.at_rate(site.per_s / option.replicas)
        return self._states[key]

    def estimated(self, option: DeploymentOption, slack: float | None = None) -> DeploymentNumbers | None:
        """Return the estimate of an option, corrected by the nearest simulation and better by its possible error; None: overload.

        Args:
            slack: error that is assumed (default: by what was simulated).
        """
        plain = self._plain(option)
        if plain is None:
            return None
        known = self._errors.get((option.site.point, *option.deployment.kin))
        ratio = self._least_errors
        if known:
            load = _load(option)
            _, ratio = min(known, key=lambda pair: abs(math.log(pair[0] / load)))
        better = 1.0 + (self._slack(option, is_known=bool(known)) if slack is None else slack)
        throughput = plain.per_gpu if option.site.per_s else plain.per_gpu * ratio.get("per_gpu", 1.0) * better
        return DeploymentNumbers(
            throughput,
            plain.per_user * ratio.get("per_user", 1.0) * better,
            {name: value * ratio.get(name, 1.0) / better for name, value in plain.values.items()},
        )

    @property
    def _least_errors(self) -> Mapping[str, float]:
        """Smallest simulated / estimated latency of all plans: percentiles are that much longer than the mean."""
        every = [errors for pairs in self._errors.values() for _, errors in pairs]
        return {name: min(errors[name] for errors in every if name in errors) for name in self._measures if every}

    def _slack(self, option: DeploymentOption, *, is_known: bool) -> float:
        """Return the possible error of an estimate, from the errors of the estimates that were simulated."""
        errors = [pair[1][name] for pairs in self._errors.values() for pair in pairs for name in ("per_gpu", "per_user")]
        largest = max((abs(math.log(error)) for error in errors), default=0.0)
        if is_known:
            return max(KNOWN, largest / 2.0)
        wide = SPREAD_GROUPS if option.deployment.shape.groups > 1 else 1.0
        slack = wide * self.question.keys.slack
        return slack if len(self._errors) < ENOUGH else min(slack, max(KNOWN, wide * largest * 2.0))

    def _plain(self, option: DeploymentOption) -> DeploymentNumbers | None:
        """Return the estimate of an option without corrections; all percentiles equal the mean."""
        state = self.state(option)
        if state is None:
            return None
        output = state.tokens_per_s / state.requests_per_s
        means = {"ttft": state.ttft_s, "tpot": state.tpot_s, "latency": state.ttft_s + (output - 1.0) * state.tpot_s}
        values = {name: means[name.partition("_")[0]] for name in self._measures}
        return DeploymentNumbers(state.tokens_per_s / option.deployment.gpus, 1.0 / state.tpot_s, values)

    @cached_property
    def _measures(self) -> tuple[str, ...]:
        names = [limit.quantity.measure.name for limit in self.question.requirements]
        return tuple(dict.fromkeys([*names, "ttft_p95"]))

    @property
    def delay(self) -> str:
        """Measure of the time to first token: the required one, else its 95th percentile."""
        return next((name for name in self._measures if name.startswith("ttft")), "ttft_p95")

    # ---- simulations ----

    def play(self, option: DeploymentOption) -> DeploymentNumbers:
        """Return the simulation of an option, from the journal if an earlier run has it."""
        if option.key in self.simulated:
            return self.simulated[option.key]
        number = len(self.simulated)
        if number not in self.rows:
            self.rows[number] = _played(option)
            if self.keep is not None:
                self.keep(number, self.rows[number])
        row = self.rows[number]
        found = DeploymentNumbers(**{**row, "ranges": {name: (low, high) for name, (low, high) in row["ranges"].items()}})
        self.options[option.key] = option
        self.simulated[option.key] = found
        plain = self._plain(option)
        if plain is not None and not found.grows:
            errors = {name: found.values[name] / value for name, value in plain.values.items() if name in found.values}
            errors |= {"per_gpu": found.per_gpu / plain.per_gpu, "per_user": found.per_user / plain.per_user}
            self._errors.setdefault((option.site.point, *option.deployment.kin), []).append((_load(option), errors))
            group = option.site.point, option.deployment.kin, option.replicas, option.gpus
            self._same[group].append((plain.per_gpu, plain.per_user))
        if self.progress is not None:
            self.progress(len(self.simulated), self.question.keys.simulate)
        return found

    def numbers(self, option: DeploymentOption) -> DeploymentNumbers | None:
        """Return the simulated numbers of an option, else its corrected estimate."""
        return self.simulated.get(option.key) or self.estimated(option, 0.0)

    # ---- frontier ----

    def _fresh(self) -> Iterator[DeploymentOption]:
        return (option for key, option in self.options.items() if key not in self.simulated)

    def _following(self) -> DeploymentOption | None:
        """Return the estimate that could extend the frontier most."""
        gains = [(self._gain(option), -number, option) for number, option in enumerate(self._fresh())]
        gain, _, option = max(gains, key=lambda entry: entry[:2], default=(0.0, 0, None))
        return option if gain > GAIN else None

    def _gain(self, option: DeploymentOption) -> float:
        """Return by which factor an estimate could be beyond the frontier of the simulations; 1 if an equal one was simulated."""
        likely, plain = self.estimated(option), self._plain(option)
        if likely is None or plain is None:
            return 0.0
        group = option.site.point, option.deployment.kin, option.replicas, option.gpus
        if any(
            abs(plain.per_gpu / per_gpu - 1.0) + abs(plain.per_user / per_user - 1.0) < SAME
            for per_gpu, per_user in self._same[group]
        ):
            return 1.0
        return min(
            (
                max(likely.per_gpu / found.per_gpu, likely.per_user / found.per_user)
                for found in self.simulated.values()
                if not found.grows
            ),
            default=math.inf,
        )

    # ---- fewest GPUs ----

    def _seek(self, budget: int) -> None:
        """Find the fewest GPUs that meet the requirements: the fewest replicas of each deployment that could be the best."""
        bounds = {key: [0, 0] for key in self._services}  # most replicas that miss a requirement, fewest that meet all
        sites = {site.point: site for site in self.sites}
        self.is_settled = False
        while True:
            best = min((high * key[1].gpus for key, (_, high) in bounds.items() if high), default=0)
            choices = list[tuple[int, int, Any, int, int, int]]()
            for key, (low, high) in bounds.items():
                least = self._fewest(sites[key[0]], key[1], low, None)
                if least is None or (high and least >= high) or (best and least * key[1].gpus >= best):
                    continue
                choices.append((least * key[1].gpus, len(choices), key, least, low, high))
            if not choices:
                self.is_settled = True
            if self.is_settled or len(self.simulated) >= budget:
                return
            _, _, key, least, low, high = min(choices)
            likely = self._fewest(sites[key[0]], key[1], low, 0.0) or least
            trial = max(least, min(likely, high - 1) if high else likely)
            if high and high - least > 2 and trial in (least, high - 1):
                trial = (least + high - 1) // 2
            option = DeploymentOption(sites[key[0]], key[1], trial)
            if self.meets(self.play(option)):
                bounds[key][1] = trial
            else:
                bounds[key][0] = max(trial, low)

    def _fewest(self, site: DeploymentSite, deployment: Deployment, low: int, slack: float | None) -> int | None:
        """Return the fewest replicas above `low` whose estimate meets the requirements; None if no number does."""

        def holds(replicas: int) -> bool:
            option = DeploymentOption(site, deployment, replicas)
            known = bool(self._errors.get((site.point, *deployment.kin)))
            found = self.estimated(option, 2.0 * self._slack(option, is_known=known) if slack is None else slack)
            return found is not None and self.meets(found)

        high, most = low + 1, site.most
        if high > most:
            return None
        while not holds(high):
            if high >= most:
                return None
            low, high = high, min(most, 2 * high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def meets(self, found: DeploymentNumbers) -> bool:
        """Whether numbers meet all requirements."""
        return not found.grows and not any(miss(limit, found) for limit in self.question.requirements)

    # ---- answer ----

    def frontiers(self) -> tuple[set[Any], set[Any]]:
        """Return the keys of the options that no other beats in tokens/s per GPU and in tokens/s per user, and in TTFT."""
        rows = [(option, found) for option in self.options.values() if (found := self.numbers(option)) and not found.grows]
        return (
            {option.key for option in _pareto(rows, lambda found: found.per_user)},
            {
                option.key
                for option in _pareto(rows, lambda found: -found.values.get(self.delay, math.inf))
                if option.key in self.simulated
            },
        )

    def best(self) -> DeploymentOption | None:
        """Return the fewest GPUs that meet the requirements; without requirements, the most tokens/s per GPU."""
        rows = [(option, found) for key, option in self.options.items() if (found := self.simulated.get(key)) is not None]
        rows = rows or [(option, found) for option in self.options.values() if (found := self.estimated(option, 0.0)) is not None]
        held = [(option, found) for option, found in rows if self.meets(found)]
        if not self.question.requirements and not any(site.per_s for site in self.sites):
            return max(held, key=lambda row: row[1].per_gpu, default=(None, None))[0]
        return min(held, key=lambda row: (row[0].gpus, -row[1].per_user), default=(None, None))[0]


def miss(limit: Requirement, found: DeploymentNumbers) -> float:
    """Return by which part a requirement is missed; 0 if it is met."""
    value = found.values.get(limit.quantity.measure.name)
    return math.inf if value is None else limit.excess(value)


def _load(option: DeploymentOption) -> float:
    """Return the load of a decode replica, as a share of all."""
    return 1.0 / (option.replicas * option.deployment.decodes)


Row = tuple[DeploymentOption, DeploymentNumbers]


def _pareto(rows: Sequence[Row], better: Callable[[DeploymentNumbers], float]) -> Iterable[DeploymentOption]:
    """Yield the options on the Pareto frontier of throughput per GPU and another quantity; both are maximized."""
    most = -math.inf
    for option, found in sorted(rows, key=lambda row: (-row[1].per_gpu, -better(row[1]), row[0].gpus)):
        if better(found) > most:
            most = better(found)
            yield option


def _played(option: DeploymentOption) -> dict[str, Any]:
    """Simulate a replica with its share of the load."""
    site, replicas, deployment = option.site, option.replicas, option.deployment
    count = site.requests_of(replicas, is_clocked=deployment.prefill is not None or deployment.shape.pp > 1)
    tree = unit_workload(site.workload, deployment, site.gpus, replicas, count)
    run = simulate(site.machine, tree, expect=False, interval=False)
    (found,) = run.told["infer"].found
    output, users = found.output_tokens / found.requests, site.users_of(replicas)
    rate = users / (found.latency.mean + site.think_s) if users else site.per_s / replicas
    tpot = found.latency.mean if found.each_token is None else found.each_token.mean
    return {
        "per_gpu": rate * output / deployment.gpus,
        "per_user": 1.0 / tpot,
        "values": {name: value for name, value in found.values().items() if name.startswith(("ttft", "tpot", "latency"))},
        "kv": found.kv_cache_peak,
        "ranges": {name: [sure.low, sure.high] for name, sure in serving_intervals(found).items()},
        "grows": bool(found.overloaded) and not users,
    }
