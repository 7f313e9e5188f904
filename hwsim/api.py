"""The functions of `import hwsim`: read both files, lower, simulate, check.

Order: read the files; apply `set`; follow `use:` and put parameters in; build the machine, read the
workload, lower it on the machine; simulate; compare with the `expect:` of the workload. The mistakes of
both files come together in one `SpecError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hwsim import engine as engines
from hwsim import ticks
from hwsim.devices import CannotCompute
from hwsim.engine import Which
from hwsim.formats import format_quantity
from hwsim.graph.disturbance import Disturbance
from hwsim.graph.opgraph import Change, Names, OpGraph
from hwsim.machine import Machine, UnknownName, build
from hwsim.records import dataclass
from hwsim.results.checks import check, notes
from hwsim.results.expect import Wanted, verdicts, wanted_of
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage
from hwsim.spec import (
    Mistake,
    Mistakes,
    SpecError,
    Tree,
    Warning,
    different,
    read,
)
from hwsim.workload import Workload, changes, check_statements, disturbances, lower, read_workload, sources, suspicions
from hwsim.workload.lower import Folding
from hwsim.workload.names import place_of_op
from hwsim.workload.sources import changed, names_of_machine, title, tree_from
from hwsim.workload.unheeded import unheeded

if TYPE_CHECKING:  # reports, and what few runs have, are imported when they are asked for
    from hwsim.actors.serving import Service
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf
    from hwsim.results.requests import LatencyCurve, RequestStatistics
    from hwsim.results.result import Again, JobSpan
    from hwsim.results.timeline import Steady
    from hwsim.views.explain.critical import Share
    from hwsim.workload.serving.plan import ServicePlan

Source = sources.Source
MOST_OPS = 30_000_000
BYTES_PER_OP = 300  # measured, see benchmarks

Progress = Callable[[int, int], None]  # ops done, ops known


class ExpectationFailed(Exception):
    """An expectation of the workload is violated; `run` is the complete result."""

    def __init__(self, run: Run) -> None:
        self.run = run
        violated = (verdict for verdict in run.verdicts if verdict.status == "violated")
        super().__init__("; ".join(f"{verdict.quantity} {verdict.wanted}: {verdict.reason}" for verdict in violated))


class OutOfMemory(ExpectationFailed):
    """A device has too little memory; `run` is the result with enough of it."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.args = ("; ".join(device.verdict() for device in run.memory if not device.fits),)


