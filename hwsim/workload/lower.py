"""Lowering of a workload on a machine to an op graph: read the programs, fold identical ranks, and emit the ops.

Families (`train:`, `services:`, ...) add their own ops to the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal, NamedTuple

from hwsim import ticks
from hwsim.families_interface import family_interface
from hwsim.graph.builder import GraphBuilder, capacities_of
from hwsim.graph.opgraph import Change, OpGraph, RepresentedRanks
from hwsim.machine import Machine
from hwsim.machine.layout import Layout
from hwsim.ops import CannotPlace
from hwsim.spec import Mistakes, SpecError, Tree
from hwsim.spec.memo import MOST_BUILT, memoize_result
from hwsim.workload.assemble import add_blocks, tie_meetings
from hwsim.workload.emit import Emitter
from hwsim.workload.file import WORKLOAD_FORMS, Job, Runtime, Workload
from hwsim.workload.host_runtime import HostRuntime, HostTime
from hwsim.workload.parser import ProgramGroup, read_group
from hwsim.workload.programs import MAIN, host_cost, named_devices
from hwsim.workload.send_steps import in_full
from hwsim.workload.statements import Barrier, CollectiveStatement, Issue, Receive, Repeat, Statement, walk


class NeverArrives(SpecError):
    """An error for a deadlock at barriers that programs reach unequally often or in different orders."""


FEWEST: Final = 64  # ranks from which identical ranks are folded by default
WIDEST: Final = 512  # capacities of one op from which identical ranks are folded by default
_DIGITS: Final = str.maketrans("", "", "0123456789")
MOST_LISTED: Final = 10_000  # capacities; the graph of a larger machine contains only capacities that an op uses
Folding = Literal["auto", "always", "never"]
Writing = Literal["auto", "unseen", "always", "never"]


class FamilyContext(NamedTuple):
    """A context in which a family adds the ops of a job ("": of the workload itself) to the graph; other fields as in `lower`."""

    job: str
    workload: Workload
    machine: Machine
    builder: GraphBuilder
    mistakes: Mistakes
    fold: Writing
    disturbed: Sequence[Change]


def lower(
    workload: Workload, machine: Machine, mistakes: Mistakes, *, fold: Writing = "auto", disturbed: Sequence[Change] = ()
) -> OpGraph:
    """Return the op graph of a workload on a machine.

    Args:
        fold: whether identical ranks are represented by one (see `hwsim.graph.fold`). auto: if there are many ranks; unseen: also
            for few ranks if it saves time, for callers that show all ranks nevertheless (`RepresentedRanks.unseen`).
        disturbed: changes of capacities during the run.

    Raises:
        SpecError: unknown names, ops that do not fit the machine, a loop body that is too large to unroll, any earlier mistake.
        NeverArrives: programs reach a barrier unequally often, or the same barriers in different orders.
    """
    builder = GraphBuilder()
    parts = _parts(workload)
    if len(machine.capacities) > MOST_LISTED and fold == "unseen":
        fold = "auto"  # the listed capacities depend on the ops
    groups: list[ProgramGroup] = []
    runtimes: list[HostRuntime | None] = []
    for job, part in parts.items():
        new_groups, new_runtimes = _groups_of(job, part, workload, machine, builder, mistakes, fold, disturbed)
        groups += new_groups
        runtimes += new_runtimes
    mistakes.raise_if_any()
    alike: RepresentedRanks | None = None
    unfolded = ""
    if fold != "never" and groups and (fold == "always" or is_fold_worthwhile(groups, builder)):
        from hwsim.graph.fold import CannotFold, NoEquals
        from hwsim.workload.program_fold import fold_programs

        try:
            if machine.by_requests():
                raise CannotFold("some parts are simulated request by request")
            if any(event.jitter is not None for event in workload.events):
                raise CannotFold("jitter is random for each part")
            _refuse_unfoldable(parts)
            if any(
                op.pool >= 0 for group in groups for issue in walk(group.body) if isinstance(issue, Issue) for op in issue.ops
            ):
                raise CannotFold("workers of its runtime start ops in order of readiness")
            if any(_receives(group) for group in groups):
                raise CannotFold("its programs exchange messages with `send` and `recv`")
            if name := unlike_power(machine.layout):
                raise CannotFold(f"parts called {name} that differ only in their number draw different power")
            quotient = fold_programs(groups, runtimes, builder, machine.capacities, marks(disturbed))
        except CannotFold as reason:
            unfolded = "" if fold != "always" and isinstance(reason, NoEquals) else str(reason)
        else:
            builder, alike = quotient.builder, quotient.alike
            groups, runtimes = list(quotient.groups), list(quotient.runtimes)
    if alike is None:
        builder.write_out()
        groups = [replace(group, body=in_full(group.body, builder)) for group in groups]
        issues = any(family_interface(key).issues for part in parts.values() for key in part.doors)
        is_large = len(machine.capacities) > MOST_LISTED and not issues
        listed = builder.drawn() if is_large else machine.capacities
        if is_large or builder.hidden != ():
            builder.offer(capacities_of({name: machine.capacities[name] for name in listed if name not in builder.hidden}))
        else:
            builder.offer(memoize_result("capacities", (machine,), lambda: capacities_of(machine.capacities), most=MOST_BUILT))
    shared = _shared_barriers(groups)
    meetings = [add_blocks(builder, emitter) for emitter in _emit_aligned(groups, runtimes, shared)]
    for name in sorted(shared):
        tie_meetings(builder, [of_group[name] for of_group in meetings if name in of_group])
    graph = builder.build(alike, unfolded)
    counts = {} if graph.alike is None else graph.alike.capacities
    total = sum(counts.get(capacity.name, 1) for capacity in graph.capacities)  # integers
    return replace(graph, unlisted=max(0, len(machine.capacities) - total)) if len(machine.capacities) > MOST_LISTED else graph


def _parts(workload: Workload) -> dict[str, Job]:
    """Return the jobs by name. A workload that defines no jobs is a single job named ""."""
    if workload.jobs is None:
        return {"": Job(0.0, workload.runtime, **{key: getattr(workload, key) for key in WORKLOAD_FORMS})}
    return {name: workload.jobs[name] for name in sorted(workload.jobs)}


def is_fold_worthwhile(groups: Sequence[ProgramGroup], builder: GraphBuilder) -> bool:
    """Whether there are enough ranks, or capacities of one op, to search for identical ranks."""
    if sum(len(group.programs) for group in groups) >= FEWEST or builder.widest() >= WIDEST:
        return True
    meetings = [
        gathering
        for group in groups
        for statement in walk(group.body)
        if isinstance(statement, CollectiveStatement)
        for gathering in statement.gatherings
    ]
    return any(meeting.sends is not None and len(meeting.sends.members) >= FEWEST for meeting in meetings)


def _refuse_unfoldable(parts: Mapping[str, Job]) -> None:
    """Raise CannotFold for families whose ops depend on their order or are already in the graph."""
    from hwsim.graph.fold import CannotFold

    for name, part in parts.items():
        subject = f"job '{name}'" if name else "it"
        for reason in [reason for key in part.doors if (reason := family_interface(key).unfolded)]:
            raise CannotFold(f"{subject} {reason}")


def unlike_power(layout: Layout) -> str:
    """Return the name, without digits, of parts that differ in power but would be folded as identical; "" if there are none."""
    power_by_name: dict[str, object] = {}
    waiting = [("", layout)]
    while waiting:
        inside, scope = waiting.pop()
        for part in scope.parts:
            name = inside + part.family.translate(_DIGITS)
            if part.child is not None:
                waiting.append((f"{name}.", part.child))
            elif power_by_name.setdefault(name, part.model and part.model.power) != (part.model and part.model.power):
                return name
    return ""


def marks(disturbed: Sequence[Change]) -> dict[str, tuple[tuple[int, float], ...]]:
    """Return the changes of each capacity as pairs (time in fs, fraction of full speed)."""
    changes_of: dict[str, list[tuple[int, float]]] = {}
    for change in disturbed:
        changes_of.setdefault(change.capacity, []).append((change.at, change.fraction))
    return {name: tuple(changes) for name, changes in changes_of.items()}


def _groups_of(
    job: str,
    part: Job,
    workload: Workload,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    fold: Writing,
    disturbed: Sequence[Change],
) -> tuple[list[ProgramGroup], list[HostRuntime | None]]:
    """The programs of one job ("": of the workload itself), named after it; its families add their ops directly to the graph."""
    runtime = part.runtime or workload.runtime
    rules = None if runtime is None else runtime.rules
    groups, runtimes, trees = [], list[HostRuntime | None](), dict(_named(job, part))
    for name, tree in trees.items():
        group = read_group(name, tree, machine, rules, workload.groups, builder, mistakes)
        body = _within(job, group.body) if job else group.body
        groups.append(replace(group, body=body, start=ticks.femtoseconds(part.start)))
    try:
        runtimes = [_host_runtime(group, runtime, builder) for group in groups]
    except CannotPlace as error:
        mistakes.add(next(iter(trees.values())).place, error.message, error.hint)
    for key in part.doors:
        family_interface(key).write(part, FamilyContext(job, workload, machine, builder, mistakes, fold, disturbed))
    return groups, runtimes


def named_elsewhere(job: str, workload: Workload, machine: Machine) -> Collection[str]:
    """Return the devices that other jobs name."""
    parts, gpus = [part for other, part in (workload.jobs or {}).items() if other != job], list(machine.devices_of("gpu"))
    return named_devices(machine, [tree for part in parts for tree in part.placed(gpus)])


def _named(job: str, part: Job) -> Iterator[tuple[str, Tree]]:
    """Yield the programs of a job with their names in the results."""
    programs = part.programs if part.programs is not None else {MAIN: part.program} if part.program else {}
    for name, tree in sorted(programs.items(), key=lambda item: item[0]):
        yield name if not job else job if name == MAIN else f"{job}.{name}", part.on_devices(tree, "each")


def programs_of(workload: Workload) -> Iterator[tuple[str, Tree, Runtime | None]]:
    """Yield (name, tree, runtime) of all programs, in the order of their ranks."""
    for job, part in _parts(workload).items():
        for name, tree in _named(job, part):
            yield name, tree, part.runtime or workload.runtime


def _within(job: str, body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements of one job; the job's name is part of its barriers' names, so that only its own programs meet at them."""
    statements: list[Statement] = []
    for statement in body:
        if isinstance(statement, Repeat):
            statements.append(Repeat(statement.times, _within(job, statement.body), statement.place))
        elif isinstance(statement, Barrier):
            statements.append(replace(statement, name=f"{job}: {statement.name}"))
        else:
            statements.append(statement)
    return tuple(statements)


