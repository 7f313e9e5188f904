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
from hwsim.devices.owning import GpuPowerCurve
from hwsim.doors import door
from hwsim.failures import Failures
from hwsim.families.pipeline.workload import PipelineKeys, StageKeys
from hwsim.families.services.workload.schema import STATEMENTS as SERVICE_STATEMENTS
from hwsim.families.services.workload.schema import ServiceKeys, WayKeys
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.serving.workload.splitting import SplitKeys
from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
from hwsim.links.fabrics import Network
from hwsim.links.kind import LinkKind
from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from hwsim.machine.schema import LibraryEntry, LinkEntry, MachineFile, PartEntry
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.models import Framework
from hwsim.models.architectures import ARCHITECTURES as MODELS
from hwsim.ops import OPS
from hwsim.ops.arrays import ArrayOp
from hwsim.ops.exchange import ExchangeOp, RootedOp
from hwsim.ops.op import CalledOp, ComputeOp, DeviceOp, Op
from hwsim.planning.question import PlanKeys
from hwsim.results.expect import OF_RUN
from hwsim.studies.file import DrawnKeys, StudyKeys
from hwsim.workload.file import Each, Job, Runtime, Workload
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.keys import CountDraw, CountLognormal
from hwsim.workload.reading import STATEMENTS

HEAD: Final = """# Every key of every file

Written by `python scripts/reference.py` from the dataclasses that read the files. A quantity carries its unit; `$name` and
arithmetic on parameters may stand for any value.

| first line of a file | what it is |
|---|---|
| `hwsim: machine/1` | [a machine](#machine-files): parts and links |
| `hwsim: workload/1` | [a workload](#workload-files): what runs on it |
| `hwsim: model/1` | [a model](#model-files): the layers that a `train:` or `infer:` names |
| `hwsim: part/1` | [one thing of the library](#part-files): a part, a link, a communication library, a runtime, a framework |
| `hwsim: study/1` | [a study](#studies): thousands of points |
| `hwsim: plan/1` | [a plan](#plans): which machine, how many |
| `hwsim: prices/1` | [prices](#power-and-prices) |
| `hwsim: failures/1` | [rates of failures](#train-failures-) |

Some legal change of the value of a key changes a result, warns or is refused. The exceptions are marked *recorded only*, with
the reason.

## Keys that many mappings have

They are said here once; a table names those that its mapping has, too. In the same way, kinds refer to tables of what they share;
a key that stands in both is as the kind's own table says.

| key | meaning |
|---|---|
| `hwsim` | the first line of a file: its format, of the table above |
| `name` | what a reader calls it; results print it. *Recorded only* |
| `notes` | anything worth knowing. *Recorded only* |
| `source` | where the numbers are from: `datasheet`, `standard`, `recalled` (the content of a document from memory), \
`measured`, `fitted` or `guess`. It stands in derivations, and its kind decides how sure a number is. One number may have its \
own: `size: {value: 80 GB, source: datasheet, ref: "..."}`. Where a table names it, *recorded only* |
| `ref` | which document or measurement exactly |
| `use` | a name of the library (`hwsim show` lists them) or a file, whose keys are taken over; keys beside `use` override \
them, also when `--set` chooses another name. `use` may stand in machines, parts, links, libraries, runtimes, models and sites |
| `let` | parameters of the file: `let: {n: 1000}`; `$n` is their value anywhere in it, `--set n=10` changes one |
"""
MODEL_FILES: Final = """## Model files

`hwsim: model/1`, then `kind:` with the name of one of the tables, and its keys. A `train:` or `infer:` names such a file,
a name of the library or a `config.json` of Hugging Face ([models](models.md)), or has the keys itself:
`model: {use: llama-3-8b, layers: 16}`.

Also `name`, `notes`, `source`, `ref`, `use`, `let`: [said once](#keys-that-many-mappings-have).
"""
PART_FILES: Final = """## Part files

`hwsim: part/1`, then `kind:` and the keys of a part, of a link, of a communication library, of a [`runtime`](#runtime) or of a
framework, for `use:` elsewhere.
"""
EXPECT: Final = """### `expect`

Bounds of results: `15 ms +- 1 %`, `at most 2 s`, `at least 400 1/s`, `9 ms .. 11 ms`. `machine:` names the machine that they
are about. A run that misses one has exit code 3.

| of | names |
|---|---|
"""
SHARED: Final = "keys-that-many-mappings-have"

