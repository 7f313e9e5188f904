"""Parser of the stages of a pipeline, with the cost of a batch in each stage and epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from hwsim.demand import Cost, Demand, Term
from hwsim.devices import CannotCompute
from hwsim.devices.roofline import Input
from hwsim.families.pipeline.workload.cache import hit_rate
from hwsim.families.pipeline.workload.keys import Cache, Dataset, PipelineKeys, StageKeys
from hwsim.families.pipeline.workload.step import first_gpu, step_graph, step_time_estimate
from hwsim.formats import format_quantity, precise
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine, NoRoute, TransferOptions, UnknownName
from hwsim.ops import OPS, CannotPlace, ExchangeOp, LoweredOp, Op, Scope
from hwsim.ops.disk import ReadOp
from hwsim.ops.sensitivity import lower_with_uncertainty
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, decode, did_you_mean, substitute, tree_of
from hwsim.workload.programs import Program, memory_of
from hwsim.workload.statement_checks import check_op

NOT_HERE: Final = ("after", "block", "queue", "reads", "updates", "writes")  # keys of ops that the pipeline sets
STAGE: Final = frozenset({"name", "ahead", "at_once", "handoff", "do", "train"})


@dataclass(frozen=True, slots=True)
class StageOp:
    """An op of a stage of one program.

    Args:
        name: name of the op.
        kind: kind of the op.
        placed: its device and cost by epoch; the last entry applies to all later epochs.
        exchange: collective of all programs; None: another op.
        step: ops of a training step of all programs; None: another op.
    """

    name: str
    kind: str
    placed: tuple[LoweredOp, ...]
    exchange: ExchangeOp | None = None
    step: OpGraph | None = None

    @property
    def together(self) -> bool:
        """Whether the programs wait for each other in this op."""
        return self.exchange is not None or self.step is not None

    def at(self, epoch: int) -> LoweredOp:
        """Return its device and cost in an epoch."""
        return self.placed[min(epoch, len(self.placed) - 1)]


@dataclass(frozen=True, slots=True)
class PlacedStage:
    """A stage of one program; `handoff`: host time after each batch (s)."""

    name: str
    ops: tuple[StageOp, ...]
    at_once: int
    ahead: int
    handoff: float = 0.0


def time_of(stage: PlacedStage, rates: Mapping[str, float]) -> float:
    """Return the time per batch of a stage that never waits, without collectives (s)."""
    if (step := stage.ops[0].step) is not None:
        return step_time_estimate(step, rates)
    placed = [op.at(0) for op in stage.ops]
    took = math.fsum(op.cost.demand.alone(rates) if op.cost else op.time for op in placed)
    return max(took / stage.at_once, stage.handoff)


def operations(tree: Tree) -> tuple[Tree, ...]:
    """Return the ops of a stage, each a mapping with one key."""
    if not tree.is_mapping or tree.get("train") is not None:
        return ()
    inner = tree.get("do")
    if inner is not None:
        return tuple(inner.elements())
    kinds = [key for key, _ in tree.items() if key not in STAGE]
    return (tree.without(*STAGE & dict(tree.items()).keys()),) if kinds else ()


@dataclass(frozen=True, slots=True)
class StageParser:
    """A parser of the stages of all programs, which notes mistakes."""

    keys: PipelineKeys
    dataset: Tree | None
    programs: Sequence[Program]
    mistakes: Mistakes

    @property
    def machine(self) -> Machine:
        return self.programs[0].scope.machine

    def stages(self, rank: int) -> tuple[PlacedStage, ...]:
        """Return the stages of one program."""
        return tuple(stage for tree in self.keys.stages if (stage := self._stage(tree, rank)) is not None)

    def _stage(self, tree: Tree, rank: int) -> PlacedStage | None:
        inner = tree.without(*[key for key, _ in tree.items() if key not in STAGE]) if tree.is_mapping else tree
        keys = decode(inner, StageKeys, self.mistakes) if tree.is_mapping else None
        kinds = [key for key, _ in tree.items() if key not in STAGE or key in ("do", "train")]
        if keys is None or len(kinds) != 1:
            if keys is not None or not tree.is_mapping:
                got = ("no op" if tree.is_mapping else tree.what()) if not kinds else f"{' and '.join(kinds)} at once"
                hint = "busy: {device: gpu, time: 90 ms}; several ops go into `do`"
                self.mistakes.add(tree.place, f"expected a stage with one op, got {got}", hint)
            return None
        ops = tuple(op for operation in operations(tree) for op in self._op(operation, rank))
        ops = ops if keys.train is None else tuple(self._step(keys, rank))
        ahead = self.keys.ahead if keys.ahead is None else keys.ahead
        name = keys.name or (ops[0].name if len(ops) == 1 else kinds[0])
        return PlacedStage(name, ops, keys.at_once, ahead, keys.handoff) if ops else None

    def _step(self, keys: StageKeys, rank: int) -> Iterator[StageOp]:
        """Yield the training step of all programs; only the first program has its ops."""
        if keys.train is None:
            return
        if keys.at_once > 1:
            self.mistakes.add(
                keys.train.place, "`at_once` has no effect on a training: it processes one batch at a time", "omit `at_once`"
            )
        name, batch = keys.name or "train", (self.keys.batch or 0) * len(self.programs)
        graph = OpGraph((), ()) if rank else step_graph(keys.train, self.machine, self.mistakes, name=name, batch=batch)
        if graph is not None:
            device = first_gpu(graph, self.machine) or self.programs[rank].own
            yield StageOp(name, "train", (LoweredOp(device, "", None),), step=graph)

    def _op(self, tree: Tree, rank: int) -> Iterator[StageOp]:
        if not (tree.is_mapping and len(tree.items()) == 1):
            hint = "busy: {device: gpu, time: 90 ms}"
            self.mistakes.add(tree.place, f"expected an op with one key, got {tree.what()}", hint)
            return
        kind, inner = next(iter(tree.items()))
        if kind not in OPS:
            self.mistakes.add(tree.key_place(kind), f"there is no op '{kind}'", did_you_mean(kind, sorted(OPS)))
            return
        program = self.programs[rank]
        filled = with_defaults(kind, substitute(inner, program.values, self.mistakes, keep=()), self.keys, self.dataset)
        cls: type[Op] = OPS[kind]
        op = decode(filled, cls, self.mistakes)
        for key in NOT_HERE:
            if inner.get(key) is not None:
                message = f"a stage has no '{key}': it follows the previous stage, on its own queue"
                self.mistakes.add(inner.key_place(key), message)
        if op is None:
            return
        if isinstance(op, ExchangeOp) and op.overlaps:
            at = inner.get("overlaps") or inner
            self.mistakes.add(at.place, "`overlaps` has no effect in a pipeline: its ops have no pieces", "omit `overlaps`")
        try:
            placed = tuple(replace(entry, cost=op.weighted(entry.cost)) for entry in self._placed(op, program))
            yield StageOp(op.name or kind, kind, placed, op if isinstance(op, ExchangeOp) else None)
        except (CannotCompute, CannotPlace, NoRoute, UnknownName) as error:
            self.mistakes.add(op.place, error.message, error.hint)

    def _placed(self, op: Op, program: Program) -> Iterator[LoweredOp]:
        """Yield device and cost in the first epoch, and in later epochs until they no longer change."""
        cold = lower_with_uncertainty(op, program.scope)
        yield cold
        cache, data = self.keys.cache, self.keys.dataset
        if not isinstance(op, ReadOp) or cache is None or data is None:
            return
        keeper = program.scope.one(cache.device) if cache.device else program.scope.thread
        hosts = len({self.machine.home_of(other.scope.host) for other in self.programs})
        held = cache_bytes(cache, self.machine, keeper)

        def again(rate: float, read: ReadOp, scope: Scope) -> LoweredOp:
            lowered = read.lower(scope)
            return replace(lowered, cost=cached_read_cost(read, rate, lowered, keeper, replace(program, scope=scope)))

        before = 0.0
        for epoch in range(1, self.keys.epochs):
            rate = hit_rate(held / self._read_here(data, hosts), epoch, shuffled=data.shuffle, hosts=hosts)
            if rate <= before * (1 + 1e-9) and epoch > 1:
                return
            before = rate
            yield lower_with_uncertainty(op, program.scope, partial(again, rate)) if rate > 0 else cold

    @staticmethod
    def _read_here(data: Dataset, hosts: int) -> float:
        """Return the data that one host reads over the epochs (B): all if shuffled, else its part."""
        return data.samples * data.bytes / (1 if data.shuffle else hosts)


def check_stages(keys: PipelineKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes of the ops of stages that do not depend on the machine; `tree`: tree of the keys."""
    for op in [op for stage in keys.stages for op in operations(stage)]:
        filled = {kind: with_defaults(kind, inner, keys, tree.get("dataset")) for kind, inner in op.items()}
        check_op(replace(op, value=filled) if filled else op, mistakes, of_stage=True)


