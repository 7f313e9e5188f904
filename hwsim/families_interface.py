"""Interface between hwsim and its families of workloads (`train`, `infer`, `services`, `pipeline`).

All code that checks, lowers, simulates or reports a workload uses only this interface, never a family itself. A family is a key
of a workload file and a package in `hwsim.families`, imported when a file contains the key:

    door.py     DOOR: checks the file, writes ops or acts during the run, and returns the results of the family
    facts.py    FACTS: texts and numbers of the results for views, studies, plans and the explorer

The families `train` and `pipeline` write ops into the graph before the run and read their results from the timeline. The families
`infer` and `services` answer requests and act during the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from hwsim.engine import Actor
    from hwsim.graph.opgraph import Change, OpGraph
    from hwsim.machine import Machine
    from hwsim.results.result import Result
    from hwsim.results.timeline import Timeline
    from hwsim.results.usage import Usage
    from hwsim.spec import Mistakes, Tree, Warning
    from hwsim.units import Dimension


# Place of a section in an explanation: at its start, after the sentences, after the accounting of time
Place = Literal["first", "requests", "accounting"]
Server = Literal["", "model", "program"]
Shown = Literal["measure", "text", "bounds", "derived"]  # main number, sentence about it, causes with times, notes on derivations


class Family(NamedTuple):
    """A package of `hwsim.families`; "" in a field means that there is none.

    Args:
        folder: name of the package.
        figure: name of its figure, drawn by its module `draw`.
        rows: key of its list in the JSON document of a result.
        graph: attribute of an op graph that is not empty if the family wrote ops.
        says: description of its key, unless it is in `hwsim.workload.file`.
    """

    folder: str
    figure: str = ""
    rows: str = ""
    graph: str = ""
    says: str = ""


FAMILIES: Final[Mapping[str, Family]] = {  # by key of a workload file
    "train": Family("training", "failures", "trainings", "trainings"),
    "infer": Family("serving", "serving", "serving"),
    "services": Family("services", "services"),
    "pipeline": Family("pipeline", "queues", "pipelines", "lines"),
}


class SummaryLine(NamedTuple):
    """A labelled line of a summary; label "": a continuation line; verbose: shown only with -v."""

    label: str
    text: str
    verbose: bool = False


class OtherActivity(NamedTuple):
    """A description of other activity in a run: capacities in use, and changes of capacities during the run."""

    capacities: Collection[str] = ()
    changes: Sequence[Change] = ()


class FamilyResult(Protocol):
    """The results of a family in a run.

    Attributes:
        found: results in the family's own form, for its views.
        has_ops: whether it has ops in the timeline.
        server: kind of server that answers requests; "": none.
        of_kernels: whether arrivals determine the duration of the run, so that the interval refers to its kernels.
        endless: whether requests arrive without end.
        timed: jobs whose duration arrivals determine.
        spans: lifetimes of its parts by name, for the memory use of devices.
    """

    found: Any
    has_ops: bool = True
    of_kernels: bool = False
    endless: bool = False
    server: Server = ""

    @property
    def timed(self) -> Collection[str]:
        return ()

    @property
    def spans(self) -> Mapping[str, Sequence[Any]]:
        return {}

    def expected(self) -> Mapping[str, float]:
        """Return quantities by full name, for `expect:`."""
        return {}

    def warnings(self) -> Iterable[Warning]:
        """Yield warnings about the validity of the results."""
        return ()

    def violations(self) -> Iterable[str]:
        """Yield descriptions of inconsistencies in the results."""
        return ()

    def half(self, result: Result) -> float:
        """Return the half-width of the interval of its work, as a logarithm; default: the half-width of the critical path."""
        return result.interval.reach


class FamilyReport(Protocol):
    """The texts and numbers of a family's results for reports. The methods are called only for runs that contain the family.

    Attributes:
        billed: whether the summary always contains the energy.
        undrawn: message if the figure of the family is requested for a run without it; "": the figure itself reports that.
    """

    billed: bool = False
    undrawn: str = ""

    def headline(self, result: Result) -> Iterable[SummaryLine]:
        """Yield the first lines of the summary, which replace the duration of the run."""
        return ()

    def headline_s(self, result: Result) -> float | None:
        """Return the time (s) of the headline to which the interval of the run also refers; None: there is none."""
        return None

    def bottleneck(self, result: Result) -> tuple[str, bool]:
        """Return the bottleneck of its work and whether ops bound it; "" if the critical path of the run applies."""
        return "", False

    def rows(self, result: Result) -> Iterable[SummaryLine]:
        """Yield further lines of the summary."""
        return ()

    def table(self, result: Result) -> Iterable[str]:
        """Yield lines below the summary."""
        return ()

    def during(self, result: Result) -> str:
        """Return the amount of work that the duration refers to, such as ` for 10 steps`."""
        return ""

    def entries(self, result: Result, *, rows: bool) -> Mapping[str, Any]:
        """Return entries of the JSON document of a result; rows: including single requests."""
        ...

    def explained(self, result: Result, place: Place) -> Iterable[str]:
        """Yield the lines of its section of the explanation at this place."""
        return ()

    def explained_entries(self, result: Result) -> Mapping[str, Any]:
        """Return entries of the JSON document of an explanation."""
        return {}

    def measure(self, result: Result, like: Any, arrivals: float) -> Any:
        """Return the measure of `hwsim.views.explain.measure`; None: the duration of the run."""
        return None

    def title(self, result: Result) -> str:
        """Return the title of a Gantt chart; "": the default title."""
        return ""

    def measures(self, result: Result) -> Iterable[tuple[str, float]]:
        """Yield (column of `hwsim.studies.measures`, value in SI units) of its first job."""
        return ()

    def grows(self, result: Result) -> bool:
        """Return whether numbers of its first job grow with the length of the run."""
        return False

    def work(self, result: Result) -> Iterable[tuple[str, float, float]]:
        """Yield (unit, amount, rate per second) of its work."""
        return ()

    def states(self, result: Result) -> Iterable[Any]:
        """Yield the `hwsim.studies.states.ServiceSteadiness` of each service."""
        return ()

    def load(self, result: Result) -> Iterable[tuple[str, float | None, bool]]:
        """Yield (limit, utilization by the offered load, whether it is a capacity) of its requests, the lowest limit first."""
        return ()

    def numbers(self, result: Result) -> Mapping[str, float]:
        """Return the numbers of a plan by name in `hwsim.planning.requirements.MEASURES`."""
        return {}

    def at_ends(self, result: Result) -> Sequence[Mapping[str, float]]:
        """Return these numbers at both ends of the interval."""
        return ()

    def sure(self, result: Result) -> bool:
        """Return whether errors of measured runs bound its numbers."""
        return False

    def settling(self, result: Result) -> bool:
        """Return whether the run is too short to show a steady state of its first job."""
        return False

    def part_on(self, result: Result, *, at_most: bool) -> float:
        """Return the fraction of the GPU-hours that is paid for; at_most: at the maximum number of active replicas."""
        return 1.0

    def whole(self, result: Result) -> tuple[float, float] | None:
        """Return (seconds, spare nodes per node) of the entire job of which the run simulates the beginning; else None."""
        return None

    def unused(self, result: Result) -> Iterable[str]:
        """Yield descriptions of costs without use."""
        return ()

    def counts(self, result: Result) -> Iterable[tuple[str, float, float, float]]:
        """Yield (name, number, multiple of that of a continuous job, fraction of the cost) of each kind of work done."""
        return ()

    def page(self, result: Result, what: Shown) -> Any:
        """Return content that replaces the timeline's on the explorer's page; None: no replacement."""
        return None


class FamilyRun(Protocol):
    """A family during one run."""

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:
        """Return the graph with the ops that need no clock, and actors for other work; clocked: whether other actors run, too."""
        ...

    def usage(self, rows: Sequence[Usage], makespan_fs: int) -> Sequence[Usage]:
        """Return the use of each capacity, including amounts that it drew outside the timeline."""
        return rows

    def told(self) -> FamilyResult:
        """Return the results.

        Raises:
            SpecError: the run, as written in the file, has no result.
        """
        ...


class FamilyPlan(Protocol):
    """A family on a machine, before a run.

    Attributes:
        issues: whether it issues ops during the run.
        clocks: whether it requires other families to be simulated with a clock.
    """

    issues: bool = False
    clocks: bool = False

    @property
    def suspicions(self) -> Iterable[Warning]:
        """Warnings about valid but probably unintended statements."""
        return ()

    @property
    def drawn(self) -> Collection[str]:
        """Capacities that it draws from or waits for, in addition to the ops of the graph."""
        return ()

    def begin(self, machine: Machine, slower: float) -> FamilyRun:
        """Start one run; slower: factor on the duration of its work."""
        ...

    def holds(self, told: FamilyResult | None) -> Iterable[Any]:
        """Yield the values that it keeps in device memory."""
        return ()


class FamilyInterface(Protocol):
    """A family in a workload file; `workload` is a `hwsim.workload.Workload`.

    Attributes:
        quantities: quantities that `expect:` supports for each of its jobs.
        answers: whether it answers requests, whose arrivals determine its duration.
        issues: whether it issues ops during the run.
        exact: whether the uncertainty of machine numbers requires whole runs, because its ops have no sensitivities.
        unfolded: reason, following a name, why its ranks must not be folded like programs; "": they may.
    """

    quantities: Mapping[str, Dimension] = {}
    answers: bool = False
    issues: bool = False
    exact: bool = True
    unfolded: str = ""

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Add its keys to the JSON Schema of workload files."""
        ...

    def kept(self, tree: Tree) -> frozenset[str]:
        """Return the $names of a file whose values are known only later."""
        return frozenset()

    def check(self, workload: Any, mistakes: Mistakes) -> None:
        """Add all mistakes that can be found without a machine."""
        ...

    def suspicions(self, workload: Any) -> Iterable[Warning]:
        """Yield warnings about valid but probably unintended statements, on any machine."""
        return ()

    def idle(self, workload: Any, machine: Machine) -> Iterable[Warning]:
        """Yield warnings about keys without effect on this machine."""
        return ()

    def ops(self, tree: Tree) -> tuple[Collection[str], list[Tree]]:
        """Return (devices that each run it, ops that it writes as programs do)."""
        return (), []

    def wanted(self, workload: Any) -> Mapping[str, Dimension]:
        """Return the quantities that `expect:` supports, by full name."""
        return {}

    def write(self, part: Any, ground: Any) -> None:
        """Write the ops of a job into the graph; ground: the context of `hwsim.workload.lower`."""
        return

    def read(self, timeline: Timeline, workload: Tree | None) -> FamilyResult | None:
        """Return the results of the ops that it wrote; workload: file, for the places of mistakes. None: it wrote no ops."""
        return None

    def plan(self, workload: Any, machine: Machine, mistakes: Mistakes, beside: OtherActivity) -> FamilyPlan | None:
        """Return the family on a machine if it acts during the run; None if not, or after adding mistakes."""
        return None


