"""Doors: how families of workloads join hwsim. Whoever checks, lowers, simulates or shows a workload knows no family but this.

A family is a key of a workload file and a folder of `hwsim.families`, which is imported by name where something has its key:

    door.py     DOOR: checks what is written, writes its ops or plays beside them, and tells what came of it
    facts.py    FACTS: what views, studies, plans and the explorer say of that

Some families write ops into the graph before the run (`train`, `pipeline`), and read their results off the timeline. Others
answer requests, and act while it goes on (`infer`, `services`).
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


Place = Literal["first", "requests", "accounting"]  # of a section: before all, after the sentences, after where the time goes
Server = Literal["", "model", "program"]
Shown = Literal["wanted", "says", "limits", "derived"]  # number of the run, sentence on it, causes with times, statements


class Family(NamedTuple):
    """A folder of `hwsim.families`.

    figure: the name of its figure, which its `draw` draws. rows: its list in the document of a result. graph: the attribute of
    an op graph that is not empty where it wrote ops. says: what its key is, unless `hwsim.workload.file` has it. "" without one.
    """

    folder: str
    figure: str = ""
    rows: str = ""
    graph: str = ""
    says: str = ""


FAMILIES: Final[Mapping[str, Family]] = {  # by the key of a workload file
    "train": Family("training", "failures", "trainings", "trainings"),
    "infer": Family("serving", "serving", "serving"),
    "services": Family("services", "services"),
    "pipeline": Family("pipeline", "queues", "pipelines", "lines"),
}


class Fact(NamedTuple):
    """A labelled line of a summary; label "" continues the one before. verbose: it is shown with -v alone."""

    label: str
    text: str
    verbose: bool = False


class Beside(NamedTuple):
    """What else runs: the capacities that others draw from, and changes of capacities during the run."""

    capacities: Collection[str] = ()
    changes: Sequence[Change] = ()


class Told(Protocol):
    """What came of a family in a run.

    Attributes:
        found: its results, as its own views read them.
        has_ops: whether ops of the timeline are its own.
        server: what answers requests, whose arrivals set the time; "" where nothing does.
        of_kernels: whether arrivals set the time of the run, so that the interval is of its kernels.
        endless: whether requests never end.
        timed: jobs whose time arrivals set.
        spans: when each of its parts was there, by name, for the memory of devices.
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
        """Quantities by their full names, for `expect:`."""
        return {}

    def warnings(self) -> Iterable[Warning]:
        """Reasons to doubt it."""
        return ()

    def breaches(self) -> Iterable[str]:
        """Contradictions in it, in words."""
        return ()

    def half(self, result: Result) -> float:
        """Half width, as a logarithm, of the interval of its work: of the critical path."""
        return result.interval.half


class Facts(Protocol):
    """What others say of a family in a run; each is asked only of a run that has it.

    Attributes:
        billed: whether its summary has its energy though nobody asks for it.
        undrawn: why a run without it has no figure of it; "" where the figure says so.
    """

    billed: bool = False
    undrawn: str = ""

    def headline(self, result: Result) -> Iterable[Fact]:
        """Lines of the summary that come first, instead of the time of the run."""
        return ()

    def headline_s(self, result: Result) -> float | None:
        """Seconds of its headline, where the interval of the run is of them, too."""
        return None

    def bottleneck(self, result: Result) -> tuple[str, bool]:
        """The bottleneck of its work and whether ops bound it, where the critical path of the run is not its own; "" else."""
        return "", False

    def rows(self, result: Result) -> Iterable[Fact]:
        """Further lines of the summary."""
        return ()

    def table(self, result: Result) -> Iterable[str]:
        """Lines below the summary."""
        return ()

    def during(self, result: Result) -> str:
        """What the time of the run is for: ` for 10 steps`."""
        return ""

    def entries(self, result: Result, *, rows: bool) -> Mapping[str, Any]:
        """Entries of the document of a result; rows: with those of single requests."""
        ...

    def explained(self, result: Result, place: Place) -> Iterable[str]:
        """A section of the explanation, where it has one at that place."""
        return ()

    def explained_entries(self, result: Result) -> Mapping[str, Any]:
        """Entries of the document of an explanation."""
        return {}

    def measure(self, result: Result, like: Any, arrivals: float) -> Any:
        """As `hwsim.views.explain.measure`; None where the time of the run is its measure."""
        return None

    def title(self, result: Result) -> str:
        """The finding of a Gantt chart; "" for that of any run."""
        return ""

    def measures(self, result: Result) -> Iterable[tuple[str, float]]:
        """(column of `hwsim.studies.measures`, value in SI units), of the first of its jobs."""
        return ()

    def grows(self, result: Result) -> bool:
        """Whether numbers of the first of its jobs grow with the run."""
        return False

    def work(self, result: Result) -> Iterable[tuple[str, float, float]]:
        """(unit, amount, rate per second) of its work."""
        return ()

    def states(self, result: Result) -> Iterable[Any]:
        """`hwsim.studies.states.State` of each of its services."""
        return ()

    def load(self, result: Result) -> Iterable[tuple[str, float | None, bool]]:
        """(limit, its utilisation as asked, whether it is a capacity) of what bounds its requests, the lowest first."""
        return ()

    def numbers(self, result: Result) -> Mapping[str, float]:
        """Numbers of a plan, by `hwsim.planning.wants.MEASURES`."""
        return {}

    def at_ends(self, result: Result) -> Sequence[Mapping[str, float]]:
        """The same at the ends of the interval."""
        return ()

    def sure(self, result: Result) -> bool:
        """Whether errors of measured runs bound its numbers."""
        return False

    def settling(self, result: Result) -> bool:
        """Whether the run is too short to tell a steady state of the first of its jobs."""
        return False

    def part_on(self, result: Result, *, at_most: bool) -> float:
        """Part of the GPU-hours that is paid for; at_most: while the most is on."""
        return 1.0

    def whole(self, result: Result) -> tuple[float, float] | None:
        """(seconds, spare machines for each node) of the entire job that the run is the beginning of."""
        return None

    def unused(self, result: Result) -> Iterable[str]:
        """What is paid for beside it, in words."""
        return ()

    def counts(self, result: Result) -> Iterable[tuple[str, float, float, float]]:
        """(name, number, times as many as a job that goes on does, part of the cost) of each thing that it did."""
        return ()

    def page(self, result: Result, what: Shown) -> Any:
        """What the explorer shows instead of what it takes from the timeline; None: nothing else."""
        return None


