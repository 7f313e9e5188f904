"""Preparation of a simulation: from two files to an op graph on a machine.

Steps: parse the files, apply `set`, merge `use:` and substitute parameters, build the machine, decode the workload, and lower it
on the machine. A single `SpecError` lists the mistakes of both files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hwsim import families_interface as doors
from hwsim import ticks
from hwsim.families_interface import OtherActivity, family_interface
from hwsim.graph.opgraph import Change, OpGraph
from hwsim.machine import Machine, build
from hwsim.machine.moved_numbers import MovedNumber
from hwsim.ops.sensitivity import NoSensitivity
from hwsim.records import dataclass
from hwsim.results.expect import ExpectedQuantities, wanted_of
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, Warning, distinct_warnings, read
from hwsim.spec.expression import unused
from hwsim.spec.memo import memo_table, same
from hwsim.workload import Workload, changes, check_statements, disturbances, lower, read_workload, sources, suspicions
from hwsim.workload.events import events_without_effect
from hwsim.workload.lower import Writing
from hwsim.workload.names import place_of_op
from hwsim.workload.sources import changed, names_of_machine, title, tree_from
from hwsim.workload.unused_keys import keys_without_effect

if TYPE_CHECKING:
    from hwsim.families_interface import FamilyPlan
    from hwsim.graph.disturbance import Disturbance

Source = sources.Source
MANY: Final = 1_000_000  # ops up to which limits are not checked
GRAPHS: Final = (".npz",)  # endings of op graph files
MOST_BUILT: Final = 4  # memoized machines


@dataclass(frozen=True, slots=True)
class LoweredWorkload:
    """A workload that is lowered on a machine, ready for simulation."""

    machine: Machine
    machine_name: str
    workload_name: str
    graph: OpGraph
    wanted: ExpectedQuantities
    called: frozenset[str]  # names of the machine in `expect: {machine: ...}`
    settings: tuple[tuple[str, str], ...]
    warnings: tuple[Warning, ...]
    changes: Sequence[Change] = ()
    jobs: tuple[tuple[str, int], ...] = ()  # name and start (fs)
    events: tuple[Disturbance, ...] = ()
    doors: Mapping[str, FamilyPlan] = field(default_factory=dict)  # families that act during the run, by key
    workload: Workload | None = None  # None: op graph
    files: tuple[Tree, Tree] | None = None  # trees of machine and workload; None: one is a loaded value
    unsure: Sequence[MovedNumber] = ()  # uncertain numbers that no single op includes


def graph_file(workload: object) -> str:
    """Return the path of a workload that is an op graph file; "" for any other workload."""
    path = str(workload) if isinstance(workload, str | Path) else ""
    return path if path.endswith(GRAPHS) else ""


def prepare(
    machine: Source | Machine,
    workload: Source | Workload | OpGraph,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    fold: Writing = "auto",
) -> LoweredWorkload:
    """Prepare a simulation; arguments and errors as in `simulate`, and `fold="unseen"` as in `lower`."""
    mistakes = Mistakes()
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"`set` must be a dict of paths to values, got {type(set).__name__}")
    settings = dict(set or {})
    if given := graph_file(workload):
        from hwsim.graph.files import load_graph

        if settings:
            raise SpecError.of(None, f"`set` is not supported for {given}: an op graph is fixed", "use the workload file")
        workload = load_graph(given)
    machine_tree = None if isinstance(machine, Machine) else tree_from("machine", machine, mistakes)
    workload_tree = None if isinstance(workload, Workload | OpGraph) else tree_from("workload", workload, mistakes)
    mistakes.raise_if_any()
    changing: list[Warning] = []
    if settings:
        if machine_tree is None or workload_tree is None:
            raise TypeError("`set` needs a file or text: a loaded machine or workload cannot be changed")
        machine_tree, workload_tree = changed(machine_tree, workload_tree, settings, mistakes, changing)
    built = machine if isinstance(machine, Machine) else _built(machine_tree, mistakes)
    loaded = workload if isinstance(workload, Workload | OpGraph) else _loaded(workload_tree, mistakes)
    written = loaded if isinstance(loaded, Workload) else None
    jobs = (written.jobs if written else None) or {}
    starts = tuple((name, ticks.femtoseconds(jobs[name].start)) for name in sorted(jobs))
    wanted = ExpectedQuantities()
    if written:
        wanted = wanted_of(written.expect, mistakes, jobs, doors.expectable_quantities(written))
    if built is None or loaded is None:
        if written:
            check_statements(written, mistakes)
        raise SpecError(mistakes)
    if isinstance(loaded, OpGraph):
        refuse_foreign(loaded, built, mistakes)
    families = [family_interface(key) for key in written.families] if written else []
    unsure = () if isinstance(loaded, OpGraph) else built.unsure
    if any(family.exact for family in families):
        built = replace(built, unsure=())
    idle = keys_without_effect(written, built, mistakes) if written else ()
    disturbed = changes(written.events, built, mistakes) if written and written.events else ()
    folding = "never" if any(family.answers for family in families) else fold

    def lower_on(machine: Machine) -> tuple[OpGraph, Mapping[str, FamilyPlan]]:
        graph = loaded if isinstance(loaded, OpGraph) else lower(loaded, machine, mistakes, fold=folding, disturbed=disturbed)
        return graph, _planned(written, machine, mistakes, graph, disturbed) if written else {}

    try:
        try:
            graph, planned = lower_on(built)
        except NoSensitivity:
            built = replace(built, unsure=())
            graph, planned = lower_on(built)
        mistakes.raise_if_any()
    except ticks.TooLong as error:
        raise SpecError([*mistakes, too_long(error, workload_tree)]) from error
    except SpecError as error:
        names = names_of_machine(built, machine, machine_tree)
        raise SpecError(_pointing(error.mistakes, loaded, names if machine_tree else None)) from error
    if graph.shown > MANY:
        from hwsim.spec.limits import refuse_beyond  # rarely needed

        refuse_beyond("ops", graph.shown)
    return LoweredWorkload(
        machine=built,
        machine_name=title(built.name, machine_tree, "machine"),
        workload_name=title(written.name if written else Path(given).stem, workload_tree, "workload"),
        graph=graph,
        wanted=wanted,
        called=names_of_machine(built, machine, machine_tree),
        settings=tuple((path, str(value)) for path, value in settings.items()),
        warnings=distinct_warnings(
            built.warnings,
            changing,
            suspicions(written) if written else (),
            idle,
            _unused(workload_tree),
            _totals(graph, built),
            [Warning("not-folded", f"all ranks are simulated: {graph.unfolded}")] if graph.unfolded else (),
            *(plan.suspicions for plan in planned.values()),
            warn_of_unused_events(written, built, graph, planned.values(), over=False),
        ),
        changes=_of_classes(disturbed, graph),
        jobs=starts,
        events=disturbances(written.events) if written and written.events else (),
        doors=planned,
        workload=written,
        files=(machine_tree, workload_tree) if machine_tree and workload_tree else None,
        unsure=() if built.unsure else unsure,
    )


def with_all_ranks(lowered: LoweredWorkload) -> LoweredWorkload:
    """Return the lowered workload with the ops of all ranks."""
    assert lowered.workload is not None  # an op graph is not folded
    mistakes = Mistakes()
    disturbed = changes(lowered.workload.events, lowered.machine, mistakes)
    graph = lower(lowered.workload, lowered.machine, mistakes, fold="never", disturbed=disturbed)
    mistakes.raise_if_any()
    return replace(lowered, graph=graph, changes=disturbed)


def _unused(tree: Tree | None) -> Iterator[Warning]:
    """A warning for each unused parameter of a workload."""
    for name, place in unused(tree) if tree is not None else ():
        yield Warning("no-effect", f"`let: {name}` has no effect: the workload does not use ${name}", place)


def _planned(
    workload: Workload, machine: Machine, mistakes: Mistakes, graph: OpGraph, disturbed: Sequence[Change]
) -> dict[str, FamilyPlan]:
    """Plans of the families that act during the run, of the workload and its jobs."""
    acting = [key for key in workload.families if family_interface(key).answers]
    plans = {}
    for key in acting:
        issued = any(family_interface(other).issues for other in acting if other != key)  # by other families, on any capacity
        drawn = _drawn(graph) | (machine.capacities.keys() if issued else set())
        plans[key] = family_interface(key).plan(workload, machine, mistakes, OtherActivity(drawn, disturbed))
    return {key: plan for key, plan in plans.items() if plan is not None}


def _drawn(graph: OpGraph) -> set[str]:
    """Capacities that the ops of a graph use."""
    return {name for cost in graph.costs for name, _ in (*cost.demand.amounts, *cost.demand.holds, *cost.demand.clocks)}


def warn_of_unused_events(
    work: Workload | None, on: Machine, graph: OpGraph, doors: Collection[FamilyPlan], *, over: bool
) -> Iterator[Warning]:
    """Yield warnings for events without effect, before the run or, if ops are issued during the run, after it (`over`)."""
    if work and work.events and over == any(plan.issues for plan in doors):
        yield from events_without_effect(work.events, on, _drawn(graph).union(*(plan.drawn for plan in doors)))


def _totals(graph: OpGraph, machine: Machine) -> tuple[Warning, ...]:
    """Warnings about the total of all requests to a device."""
    if not any(cost.requests for cost in graph.costs):
        return ()
    from hwsim.workload.totals import totals

    return totals(graph, machine)


def too_long(error: ticks.TooLong, tree: Tree | None) -> Mistake:
    """Return a mistake for a time that is too long, at the place of its op."""
    return Mistake(None if tree is None else place_of_op(tree, error.op), error.message, error.hint)


def _pointing(mistakes: Sequence[Mistake], loaded: Workload | OpGraph, called: frozenset[str] | None) -> tuple[Mistake, ...]:
    """The mistakes of a workload on a machine; the first one without a hint receives the workload's intended machine as hint.

    There is no such hint if the workload itself has mistakes.

    Args:
        called: names of the machine; None if unknown.
    """
    alone = Mistakes()
    if isinstance(loaded, Workload):
        check_statements(loaded, alone)
    if not isinstance(loaded, Workload) or len(alone) or called is None:
        return tuple(mistakes)
    meant = loaded.expect.text("machine") if loaded.expect is not None and loaded.expect.is_mapping else None
    hint = f"the workload is written for {meant}" if meant and meant not in called else ""
    if not hint and "hwsim simulate" in loaded.notes:
        hint = f"notes of the workload: {loaded.notes}"
    bare = next((number for number, mistake in enumerate(mistakes) if mistake.hint is None), None)
    return tuple(replace(mistake, hint=hint) if hint and number == bare else mistake for number, mistake in enumerate(mistakes))


def _of_classes(disturbed: Sequence[Change], graph: OpGraph) -> Sequence[Change]:
    """The changes of a graph's capacities; in a folded graph, only those of the first capacity of each class."""
    if graph.alike is None:
        return disturbed
    listed = {capacity.name for capacity in graph.capacities}
    return tuple(change for change in disturbed if change.capacity in listed)


