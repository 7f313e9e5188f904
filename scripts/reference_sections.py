"""What docs/reference.md has, in its order: sections with their words, and the schema of every table with its heading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hwsim import devices, links
from hwsim.communication import KINDS as ALGORITHMS
from hwsim.costs.prices import PricesFile
from hwsim.costs.site import SiteKeys
from hwsim.devices.kind import Device
from hwsim.devices.offers import OfferKeys, PriceKeys
from hwsim.devices.power_curves import GpuPowerCurve
from hwsim.failures import Failures
from hwsim.families.pipeline.workload import PipelineKeys, StageKeys
from hwsim.families.pipeline.workload.keys import StagesKeys
from hwsim.families.services.workload.schema import STATEMENTS as SERVICE_STATEMENTS
from hwsim.families.services.workload.schema import ServiceKeys, WayKeys
from hwsim.families.serving.workload.parallel import SplitKeys
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
from hwsim.families_interface import family_interface
from hwsim.links.fabrics import NetworkLink
from hwsim.links.kind import LinkKind
from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from hwsim.machine.schema import LibraryEntry, LinkEntry, MachineFile, PartEntry
from hwsim.machine.scores import ScoreRow, ScoresFile
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.models import Framework
from hwsim.models.architectures import ARCHITECTURES as MODELS
from hwsim.ops import OPS
from hwsim.ops.arrays import ArrayOp
from hwsim.ops.exchange import ExchangeOp, RootedOp
from hwsim.ops.op import CalledOp, ComputeOp, DeviceOp, Op
from hwsim.planning.question import PlanKeys
from hwsim.results.expect import OF_RUN
from hwsim.spec.yaml_writer import flow
from hwsim.studies.file import DrawnKeys, StudyKeys
from hwsim.workload.file import Job, RankProgram, Runtime, Workload
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.keys import CountDraw, CountLognormal
from hwsim.workload.parser import STATEMENTS

NAMES: Final = """### Collective algorithms

The key `algorithm` of a collective is a name, or a mapping with `kind` and the keys of that kind. A name stands for a mapping:

| name | mapping |
|---|---|
"""

HEAD: Final = """# File reference

This page lists every key of every file. `python scripts/reference.py` writes it from the code that reads the files. A quantity is
written with its unit. Any value may be `$name`, a parameter of the file, or arithmetic on parameters.

