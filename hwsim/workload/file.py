"""Schema of a workload file: the ops to simulate, independent of the machine.

hwsim: workload/1
name: y = x + 1, a thousand times
let: {n: 1000}
runtime: {dispatch: 12 us, return: 8 us}
program:
  - repeat: {times: $n, do: [{busy: {name: add, device: cpu, time: 30 us, updates: x}}]}
  - wait: all
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, NamedTuple

from hwsim.devices import Start
from hwsim.families_interface import FAMILIES, family_interface
from hwsim.graph.opgraph import Freeing
from hwsim.origins import Origin, UncertainNumber, UncertaintySource, number_uncertainty
from hwsim.records import dataclass
from hwsim.spec import KEPT, Mistakes, Place, Tree, check_header, decode, field, place_field, resolve, tree_of
from hwsim.spec.numbers import Doubts
from hwsim.units import Seconds
from hwsim.workload.events import Event
from hwsim.workload.groups import RankGroups

FORMAT = "workload/1"
# keys of the forms of a workload or a job, exactly one of which is given
WORKLOAD_FORMS: Final = (
    "program",
    "programs",
    "pipeline",
    "train",
    "infer",
    *(key for key, family in FAMILIES.items() if family.says),
)


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of a backend that schedules ops by their dependences: numbers of ops that it runs at once, by kind of device."""

    cpu: int | Literal["cores"] | None = field(
        "maximum concurrent ops on each CPU, or `cores`: one per core (default: its ops run in order of issue)",
        default=None,
        minimum=1,
    )
    gpu: int | None = field(
        "maximum concurrent ops on each GPU (default: its ops run in order of issue)", default=None, minimum=1
    )
    copy: int | None = field(
        "maximum concurrent copies from or to each device in one direction (default: in order of issue)", default=None, minimum=1
    )


class Rules(NamedTuple):
    """The rules by which a runtime treats the ops of a program, without the thread times of `Runtime`.

    Args:
        compiles: whether the runtime compiles the body of a `call`.
        issues: whether the thread issues the ops of a compiled body one by one.
        queue_depth, blocks, per_op, starts, converts, fuse, workers: as in `Runtime`.
    """

    queue_depth: int | None
    blocks: Literal["none", "cpu", "all"]
    compiles: bool
    issues: bool
    per_op: float
    starts: Start
    converts: Literal["copy", "share"]
    fuse: Literal["none", "elementwise"]
    workers: Workers