def _host_runtime(group: ProgramGroup, runtime: Runtime | None, builder: GraphBuilder) -> HostRuntime | None:
    if runtime is None:
        return None

    def time(key: str, seconds: float) -> HostTime:
        costs = [host_cost(program, float(seconds), builder, partial(runtime.doubts, key, seconds)) for program in group.programs]
        return HostTime(tuple(costs), ticks.femtoseconds(seconds))

    dispatch = time("dispatch", runtime.dispatch)
    return HostRuntime(
        dispatch=dispatch,
        layer=dispatch if runtime.layer is None else time("layer", runtime.layer),
        issue=time("issue", runtime.issue),
        back=time("return", runtime.return_),
        call=time("call", runtime.call or 0.0),
        compile=time("compile", runtime.compile),
        bounded=runtime.queue_depth is not None,
        late=runtime.allocate == "run",
        free=runtime.free,
    )


def _receives(group: ProgramGroup) -> bool:
    return any(isinstance(statement, Receive) for statement in walk(group.body))


def barriers_of(group: ProgramGroup) -> dict[str, Barrier]:
    """Return the first barrier statement of each name."""
    return {barrier.name: barrier for barrier in reversed(list(walk(group.body))) if isinstance(barrier, Barrier)}


def _shared_barriers(groups: Sequence[ProgramGroup]) -> frozenset[str]:
    """Barriers that more than one group names."""
    names = [name for group in groups for name in barriers_of(group)]
    return frozenset(name for name in names if names.count(name) > 1)