| first line of the file | content |
|---|---|
| `hwsim: machine/1` | [a machine](#machine-files): parts and links |
| `hwsim: workload/1` | [a workload](#workload-files): programs, trainings and services that run on a machine |
| `hwsim: model/1` | [a model](#model-files): the layers that `train:` and `infer:` run |
| `hwsim: part/1` | [a library entry](#part-files): a part, link, communication library, runtime or framework |
| `hwsim: study/1` | [a study](#studies): many runs with different parameters |
| `hwsim: plan/1` | [a plan](#plans): which machines to buy or rent, and how many |
| `hwsim: prices/1` | [prices](#power-and-prices) of parts, machines and sites |
| `hwsim: failures/1` | [failure rates](#train-failures-) |
| `hwsim: scores/1` | [measured over predicted values](#measurements) of earlier runs on a machine |

Every key can change a result, cause a warning or be refused. Keys without any effect are marked *recorded only*.

The column *default* applies to `class: ideal`, and where the [class of a part or link](defaults.md) has no value for the key.
`hwsim show FILE` prints the defaults that a class fills in.

## Common keys

Many mappings have the following keys. Their tables refer to this section. Likewise, keys that several kinds share have a table of
their own. If a kind's table lists the same key, the kind's table applies.

| key | meaning |
|---|---|
| `hwsim` | format of the file (see the table above); must be the first line |
| `name` | name shown in results. *Recorded only* |
| `notes` | free text. *Recorded only* |
| `source` | source of the numbers: `datasheet`, `standard`, `recalled` (a document quoted from memory), `measured`, `fitted` or \
`guess`. Derivations show it, and the width of the 90 % interval depends on it. A single number can have its own source: \
`size: {value: 80 GB, source: datasheet, ref: "..."}`. In tables that list `source`, it is *recorded only* |
| `ref` | the document or measurement, exactly |
| `use` | name of a library entry (see `hwsim show`) or path of a file, whose keys are inherited. Keys next to `use` \
override inherited \
keys, even if `--set` selects another entry. Allowed in machines, parts, links, libraries, runtimes, models and sites |
| `let` | parameters of the file, such as `let: {n: 1000}`. `$n` stands for the value anywhere in the file; `--set \
n=10` changes it |
"""
MODEL_FILES: Final = """## Model files

A model file starts with `hwsim: model/1`, followed by `kind:` and the keys of that kind, listed below. The key `model` of
`train:` and
`infer:` is a model file, a model of the library, a Hugging Face `config.json` ([models](models.md)), or a mapping with the keys:
`model: {use: llama-3-8b, layers: 16}`.

Also the [common keys](#common-keys) `name`, `notes`, `source`, `ref`, `use` and `let`.
"""
PART_FILES: Final = """## Part files

A part file starts with `hwsim: part/1`, followed by `kind:` and the keys of a part, link, communication library,
[`runtime`](#runtime) or framework. Other files refer to it with `use:`.
"""
EXPECT: Final = """### `expect`

Expected results: `15 ms +- 1 %`, `at most 2 s`, `at least 400 1/s` or `9 ms .. 11 ms`. `machine:` names the machine for which
they
hold. If a result is outside its bounds, the exit code is 3.

| workload | results |
|---|---|
"""
SHARED: Final = "common-keys"

HEADED: Final[dict[type, str]] = {  # mappings that have a heading among the files
    Job: "A job of `jobs`",
    SplitKeys: "`infer: {parallel: ...}`",
    ArrivalKeys: "`arrivals` of `infer` and of services",
    CountDraw: "`infer: {prompt: ..., output: ...}`",
    CountLognormal: "`lognormal`",
}
FAMILIES: Final[dict[type, tuple[str, str]]] = {  # base -> heading of what its kinds share, words for it; general first
    Device: ("Any part", "any part"),
    LinkKind: ("Any link", "any link"),
    NetworkLink: ("Any network link", "any network link"),
    Op: ("Any op", "any op"),
    DeviceOp: ("Any op on one device", "any op on one device"),
    ComputeOp: ("Any compute op", "any compute op"),
    CalledOp: ("Any library call", "any library call"),
    ArrayOp: ("Any array op", "any array op"),
    ExchangeOp: ("Any collective", "any collective"),
    RootedOp: ("Any collective with a root", "any collective with a root"),
}
_STATED: Final = "statements of a service"
SEE: Final[dict[tuple[type, str], str]] = {  # what stands where the reader of a file decides by what it finds; {Class}: its table
    (MachineFile, "parts"): "{PartEntry|part}",
    (MachineFile, "links"): "{LinkEntry|link}",
    (MachineFile, "price"): "money, or {PriceKeys|prices}",
    (MachineFile, "scores"): "path of a [file of scores](#measurements)",
    (MachineFile, "collectives"): "{LibraryEntry|library}, or a mapping of device kinds to libraries",
    (PartEntry, "price"): "money, or {PriceKeys|prices}",
    (Workload, "program"): "{Op|ops} and {BarrierKeys|statements}, or {RankProgram|`each` and `do`}",
    (Workload, "programs"): "program",
    (Workload, "pipeline"): "{PipelineKeys|mapping}",
    (Workload, "train"): "{TrainKeys|mapping}",
    (Workload, "infer"): "{InferKeys|mapping}",
    (Workload, "services"): "{ServiceKeys|service}",
    (Workload, "expect"): "mapping, see [`expect`](#expect)",
    (RankProgram, "do"): "{Op|op} or {BarrierKeys|statement}",
    (Job, "program"): "as in a workload",
    (Job, "programs"): "program",
    (Job, "pipeline"): "{PipelineKeys|mapping}",
    (Job, "train"): "{TrainKeys|mapping}",
    (Job, "infer"): "{InferKeys|mapping}",
    (Job, "services"): "{ServiceKeys|service}",
    (StagesKeys, "stages"): "{Op|op} with {StageKeys|keys of a stage}",
    (StageKeys, "do"): "{Op|op}",
    (StageKeys, "train"): "{TrainKeys|mapping}",
    (TrainKeys, "model"): "name, or keys of a [model](#model-files)",
    (TrainKeys, "parallel"): "`auto`, or {ParallelKeys|mapping}",
    (TrainKeys, "synchronise"): "`all-reduce`, `parameter-server`, or {SynchroniseKeys|mapping}",
    (TrainKeys, "failures"): "name, or {Failures|mapping}",
    (SynchroniseKeys, "algorithm"): "`auto`, name, or keys of an [algorithm](#collective-algorithms)",
    (InferKeys, "model"): "name, or keys of a [model](#model-files)",
    (ExchangeOp, "algorithm"): "`auto`, name, or keys of an [algorithm](#collective-algorithms)",
    (STATEMENTS["call"], "do"): "{Op|op} or {BarrierKeys|statement}",
    (STATEMENTS["repeat"], "do"): "{Op|op} or {BarrierKeys|statement}",
    (ServiceKeys, "request"): "{Op|op} or {AskKeys|statement of services}",
    **{(SERVICE_STATEMENTS[name], "do"): _STATED for name in ("maybe", "lock", "repeat")},
    (WayKeys, "do"): _STATED,
    (SERVICE_STATEMENTS["cache"], "miss"): _STATED,
    **{(PriceKeys, key): "money, or {OfferKeys|mapping}" for key in ("purchase", "on_demand", "spot", "reserved")},
    (OfferKeys, "value"): "money",
    (OfferKeys, "capacity"): "money per size",
    (OfferKeys, "iops"): "mapping, or list of mappings",
    (OfferKeys, "throughput"): "mapping, or list of mappings",
    (OfferKeys, "low"): "money",
    (OfferKeys, "high"): "money",
    (PricesFile, "parts"): "money or {PriceKeys|prices}",
    (PricesFile, "machines"): "money or {PriceKeys|prices}",
    (PricesFile, "others"): "money or {PriceKeys|prices}",
    (PricesFile, "site"): "name, or {SiteKeys|mapping}",
    (PricesFile, "sites"): "{SiteKeys|site}",
    **{(SiteKeys, key): "number, or mapping with its range" for key in ("pue", "grid", "electricity", "hosting")},
    (StudyKeys, "machine"): "name or mapping",
    (StudyKeys, "workload"): "name or mapping",
    (StudyKeys, "points"): "mapping of `grid`, `zip`, or {DrawnKeys|`random` or `latin`}",
    (StudyKeys, "set"): "any value",
    (StudyKeys, "site"): "name, or {SiteKeys|mapping}",
    (DrawnKeys, "of"): "range, list or distribution",
    (PlanKeys, "workload"): "name, mapping, or mapping of names to workloads",
    (PlanKeys, "set"): "any value",
    (PlanKeys, "vary"): "mapping of paths to values",
    (PlanKeys, "minimise"): "text, or list of text",
    (PlanKeys, "maximise"): "text, or list of text",
    (PlanKeys, "site"): "name, or {SiteKeys|mapping}",
}
SEE_BY_KEY: Final = {  # of mappings inside
    "every": "whole number, time or text",
    "draft": "name, or keys of a [model](#model-files)",
}


def algorithm_names() -> str:
    """A table of the names that stand for an algorithm with its keys."""
    presets = [(kind, {kind: {}} if cls.presets is None else cls.presets) for kind, cls in ALGORITHMS.items()]
    rows = (f"| `{name}` | `{flow({'kind': kind, **keys})}` |" for kind, names in presets for name, keys in sorted(names.items()))
    return NAMES + "\n".join(rows) + "\n"


def headings() -> Iterator[tuple[Any, str]]:
    """Every schema and its heading; no schema before a section or a paragraph."""
    yield None, "## Machine files\n"
    yield MachineFile, "Top level (`hwsim: machine/1`)"
    yield PartEntry, FAMILIES[Device][0]
    for name, kind in devices.KINDS.items():
        yield kind, f"Part `{name}`"
    yield LibraryEntry, "Any communication library (`collectives`)"
    for name, library in LIBRARIES.items():
        yield library, f"Library `{name}`"
    yield LinkEntry, FAMILIES[LinkKind][0]
    yield NetworkLink, FAMILIES[NetworkLink][0]
    for name, link in links.KINDS.items():
        yield link, f"Link `{name}`"
    for name, topology in TOPOLOGIES.items():
        yield topology, f"Topology `{name}`"
    yield None, "## Workload files\n"
    yield Workload, "Top level (`hwsim: workload/1`)"
    yield None, expectations()
    yield Runtime, "`runtime`"
    yield RankProgram, "`program: {each: ...}`"
    yield Job, HEADED[Job]
    yield PipelineKeys, "`pipeline`"
    yield StageKeys, "A stage of `pipeline`, next to its op"
    yield TrainKeys, "`train`"
    yield ParallelKeys, "`train: {parallel: ...}`"
    yield SynchroniseKeys, "`train: {synchronise: ...}`"
    yield Failures, "`train: {failures: ...}`"
    yield InferKeys, "`infer`"
    yield from ((cls, heading) for cls, heading in HEADED.items() if cls is not Job)
    yield ServiceKeys, "A service of `services`"
    for name, statement in SERVICE_STATEMENTS.items():
        yield statement, f"Service statement `{name}`"
    yield WayKeys, "Service statement `choose`: one alternative"
    for name, statement in STATEMENTS.items():
        yield statement, f"Statement `{name}`"
    for family in (Op, DeviceOp, ComputeOp, CalledOp, ArrayOp, ExchangeOp, RootedOp):
        yield family, FAMILIES[family][0]
    for name, op in OPS.items():
        yield op, f"Op `{name}`"
    yield None, algorithm_names()
    for name, algorithm in ALGORITHMS.items():
        yield algorithm, f"Collective algorithm `{name}`"
    yield None, MODEL_FILES
    for name, model in MODELS.items():
        yield model, f"Model `{name}`"
    yield None, PART_FILES
    yield Framework, "Framework"
    yield None, "## Power and prices\n"
    yield GpuPowerCurve, "`power` of a GPU (other parts and machines have no `memory`)"
    yield PriceKeys, "`price` of a part or machine, or in a price list"
    yield OfferKeys, "A price with range, date and provider"
    yield PricesFile, "A price list (`hwsim: prices/1`)"
    yield SiteKeys, "`site`"
    yield None, "## Measurements\n"
    yield ScoresFile, "Scores of earlier runs (`hwsim: scores/1`)"
    yield ScoreRow, "A row of scores"
    yield None, "## Studies\n"
    yield StudyKeys, "Top level (`hwsim: study/1`)"
    yield DrawnKeys, "`points: {random: ...}` and `points: {latin: ...}`"
    yield None, "## Plans\n"
    yield PlanKeys, "Top level (`hwsim: plan/1`)"


def expectations() -> str:
    """What `expect:` may name."""
    rows = {
        "any workload; prefix `JOB.` for a job of `jobs`": OF_RUN,
        "`train:`": family_interface("train").quantities,
        "`infer:`": family_interface("infer").quantities,
        "`services:`, with the prefix `NAME.`": family_interface("services").quantities,
    }
    lines = [f"| {of} | {', '.join(f'`{name}`' for name in names)} |" for of, names in rows.items()]
    return EXPECT + "\n".join(lines) + "\n"