@dataclass(frozen=True, slots=True)
class Runtime:
    """A framework runtime: CPU times and rules of the software that issues the ops of a program."""

    doubts_of: ClassVar[Doubts] = "file"

    dispatch: Seconds = field("time of the program's thread to issue one op", default=0.0, example="12 us")
    layer: Seconds | None = field(
        "time to issue one op of a `call` body that is not compiled, including the layer's Python code (default: `dispatch`)",
        default=None,
    )
    return_: Seconds = field("time from the end of an op to the return of its `wait`", key="return", default=0.0, example="8 us")
    queue_depth: int | None = field(
        "maximum ops in a queue, including the running op (default: unlimited)", default=None, minimum=1
    )
    blocks: Literal["none", "cpu", "all"] = field(
        "ops for which the program waits directly after issuing them: none, all, or `cpu`: ops whose result is not in GPU memory",
        default="none",
    )
    call: Seconds | None = field("time of the thread to start a compiled body (default: nothing is compiled)", default=None)
    issue: Seconds = field(
        "time of the thread per op of a compiled body: to issue it, as an interpreter does, or, with `starts: graph`, to launch "
        "its node of the graph",
        default=0.0,
    )
    per_op: Seconds = field("overhead in the device queue before each op of a compiled body", default=0.0, doubted=False)
    starts: Start = field(
        "launch mechanism for the kernels of a compiled body, see `launch` of a `gpu`; `graph` requires a GPU", default="stream"
    )
    compile: Seconds = field("time of the thread to compile a body, once per `call` of the program", default=0.0)
    converts: Literal["copy", "share"] = field(
        "whether `asnumpy` copies a value that is in host memory, or shares its memory with NumPy", default="copy"
    )
    fuse: Literal["none", "elementwise"] = field(
        "elementwise: fuse successive elementwise ops of a compiled body that use each other's results", default="none"
    )
    workers: Workers = field(
        "workers of a backend that starts an op once its inputs are ready, in order of readiness, instead of in order of issue. "
        "Ops with a `queue` run in order as without workers, and `queue_depth` limits only them",
        default_factory=Workers,
        example="{cpu: 4}",
    )
    allocate: Literal["issue", "run"] = field(
        "time at which the buffer of a value is allocated: when its op is issued, or when it runs. Temporary values of a "
        "compiled body are always allocated when their op runs",
        default="issue",
    )
    free: Freeing = field(
        "time at which the buffer of a value is freed: `scope` (its name refers to another value and all ops that use it have "
        "ended), `last-use` (all ops that use it have ended) or `stream` (its name refers to another value). Temporary values "
        "of a compiled body are always freed after their last use",
        default="scope",
    )
    use: str = field("a runtime of the library, such as mxnet or pytorch-eager; keys next to `use` override its keys", default="")
    kind: Literal["runtime"] = field("kind of library file; always `runtime`", default="runtime", record="for readers")
    name: str = field("name of the runtime for readers", default="", record="for readers")
    source: str = field("source of the times; it sets the uncertainty of every time that has no source of its own", default="")
    ref: str = field("title or address of the document or measurement behind `source`", default="")
    on: str = field(
        "CPU of the library on which the times were measured; on any other, they are as uncertain as values measured elsewhere",
        default="",
        example="d2l-laptop-cpu",
    )
    notes: str = field("remarks for readers", default="", record="for readers")

    def doubts(self, key: str, seconds: float, host: str) -> tuple[UncertaintySource, ...]:
        """Return the sources of uncertainty of one time of the runtime.

        Args:
            key: key of the time, such as `dispatch`.
            seconds: the time (s).
            host: name of the CPU in the parts library.

        Returns:
            one source of uncertainty, or none if the file states the time without an uncertainty.
        """
        if not isinstance(seconds, UncertainNumber):
            return ()
        source, subject = seconds.origin, key
        if self.on and self.on != host and source.spread is None and source.kind != "stated":
            source, subject = Origin("elsewhere", f"on {self.on}"), "times of the runtime"
        return (number_uncertainty(subject, source, seconds=seconds),)

    def __post_init__(self) -> None:
        """Refuse rules that contradict each other.

        Raises:
            ValueError: a buffer would be freed before it is allocated.
        """
        if self.allocate == "run" and self.free == "stream":
            raise ValueError("`free: stream` reuses buffers in order of issue, so it requires `allocate: issue`")

    @property
    def rules(self) -> Rules:
        """Rules by which the ops of a program are read."""
        compiles, issues = self.call is not None, self.issue > 0
        return Rules(
            self.queue_depth, self.blocks, compiles, issues, self.per_op, self.starts, self.converts, self.fuse, self.workers
        )


@dataclass(frozen=True, slots=True)
class RankProgram:
    """A program that runs once per device or node; the copies differ only in $self, $rank and $ranks."""

    each: tuple[str, ...] = field("devices or nodes that each run the program", one_or_many=True, example="gpu*")
    do: tuple[Tree, ...] = field("statements of the program", one_or_many=True)


class FamilyForms:
    """A base of workloads and jobs that adds a field for every family without a field of its own."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        for key, family in FAMILIES.items():
            if family.says and key not in cls.__annotations__:  # a class with slots is made twice
                cls.__annotations__[key] = "Tree | None"
                setattr(cls, key, field(family.says, default=None))

    @property
    def doors(self) -> dict[str, Any]:
        """Values of the families' keys that the workload or job itself gives, by key."""
        return {key: value for key in FAMILIES if (value := getattr(self, key)) is not None}