def with_defaults(kind: str, tree: Tree, keys: PipelineKeys, dataset: Tree | None) -> Tree:
    """Return a `read` with the defaults of the dataset."""
    if kind != "read" or keys.dataset is None or dataset is None or not tree.is_mapping:
        return tree
    given: Mapping[str, Tree | None] = {
        "bytes": dataset.get("bytes"),
        "times": tree_of(keys.batch) if keys.batch else None,
        "access": tree_of("random" if keys.dataset.shuffle else "sequential"),
    }
    for key, value in given.items():
        if value is not None and tree.get(key) is None:
            tree = tree.put(key, value)
    return tree


def cache_bytes(cache: Cache, machine: Machine, keeper: str) -> float:
    """Return the capacity of the cache (B).

    Raises:
        CannotPlace: the size of the memory is unknown, or smaller than the cache.
    """
    if cache.bytes is not None:
        beside = () if cache.device or not keeper else machine.devices_of("cpu", machine.node_of(keeper))
        keepers = [name for name in dict.fromkeys((keeper, *beside)) if name]
        sizes = [memory_of(machine, name) for name in keepers]
        stated = [size for size in sizes if size is not None]
        if stated and len(stated) == len(sizes) and cache.bytes > (room := math.fsum(stated)):
            held = f"{' and '.join(keepers)} {'has' if len(keepers) == 1 else 'have'} {format_quantity(room, 'B')}"
            raise CannotPlace(
                f"the cache has {format_quantity(cache.bytes, 'B')}, but {held}", f"bytes: {format_quantity(room, 'B')}"
            )
        return cache.bytes
    size = memory_of(machine, keeper) if keeper else None
    if size is None:
        where = f"'{keeper}' has no memory of a known size" if keeper else "the machine has no cpu"
        raise CannotPlace(f"{where} to cache in", "cache: {bytes: 64 GB}")
    return size


