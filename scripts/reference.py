"""Write docs/reference.md: every key of every file, from the dataclasses that read them.  --check: only compare.

A mapping inside another has a table of its own, once, in the last section; a link leads there.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

from hwsim import devices, links
from hwsim.communication import KINDS as ALGORITHMS
from hwsim.costs.places import SiteKeys
from hwsim.costs.prices import PricesFile
from hwsim.devices.offers import OfferKeys, PriceKeys
from hwsim.devices.owning import GpuPowerCurve
from hwsim.failures import Failures
from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from hwsim.machine.schema import LibraryEntry, LinkEntry, MachineFile, PartEntry
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.models import Framework
from hwsim.models.architectures import ARCHITECTURES as MODELS
from hwsim.ops import OPS
from hwsim.planning.question import PlanKeys
from hwsim.results.invariants import printed
from hwsim.spec import FieldPlan, Tree, plan
from hwsim.spec.decode import title
from hwsim.studies.file import DrawnKeys, StudyKeys
from hwsim.units import Dimension
from hwsim.workload.file import Each, Job, Runtime, Workload
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.keys import CountDraw, CountLognormal
from hwsim.workload.pipeline import PipelineKeys, StageKeys
from hwsim.workload.reading import STATEMENTS
from hwsim.workload.serving.parallel import SplitKeys
from hwsim.workload.serving.schema import InferKeys
from hwsim.workload.training.schema import EvaluateKeys, ParallelKeys, SynchroniseKeys, TrainKeys

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """# Every key of every file

