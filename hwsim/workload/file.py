"""A workload file: what is to be run, before it is known on what.

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
from hwsim.doors import FAMILIES, door
from hwsim.graph.opgraph import Freeing
from hwsim.origins import Doubt, Origin, Unsure, doubt_of
from hwsim.records import dataclass
from hwsim.spec import KEPT, Mistakes, Place, Tree, check_header, decode, field, place_field, resolve, tree_of
from hwsim.spec.numbers import Doubts
from hwsim.units import Seconds
from hwsim.workload.events import Event
from hwsim.workload.groups import RankGroups

FORMAT = "workload/1"
# what a workload, or a job, may be written as
DOORS: Final = ("program", "programs", "pipeline", "train", "infer", *(key for key, each in FAMILIES.items() if each.says))


class Rules(NamedTuple):
    """Treatment of the ops of a program by its runtime, without the times that its thread takes.

    compiles: bodies of `call`; issues: the ops of one, one by one; the others as of `Runtime`.
    """

    queue_depth: int | None
    blocks: Literal["none", "cpu", "all"]
    compiles: bool
    issues: bool
    per_op: float
    starts: Start
    converts: Literal["copy", "share"]
    fuse: Literal["none", "elementwise"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """Times of the software between a program and its devices."""

    doubts_of: ClassVar[Doubts] = "file"

    dispatch: Seconds = field("time of the program's thread to issue one op", default=0.0, example="12 us")
    layer: Seconds | None = field(
        "time of the thread to issue an op of a `call` that is not compiled: of a layer, with its Python (default: as dispatch)",
        default=None,
    )
    return_: Seconds = field("time until the thread goes on after what it waited for", key="return", default=0.0, example="8 us")
    queue_depth: int | None = field("ops a queue holds, the running one included (default: any number)", default=None, minimum=1)
    blocks: Literal["none", "cpu", "all"] = field(
        "ops the program waits for right after issuing them: all, or (cpu) those whose result is not in a GPU's memory",
        default="none",
    )
    call: Seconds | None = field(
        "time of the thread to start a compiled body, whose ops it then need not issue (default: it compiles none)", default=None
    )
    issue: Seconds = field("time of the thread for each op of a compiled body: an interpreter without Python", default=0.0)
    per_op: Seconds = field("time of the queue for each op of a compiled body, before the op's own", default=0.0, doubted=False)
    starts: Start = field(
        "what starts the kernels of a compiled body: see `launch` of a gpu; graph: of a gpu only", default="stream"
    )
    compile: Seconds = field("time of the thread to compile a body, once for each `call` of the program", default=0.0)
    converts: Literal["copy", "share"] = field(
        "what `asnumpy` does with a value in the host's memory: copy it, or share it with numpy", default="copy"
    )
    fuse: Literal["none", "elementwise"] = field(
        "elementwise: in a compiled body, such ops in a row that hand on a value become one", default="none"
    )
    free: Freeing = field(
        "when a value's buffer is given back: scope (its name means another value and all who use it have ended), "
        "last-use (all who use it have ended), stream (its name means another value); what a compiled body makes for itself is "
        "given back at its last use under any of them",
        default="scope",
    )
    use: str = field("a runtime of the library, such as mxnet or pytorch-eager; keys next to it override", default="")
    kind: Literal["runtime"] = field("what its file says it is", default="runtime", record="for readers")
    name: str = field("what it is, in a few words", default="", record="for readers")
    source: str = field("where its numbers are from: how unsure those are that do not say it themselves", default="")
    ref: str = field("which document or measurement exactly", default="")
    on: str = field(
        "the cpu that its times were measured on, a part of the library: on another they are as unsure as those from elsewhere",
        default="",
        example="d2l-laptop-cpu",
    )
    notes: str = field("anything worth knowing", default="", record="for readers")

    def doubts(self, key: str, seconds: float, host: str) -> tuple[Doubt, ...]:
        """What makes a time of it unsure on a cpu that is this part of the library; nothing where the file states it."""
        if not isinstance(seconds, Unsure):
            return ()
        source, whose = seconds.origin, key
        if self.on and self.on != host and source.spread is None and source.kind != "stated":
            source, whose = Origin("elsewhere", f"on {self.on}"), "times of the runtime"
        return (doubt_of(whose, source, seconds=seconds),)

    @property
    def rules(self) -> Rules:
        """All that ops are read with."""
        compiles, issues = self.call is not None, self.issue > 0
        return Rules(self.queue_depth, self.blocks, compiles, issues, self.per_op, self.starts, self.converts, self.fuse)


@dataclass(frozen=True, slots=True)
class Each:
    """One program per device (or node), all the same but for $self, $rank and $ranks."""

    each: tuple[str, ...] = field("the devices or nodes", one_or_many=True, example="gpu*")
    do: tuple[Tree, ...] = field("the statements of every program", one_or_many=True)


class Written:
    """What families write: a workload or a job, with a field for each family that has none here."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        for key, each in FAMILIES.items():
            if each.says and key not in cls.__annotations__:  # a class with slots is made twice
                cls.__annotations__[key] = "Tree | None"
                setattr(cls, key, field(each.says, default=None))

    @property
    def doors(self) -> dict[str, Any]:
        """What it has of each family itself, by key."""
        return {key: found for key in FAMILIES if (found := getattr(self, key)) is not None}


