"""Write docs/reference.md: every key of every file, from the dataclasses that read them.  --check: only compare."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from hwsim import devices, links
from hwsim.collectives import KINDS as ALGORITHMS
from hwsim.communication.kinds import KINDS as LIBRARIES
from hwsim.invariants import printed
from hwsim.machine.schema import LibraryEntry, LinkEntry, MachineFile, PartEntry
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.ops import OPS
from hwsim.spec import FieldPlan, Tree, plan
from hwsim.units import Dimension
from hwsim.workload.file import Each, Runtime, Workload
from hwsim.workload.pipeline import PipelineKeys
from hwsim.workload.reading import STATEMENTS
from hwsim.workload.serving.schema import ArrivalKeys, InferKeys, LengthKeys, LognormalKeys, SplitKeys
from hwsim.workload.training.network_plan import EvaluateKeys, SynchroniseKeys
from hwsim.workload.training.schema import ParallelKeys, TrainKeys

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """# Every key of every file

Written by `python scripts/reference.py` from the dataclasses that read the files.  A quantity carries its unit; `$name` and
arithmetic on parameters may stand for any value.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    yield "## Machine files\n"
    yield from _table(MachineFile, "At the top (`hwsim: machine/1`)")
    yield from _table(PartEntry, "In any part")
    for name, kind in devices.KINDS.items():
        yield from _table(kind, f"Part `{name}`")
    yield from _table(LibraryEntry, "In any communication library (`collectives`)")
    for name, library in LIBRARIES.items():
        yield from _table(library, f"Library `{name}`")
    yield from _table(LinkEntry, "In any link")
    for name, link in links.KINDS.items():
        yield from _table(link, f"Link `{name}`")
    for name, topology in TOPOLOGIES.items():
        yield from _table(topology, f"Topology `{name}`")
    yield "## Workload files\n"
    yield from _table(Workload, "At the top (`hwsim: workload/1`)")
    yield from _table(Runtime, "`runtime`")
    yield from _table(Each, "`program: {each: ...}`")
    yield from _table(PipelineKeys, "`pipeline`")
    yield from _table(TrainKeys, "`train`")
    yield from _table(ParallelKeys, "`train: {parallel: ...}`")
    yield from _table(SynchroniseKeys, "`train: {synchronise: ...}`")
    yield from _table(EvaluateKeys, "`train: {evaluate: ...}`")
    yield from _table(InferKeys, "`infer`")
    yield from _table(SplitKeys, "`infer: {parallel: ...}`")
    yield from _table(ArrivalKeys, "`infer: {arrivals: ...}`")
    yield from _table(LengthKeys, "`infer: {prompt: ..., output: ...}`")
    yield from _table(LognormalKeys, "`lognormal`")
    yield from _table(TrainKeys, "`train`")
    yield from _table(ParallelKeys, "`train: {parallel: ...}`")
    for name, statement in STATEMENTS.items():
        yield from _table(statement, f"Statement `{name}`")
    for name, op in OPS.items():
        yield from _table(op, f"Op `{name}`")
    for name, algorithm in ALGORITHMS.items():
        yield from _table(algorithm, f"Algorithm of collectives `{name}`")


def _table(cls: type, title: str) -> Iterator[str]:
    yield f"### {title}\n"
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
    return f"| `{each.key}` | {_value(each.annotation)} | {default} | {meaning} |"


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
        return "{" + ", ".join(f"`{each.key}`: {_value(each.annotation)}" for each in plan(annotation)) + "}"
    if not arguments:
        return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "any value")
    if all(isinstance(each, str) for each in arguments):
        return ", ".join(f"`{each}`" for each in arguments)
    origin = getattr(get_origin(annotation), "__name__", "")
    words = list(dict.fromkeys(_value(each) for each in arguments))
    if origin == "tuple":
        return "list of " + " or ".join(words)
    return f"mapping of names to {words[-1]}" if origin == "Mapping" else " or ".join(words)


def main() -> int:
    """Write the page, or say that it is out of date."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(printed(text), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