class Run(Result):
    """A result with the reports at hand.

    >>> copy = {"copy": {"from": "cpu", "to": "gpu0", "bytes": "160 MB"}}
    >>> run = simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "program": [copy]})
    >>> str(run.limited_by[0].cause)
    'uplink:cpu->psw'
    """

    @property
    def limited_by(self) -> tuple[Share, ...]:
        """Causes along the critical path, with times that add up to the makespan."""
        from hwsim.views.explain.critical import limited_by

        return limited_by(self.timeline)

    def to_json(self, *, ops: bool = False) -> dict[str, Any]:
        """The document `hwsim: result/1`; with a row per op if asked for."""
        from hwsim.views.summary.document import as_dict

        return as_dict(self, ops=ops)

    def trace(self, path: str | Path) -> Path:
        """Write the timeline for Perfetto; packed if the name ends in .gz."""
        from hwsim.views import REPORTS
        from hwsim.views.kit.writing import write

        return write(path, REPORTS["trace"](self, Path(path).suffix))

    def plot(self, figure: str, path: str | Path) -> Path:
        """Write a figure of `hwsim.views.FIGURES`: .png, .svg or .pdf.

        Raises:
            ValueError: no such figure, or another suffix.
        """
        from hwsim.views import FIGURES

        if figure not in FIGURES:
            raise ValueError(f"there is no figure '{figure}'; there are {', '.join(FIGURES)}")
        from hwsim.views.kit.writing import write

        return write(path, FIGURES[figure](self, Path(path).suffix))

    def __str__(self) -> str:
        from hwsim.views.summary.say import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from hwsim.views.summary.html import fragment

        return fragment(self)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A workload on a machine, ready to be simulated."""

    machine: Machine
    machine_name: str
    workload_name: str
    graph: OpGraph
    wanted: Wanted
    called: frozenset[str]  # names of the machine in `expect: {machine: ...}`
    settings: tuple[tuple[str, str], ...]
    warnings: tuple[Warning, ...]
    changes: tuple[Change, ...] = ()
    jobs: tuple[tuple[str, int], ...] = ()  # name and start (fs)
    events: tuple[Disturbance, ...] = ()
    services: tuple[ServicePlan, ...] = ()
    workload: Workload | None = None  # None: an op graph was given
    files: tuple[Tree, Tree] | None = None  # machine and workload as they were run; None: one was given as a value


def simulate(
    machine: Source | Machine,
    workload: Source | Workload | OpGraph,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    expect: bool | Literal["auto"] = "auto",
    requests: str | Sequence[str] = (),
    latency: bool = False,
    steady: bool = False,
    progress: Progress | None = None,
    fold: Folding = "auto",
    engine: Which = "auto",
) -> Run:
    """Simulate a workload on a machine.

    Args:
        machine, workload: a path, a name of the library, the text of a file, or a loaded value; a workload may also be an
            op graph, or the path of one (graph.npz, graph.parquet).
        set: paths and values to change in the files, `{"machine.gpu.count": 8}`.
        expect: check the `expect:` of the workload ("auto": if it names this machine and nothing is set).
        requests: parts to simulate request by request, in addition to those with `fidelity: requests`.
        steady: simulate long loops only until their iterations repeat to the femtosecond, and write out the rest.
        latency: also find the latency of their requests at any load (for `Run.plot("latency", ...)`).
        progress: called from time to time with the ops done and the ops known.
        fold: simulate identical ranks once: if they are many ("auto"), always, or never.
        engine: "simpy": op by op as SimPy processes, which is slow and gives the same times ("auto": the fastest).

    Raises:
        SpecError: all mistakes of both files; a part that cannot be simulated request by request.
        Deadlock: ops wait for each other.
        OutOfMemory: a device does not have the memory that the values of the run take.
        ExpectationFailed: an expectation that was checked is violated.
        BrokenInvariant: the result contradicts itself (a defect of hwsim).
    """
    lowered = prepare(machine, workload, set=set, fold="never" if requests else fold)
    parts = [requests] if isinstance(requests, str) else requests
    services = _services(lowered)
    few: Steady | None = None
    served: tuple[RequestStatistics, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()
    try:
        if steady:
            timeline, few = _steadily(lowered, parts, progress, engine)
        else:
            actors = [service.actor for service in services]
            timeline, served, curves = _simulated(lowered, parts, progress, actors, engine, latency=latency)
    except ticks.TooLong as error:
        raise SpecError([_too_long(error, lowered.files[1] if lowered.files else None)]) from error
    except CannotCompute as error:  # a service makes its ops while it runs
        raise SpecError([Mistake(None, error.message, error.hint)]) from error
    values = {"makespan": timeline.makespan}
    spans: tuple[JobSpan, ...] = ()
    if lowered.jobs:
        from hwsim.results.result import job_spans

        spans = job_spans(timeline, lowered.jobs)
        values |= {f"{job.name}.makespan": job.makespan_s for job in spans}
    serving = tuple(statistics for service in services if (statistics := service.statistics()) is not None)
    if serving:
        from hwsim.results.serving import expected_of as expected_of_serving

        values |= expected_of_serving(serving)
    if timeline.flat.graph.trainings:
        from hwsim.results.training import expected_of as expected_of_training
        from hwsim.results.training import trainings

        values |= expected_of_training(trainings(timeline))
    run = Run(
        machine=lowered.machine_name,
        workload=lowered.workload_name,
        timeline=timeline,
        usage=usage(timeline),
        verdicts=verdicts(lowered.wanted, values, called=lowered.called, changed=bool(lowered.settings), expect=expect),
        settings=lowered.settings,
        warnings=different(lowered.warnings, notes(timeline, few, wanted=steady)),
        devices=lowered.machine.kinds,
        memory=_memory(lowered, timeline),
        requests=served,
        curves=curves,
        jobs=spans,
        events=lowered.events,
        changes=lowered.changes,
        steady=few,
        names_of=_names_of(lowered),
        serving=serving,
        again=_again(lowered, requests=requests, fold=fold, steady=steady),
    )
    check(run)  # before a verdict: a result that contradicts itself has none
    if not run.fits:
        raise OutOfMemory(run)
    if not run.met:
        raise ExpectationFailed(run)
    return run


def _again(lowered: Lowered, **options: Any) -> Again | None:
    if lowered.files is None:
        return None
    from hwsim.results.result import Again

    return Again(*lowered.files, partial(_with, lowered.files, options))


def _with(files: tuple[Tree, Tree], options: Mapping[str, Any], settings: Mapping[str, str]) -> Run:
    """The run with further settings, even if it does not fit its memory."""
    try:
        return simulate(*files, set=settings, expect=False, **options)
    except ExpectationFailed as failed:
        return failed.run


def _memory(lowered: Lowered, timeline: Timeline) -> tuple[DeviceMemory, ...]:
    held = [value for plan in lowered.services for value in plan.holds()] if lowered.jobs else []  # a service alone was checked
    if not lowered.graph.buffers and not held:
        return ()
    from hwsim.results.memory import memory, memory_sizes

    return memory(timeline, memory_sizes(lowered.machine, lowered.graph, held), held)


def _names_of(lowered: Lowered) -> NamesOf | None:
    """A function for the names of the ops of a rank that another rank represents."""
    workload, alike = lowered.workload, lowered.graph.alike
    if workload is None or alike is None:
        return None

    def names(rank: int) -> Names:
        from hwsim.workload.naming import names_of

        return names_of(workload, lowered.machine, alike, rank)

    return names


def _steadily(
    lowered: Lowered, requests: Sequence[str], progress: Progress | None, which: Which
) -> tuple[Timeline, Steady | None]:
    """The timeline, long loops simulated only until they repeat.

    Raises:
        SpecError: something happens that does not repeat.
    """
    from hwsim.engine.long_loops import play_steady

    parts = [*requests, *lowered.machine.by_requests()]
    irregular = "events" if lowered.changes else "a service" if lowered.services else ""
    if irregular := irregular or (f"requests served one by one by {parts[0]}" if parts else ""):
        raise SpecError([Mistake(None, f"a run with {irregular} does not repeat", "simulate it in full, without `steady`")])
    return play_steady(lowered.graph, partial(engines.simulate, progress=progress, which=which))


def _services(lowered: Lowered) -> tuple[Service, ...]:
    if not lowered.services:
        return ()
    from hwsim.actors.serving import Service

    return tuple(Service(plan, lowered.machine) for plan in lowered.services)


def _simulated(
    lowered: Lowered,
    requests: Sequence[str],
    progress: Progress | None,
    services: Sequence[engines.Actor],
    which: Which,
    *,
    latency: bool,
) -> tuple[Timeline, tuple[RequestStatistics, ...], tuple[LatencyCurve, ...]]:
    """The timeline, with statistics and latency curves of parts that are simulated request by request."""
    machine = lowered.machine
    in_file = machine.by_requests()
    actors = services
    if lowered.changes:
        from hwsim.engine.driver import changing

        actors = (changing(lowered.changes), *services)
    if not in_file and not requests:
        return engines.simulate(lowered.graph, actors=actors, progress=progress, which=which), (), ()

    from hwsim.actors import request_level

    try:
        named = [name for pattern in requests for name in machine.select(pattern)]
        parts = {name: machine.device(name) for name in [*in_file, *named]}
        plays = {name: request_level.play_of(part.kind, part.model, name) for name, part in parts.items()}
        requested = {cost.requests.device: cost.requests for cost in reversed(lowered.graph.costs) if cost.requests}
        if idle := [name for name in named if name not in requested]:
            raise request_level.CannotPlay(f"no op asks {idle[0]} for single requests", "the ops `access`, `read` and `write` do")
        players = request_level.Players(lowered.graph, plays)
        timeline = engines.simulate(players.graph, actors=actors, server=players.server, progress=progress, which=which)
        curves = tuple(
            request_level.latency_curve(
                name, partial(request_level.play_of, parts[name].kind, parts[name].model, name), requested[name]
            )
            for name in sorted(parts)
            if latency and name in requested
        )
    except (request_level.CannotPlay, UnknownName) as error:
        raise SpecError([Mistake(None, str(error.args[0]), error.hint)]) from error
    return timeline, players.statistics(timeline), curves


def prepare(
    machine: Source | Machine,
    workload: Source | Workload | OpGraph,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    fold: Folding = "auto",
) -> Lowered:
    """Everything before the simulation; arguments and errors as of `simulate`."""
    mistakes = Mistakes()
    settings = dict(set or {})
    given = str(workload) if isinstance(workload, str | Path) else ""
    if given.endswith((".npz", ".parquet")):
        from hwsim.graph.files import load_graph

        if settings:
            raise SpecError([Mistake(None, f"nothing can be set with {given}", "an op graph has its numbers put in already")])
        workload = load_graph(given)
    machine_tree = None if isinstance(machine, Machine) else tree_from("machine", machine, mistakes)
    workload_tree = None if isinstance(workload, Workload | OpGraph) else tree_from("workload", workload, mistakes)
    mistakes.raise_if_any()
    changing: list[Warning] = []
    if settings:
        if machine_tree is None or workload_tree is None:
            raise TypeError("`set` changes what files say; a machine or workload already loaded cannot be changed")
        machine_tree, workload_tree = changed(machine_tree, workload_tree, settings, mistakes, changing)
    built = machine if isinstance(machine, Machine) else _built(machine_tree, mistakes)
    loaded = workload if isinstance(workload, Workload | OpGraph) else _loaded(workload_tree, mistakes)
    jobs = (loaded.jobs or {}) if isinstance(loaded, Workload) else {}
    starts = tuple((name, ticks.femtoseconds(jobs[name].start)) for name in sorted(jobs))
    wanted = Wanted()
    if isinstance(loaded, Workload):
        wanted = wanted_of(loaded.expect, mistakes, jobs, loaded.written_as("infer"), loaded.written_as("train"))
    if built is None or loaded is None:
        if isinstance(loaded, Workload):
            check_statements(loaded, mistakes)
        raise SpecError(mistakes)
    if isinstance(loaded, OpGraph):
        from hwsim.workload.foreign import refuse_foreign

        refuse_foreign(loaded, built, mistakes)
    idle = unheeded(loaded, built, mistakes) if isinstance(loaded, Workload) else ()
    disturbed = changes(loaded.events, built, mistakes) if isinstance(loaded, Workload) and loaded.events else ()
    folding = "never" if isinstance(loaded, Workload) and loaded.written_as("infer") else fold
    try:
        graph = loaded if isinstance(loaded, OpGraph) else lower(loaded, built, mistakes, fold=folding, disturbed=disturbed)
        services = _planned(loaded, built, mistakes) if isinstance(loaded, Workload) else ()
        mistakes.raise_if_any()
    except ticks.TooLong as error:
        raise SpecError([*mistakes, _too_long(error, workload_tree)]) from error
    except SpecError as error:
        names = names_of_machine(built, machine, machine_tree)
        raise SpecError(_pointing(error.mistakes, loaded, names if machine_tree else None)) from error
    _refuse_huge(graph)
    return Lowered(
        machine=built,
        machine_name=title(built.name, machine_tree, "machine"),
        workload_name=title(loaded.name if isinstance(loaded, Workload) else Path(given).stem, workload_tree, "workload"),
        graph=graph,
        wanted=wanted,
        called=names_of_machine(built, machine, machine_tree),
        settings=tuple((path, str(value)) for path, value in settings.items()),
        warnings=different(
            built.warnings,
            changing,
            suspicions(loaded) if isinstance(loaded, Workload) else (),
            idle,
            _totals(graph, built),
            [Warning("not-folded", f"all ranks are simulated: {graph.unfolded}")] if graph.unfolded else (),
            *(service.warnings for service in services),
        ),
        changes=_of_classes(disturbed, graph),
        jobs=starts,
        events=disturbances(loaded.events) if isinstance(loaded, Workload) and loaded.events else (),
        services=services,
        workload=loaded if isinstance(loaded, Workload) else None,
        files=(machine_tree, workload_tree) if machine_tree and workload_tree else None,
    )


def _planned(workload: Workload, machine: Machine, mistakes: Mistakes) -> tuple[ServicePlan, ...]:
    """The services of a workload and of its jobs."""
    if workload.infer is None and not any(job.infer is not None for job in (workload.jobs or {}).values()):
        return ()
    from hwsim.workload.serving import plan_services

    return plan_services(workload, machine, mistakes)


def _totals(graph: OpGraph, machine: Machine) -> tuple[Warning, ...]:
    """Warnings about the sum of all single requests to a device."""
    if not any(cost.requests for cost in graph.costs):
        return ()
    from hwsim.workload.totals import totals

    return totals(graph, machine)


def _too_long(error: ticks.TooLong, tree: Tree | None) -> Mistake:
    """The mistake of a time that is too long, at the op that takes it."""
    return Mistake(None if tree is None else place_of_op(tree, error.op), error.message, error.hint)


def _pointing(mistakes: Sequence[Mistake], loaded: Workload | OpGraph, called: frozenset[str] | None) -> tuple[Mistake, ...]:
    """The mistakes of a workload on a machine; the first without a hint names the machine that the workload is written for.

    There is no such hint if the workload alone has mistakes.

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
        hint = f"the workload says: {loaded.notes}"
    bare = next((number for number, mistake in enumerate(mistakes) if mistake.hint is None), None)
    return tuple(replace(mistake, hint=hint) if hint and number == bare else mistake for number, mistake in enumerate(mistakes))


