"""Ops of a stage group as segments of a microbatch pass, and their costs.

    forward    embedding, layers, logits and loss
    backward   gradients of the logits; for each layer recomputation and gradients; gradients of the embedding

A pass is cut into pieces, between which gradients and weights are exchanged, and a piece into segments between the exchanges
within the stage group. If one data-parallel replica represents several, a collective within it also includes the traffic of the
represented replicas that share capacities with it. An exchange among replicas then uses the capacities of the simulated replicas,
and one capacity for all others with the same traffic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hwsim.demand import Cost, Term
from hwsim.devices import CannotCompute
from hwsim.families.training.workload.costs import COLLECTIVES, FLOWS, HOST, KERNELS, OpAmounts
from hwsim.families.training.workload.layout import DeviceLayout
from hwsim.families.training.workload.plan import PieceExchange, PlacedPlan, TrainingPlan
from hwsim.families.training.workload.schedule import MicrobatchPass
from hwsim.formats import precise
from hwsim.graph.builder import GraphBuilder
from hwsim.models import overlap as hiding
from hwsim.models.capacity_amounts import Names, NumberedCost
from hwsim.models.cluster import buckets
from hwsim.models.exchanges import BUCKETS, EXPOSED, CollectiveCosts, concurrent_cost, scaled
from hwsim.models.kernel_errors import kernel_errors
from hwsim.models.layer import Exchange, Item, Kernel, exchanges, launches
from hwsim.models.stages import PipelineStage
from hwsim.records import dataclass

Groups = tuple[tuple[tuple[Item, ...], float], ...]  # items, and the number of their repetitions
Recipe = Sequence[tuple[OpAmounts, Exchange | None]]  # amounts of kernels, each with the collective that follows


@dataclass(frozen=True, slots=True)
class PassSegment:
    """A part of a pass that is one op: kernels, or a collective that the stage group waits for, on a separate queue."""

    name: str
    kind: str
    cost: int
    queue: str = "compute"


def cut_pass(stage: PipelineStage, chunks: int, chunk: int, *, forward: bool, count: int) -> Iterator[Groups]:
    """Yield the pieces of a microbatch pass through one virtual stage.

    A piece consists of layers or a part of one; the first and the last piece also include embedding or logits.

    Args:
        stage: layers of the stage.
        chunks: virtual stages per stage.
        chunk: index of the virtual stage.
        forward: direction of the pass.
        count: number of pieces.
    """
    first = stage.layers.index(stage.blocks[0])
    ahead = [layer for layer in stage.layers[:first] if chunk == 0]
    behind = [layer for layer in stage.layers[first + len(stage.blocks) :] if chunk == chunks - 1]
    if forward:
        begin, end = [layer.forward for layer in ahead], [layer.forward for layer in behind]
    else:
        begin = [layer.backward for layer in reversed(behind)]
        end = [layer.backward for layer in reversed(ahead)]
    adding = [(stage.adding, 1.0 / chunks)] if stage.adding and not forward else []
    for number in range(count):
        yield (
            *(((outer, 1.0) for outer in begin) if number == 0 else ()),
            *_blocks(stage, chunks, chunk, forward=forward, part=(number, count)),
            *(((outer, 1.0) for outer in end) if number == count - 1 else ()),
            *(adding if number == count - 1 else ()),
        )


def _blocks(
    stage: PipelineStage, chunks: int, chunk: int, *, forward: bool, part: tuple[int, int]
) -> Iterator[tuple[tuple[Item, ...], float]]:
    """Yield (items, repetitions) of the runs of equal blocks in piece `part[0]` of `part[1]` of a virtual stage."""
    number, count = part
    items = {layer.name: layer.forward if forward else (*layer.recompute, *layer.backward) for layer in stage.blocks}
    if not stage.runs:
        yield items["block"], (stage.parts[chunk] if stage.parts else stage.blocks[0].times / chunks) / count
        return
    runs = stage.runs[chunk] if forward else tuple(reversed(stage.runs[chunk]))
    layers = sum(block_count for _, block_count in runs)  # integers
    begin, end, before = layers * number / count, layers * (number + 1) / count, 0
    for name, block_count in runs:
        inside = min(end, before + block_count) - max(begin, before)
        before += block_count
        if inside > 0:
            yield items[name], inside


def one_by_one(groups: Groups) -> Iterator[Item]:
    """Yield the items in order: complete layers, then a fraction of each item of the last one."""
    for items, times in groups:
        for _ in range(int(times)):
            yield from items
        if times % 1:
            yield from (replace(item, times=item.times * (times % 1)) for item in items)


def replica_exchanges(
    layout: DeviceLayout, stages: Sequence[PipelineStage], shards: int, exchanging: CollectiveCosts
) -> list[NumberedCost]:
    """Return the costs of the exchanges among all replicas of each stage."""
    exchanged = [
        (layout.across(number, shards if item.name == "weights" else layout.dp), item)
        for number, stage in enumerate(stages)
        for item in (*stage.gathered, *exchanges(stage.ending))
    ]
    exchanging.look_at([groups for groups, _ in exchanged])
    return [exchanging.numbered(groups, item.operation, item.size) for groups, item in exchanged]


def used_capacities(plan: TrainingPlan, exchanging: CollectiveCosts, replica: int) -> tuple[set[str], set[str]]:
    """Return (capacities that kernels, stage groups and sends of a replica use, capacities that its experts use)."""
    layout, names, shared = plan.layout, set[str](), set[str]()
    for number, stage in enumerate(plan.stages):
        inside = [item for layer in stage.blocks for item in (*layer.forward, *layer.backward)]
        for item in dict.fromkeys(exchanges(inside)):
            cost = exchanging.of(item, layout.exchanging(item.axis, number, replica))
            (shared if item.axis == "ep" else names).update(name for name, _ in cost.demand.amounts)
        group = layout.group(number, replica)
        for target in {number - 1, number + 1} & set(range(layout.pp)):
            pairs = tuple(zip(group, layout.group(target, replica), strict=True))
            names.update(name for name, _ in exchanging.cost(pairs, "send", stage.passed).demand.amounts)
        names.update(f"{name}.{part}" for name in group for part in ("compute", "memory"))
    return names, shared


class Segments:
    """The costs of the ops of one training, which are added to the builder."""

    def __init__(self, placed: PlacedPlan, pieces: PieceExchange, builder: GraphBuilder, *, by_layer: bool) -> None:
        """Prepare the costs; `by_layer`: one op for the kernels between two exchanges."""
        self.plan = plan = placed.plan
        self.layout, self.kinds, self.stages, self.pieces = plan.layout, plan.kinds, plan.stages, pieces
        self.represented, self.replicas = placed.represented, placed.represented.replicas
        self.inside: dict[int, float] = {}  # share of time in collectives, by index of the cost
        self._builder, self._exchanges, self._by_layer = builder, placed.exchanges, by_layer
        self._all_written = len(self.replicas) == self.layout.dp
        self._segments: dict[tuple[object, ...], tuple[PassSegment, ...]] = {}
        self._recipe_of, self._explained = functools.cache(self._recipe), functools.cache(self._derivation)
        self._parts: dict[tuple[int, float, str], tuple[Cost, Cost]] = {}  # (cost, part of it) by id of the cost
        self._indices: dict[int, int] = {}  # index in the builder, by id of such a part
        self.sending, self._across = functools.cache(self._sending), functools.cache(self.layout.across)

    def kernel(self, kernel: Kernel, group: Names, waiting: float = 0.0) -> int:
        """Return the index of the cost of a kernel on each GPU of a stage group, followed by `waiting` seconds of the host."""
        spent = self.kinds.run((kernel,), self.kinds.among(group))
        return self._builder.cost(self._cost(spent.and_then(OpAmounts({"host": waiting})) if waiting > 0 else spent, group))

    def gradients(self, stage: int) -> Exchange | None:
        """Return the exchange of gradients at the end of a step (one bucket per piece of the last backward passes), or None."""
        gradients = next((item for item in exchanges(self.stages[stage].ending) if item.name == "gradients"), None)
        if gradients is None or gradients.exposed >= 1.0:
            return gradients
        return hiding.in_buckets(gradients, self.layout.chunks * self.pieces.counts[stage])

    def count(self, stage: int, *, last: bool) -> int:
        """Return the number of pieces of a pass; `last`: whether it is the last one through its virtual stage."""
        gradients = self.gradients(stage)
        overlap = last and gradients is not None and gradients.exposed < 1.0  # gradients are exchanged during the pass
        return self.pieces.counts[stage] if self.stages[stage].gathered or overlap else 1

    def of(self, stage: int, done: MicrobatchPass, last: bool, number: int, replica: int) -> tuple[PassSegment, ...]:
        """Return the ops of one piece of a pass on one stage group."""
        key = (stage, done.chunk, done.forward, last, number, replica)
        if key not in self._segments:
            near = self.represented.near[replica]
            kinds = [self.kinds.among(self.layout.group(stage, peer)) for peer in near]
            recipes = [self._recipe_of(stage, done.chunk, done.forward, last, number, among) for among in kinds]
            host = self._host_wait(stage, done.chunk, done.forward, replica) / self.count(stage, last=last)
            if host > 0 and (
                slowed := [name for peer in near for name in self.layout.group(stage, peer) if name in self.pieces.slowed]
            ):
                what = f"an event or another job slows {slowed[0]}, whose kernels take less time than their launches"
                raise CannotCompute(
                    f"{what}: the slowdown of the launches is not modelled", "a framework without `issue`, such as megatron-core"
                )
            self._segments[key] = tuple(self._written(stage, done.forward, recipes, replica, host))
        return self._segments[key]

    def _host_wait(self, stage: int, chunk: int, forward: bool, replica: int) -> float:
        """Return the seconds that launching the kernels and exchanges of a pass takes longer than the pass on the GPUs."""
        if self.pieces.issue <= 0:
            return 0.0
        among = self.kinds.among(self.layout.group(stage, replica))
        (groups,) = cut_pass(replace(self.stages[stage], adding=()), self.layout.chunks, chunk, forward=forward, count=1)
        busy = launched = 0.0
        for items, times in groups:
            exposed = (item.times * item.exposed * self._exchanges.alone(self._inside(item, stage, replica))
                       for item in exchanges(items))  # fmt: skip
            busy += times * math.fsum((self.kinds.between(items, among).total, *exposed))
            launched += times * launches(items)
        return max(0.0, self.pieces.issue * launched - busy)

    def _written(self, stage: int, forward: bool, recipes: Sequence[Recipe], replica: int, host: float) -> Iterator[PassSegment]:
        """Yield the ops of a replica, including the traffic of the replicas that it represents."""
        near = self.represented.near[replica]
        peers = zip(near, recipes, strict=True)
        rows = [self._rows(stage, forward, recipe, peer, host, alone=peer == replica) for peer, recipe in peers]
        for place, (name, kind, queue, cost, inside) in enumerate(rows[near.index(replica)]):
            others = [row[place][3] for row, peer in zip(rows, near, strict=True) if peer != replica]
            index = self._builder.cost(self._with(cost, others))
            if inside > 0:
                self.inside[index] = inside
            yield PassSegment(name, kind, index, queue)

    def _rows(
        self, stage: int, forward: bool, recipe: Recipe, replica: int, host: float, *, alone: bool
    ) -> list[tuple[str, str, str, Cost, float]]:
        """Return (name, kind, queue, cost, share of time in collectives) of each op of a replica.

        Of a represented replica (not `alone`), only the links count that simulated replicas use, too.
        """
        name = "forward" if forward else "backward"
        group = self.layout.group(stage, replica)
        rows: list[tuple[str, str, str, Cost, float]] = []
        parts: list[tuple[OpAmounts, float]] = []

        def compute() -> None:
            spent = parts[0][0] if len(parts) == 1 else OpAmounts.of(parts)
            parts.clear()
            cost = self._cost(spent if alone else replace(spent, gpus=()), group, derived=alone)
            rows.append((name, name, "compute", cost, spent.collecting / spent.total if spent.collecting > 0 else 0.0))

        for computed, item in recipe:
            parts.append((computed, 1.0))
            if item is None:
                continue
            cost, part = self._inside(item, stage, replica), item.times
            if not alone:
                cost = self.represented.restricted(cost)
            if item.axis == "ep":  # the replicas that split the experts share the exchange
                part /= self.layout.ep
            elif self._by_layer:
                if any(any(gpu) for spent, _ in parts for gpu in spent.gpus):
                    compute()
                waited = item.times * item.exposed
                rows.append((f"{item.name} ({item.axis})", item.operation, item.axis, self._scaled(cost, waited), 0.0))
                parts.append((self._spent(cost, item.axis, 0.0, max(0.0, item.times - waited)), 1.0))
                continue
            if item.exposed > 0 and self.pieces.disturbed:
                self._refuse_disturbed(cost, group)
            parts.append((self._spent(cost, item.axis, item.times * item.exposed, part), 1.0))
        if host > 0:
            parts.append((OpAmounts({"host": host}), 1.0))
        compute()
        return rows

    def _refuse_disturbed(self, exchange: Cost, group: Names) -> None:
        """Raise CannotCompute if an op contains kernels and an exchange, and other jobs or events affect one of them."""
        if disturbed := [name for name in (*group, *dict(exchange.demand.amounts)) if name in self.pieces.disturbed]:
            hint = "`detail` does not separate the exchanges of experts" if self._by_layer else "detail: layer"
            what = f"another job uses {disturbed[0]}" if disturbed[0] in group else f"an event slows {disturbed[0]}"
            raise CannotCompute(f"{what}, but this training is simulated with kernels and communication in one op", hint)

    def _waits(self, stage: int, forward: bool, last: bool) -> OpAmounts:
        """Return the time that a piece waits for sharded weights and gradients; the exchange itself uses the links."""
        spent = OpAmounts()
        if not self.stages[stage].gathered:
            return spent
        weights, gradients = self.stages[stage].gathered
        awaited = [
            (weights, weights.exposed * self.gathers(stage, forward=forward)),
            *([] if forward else [(gradients, gradients.exposed)]),
        ]
        for item, exposed in awaited:
            cost = self.exchanging(stage, item, self.count(stage, last=last))
            spent = spent.and_then(self._spent(cost, "dp", exposed, 0.0))
        return spent

    def gathers(self, stage: int, *, forward: bool) -> float:
        """Return how often a pass gathers its sharded weights: once forward, the remaining times backward."""
        return 1.0 if forward else self.stages[stage].gathered[0].times - 1.0

    def _recipe(self, stage: int, chunk: int, forward: bool, last: bool, number: int, among: tuple[int, ...]) -> Recipe:
        """Return the amounts of kernels, each with the collective that follows, on all replicas with these kinds of GPUs.

        The last amounts include the waits for sharded weights and gradients.
        """
        count = self.count(stage, last=last)
        piece = list(cut_pass(self.stages[stage], self.layout.chunks, chunk, forward=forward, count=count))[number]
        *rest, (computed, item) = (self._stretches if self._by_layer else self._at_once)(piece, among)
        waits = self._waits(stage, forward, last)
        return [*rest, (computed.and_then(waits), None)] if item is None else [*rest, (computed, item), (waits, None)]

    def _stretches(self, piece: Groups, among: tuple[int, ...]) -> list[tuple[OpAmounts, Exchange | None]]:
        recipe: list[tuple[OpAmounts, Exchange | None]] = []
        run: list[Kernel] = []
        for item in one_by_one(piece):
            if isinstance(item, Kernel):
                run.append(item)
            else:
                recipe.append((self.kinds.run(run, among), item))
                run = []
        return [*recipe, (self.kinds.run(run, among), None)]

    def _at_once(self, piece: Groups, among: tuple[int, ...]) -> list[tuple[OpAmounts, Exchange | None]]:
        """Return the amounts of all layers together, and each collective with its number of executions."""
        spent, counts = OpAmounts(), dict[Exchange, float]()
        for items, times in piece:
            spent = spent.and_then(self.kinds.between(items, among), times)
            for item in exchanges(items):
                counts[item] = counts.get(item, 0.0) + times
        return [(spent, None), *((OpAmounts(), replace(item, times=item.times * times)) for item, times in counts.items())]

    def _inside(self, item: Exchange, stage: int, replica: int) -> Cost:
        """Return the cost of a collective of a stage group."""
        return self._exchanges.of(item, self.layout.exchanging(item.axis, stage, replica))

    def _sending(self, stage: int, target: int, replica: int) -> int:
        """Return the index of the cost of a send between stages, concurrent with the sends of the represented replicas."""
        others = [self._sends(stage, target, other) for other in self.represented.near[replica] if other != replica]
        return self._builder.cost(self._with(self._sends(stage, target, replica), others))

    def _with(self, cost: Cost, others: Sequence[Cost]) -> Cost:
        """Return the cost of an op together with ops of represented replicas that share capacities."""
        if self._all_written:
            return cost
        return concurrent_cost(self.represented.restricted(cost), list(map(self.represented.restricted, others)))

    def _sends(self, stage: int, target: int, replica: int) -> Cost:
        pairs = tuple(zip(self.layout.group(stage, replica), self.layout.group(target, replica), strict=True))
        return self._exchanges.cost(pairs, "send", self.stages[stage].passed)

    def _spent(self, cost: Cost, axis: str, exposed: float, part: float = 1.0) -> OpAmounts:
        """Return the amounts of a collective within an op that waits for `exposed` of its time and uses `part` of its amounts."""
        seconds = exposed * self._exchanges.alone(cost)
        if part <= 0:  # the exchange op uses the links
            return OpAmounts({axis: seconds}, seconds)
        return OpAmounts(
            {axis: seconds},
            seconds,
            (),
            {name: part * amount for name, amount in cost.demand.amounts},
            {name: (part * amount, unit) for name, amount, unit in cost.moved},
        )

    def exchanging(self, stage: int, item: Exchange, count: float = 1.0) -> Cost:
        """Return the cost of a collective of all replicas of a stage, for one of `count` pieces."""
        shards = self.pieces.shards if item.name == "weights" else self.layout.dp
        groups = self._across(stage, shards)
        bucket_count = buckets(item.size / count, self.pieces.bucket) if item.name == "weights" else 1.0
        size = item.size / count / bucket_count
        cost = self.represented.named(self._exchanges.numbered(groups, item.operation, size), self._exchanges.machine)
        return self._scaled(cost, bucket_count, BUCKETS)

    def _cost(self, spent: OpAmounts, group: Names, *, derived: bool = True) -> Cost:
        places = self.kinds.places(group) if spent.gpus else ()
        why = self._explained(tuple(spent.seconds.items()), self.kinds.among(group)[0]) if derived else ()
        return spent.cost(group, self._exchanges.link_rate, self.kinds.bandwidth(group), places, why)

    def _derivation(self, seconds: Sequence[tuple[str, float]], kind: int) -> tuple[Term, ...]:
        """Return the derivation of the time of kernels and collectives, with its errors."""
        gpu, links, total = self.kinds.costs[kind].gpu, self._exchanges.by_library, math.fsum(spent for _, spent in seconds)
        inputs = tuple(
            (name, precise(spent, "s"), FLOWS if name in COLLECTIVES else HOST if name == "host" else KERNELS)
            for name, spent in seconds
        )
        errors = kernel_errors(dict(seconds), gpu=gpu, dtype=self.plan.dtype, links=links)
        errors += tuple(doubt._replace(seconds=total) for doubt in self.pieces.unlike)
        label, formula = "kernels", " + ".join(name for name, _ in seconds)
        if dict(seconds).get("host", 0.0) > 0.5 * total:
            label = "kernels (starts)"
        elif COLLECTIVES & dict(seconds).keys():
            label = "kernels (with communication)"
        return (Term(label, formula, inputs, total, kind="kernels", doubts=errors),) if total > 0 else ()

    def scaled(self, cost: Cost, part: float, meaning: str = EXPOSED) -> int:
        """Return the index of a part of a cost; `meaning` describes the part."""
        key = id(self._scaled(cost, part, meaning))
        if key not in self._indices:
            self._indices[key] = self._builder.cost(self._scaled(cost, part, meaning))
        return self._indices[key]

    def _scaled(self, cost: Cost, part: float, meaning: str = EXPOSED) -> Cost:
        key = id(cost), part, meaning  # by id, because hashing all amounts takes longer
        if key not in self._parts:  # keeps the cost, because its id is unique only during its life
            self._parts[key] = cost, cost if part == 1.0 else scaled(cost, part, meaning)
        return self._parts[key][1]