@dataclass(frozen=True, slots=True)
class Job(FamilyForms):
    """A job: one of several workloads on a machine; exactly one of program, programs, pipeline, train, infer and services."""

    start: Seconds = field("start time of the job", default=0.0, example="10 s")
    runtime: Runtime | None = field("runtime of the job (default: the runtime of the workload)", default=None)
    program: Tree | None = field("program of the job, as `program` of a workload", default=None)
    programs: Mapping[str, Tree] | None = field("programs of the job by name, as `programs` of a workload", default=None)
    pipeline: Tree | None = field("pipeline of the job, as `pipeline` of a workload", default=None)
    train: Tree | None = field("training of the job, as `train` of a workload", default=None)
    infer: Tree | None = field("inference of the job, as `infer` of a workload", default=None)
    services: Mapping[str, Tree] | None = field("services of the job by name, as `services` of a workload", default=None)
    requests: int | None = field("number of external requests to the services of the job", default=None, minimum=1)
    lasting: Seconds | None = field(
        "with `services`: duration of arrivals", key="for", default=None, exclusive_minimum=0.0, example="10 min"
    )
    device: tuple[str, ...] = field(
        "devices of the job; a program or pipeline runs once on each", default=(), one_or_many=True, example="node0..95.gpu*"
    )
    skip: bool = field("true: the job is ignored, as if the file did not contain it", default=False)
    place: Place = place_field()

    def on_devices(self, door: Tree, key: Literal["device", "each"] = "device") -> Tree:
        """Return a train, infer or service with the devices of the job, unless it names its own.

        With `each` as key, return a program or pipeline that runs once per device.
        """
        if not self.device or door.get(key) is not None or not (door.is_mapping or key == "each"):
            return door
        named = tree_of(self.device[0] if len(self.device) == 1 else list(self.device), self.place)
        is_whole = key == "device" or door.get("stages") is not None
        return door.put(key, named) if is_whole else tree_of({key: named, "do": door}, door.place)

    def placed(self, gpus: list[str]) -> list[Tree]:
        """Return the trees of the job, each with its devices.

        Args:
            gpus: names of all GPUs, the devices of a train or infer that names none.
        """
        trees = (*(getattr(self, key) for key in WORKLOAD_FORMS[3:]), *(self.services or {}).values())
        models = [self.on_devices(tree) for tree in trees if tree]
        everywhere = [tree_of({"device": gpus}) for model in models if model.get("device") is None and self.services is None]
        programs = [tree for tree in (self.program, self.pipeline, *(self.programs or {}).values()) if tree]
        return [*models, *everywhere, *(self.on_devices(program, "each") for program in programs)]


@dataclass(frozen=True, slots=True)
class Workload(FamilyForms):
    """A workload file: exactly one of program, programs, pipeline, train, infer and jobs; `services` alone or next to one."""

    hwsim: str = field("format and version of the file: workload/1", default=FORMAT)
    name: str = field("name of the workload; results print it", default="")
    source: str = field("source of the numbers in the file", default="", record="for readers")
    notes: str = field("remarks for readers", default="", record="for readers")
    let: Mapping[str, object] = field("parameters by name, used as `$name`", default_factory=dict, example="{n: 1000}")
    runtime: Runtime | None = field("CPU time to issue ops and to wait for them (default: zero)", default=None)
    groups: Mapping[str, RankGroups] = field(
        "groups of ranks by name, for `among` of a collective", default_factory=dict, example="{tp: {of: gpu*, size: 8}}"
    )
    program: Tree | None = field("statements of the only program; {each: gpu*, do: [...]}: one program per device", default=None)
    programs: Mapping[str, Tree] | None = field("several programs by name, each in the form of `program`", default=None)
    pipeline: Tree | None = field("stages that run concurrently on successive batches: {batches, ahead, stages}", default=None)
    train: Tree | None = field("training of a model: {model, global_batch, parallel, ...}", default=None)
    infer: Tree | None = field("inference of a model, offline or serving: {model, arrivals, prompt, output, ...}", default=None)
    services: Mapping[str, Tree] | None = field(
        "services by name: {web: {arrivals, workers, request: [...]}}; allowed alone or together with any other form",
        default=None,
        example="{web: {device: cpu, arrivals: {poisson: 100 1/s}, request: [{busy: {time: 3 ms}}]}}",
    )
    requests: int | None = field("with `services`: total number of external requests", default=None, minimum=1)
    lasting: Seconds | None = field(
        "with `services`: duration of arrivals, instead of `requests`",
        key="for",
        default=None,
        exclusive_minimum=0.0,
        example="10 min",
    )
    seed: int = field("with `services`: seed of the random numbers", default=0, minimum=0)
    jobs: Mapping[str, Job] | None = field(
        "several concurrent workloads on the same machine, by name",
        default=None,
        example="{big: {program: [...]}, small: {start: 10 s, program: [...]}}",
    )
    events: tuple[Event, ...] = field("events during the run: parts, links and services that slow down or fail", default=())
    expect: Tree | None = field("expected results, such as {makespan: 15 ms +- 1 %}; a miss is exit code 3", default=None)
    place: Place = place_field()

    @property
    def parts(self) -> tuple[Workload | Job, ...]:
        """The workload itself and its jobs."""
        return self, *(self.jobs or {}).values()

    @property
    def families(self) -> tuple[str, ...]:
        """Keys of the families that the workload or one of its jobs uses."""
        written = {key for part in self.parts for key in part.doors}
        return tuple(key for key in FAMILIES if key in written)

    def trees(self, family: str = "") -> Iterator[Tree]:
        """Yield the trees of a family, or of all families if "" is given; skip families that map names to trees."""
        for part in self.parts:
            yield from (tree for key, tree in part.doors.items() if key == (family or key) and isinstance(tree, Tree))

    def written_as(self, family: str) -> tuple[str, ...]:
        """Return the names of the jobs of a family; "" stands for the workload itself."""
        jobs = [name for name, job in (self.jobs or {}).items() if family in job.doors]
        return (*jobs, *([""] if family in self.doors else []))