def family_module(key: str, name: str) -> Any:
    """Return a module of a family."""
    return import_module(f"hwsim.families.{FAMILIES[key].folder}.{name}")


def family_interface(key: str) -> FamilyInterface:
    """Return the interface of a family."""
    found: FamilyInterface = family_module(key, "door").DOOR
    return found


def family_report(key: str) -> FamilyReport:
    """Return the report of a family: its texts and numbers for views, studies, plans and the explorer."""
    found: FamilyReport = family_module(key, "facts").FACTS
    return found


def family_reports(result: Result) -> list[FamilyReport]:
    """Return the reports (`FamilyReport`) of all families of a run."""
    return [family_report(key) for key in result.told]


def requests() -> Any:
    """Return the family that simulates parts of a machine request by request (`play`)."""
    return import_module("hwsim.families.requests.door")


def quantities() -> dict[str, Dimension]:
    """Return the quantities that `expect:` supports for a job of any family."""
    return {name: dimension for key in tuple(FAMILIES)[::-1] for name, dimension in family_interface(key).quantities.items()}


def expectable_quantities(workload: Any) -> dict[str, Dimension]:
    """Return the quantities that `expect:` of a workload supports, by full name."""
    return {name: dimension for key in workload.families for name, dimension in family_interface(key).wanted(workload).items()}


def quantities_by_job(names: Iterable[str], wanted: Mapping[str, Dimension]) -> dict[str, Dimension]:
    """Return quantities of each job by full name; the name "" is the workload itself."""
    return {f"{name}.{key}" if name else key: dimension for name in names for key, dimension in wanted.items()}


def read(timeline: Timeline, workload: Tree | None = None) -> dict[str, FamilyResult]:
    """Return the results of the families that wrote ops into the graph of a run."""
    written = [key for key, family in FAMILIES.items() if family.graph and getattr(timeline.flat.graph, family.graph)]
    found = {key: family_interface(key).read(timeline, workload) for key in written}
    return {key: told for key, told in found.items() if told is not None}