Written by `python scripts/reference.py` from the dataclasses that read the files. A quantity carries its unit; `$name` and
arithmetic on parameters may stand for any value. A mapping inside another has a table of its own under
[Mappings inside](#mappings-inside).

Some legal change of the value of a key changes a result, warns or is refused. The exceptions are marked *recorded only*, with
the reason.
"""


HEADED: Final[dict[type, str]] = {  # mappings that have a heading among the files
    Job: "`jobs`: each of them",
    SplitKeys: "`infer: {parallel: ...}`",
    ArrivalKeys: "`infer: {arrivals: ...}`",
    CountDraw: "`infer: {prompt: ..., output: ...}`",
    CountLognormal: "`lognormal`",
}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    inside: dict[type, None] = {}
    for line, classes in _tables():
        inside |= dict.fromkeys(classes)
        yield line
    yield "## Mappings inside\n"
    shown: set[type] = set(HEADED)
    while rest := [cls for cls in inside if cls not in shown]:
        for cls in rest:
            shown.add(cls)
            inside |= dict.fromkeys(_classes(plan(cls)))
            yield from _table(cls, f"Mapping: {title(cls)}")


def _tables() -> Iterator[tuple[str, list[type]]]:
    """Lines of the tables of the files, each with the mappings inside that it names."""
    for line, cls in _lines():
        yield line, _classes(plan(cls)) if cls is not None else []


def _lines() -> Iterator[tuple[str, type | None]]:
    for cls, heading in _headings():
        if cls is None:
            yield heading, None
        else:
            yield from ((line, cls) for line in _table(cls, heading))


def _headings() -> Iterator[tuple[Any, str]]:
    """Every schema and its heading; no schema before a section."""
    yield None, "## Machine files\n"
    yield MachineFile, "At the top (`hwsim: machine/1`)"
    yield PartEntry, "In any part"
    for name, kind in devices.KINDS.items():
        yield kind, f"Part `{name}`"
    yield LibraryEntry, "In any communication library (`collectives`)"
    for name, library in LIBRARIES.items():
        yield library, f"Library `{name}`"
    yield LinkEntry, "In any link"
    for name, link in links.KINDS.items():
        yield link, f"Link `{name}`"
    for name, topology in TOPOLOGIES.items():
        yield topology, f"Topology `{name}`"
    yield None, "## Workload files\n"
    yield Workload, "At the top (`hwsim: workload/1`)"
    yield Runtime, "`runtime`"
    yield Each, "`program: {each: ...}`"
    yield Job, HEADED[Job]
    yield PipelineKeys, "`pipeline`"
    yield StageKeys, "`pipeline: {stages: ...}`, next to the op of a stage"
    yield TrainKeys, "`train`"
    yield ParallelKeys, "`train: {parallel: ...}`"
    yield SynchroniseKeys, "`train: {synchronise: ...}`"
    yield EvaluateKeys, "`train: {evaluate: ...}`"
    yield Failures, "`train: {failures: ...}`, and a file of rates (`hwsim: failures/1`)"
    yield InferKeys, "`infer`"
    yield from ((cls, heading) for cls, heading in HEADED.items() if cls is not Job)
    for name, statement in STATEMENTS.items():
        yield statement, f"Statement `{name}`"
    for name, op in OPS.items():
        yield op, f"Op `{name}`"
    for name, algorithm in ALGORITHMS.items():
        yield algorithm, f"Algorithm of collectives `{name}`"
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
    yield None, "## Models and frameworks\n"
    for name, model in MODELS.items():
        yield model, f"Model `{name}` (`hwsim: model/1`)"
    yield Framework, "Framework"


def _table(cls: type, heading: str) -> Iterator[str]:
    yield f"### {heading}\n"
    doc = (inspect.getdoc(cls) or "").split("\n", 1)[0]
    if doc and not doc.startswith(cls.__name__ + "("):
        yield f"{doc}\n"
    rows = plan(cls)
    if rows:
        yield "| key | value | default | meaning |\n|---|---|---|---|"
        yield from (_row(each) for each in rows)
        yield ""


def _row(each: FieldPlan) -> str:
    default = "required" if each.required else _default(each.default)
    meaning = each.doc + (f"; such as `{each.example}`" if each.example else "")
    value = ", ".join(f"`{choice}`" for choice in each.bounds.choices or ()) or _value(each.annotation)
    recorded = f"; *recorded only*: {each.record}" if each.record else ""
    return f"| `{each.key}` | {value} | {default} | {meaning}{recorded} |"


def _default(default: Any) -> str:
    if default is dataclasses.MISSING or default is None or default in ("", ()):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _value(annotation: Any) -> str:
    """A type in words."""
    if get_origin(annotation) is Annotated:
        dimension = next((each for each in annotation.__metadata__ if isinstance(each, Dimension)), None)
        return dimension.name if dimension else _value(get_args(annotation)[0])
    arguments = [each for each in get_args(annotation) if each not in (type(None), Ellipsis)]
    if annotation is Tree:
        return "see below"
    if annotation is Any:
        return "any value"
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _of_mapping(annotation)
    if not arguments:
        return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "any value")
    if all(isinstance(each, str) for each in arguments):
        return ", ".join(f"`{each}`" for each in arguments)
    origin = getattr(get_origin(annotation), "__name__", "")
    words = list(dict.fromkeys(_value(each) for each in arguments))
    if origin == "tuple":
        return "list of " + " or ".join(words)
    return f"mapping of names to {words[-1]}" if origin == "Mapping" else " or ".join(words)


def _of_mapping(cls: type) -> str:
    """Where the keys of a mapping are: in the table of its kind of part, or in one of its own."""
    if cls is Runtime:
        return "mapping, see [`runtime`](#runtime)"
    if hasattr(cls, "kind"):
        return f"mapping, as [part `{title(cls)}`](#part-{title(cls)})"
    if cls in HEADED:
        return f"mapping, see {HEADED[cls]}"
    return f"mapping, see [{title(cls)}](#mapping-{title(cls).replace(' ', '-')})" if plan(cls) else "mapping"


def _classes(fields: Iterable[FieldPlan]) -> list[type]:
    """The mappings that values of these fields are, those that are no part of their own."""
    found: list[type] = []

    def look(annotation: Any) -> None:
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            if annotation not in (Tree, Dimension) and not hasattr(annotation, "kind"):
                found.append(annotation)
        elif get_origin(annotation) is Annotated:
            look(get_args(annotation)[0])
        else:
            for each in get_args(annotation):
                look(each)

    for each in fields:
        look(each.annotation)
    return found


def main() -> int:
    """Write the page, or say that it is out of date."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(printed(text), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
