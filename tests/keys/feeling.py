"""Whether a run feels a key: some legal change of its value changes the JSON of the result, warns or is refused."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from hwsim import api
from hwsim.devices import CannotCompute
from hwsim.spec import SpecError
from hwsim.views.summary.document import as_dict
from tests.keys.documents import in_machine, in_workload
from tests.keys.schemas import ROOTS, Found, standing

_NUMBER: Final = re.compile(r"^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(\s*(?:1/)?[^\d\s].*)?$")
_FACTORS: Final = (2.0, 0.5, 0.9, 20.0, 0.05)
GONE: Final = object()  # the key is left out


REFUSED: Final[Mapping[str, tuple[Any, str]]] = {  # what a file cannot be without, or say otherwise
    "machine.parts": ({}, "has no parts"),
    "machine.scores": ("none.yaml", "no file of scores"),
    "part.kind": ("disk", "unknown key"),
    "machine.links": (GONE, "no route"),
    "link.between": (GONE, "`between` or `topology`"),
    "link.topology": (GONE, "unknown key"),
    "library.kind": ("mpi", "unknown key"),
    "algorithm parameter-server.on": ("workers", "names separate devices"),
    "failures.hwsim": ("failures/2", "failures/2"),
    "workload.hwsim": ("workload/2", "workload/2"),
    "workload.program": (GONE, "none of them"),
    "workload.jobs.*.program": (GONE, "none of them"),
    "workload.jobs.*.programs": (GONE, "none of them"),
    "workload.events.link": (GONE, "exactly one of `part`, `link`"),
    "op of several.among": ([], "at least one device"),
    "workload.groups.*.of": ([], "none of the groups"),
    "topology torus.size": ([3], "members"),
    "topology tree.root": ([], "members"),
    "link wifi.two_way": (1.5, "half-duplex"),
    "workload.programs": (GONE, "none of them"),
    "workload.jobs.*.infer": (GONE, "none of them"),
    "workload.jobs.*.train": (GONE, "none of them"),
    "workload.jobs.*.pipeline": (GONE, "none of them"),
    "stage.do": (GONE, "a stage with one op, got no op"),
    "train.chunks": (4, "chunks exceed"),
    "train.uneven": (False, "does not divide"),
    "train.parallel.ep": (3, "does not divide"),
    "model transformer.patches.image": (448, "patches and extra tokens"),
    "model transformer.patches.extra": (2, "patches and extra tokens"),
    "model transformer.patches.side": (16, "patches and extra tokens"),
    "link wifi.duplex": ("full", "one channel"),
    "train.parallel.dp": (3, "GPUs, but there are"),
    "link.of": (["node0.nic", "node1.nic"], "no route"),
    "algorithm written.operation": ("reduce-scatter", "does no"),
    "algorithm written.ranks": (4, "missing"),
    "algorithm written.chunks": (4, "missing"),
    "algorithm written.steps.from": (1, "step 0"),
    "algorithm written.steps.to": (0, "step 0"),
    "algorithm written.steps.chunk": (1, "step 0"),
    "algorithm written.steps.count": (1, "missing"),
    "algorithm written.steps.reduce": (False, "missing"),
    "op send.from": (GONE, "requires `from`"),
    **{
        f"op {kind}.device": (GONE, "needs a `device`")
        for kind in (
            "access",
            "attention",
            "busy",
            "compute",
            "convolution",
            "embedding",
            "norm",
            "pool",
            "rnn",
            "increment",
            "elementwise",
            "layernorm",
            "matmul",
            "moe",
            "random",
            "reduce",
            "softmax",
        )
    },
}


@dataclass(frozen=True, eq=False)
class Felt:
    """A run that is another if its JSON is, ops included; that is not written where the time differs already."""

    run: api.Run

    @cached_property
    def document(self) -> dict[str, Any]:
        return as_dict(self.run, ops=True)

    def differs(self, other: Felt) -> bool:
        return self.run.timeline.makespan_fs != other.run.timeline.makespan_fs or self.document != other.document


@dataclass(frozen=True, slots=True)
class Example:
    """A machine and a workload that use keys.

    tried: by key, values to put in its place where half and twice say nothing.  refused: by key, a value that cannot be, and a
    word of why; what holds of all examples is in `REFUSED`.  requests: parts simulated request by request.
    framework: a file of its own, for the training or the service.  latency: with the latency of requests at any load.
    """

    name: str
    machine: Mapping[str, Any]
    workload: Mapping[str, Any]
    tried: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    refused: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    requests: tuple[str, ...] = ()
    framework: Mapping[str, Any] | None = None
    latency: bool = False

    def given(self) -> Iterator[tuple[Literal["machine", "workload", "framework"], Found]]:
        """Every key that it gives."""
        for found in in_machine(self.machine):
            yield "machine", found
        for found in in_workload(self.workload):
            yield "workload", found
        for found in standing("framework", ROOTS["framework"], self.framework):
            yield "framework", found

    def run(self, machine: Any = None, workload: Any = None, framework: Any = None, *, interval: bool = True) -> Felt:
        """The run, with another machine or workload if one is given."""
        if self.framework is not None:
            return self._trained(machine, workload or self.workload, framework or self.framework, interval)
        try:
            run = api.simulate(machine or self.machine, workload or self.workload, expect=False, requests=self.requests,
                               latency=self.latency, interval=interval)  # fmt: skip
        except api.ExpectationFailed as failed:
            run = failed.run
        return Felt(run)

    def _trained(self, machine: Any, workload: Any, framework: Mapping[str, Any], interval: bool) -> Felt:
        """With a framework in a file of its own."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "framework.yaml"
            file.write_text(json.dumps({"hwsim": "model/1", "kind": "framework", **framework}), encoding="utf-8")
            trained = put(workload, ("infer" if "infer" in workload else "train", "framework"), str(file))
            return replace(self, framework=None).run(machine, trained, interval=interval)