def _of_classes(disturbed: Sequence[Change], graph: OpGraph) -> tuple[Change, ...]:
    """The changes of capacities in a graph; in a folded graph, of the first capacity of each class."""
    if graph.alike is None:
        return tuple(disturbed)
    return tuple(change for change in disturbed if change.capacity in graph.alike.capacities)


def _refuse_huge(graph: OpGraph) -> None:
    """Raise before a graph fills the memory.

    Raises:
        SpecError: more ops than fit.
    """
    if graph.total > MOST_OPS:
        size = format_quantity(graph.total * BYTES_PER_OP, "B")
        message = f"{graph.total:,} ops would take about {size} of memory; the limit is {MOST_OPS:,}"
        raise SpecError([Mistake(None, message, "repeat less often: most loops settle after a few iterations")])


def load_machine(source: Source) -> Machine:
    """A machine by path or name.

    Raises:
        SpecError: its mistakes.
    """
    mistakes = Mistakes()
    machine = _built(tree_from("machine", source, mistakes), mistakes)
    if machine is None or len(mistakes):
        raise SpecError(mistakes)
    return machine


def load_workload(source: Source) -> Workload:
    """A workload by path or name, as `load_machine`."""
    mistakes = Mistakes()
    workload = _loaded(tree_from("workload", source, mistakes), mistakes)
    if workload is None or len(mistakes):
        raise SpecError(mistakes)
    return workload


def loads(text: str) -> Machine | Workload:
    """The machine or workload that a text is, by its first line.

    Raises:
        SpecError: its mistakes.
    """
    tree = read(text if "\n" in text else text + "\n")
    return load_machine(tree) if tree.text("hwsim") == "machine/1" else load_workload(tree)


def _built(tree: Tree | None, mistakes: Mistakes) -> Machine | None:
    return None if tree is None else build(tree, mistakes)


def _loaded(tree: Tree | None, mistakes: Mistakes) -> Workload | None:
    return None if tree is None else read_workload(tree, mistakes)