class Open(Protocol):
    """A family in a run that goes on."""

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:
        """The graph with what needs no clock, and actors for the rest; clocked: something else happens while they run."""
        ...

    def usage(self, rows: Sequence[Usage], makespan_fs: int) -> Sequence[Usage]:
        """The use of each capacity, with what it drew beside the timeline."""
        return rows

    def told(self) -> Told:
        """What came of it.

        Raises:
            SpecError: it tells nothing, as it is written.
        """
        ...


class Planned(Protocol):
    """A family on a machine, which acts while the run goes on.

    Attributes:
        issues: whether it issues ops while it runs.
        clocks: whether others have to be on the clock because of it.
    """

    issues: bool = False
    clocks: bool = False

    @property
    def suspicions(self) -> Iterable[Warning]:
        """What is valid but probably not meant."""
        return ()

    @property
    def drawn(self) -> Collection[str]:
        """Capacities that it draws from or waits for, beside the ops of the graph."""
        return ()

    def begin(self, machine: Machine, slower: float) -> Open:
        """Its part in one run; slower: times as long as expected that its work takes."""
        ...

    def holds(self, told: Told | None) -> Iterable[Any]:
        """Values that it keeps in the memory of devices."""
        return ()


class Door(Protocol):
    """A family as a workload file writes it; a workload is `hwsim.workload.Workload`.

    Attributes:
        quantities: what `expect:` may have of each of its jobs.
        answers: whether it answers requests, whose arrivals set its time.
        exact: whether no op of it follows a number of the machine's file, but a whole run does.
        issues: whether it issues ops while the run goes on.
        unfolded: why its ranks are not folded by who folds programs, after a name; "" if they may be.
    """

    quantities: Mapping[str, Dimension] = {}
    answers: bool = False
    issues: bool = False
    exact: bool = True
    unfolded: str = ""

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Put the JSON Schema of its keys into that of workload files."""
        ...

    def kept(self, tree: Tree) -> frozenset[str]:
        """Names after a $ that are known only later, in a file."""
        return frozenset()

    def check(self, workload: Any, mistakes: Mistakes) -> None:
        """Note every mistake that needs no machine to be seen."""
        ...

    def suspicions(self, workload: Any) -> Iterable[Warning]:
        """What is valid but probably not meant, on any machine."""
        return ()

    def idle(self, workload: Any, machine: Machine) -> Iterable[Warning]:
        """Keys of it that change nothing on a machine."""
        return ()

    def ops(self, tree: Tree) -> tuple[Collection[str], list[Tree]]:
        """(devices of which each runs it, the ops that it writes as programs do)."""
        return (), []

    def wanted(self, workload: Any) -> Mapping[str, Dimension]:
        """Quantities that `expect:` may have, by their full names."""
        return {}

    def write(self, part: Any, ground: Any) -> None:
        """Write the ops of a job into the graph; ground: as of `hwsim.workload.lower`."""
        return

    def read(self, timeline: Timeline, workload: Tree | None) -> Told | None:
        """What came of what it wrote into the graph; workload: the file, for the places of mistakes."""
        return None

    def plan(self, workload: Any, machine: Machine, mistakes: Mistakes, beside: Beside) -> Planned | None:
        """The family on a machine, where it acts while the run goes on; None also once mistakes are noted."""
        return None


def room(key: str, name: str) -> Any:
    """A module of a family."""
    return import_module(f"hwsim.families.{FAMILIES[key].folder}.{name}")


def door(key: str) -> Door:
    """The door of a family."""
    found: Door = room(key, "door").DOOR
    return found


def facts(key: str) -> Facts:
    """What others say of a family."""
    found: Facts = room(key, "facts").FACTS
    return found


def facts_of(result: Result) -> list[Facts]:
    """Those of the families of a run."""
    return [facts(key) for key in result.told]


def requests() -> Any:
    """The family that parts of a machine ask for: `play` simulates them request by request."""
    return import_module("hwsim.families.requests.door")


def quantities() -> dict[str, Dimension]:
    """All that `expect:` may have of a job of any family."""
    return {name: dimension for key in tuple(FAMILIES)[::-1] for name, dimension in door(key).quantities.items()}


def wanted_of(workload: Any) -> dict[str, Dimension]:
    """What `expect:` of a workload may have, by full names."""
    return {name: dimension for key in workload.families for name, dimension in door(key).wanted(workload).items()}


def of_each(names: Iterable[str], wanted: Mapping[str, Dimension]) -> dict[str, Dimension]:
    """Quantities of each job, by their full names; "" is the workload itself."""
    return {f"{name}.{key}" if name else key: dimension for name in names for key, dimension in wanted.items()}


def read(timeline: Timeline, workload: Tree | None = None) -> dict[str, Told]:
    """What came of the families that wrote into the graph of a run."""
    written = [key for key, each in FAMILIES.items() if each.graph and getattr(timeline.flat.graph, each.graph)]
    found = {key: door(key).read(timeline, workload) for key in written}
    return {key: told for key, told in found.items() if told is not None}