def _emit_aligned(
    groups: Sequence[ProgramGroup], runtimes: Sequence[HostRuntime | None], shared: frozenset[str]
) -> list[Emitter]:
    """Emitters whose shared barriers are in blocks that run equally often.

    Each program's loops are first divided independently; if the blocks do not match, loops with shared barriers are unrolled.
    """
    emitters = _emit(groups, runtimes, shared)
    if not shared:
        return emitters
    from hwsim.workload.barriers import refuse_crossed, refuse_missing  # few workloads share barriers

    refuse_missing(groups, emitters, shared)
    if not _aligned(emitters, shared):
        emitters = _emit(groups, runtimes, shared, writes_out=True)
    refuse_crossed(groups, emitters, shared)
    return emitters


def _emit(
    groups: Sequence[ProgramGroup], runtimes: Sequence[HostRuntime | None], shared: frozenset[str], *, writes_out: bool = False
) -> list[Emitter]:
    emitters = []
    for group, runtime in zip(groups, runtimes, strict=True):
        emitter = Emitter(group.hosts, runtime, shared, writes_out=writes_out, receives=_receives(group))
        if group.start:
            emitter.begin(group.starts, group.start)
        emitter.run(group.body)
        emitter.finish()
        emitters.append(emitter)
    return emitters


def _aligned(emitters: Sequence[Emitter], shared: frozenset[str]) -> bool:
    return all(len({emitter.shape(name) for emitter in emitters if name in emitter.barriers}) <= 1 for name in shared)