@dataclass(frozen=True, slots=True)
class Job(Written):
    """One of `jobs`: a workload of its own on the same machine; one of program, programs, pipeline, train, infer and services."""

    start: Seconds = field("when it begins", default=0.0, example="10 s")
    runtime: Runtime | None = field("as of a workload; without it, the workload's", default=None)
    program: Tree | None = field("as of a workload", default=None)
    programs: Mapping[str, Tree] | None = field("as of a workload", default=None)
    pipeline: Tree | None = field("as of a workload", default=None)
    train: Tree | None = field("as of a workload", default=None)
    infer: Tree | None = field("as of a workload", default=None)
    services: Mapping[str, Tree] | None = field("as of a workload", default=None)
    requests: int | None = field("of its services, as of a workload", default=None, minimum=1)
    lasting: Seconds | None = field(
        "of its services, as of a workload", key="for", default=None, exclusive_minimum=0.0, example="10 min"
    )
    device: tuple[str, ...] = field(
        "what it runs on; a program or pipeline runs on each", default=(), one_or_many=True, example="node0..95.gpu*"
    )
    skip: bool = field("it is left out, as if the file did not have it", default=False)
    place: Place = place_field()

    def on_devices(self, door: Tree, key: Literal["device", "each"] = "device") -> Tree:
        """A train, infer or service with the job's devices, if it names none; with `each`, a program or pipeline of each."""
        if not self.device or door.get(key) is not None or not (door.is_mapping or key == "each"):
            return door
        named = tree_of(self.device[0] if len(self.device) == 1 else list(self.device), self.place)
        is_whole = key == "device" or door.get("stages") is not None
        return door.put(key, named) if is_whole else tree_of({key: named, "do": door}, door.place)

    def placed(self, gpus: list[str]) -> list[Tree]:
        """What it is written as, with its devices; a train or infer without any runs on all GPUs."""
        trees = (*(getattr(self, key) for key in DOORS[3:]), *(self.services or {}).values())
        models = [self.on_devices(tree) for tree in trees if tree]
        everywhere = [tree_of({"device": gpus}) for model in models if model.get("device") is None and self.services is None]
        programs = [each for each in (self.program, self.pipeline, *(self.programs or {}).values()) if each]
        return [*models, *everywhere, *(self.on_devices(program, "each") for program in programs)]