def cached_read_cost(op: ReadOp, rate: float, cold: LoweredOp, keeper: str, program: Program) -> Cost | None:
    """Return the cost of a read with a hit rate: hits from the memory of `keeper`, then misses from the disk."""
    machine = program.scope.machine
    target = program.scope.one(op.target) if op.target else program.scope.thread
    access = op.asked()
    moved = machine.transfer(
        keeper, target, access.bytes * rate, TransferOptions(by="cpu") if keeper == target else TransferOptions()
    )
    copied = _by_threads(moved, access.at_once(access.depth))
    if rate >= 1:
        return copied
    missed = machine.serve(cold.device, "read", replace(access, times=access.times * (1 - rate)), target)
    requests = missed.requests and replace(missed.requests, count=max(1, round(missed.requests.count)))
    return replace(_in_turn(missed, copied, f"{cold.device}.media"), requests=requests)


def _by_threads(moved: Cost, threads: float) -> Cost:
    """Return the cost of a copy by several cores, which are free when it ends."""
    demand = moved.demand
    if not demand.floor:
        return moved
    cores = tuple((name, demand.floor) for name, _ in demand.holds)
    amounts = tuple(sorted((*demand.amounts, *cores)))
    why = tuple(
        Term("copy by cores", "by one core / threads", _copied(demand.floor, threads), demand.floor / threads, term.capacity)
        if term.capacity and term.capacity in dict(cores)
        else term
        for term in moved.why
    )
    return replace(moved, demand=replace(demand, amounts=amounts, floor=demand.floor / threads, holds=()), why=why)


def _copied(seconds: float, threads: float) -> tuple[Input, ...]:
    return ("by one core", precise(seconds, "s"), "cache hits"), ("threads", f"{threads:g}", "depth of the read")


def _in_turn(missed: Cost, copied: Cost, media: str) -> Cost:
    """Return the cost of misses and hits by the same threads in sequence."""
    amounts: dict[str, float] = {}
    for name, amount in (*missed.demand.amounts, *copied.demand.amounts):
        amounts[name] = amounts.get(name, 0.0) + amount
    floor = missed.demand.floor + copied.demand.floor
    demand = Demand(
        latency=missed.demand.latency + copied.demand.latency,
        amounts=tuple(sorted(amounts.items())),
        floor=floor,
        holds=missed.demand.holds,
        share=missed.demand.share + copied.demand.share,
        clocks=tuple(
            (name, part * of.demand.floor / floor) for of in (missed, copied) for name, part in of.demand.clocks if floor
        ),
        crowd=missed.demand.crowd and replace(missed.demand.crowd, rest=copied.demand.floor / missed.requests.count)
        if missed.requests is not None and missed.requests.count > 0
        else missed.demand.crowd,
    )
    inputs = (
        ("missed", precise(missed.demand.floor, "s"), "cache misses, from the disk"),
        ("cached", precise(copied.demand.floor, "s"), "cache hits"),
    )
    by = media if any(term.capacity == media for term in missed.why) else ""
    turn = (Term("reads", "missed + cached", inputs, floor, by),) if floor > 0 else ()
    return Cost(demand, moved=tuple(sorted((*missed.moved, *copied.moved))), why=(*missed.why, *copied.why, *turn))