HEADED: Final[dict[type, str]] = {  # mappings that have a heading among the files
    Job: "`jobs`: each of them",
    SplitKeys: "`infer: {parallel: ...}`",
    ArrivalKeys: "`infer: {arrivals: ...}`, and of services",
    CountDraw: "`infer: {prompt: ..., output: ...}`",
    CountLognormal: "`lognormal`",
}
FAMILIES: Final[dict[type, tuple[str, str]]] = {  # base -> heading of what its kinds share, words for it; general first
    Device: ("In any part", "any part"),
    LinkKind: ("In any link", "any link"),
    Network: ("In any link of a network", "any link of a network"),
    Op: ("In any op", "any op"),
    DeviceOp: ("In any op on one device", "any op on one device"),
    ComputeOp: ("In any op that computes", "any op that computes"),
    CalledOp: ("In any call of a library", "any call of a library"),
    ArrayOp: ("In any op over an array", "any op over an array"),
    ExchangeOp: ("In any collective", "any collective"),
    RootedOp: ("In any collective with a root", "any collective with a root"),
}
_STATED: Final = "statements, as those of a request"
SEE: Final[dict[tuple[type, str], str]] = {  # what stands where the reader of a file decides by what it finds; {Class}: its table
    (MachineFile, "parts"): "{PartEntry|part}",
    (MachineFile, "links"): "{LinkEntry|link}",
    (MachineFile, "price"): "money, or {PriceKeys|prices}",
    (MachineFile, "collectives"): "{LibraryEntry|library}, or one by each kind",
    (PartEntry, "price"): "money, or {PriceKeys|prices}",
    (Workload, "program"): "{Op|ops} and {BarrierKeys|statements}, or {Each|`each` and `do`}",
    (Workload, "programs"): "program",
    (Workload, "pipeline"): "{PipelineKeys|mapping}",
    (Workload, "train"): "{TrainKeys|mapping}",
    (Workload, "infer"): "{InferKeys|mapping}",
    (Workload, "services"): "{ServiceKeys|service}",
    (Workload, "expect"): "mapping, see [`expect`](#expect)",
    (Each, "do"): "{Op|op} or {BarrierKeys|statement}",
    (Job, "program"): "as of a workload",
    (Job, "programs"): "program",
    (Job, "pipeline"): "{PipelineKeys|mapping}",
    (Job, "train"): "{TrainKeys|mapping}",
    (Job, "infer"): "{InferKeys|mapping}",
    (Job, "services"): "{ServiceKeys|service}",
    (PipelineKeys, "stages"): "{Op|op} with {StageKeys|keys of a stage}",
    (StageKeys, "do"): "{Op|op}",
    (StageKeys, "train"): "{TrainKeys|mapping}",
    (TrainKeys, "model"): "name, or keys of a [model](#model-files)",
    (TrainKeys, "parallel"): "`auto`, or {ParallelKeys|mapping}",
    (TrainKeys, "synchronise"): "`all-reduce`, `parameter-server`, or {SynchroniseKeys|mapping}",
    (TrainKeys, "failures"): "name, or {Failures|mapping}",
    (SynchroniseKeys, "algorithm"): "`auto`, name, or keys of an {Ring|algorithm}",
    (InferKeys, "model"): "name, or keys of a [model](#model-files)",
    (ExchangeOp, "algorithm"): "`auto`, name, or keys of an {Ring|algorithm}",
    (STATEMENTS["call"], "do"): "{Op|op} or {BarrierKeys|statement}",
    (STATEMENTS["repeat"], "do"): "{Op|op} or {BarrierKeys|statement}",
    (ServiceKeys, "request"): "{Op|op} or {AskKeys|statement of services}",
    **{(SERVICE_STATEMENTS[name], "do"): _STATED for name in ("maybe", "lock", "repeat")},
    (WayKeys, "do"): _STATED,
    (SERVICE_STATEMENTS["cache"], "miss"): _STATED,
    **{(PriceKeys, key): "money, or {OfferKeys|mapping}" for key in ("purchase", "on_demand", "reserved")},
    (OfferKeys, "value"): "money",
    (OfferKeys, "capacity"): "money for bytes",
    (OfferKeys, "iops"): "mapping, or list of such",
    (OfferKeys, "throughput"): "mapping, or list of such",
    (OfferKeys, "low"): "money",
    (OfferKeys, "high"): "money",
    (PricesFile, "parts"): "money or {PriceKeys|prices}",
    (PricesFile, "machines"): "money or {PriceKeys|prices}",
    (PricesFile, "others"): "money or {PriceKeys|prices}",
    (PricesFile, "site"): "name, or {SiteKeys|mapping}",
    (PricesFile, "sites"): "{SiteKeys|site}",
    **{(SiteKeys, key): "number or mapping with its range" for key in ("pue", "grid", "electricity", "hosting")},
    (StudyKeys, "machine"): "name or mapping",
    (StudyKeys, "workload"): "name or mapping",
    (StudyKeys, "points"): "mapping of `grid`, `zip`, or {DrawnKeys|`random` or `latin`}",
    (StudyKeys, "set"): "any value",
    (StudyKeys, "site"): "name, or {SiteKeys|mapping}",
    (DrawnKeys, "of"): "range, list or distribution",
    (PlanKeys, "workload"): "name, mapping, or mapping of names to such",
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


def headings() -> Iterator[tuple[Any, str]]:
    """Every schema and its heading; no schema before a section or a paragraph."""
    yield None, "## Machine files\n"
    yield MachineFile, "At the top (`hwsim: machine/1`)"
    yield PartEntry, "In any part"
    for name, kind in devices.KINDS.items():
        yield kind, f"Part `{name}`"
    yield LibraryEntry, "In any communication library (`collectives`)"
    for name, library in LIBRARIES.items():
        yield library, f"Library `{name}`"
    yield LinkEntry, "In any link"
    yield Network, FAMILIES[Network][0]
    for name, link in links.KINDS.items():
        yield link, f"Link `{name}`"
    for name, topology in TOPOLOGIES.items():
        yield topology, f"Topology `{name}`"
    yield None, "## Workload files\n"
    yield Workload, "At the top (`hwsim: workload/1`)"
    yield None, expectations()
    yield Runtime, "`runtime`"
    yield Each, "`program: {each: ...}`"
    yield Job, HEADED[Job]
    yield PipelineKeys, "`pipeline`"
    yield StageKeys, "`pipeline: {stages: ...}`, next to the op of a stage"
    yield TrainKeys, "`train`"
    yield ParallelKeys, "`train: {parallel: ...}`"
    yield SynchroniseKeys, "`train: {synchronise: ...}`"
    yield Failures, "`train: {failures: ...}`"
    yield InferKeys, "`infer`"
    yield from ((cls, heading) for cls, heading in HEADED.items() if cls is not Job)
    yield ServiceKeys, "`services`: each of them"
    for name, statement in SERVICE_STATEMENTS.items():
        yield statement, f"Statement of services `{name}`"
    yield WayKeys, "Statement of services `choose`: each way, by name"
    for name, statement in STATEMENTS.items():
        yield statement, f"Statement `{name}`"
    for family in (Op, DeviceOp, ComputeOp, CalledOp, ArrayOp, ExchangeOp, RootedOp):
        yield family, FAMILIES[family][0]
    for name, op in OPS.items():
        yield op, f"Op `{name}`"
    for name, algorithm in ALGORITHMS.items():
        yield algorithm, f"Algorithm of collectives `{name}`"
    yield None, MODEL_FILES
    for name, model in MODELS.items():
        yield model, f"Model `{name}`"
    yield None, PART_FILES
    yield Framework, "Framework"
    yield None, "## Power and prices\n"
    yield GpuPowerCurve, "`power` of a GPU; of other parts and of machines without `memory`"
    yield PriceKeys, "`price` of a part or machine, and prices of a list"
    yield OfferKeys, "A price with its range, date and provider"
    yield PricesFile, "A list of prices (`hwsim: prices/1`)"
    yield SiteKeys, "`site`"
    yield None, "## Studies\n"
    yield StudyKeys, "At the top (`hwsim: study/1`)"
    yield DrawnKeys, "`points: {random: ...}` and `points: {latin: ...}`"
    yield None, "## Plans\n"
    yield PlanKeys, "At the top (`hwsim: plan/1`)"


def expectations() -> str:
    """What `expect:` may name."""
    rows = {
        "any workload, and `JOB.` before it for one of `jobs`": OF_RUN,
        "`train:`": door("train").quantities,
        "`infer:`": door("infer").quantities,
        "`services:`, with `NAME.` before it": door("services").quantities,
    }
    lines = [f"| {of} | {', '.join(f'`{name}`' for name in names)} |" for of, names in rows.items()]
    return EXPECT + "\n".join(lines) + "\n"
