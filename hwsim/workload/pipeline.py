"""`pipeline:` stages that run at the same time, a batch in each, with bounded buffers between them.

pipeline:
  batches: 1000
  ahead: 4
  stages:
    - read: {from: disk, bytes: 110 kB, times: 64, access: random, depth: 8}
    - busy: {name: decode, device: cpu, time: 6 ms, times: 64, workers: 8}
    - copy: {from: cpu, to: gpu, bytes: 38.5 MB}
    - busy: {name: train, device: gpu, time: 90 ms}

A stage works on one batch after another.  It starts a batch once the stage before has ended it, and once
there is room: between two stages lie at most `ahead` batches that the later one has not begun.  A later
stage begins batch i no sooner than it has ended batch i - 1, so room for batch i is there when it has
ended batch i - ahead - 1: an edge of that lag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hwsim.devices import CannotCompute
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import OPS, AnyOp, CannotPlace, Placed
from hwsim.spec import Mistakes, Place, Tree, decode, did_you_mean, field, place_field, substitute
from hwsim.workload.builder import GraphBuilder, OpRef
from hwsim.workload.file import Each
from hwsim.workload.programs import MAIN, Program, find_programs

NOT_HERE = ("after", "block", "queue", "reads", "updates", "writes")  # keys of an op that the pipeline itself decides


@dataclass(frozen=True, slots=True)
class PipelineKeys:
    """Stages that run at the same time, each on a batch of its own."""

    batches: int = field("batches that go through", minimum=0, example="1000")
    stages: tuple[Tree, ...] = field("ops, in the order a batch meets them")
    ahead: int = field("batches that may lie ready between two stages", default=1, minimum=0)
    each: tuple[str, ...] = field("one pipeline per device or node of these", default=(), one_or_many=True, example="node*")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of one pipeline: what it is called, and what a batch costs there."""

    name: str
    kind: str
    placed: Placed


def add_pipeline(
    tree: Tree, machine: Machine, builder: GraphBuilder, mistakes: Mistakes, *, name: str = MAIN, start: float = 0.0
) -> None:
    """Append the pipelines' ops to the graph: one block, a batch per iteration.  start: seconds before the first batch."""
    keys = decode(tree, PipelineKeys, mistakes)
    if keys is None:
        return
    if not keys.stages:
        mistakes.add(tree.key_place("stages"), "a pipeline needs at least one stage")
    each = Each(keys.each, ()) if keys.each else None
    programs = find_programs(name, tree, each, machine, mistakes)
    lines = [list(_stages(keys.stages, rank, len(programs), program, mistakes)) for rank, program in enumerate(programs)]
    if len(mistakes) or not keys.batches:
        return
    begin = builder.op("start", kind="start", program=name, time=start) if start else None
    with builder.repeat(keys.batches):
        for program, stages in zip(programs, lines, strict=True):
            first = _add(builder, program, stages, keys.ahead)
            if begin is not None and first is not None:
                builder.tie(begin, first)


def _stages(trees: tuple[Tree, ...], rank: int, ranks: int, program: Program, mistakes: Mistakes) -> Iterator[Stage]:
    for tree in trees:
        if not (tree.is_mapping and len(tree.items()) == 1):
            mistakes.add(
                tree.place, f"a stage is a mapping of one op, not {tree.what()}", "such as busy: {device: gpu, time: 90 ms}"
            )
            continue
        kind, inner = next(iter(tree.items()))
        if kind not in OPS:
            mistakes.add(tree.key_place(kind), f"there is no op '{kind}'", did_you_mean(kind, sorted(OPS)))
            continue
        known = substitute(inner, {"self": program.own, "rank": rank, "ranks": ranks}, mistakes, keep=())
        cls: type[AnyOp] = OPS[kind]
        op = decode(known, cls, mistakes)
        for key in NOT_HERE:
            if inner.get(key) is not None:
                mistakes.add(inner.key_place(key), f"a stage has no '{key}': it follows the stage before, on a queue of its own")
        if op is not None:
            try:
                placed = op.lower(program.scope)
                yield Stage(op.name or kind, kind, replace(placed, cost=op.weighted(placed.cost)))
            except (CannotCompute, CannotPlace, NoRoute, UnknownName) as error:
                mistakes.add(op.place, error.message, error.hint)


def _add(builder: GraphBuilder, program: Program, stages: list[Stage], ahead: int) -> OpRef | None:
    """The stages of one pipeline; its first op."""
    names = [stage.name for stage in stages]
    first: OpRef | None = None
    before: OpRef | None = None
    for number, stage in enumerate(stages):
        shown = stage.name if names.count(stage.name) == 1 else f"{stage.name} {number}"
        place = stage.placed
        queue = builder.queue(shown if program.name == MAIN else f"{program.name}:{shown}", place.device)
        here = builder.op(
            shown, kind=stage.kind, device=place.device, program=program.name, cost=place.cost, time=place.time, queue=queue
        )
        if before is not None:
            builder.edge(before, here)
            builder.edge(here, before, lag=ahead + 1)
        first = first or here
        before = here
    return first
