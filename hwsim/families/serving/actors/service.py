"""A running service: simulated without a clock if it is alone on its devices, otherwise on the engine's clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.engine import Host, Waits
from hwsim.engine.issued import IssuedOps
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.costs import IterationCosts, Registry, ReplicaCollectives
from hwsim.families.serving.actors.iteration_times import Pace, Tables
from hwsim.families.serving.actors.router import Router, router_of
from hwsim.families.serving.actors.slots import Slots
from hwsim.families.serving.actors.static import StaticReplica
from hwsim.families.serving.actors.tiers import TIERS, OffloadTier, OffloadTiers
from hwsim.families.serving.actors.unclocked import ServiceOps, UnclockedService
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.results.measures import AdapterUse, Goal, TierUse
from hwsim.families.serving.results.statistics import ServiceStatistics, statistics
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families.serving.workload.source import RequestSource
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.records import dataclass, without_collector
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.serving.actors.autoscaler import Autoscaler
    from hwsim.families.serving.actors.kv_transfers import OffloadRoute
    from hwsim.families.serving.workload.autoscaler import Scale


@dataclass(slots=True)
class ModelService:
    """A service of one run: its replicas, and after the run the log of its requests.

    Args:
        plan: plan of the service.
        machine: machine of the run.
        slower: factor on the times of kernels and collectives, for the ends of an interval.
        log: log of the requests.
        copies: the replicas; one for each batch in flight of a pipeline.
    """

    plan: ServicePlan
    machine: Machine
    slower: float = 1.0
    log: Log = field(init=False)
    copies: list[ContinuousReplica | StaticReplica] = field(init=False)
    _exchanges: list[ReplicaCollectives] = field(default_factory=list)
    _pace: list[Pace] = field(default_factory=list)
    _router: Router = field(init=False)
    _lanes: Sequence[OffloadRoute] = ()
    _scaled: Autoscaler | None = None
    _prompts: Autoscaler | None = None  # autoscaler of the prefill replicas

    def __post_init__(self) -> None:
        plan = self.plan
        of_batch = [part for part in plan.parts for _ in part.batches]
        self.log = Log(len(of_batch), Goal.of(plan.keys.slo).limits_fs, self._warm_up)
        self.copies = [self._copy(number, part) for number, part in enumerate(of_batch)]
        takers = self.copies[0 if plan.prompts is None else len(plan.prompts.batches) :]
        self._router = router_of(plan.keys.router, takers, plan.keys.seed)
        if plan.offload is not None:
            from hwsim.families.serving.actors.kv_transfers import OffloadRoute

            kept = plan.offload
            self._lanes = [
                OffloadRoute(self.machine, host, kept.disk, gpus, kept.block_bytes, plan.name)
                for host, gpus in zip(kept.hosts, plan.copies, strict=True)
            ]
        if plan.scale is not None:
            self._scales(plan.scale)
        tables = self.machine.kept(Tables)
        for part in plan.parts:
            pace = pace_class(part)(part, tables, self.slower)
            exchanges = [ReplicaCollectives(part, self.machine, gpus, self.slower) for gpus in part.batches]
            self._exchanges += exchanges
            self._pace += [pace.also(exchange.seconds) for exchange in exchanges]

    def _copy(self, number: int, part: ServicePlan) -> ContinuousReplica | StaticReplica:
        """Return a replica of the service, or of one part of a disaggregated service."""
        kind: Callable[..., ContinuousReplica | StaticReplica] = StaticReplica if part.settings.padded else ContinuousReplica
        log, more = self.log, dict[str, Any]()
        if self.plan.prompts is not None:
            from hwsim.families.serving.actors.disaggregation import (
                DecodeReplica,
                PrefillLog,
                PrefillReplica,
                SpeculativeDecodeReplica,
            )

            kind, log = (DecodeReplica, log) if part is self.plan else (PrefillReplica, PrefillLog(log))
        if part.speculation is not None:
            from hwsim.families.serving.actors.speculation import SpeculativeReplica

            kind, more["guesses"] = (
                SpeculativeReplica if self.plan.prompts is None else SpeculativeDecodeReplica,
                part.speculation,
            )
        if part.offload is not None:
            more["lower"] = OffloadTiers(tuple(OffloadTier(*tier) for tier in zip(TIERS, part.offload.blocks, strict=False)))
        if part.adapters is not None and part.adapters.slots is not None:
            more["slots"] = Slots(part.adapters, part.adapters.slots)
        return kind(number, part.settings, part.blocks, log, part.held, **more)

    def _scales(self, scale: Scale) -> None:
        """Create the autoscaler, one for each part of a disaggregated service."""
        from hwsim.families.serving.actors.autoscaler import Autoscaler
        from hwsim.families.serving.actors.router import LeastRequestsRouter

        prompts, log, start = self.plan.prompts, self.log, self.plan.start
        prefill_count = 0 if prompts is None else len(prompts.batches)
        scaled = self._scaled = Autoscaler(scale, self._router, self.copies[prefill_count:], start)
        log.begun = scaled.begins
        if prompts is None:
            log.over = scaled.ended
        elif prompts.scale is not None:
            readers = self.copies[:prefill_count]
            self._prompts = Autoscaler(prompts.scale, LeastRequestsRouter(readers), readers, start)
            log.begun = self._prompts.begins

    def _used(self) -> AdapterUse | None:
        """Return the use of adapter slots, summed over replicas; None if all adapters are on the GPUs."""
        all_slots = [copy.slots for copy in self.copies if isinstance(copy, ContinuousReplica)]
        slots = [slot for slot in all_slots if slot is not None]
        if not slots:
            return None
        waits = [wait for slot in slots for wait in slot.waits]
        taken, loads = (sum(getattr(slot, name) for slot in slots) for name in ("taken", "loads"))  # integers
        adapters = slots[0].adapters
        times = (adapters.load if loads else 0, sum(waits), max(waits, default=0))  # integers
        load, waited, longest = (time / FEMTO for time in times)
        return AdapterUse(adapters.count, slots[0].places, taken, loads, load, len(waits), waited, longest)

    @property
    def _warm_up(self) -> int | None:
        """Warm-up time excluded from the statistics (fs); None: until the steady state that is found."""
        start = self.plan.keys.warm_up
        return None if isinstance(start, str) else ticks.femtoseconds(start)

    def actor(self, driver: Host) -> Waits:
        """Return the process that simulates the service in the time of a run."""
        plan, source = self.plan, self._source()
        given = self.copies, self._pace, self._costs(driver), plan.settings, source, self.log, plan.name, self._router
        if plan.prompts is None:
            from hwsim.families.serving.actors.clocked import ClockedService

            return ClockedService(*given, self._lanes, self._scaled).actor(driver)
        from hwsim.families.serving.actors.disaggregation import DisaggregatedService
        from hwsim.families.serving.actors.kv_transfers import KvTransferCosts

        gpus = (*plan.prompts.batches, *plan.batches)
        links = KvTransferCosts(self.machine, plan.token_bytes)
        return DisaggregatedService(*given, (), self._scaled, links=links, gpus=gpus, prompts=self._prompts).actor(driver)

    def graph(self, like: OpGraph) -> OpGraph:
        """Return the graph of its ops, with the capacities of `like`; valid only if the service has its devices to itself."""
        known = IssuedOps(like.capacities)
        written = ServiceOps(self._costs(known), known, self.plan.name)
        self.play(written)
        return written.graph(like)

    def play(self, written: ServiceOps | None = None) -> int:
        """Simulate the service without a clock; return the time of the last completion (fs)."""
        alone = UnclockedService(
            self.copies,
            self._pace,
            self.plan.settings,
            self._source(),
            self.log,
            self._router,
            written,
            self._lanes,
            self._scaled,
        )
        with without_collector():
            return alone.play()

    def is_alone(self, others: Iterable[Cost], drawn_by_services: Collection[str] = ()) -> bool:
        """Whether no other op or service uses its devices and links, and its replicas do not slow each other."""
        if self.plan.stages > 1 or self.plan.prompts is not None:
            return False
        names_of_replicas = [self._capacities(number) for number in range(len(self.copies))]
        own_names = set().union(*names_of_replicas)
        if not own_names.isdisjoint(drawn_by_services) or any(
            name in own_names for cost in others for name, _ in (*cost.demand.amounts, *cost.demand.holds)
        ):
            return False
        return sum(len(names) for names in names_of_replicas) == len(own_names) and self._lanes_alone(own_names, others)

    def _lanes_alone(self, drawn: Collection[str], others: Iterable[Cost]) -> bool:
        """Whether KV-cache loads have their links to themselves."""
        parts: dict[str, float] = {}
        for lane in self._lanes:
            for name, part in lane.drawn().items():
                parts[name] = parts.get(name, 0.0) + part
        shared = any(name in parts for cost in others for name, _ in (*cost.demand.amounts, *cost.demand.holds))
        return not shared and parts.keys().isdisjoint(drawn) and max(parts.values(), default=0.0) <= 1.0 + 1e-9

    def _capacities(self, number: int) -> set[str]:
        gpus = self._exchanges[number].gpus
        names = {f"{gpu}.{kind}" for gpu in gpus for kind in ("compute", "memory")}
        for rows in (1, 1 << 14):
            for _, (cost, _, _) in self._exchanges[number].of(rows):
                names |= {name for name, _ in (*cost.demand.amounts, *cost.demand.holds)}
        return names

    def demands(self) -> Iterable[str]:
        """Return the names of the capacities that the service uses."""
        return set().union(
            *(self._capacities(number) for number in range(len(self.copies))),
            *(lane.drawn() for lane in self._lanes),
        )

    def _costs(self, known: Registry) -> list[IterationCosts]:
        return [
            IterationCosts(pace.plan, pace, exchanges, known, exchanges.gpus, number % pace.plan.stages)
            for number, (pace, exchanges) in enumerate(zip(self._pace, self._exchanges, strict=True))
        ]

    def _source(self) -> RequestSource:
        requests = self.plan.requests
        return RequestSource(requests, self.plan.start, requests.clients)

    def _below(self, span: float) -> tuple[TierUse, ...]:
        """Return the use of each lower tier during `span` seconds, summed over replicas."""
        tiers_of_replicas = [
            copy.lower.tiers for copy in self.copies if isinstance(copy, ContinuousReplica) and copy.lower is not None
        ]
        block, uses = self.plan.settings.block, []
        for level, tiers in enumerate(zip(*tiers_of_replicas, strict=True)):
            writes = [lane.writing(level, tier.stored) / span for lane, tier in zip(self._lanes, tiers, strict=True)]
            size, most, stored, brought = (
                sum(getattr(tier, name) for tier in tiers) * block  # integers
                for name in ("blocks", "most", "stored", "brought")
            )
            uses.append(TierUse(tiers[0].name, size, most, stored, brought, math.fsum(writes) if level else max(writes)))
        return tuple(uses)

    def statistics(self) -> ServiceStatistics:
        """Return the statistics of its requests."""
        plan, log = self.plan, self.log
        risen = [scaled.risen(log.last_arrival) for scaled in (self._scaled, self._prompts) if scaled is not None]
        served = statistics(log, plan, self._exchanges[0].case, risen=max(risen, default=0))
        served = replace(served, tiers=self._below(served.duration_s), adapters=self._used())
        if self._scaled is not None:
            scaling = self._scaled.statistics(len(plan.copies[0]), log.last_end)
            there = scaling.paid_s / (len(plan.copies) * scaling.span_s)
            served = replace(served, scaling=scaling, kv_cache_mean=served.kv_cache_mean / there if there > 0 else 0.0)
        if self._prompts is not None:
            served = replace(served, prompt_scaling=self._prompts.statistics(served.prefill_gpus, log.last_end))
        return served


def pace_class(plan: ServicePlan) -> type[Pace]:
    """Return the class that computes the iteration times of a plan."""
    if plan.adapters is not None:
        from hwsim.families.serving.actors.adapters import AdapterPace, SpeculativeAdapterPace

        return AdapterPace if plan.speculation is None else SpeculativeAdapterPace
    if plan.speculation is not None:
        from hwsim.families.serving.actors.speculation import SpeculativePace

        return SpeculativePace
    return Pace