def read_workload(tree: Tree, mistakes: Mistakes) -> Workload | None:
    """Return the workload of a file's tree with its parameters substituted; None if a mistake was added."""
    if not check_header(tree, FORMAT, mistakes):
        return None
    workload = decode(resolve(tree, mistakes, kind="workload", kept=_kept(tree)), Workload, mistakes, ignore=("use",))
    if workload is None:
        return None
    forms = {name: getattr(workload, name) for name in (*WORKLOAD_FORMS, "jobs")}
    needs_form = workload.services is None or any(form is not None for form in forms.values())
    if needs_form and not _has_one_of(forms, "a workload", tree.place, mistakes):
        return None
    workload = _at_their_keys(workload, tree)
    are_sound = [
        _has_one_of({form: getattr(job, form) for form in (*WORKLOAD_FORMS, "services")}, f"job '{name}'", job.place, mistakes)
        for name, job in (workload.jobs or {}).items()
    ]
    return _without_skipped(workload, mistakes) if all(are_sound) else None


def _without_skipped(workload: Workload, mistakes: Mistakes) -> Workload | None:
    if not workload.jobs:
        return workload
    jobs = {name: job for name, job in workload.jobs.items() if not job.skip}
    if not jobs:
        mistakes.add(next(iter(workload.jobs.values())).place, "every job has `skip: true`: nothing is left to simulate")
        return None
    return replace(workload, jobs=jobs)


def _kept(tree: Tree) -> frozenset[str]:
    """Parameters that only a rank, or a request of a service, defines: they stay in the tree."""
    jobs = tree.get("jobs")
    parts = [tree, *([] if jobs is None else [job for _, job in jobs.items()])]
    return KEPT.union(*(family_interface(key).kept(tree) for key in FAMILIES if any(part.get(key) is not None for part in parts)))


def _at_their_keys(workload: Workload, tree: Tree) -> Workload:
    """Set the place of every `train` to its key, so that mistakes about omitted keys refer to it."""
    jobs, inside = dict(workload.jobs or {}), tree.get("jobs")
    for name, job in jobs.items():
        around = None if inside is None else inside.get(name)
        if job.train is not None and around is not None:
            jobs[name] = replace(job, train=replace(job.train, place=around.key_place("train")))
    train = workload.train and replace(workload.train, place=tree.key_place("train"))
    return replace(workload, train=train, jobs=None if workload.jobs is None else jobs)


def _has_one_of(forms: Mapping[str, object], subject: str, place: Place, mistakes: Mistakes) -> bool:
    names = [name for name, form in forms.items() if form is not None]
    if len(names) != 1:
        mistakes.add(place, f"{subject} needs exactly one of {', '.join(forms)}, got {' and '.join(names) or 'none of them'}")
    return len(names) == 1