def load_machine(source: Source) -> Machine:
    """Return a machine by path or name.

    Raises:
        SpecError: mistakes of the file.
    """
    mistakes = Mistakes()
    machine = _built(tree_from("machine", source, mistakes), mistakes)
    if machine is None or len(mistakes):
        raise SpecError(mistakes)
    return machine


def load_workload(source: Source) -> Workload:
    """Return a workload by path or name; raise SpecError with its mistakes."""
    mistakes = Mistakes()
    workload = _loaded(tree_from("workload", source, mistakes), mistakes)
    if workload is None or len(mistakes):
        raise SpecError(mistakes)
    return workload


def loads(text: str) -> Machine | Workload:
    """Return the machine or workload of a text, as its first line states.

    Raises:
        SpecError: mistakes of the text.
    """
    tree = read(text if "\n" in text else text + "\n")
    return load_machine(tree) if tree.text("hwsim") == "machine/1" else load_workload(tree)


def _built(tree: Tree | None, mistakes: Mistakes) -> Machine | None:
    if tree is None:
        return None
    shared: dict[int, tuple[Tree, Machine]] | None = memo_table("machines")
    for source, built in (shared or {}).values():
        if same(source, tree):
            return built
    mistake_count, machine = len(mistakes), build(tree, mistakes)
    if machine is not None and len(mistakes) == mistake_count and shared is not None:
        while len(shared) >= MOST_BUILT:
            del shared[next(iter(shared))]
        shared[id(tree)] = tree, machine
    return machine


def _loaded(tree: Tree | None, mistakes: Mistakes) -> Workload | None:
    return None if tree is None else read_workload(tree, mistakes)


def refuse_foreign(graph: OpGraph, machine: Machine, mistakes: Mistakes) -> None:
    """Add a mistake if an op graph was created for another machine, on which its numbers are not valid."""
    known = {doubt.key for cost in graph.costs for term in cost.why for doubt in term.doubts}
    for number in machine.unsure:
        if number.doubt.key not in known:
            message = f"the op graph does not include the uncertainty of this number ({number.origin!s})"
            mistakes.add(number.place, message, "lower the workload again, or omit the uncertainty")
    for capacity in graph.capacities:
        on_machine = machine.capacities.get(capacity.name)
        if on_machine is None:
            mistakes.add(None, f"the op graph uses '{capacity.name}', which the machine {machine.name} does not have")
        elif on_machine.rate != capacity.rate:
            message = f"'{capacity.name}' has rate {capacity.rate:g} in the op graph, but {on_machine.rate:g} on the machine"
            mistakes.add(None, message, "the op graph is for another machine: lower the workload again")