def outcome(
    example: Example, file: str, found: Found, value: Any, *, loaded: Mapping[str, Any], interval: bool = True
) -> str | Felt:
    """The run with one value put in place of another, or the mistake that refuses it."""
    documents = {**loaded, file: put(getattr(example, file), found.path, value)}
    try:
        return example.run(**documents, interval=interval)
    except (SpecError, CannotCompute, ValueError) as error:
        return str(error)


def changes(example: Example, found: Found) -> Iterator[Any]:
    """Values to put in the place of the one there, the most telling first."""
    yield from example.tried.get(found.key, ())
    yield from _others(found.value, found.field.annotation)
    if not found.field.required:
        yield GONE


def _others(value: Any, annotation: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        for factor in _FACTORS:
            new = value * factor
            if isinstance(value, float) or float(new).is_integer():
                yield type(value)(new)
    elif isinstance(value, str) and (match := _NUMBER.match(value)):
        number, unit = match.groups()
        for factor in _FACTORS:
            yield f"{float(number) * factor:.12g}{unit or ''}"
    elif isinstance(value, str):
        for literal in _literals(annotation):
            if literal != value:
                yield literal
    elif isinstance(value, list) and value and not isinstance(value[0], dict):
        if not isinstance(value[0], str | list):
            yield [next(_others(member, annotation), member) for member in value]
        yield value[:-1]
    elif isinstance(value, Mapping):
        for name, node in value.items():
            if not isinstance(node, Mapping | list):
                for new in _others(node, annotation):
                    yield {**value, name: new}


def _literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (argument for argument in get_args(annotation) if isinstance(argument, str))
    else:
        for argument_type in get_args(annotation):
            yield from _literals(argument_type)


def put(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The document with another value at the end of the path."""
    first, rest = path[0], path[1:]
    if isinstance(document, list | tuple):
        return (
            [put(node, rest, value) if index == first else node for index, node in enumerate(document)]
            if rest
            else [value if index == first else node for index, node in enumerate(document) if index != first or value is not GONE]
        )
    if rest:
        return {**document, first: put(document[first], rest, value)}
    return {key: node for key, node in document.items() if key != first} | ({} if value is GONE else {first: value})
