"""Workload x Machine -> OpGraph."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from hwsim.machine import Machine
from hwsim.opgraph import OpGraph
from hwsim.spec import Mistake, Mistakes, SpecError
from hwsim.workload.assemble import add_blocks, tie_meetings
from hwsim.workload.builder import FEMTO, GraphBuilder, capacities_of
from hwsim.workload.emit import Emitter, HostRuntime, HostTime, Tuning
from hwsim.workload.file import Runtime, Workload
from hwsim.workload.pipeline import add_pipeline
from hwsim.workload.programs import MAIN, host_cost
from hwsim.workload.reading import Group, read_group
from hwsim.workload.statements import Barrier, walk


class NeverArrives(SpecError):
    """A barrier that some programs reach more often than others: those who wait there wait for ever."""


def lower(workload: Workload, machine: Machine, mistakes: Mistakes) -> OpGraph:
    """The op graph of a workload on a machine.

    Raises:
        SpecError: names that nothing has, ops that do not fit the machine, a body too large to write out,
            and whatever `mistakes` held before.
        NeverArrives: a program is missing at a barrier.
    """
    builder = GraphBuilder(capacities_of(machine.capacities))
    named = workload.programs if workload.programs is not None else {MAIN: workload.program} if workload.program else {}
    groups = [
        read_group(name, tree, machine, workload.runtime, workload.groups, builder, mistakes)
        for name, tree in sorted(named.items(), key=lambda each: each[0])
    ]
    if workload.pipeline is not None:
        add_pipeline(workload.pipeline, machine, builder, mistakes)
    mistakes.raise_if_any()
    runtimes = [_host_runtime(group, workload.runtime, builder) for group in groups]
    shared = _shared_barriers(groups)
    emitters = _emit_aligned(groups, runtimes, shared)
    free = workload.runtime.free if workload.runtime else "last-use"
    meetings = [add_blocks(builder, emitter, free) for emitter in emitters]
    for name in sorted(shared):
        tie_meetings(builder, [found[name] for found in meetings if name in found])
    return builder.build()


def _host_runtime(group: Group, runtime: Runtime | None, builder: GraphBuilder) -> HostRuntime | None:
    if runtime is None:
        return None

    def time(seconds: float) -> HostTime:
        return HostTime(tuple(host_cost(program, seconds, builder) for program in group.programs), round(seconds * FEMTO))

    return HostRuntime(
        dispatch=time(runtime.dispatch),
        back=time(runtime.return_),
        call=time(runtime.call or 0.0),
        compile=time(runtime.compile),
        bounded=runtime.queue_depth is not None,
    )


def _barriers(group: Group) -> dict[str, Barrier]:
    """By name, the first of each."""
    return {each.name: each for each in reversed(list(walk(group.body))) if isinstance(each, Barrier)}


def _shared_barriers(groups: Sequence[Group]) -> frozenset[str]:
    """Barriers that more than one group names."""
    names = [name for group in groups for name in _barriers(group)]
    return frozenset(name for name in names if names.count(name) > 1)


def _emit_aligned(groups: Sequence[Group], runtimes: Sequence[HostRuntime | None], shared: frozenset[str]) -> list[Emitter]:
    """Emitters whose shared barriers fall into blocks that run equally often.

    Loops are first cut as each program likes; then all alike; at last they are written out.
    """
    emitters = _emit(groups, runtimes, shared, Tuning())
    _refuse_missing(groups, emitters, shared)
    if not _aligned(emitters, shared):
        unroll = lcm(*(each for emitter in emitters for each in emitter.unrolled))
        emitters = _emit(groups, runtimes, shared, Tuning(max(each.peeled for each in emitters), unroll))
    if not _aligned(emitters, shared):
        emitters = _emit(groups, runtimes, shared, Tuning(write_out=True))
    return emitters


def _emit(
    groups: Sequence[Group], runtimes: Sequence[HostRuntime | None], shared: frozenset[str], tuning: Tuning
) -> list[Emitter]:
    emitters = []
    for group, runtime in zip(groups, runtimes, strict=True):
        emitter = Emitter(group.hosts, runtime, shared, tuning)
        emitter.run(group.body)
        emitter.finish()
        emitters.append(emitter)
    return emitters


def _aligned(emitters: Sequence[Emitter], shared: frozenset[str]) -> bool:
    return all(len({emitter.shape(name) for emitter in emitters if name in emitter.barriers}) <= 1 for name in shared)


def _refuse_missing(groups: Sequence[Group], emitters: Sequence[Emitter], shared: frozenset[str]) -> None:
    for name in sorted(shared):
        counts = {}
        for group, emitter in zip(groups, emitters, strict=True):
            if (barrier := _barriers(group).get(name)) is not None:
                counts[group.name] = (emitter.meetings(name), barrier)
        most = max(counts, key=lambda each: counts[each][0])
        for program, (count, barrier) in counts.items():
            if count < counts[most][0]:
                message = f"program '{program}' comes to the barrier '{name}' {count} times, '{most}' {counts[most][0]} times"
                raise NeverArrives([Mistake(barrier.place, message, f"'{most}' would wait there for ever")])