@dataclass(frozen=True, slots=True)
class Workload(Written):
    """A workload as a file says it: one of program, programs, pipeline, train, infer and jobs; services with it, or alone."""

    hwsim: str = field("the format of the file: workload/1", default=FORMAT)
    name: str = field("what it is, in a few words", default="")
    source: str = field("where its numbers are from", default="", record="for readers")
    notes: str = field("anything worth knowing", default="", record="for readers")
    let: Mapping[str, object] = field("parameters, `$name` in the rest of the file", default_factory=dict, example="{n: 1000}")
    runtime: Runtime | None = field("what issuing ops and waiting for them costs (default: nothing)", default=None)
    groups: Mapping[str, RankGroups] = field(
        "groups of ranks that a collective's `among` may name", default_factory=dict, example="{tp: {of: gpu*, size: 8}}"
    )
    program: Tree | None = field("the statements of the one program, or {each: gpu*, do: [...]}", default=None)
    programs: Mapping[str, Tree] | None = field("several programs by name, each written as `program` is", default=None)
    pipeline: Tree | None = field("stages that run at the same time: {batches, ahead, stages}", default=None)
    train: Tree | None = field("steps of training a model: {model, global_batch, parallel, ...}", default=None)
    infer: Tree | None = field("requests that a model answers: {model, arrivals, prompt, output, ...}", default=None)
    services: Mapping[str, Tree] | None = field(
        "programs that answer requests, by name: {web: {arrivals, workers, request: [...]}}; alone or beside the others",
        default=None,
        example="{web: {device: cpu, arrivals: {poisson: 100 1/s}, request: [{busy: {time: 3 ms}}]}}",
    )
    requests: int | None = field("of `services`: how many come from outside, all together", default=None, minimum=1)
    lasting: Seconds | None = field(
        "of `services`, instead of `requests`: how long they come",
        key="for",
        default=None,
        exclusive_minimum=0.0,
        example="10 min",
    )
    seed: int = field("of `services`: another seed, other requests", default=0, minimum=0)
    jobs: Mapping[str, Job] | None = field(
        "several workloads at once, by name",
        default=None,
        example="{big: {program: [...]}, small: {start: 10 s, program: [...]}}",
    )
    events: tuple[Event, ...] = field("what goes wrong meanwhile: parts and links that slow down or fail", default=())
    expect: Tree | None = field("what a run is expected to come to, such as {makespan: 15 ms +- 1 %}", default=None)
    place: Place = place_field()

    @property
    def parts(self) -> tuple[Workload | Job, ...]:
        """Itself, and its jobs."""
        return self, *(self.jobs or {}).values()

    @property
    def families(self) -> tuple[str, ...]:
        """The keys of families that it has, or a job of it has."""
        written = {key for part in self.parts for key in part.doors}
        return tuple(key for key in FAMILIES if key in written)

    def trees(self, family: str = "") -> Iterator[Tree]:
        """All that is written of a family, or of every one; a family with several by name is left out."""
        for part in self.parts:
            yield from (tree for key, tree in part.doors.items() if key == (family or key) and isinstance(tree, Tree))

    def written_as(self, family: str) -> tuple[str, ...]:
        """The jobs that are one; "" is the workload itself."""
        jobs = [name for name, job in (self.jobs or {}).items() if family in job.doors]
        return (*jobs, *([""] if family in self.doors else []))


def read_workload(tree: Tree, mistakes: Mistakes) -> Workload | None:
    """The workload a file's tree writes, parameters put in; None once its mistakes are noted."""
    if not check_header(tree, FORMAT, mistakes):
        return None
    workload = decode(resolve(tree, mistakes, kind="workload", kept=_kept(tree)), Workload, mistakes, ignore=("use",))
    if workload is None:
        return None
    doors = {name: getattr(workload, name) for name in (*DOORS, "jobs")}
    has_another = workload.services is None or any(door is not None for door in doors.values())
    if has_another and not _one_of(doors, "a workload", tree.place, mistakes):
        return None
    workload = _at_their_keys(workload, tree)
    inside = [
        _one_of({door: getattr(job, door) for door in (*DOORS, "services")}, f"job '{name}'", job.place, mistakes)
        for name, job in (workload.jobs or {}).items()
    ]
    return _without_skipped(workload, mistakes) if all(inside) else None


def _without_skipped(workload: Workload, mistakes: Mistakes) -> Workload | None:
    """The workload with the jobs that are not skipped."""
    if not workload.jobs:
        return workload
    jobs = {name: job for name, job in workload.jobs.items() if not job.skip}
    if not jobs:
        mistakes.add(next(iter(workload.jobs.values())).place, "every job is skipped, so that there is nothing to simulate")
        return None
    return replace(workload, jobs=jobs)


def _kept(tree: Tree) -> frozenset[str]:
    """Names that only a rank, or a request of a service, knows."""
    jobs = tree.get("jobs")
    parts = [tree, *([] if jobs is None else [job for _, job in jobs.items()])]
    return KEPT.union(*(door(key).kept(tree) for key in FAMILIES if any(part.get(key) is not None for part in parts)))


def _at_their_keys(workload: Workload, tree: Tree) -> Workload:
    """Every `train` where its key stands: what it leaves out stands nowhere else."""
    jobs, inside = dict(workload.jobs or {}), tree.get("jobs")
    for name, job in jobs.items():
        around = None if inside is None else inside.get(name)
        if job.train is not None and around is not None:
            jobs[name] = replace(job, train=replace(job.train, place=around.key_place("train")))
    train = workload.train and replace(workload.train, place=tree.key_place("train"))
    return replace(workload, train=train, jobs=None if workload.jobs is None else jobs)


def _one_of(doors: Mapping[str, object], whose: str, place: Place, mistakes: Mistakes) -> bool:
    given = [name for name, door in doors.items() if door is not None]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        mistakes.add(place, f"{whose} has one of {', '.join(doors)}; this one has {said}")
    return len(given) == 1
