"""Where the schemas begin in the two files of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from tests.keys.schemas import ELSEWHERE, ROOTS, Found, standing

Path = tuple[str | int, ...]


def in_machine(document: Mapping[str, Any]) -> Iterator[Found]:
    """Every key of a machine file."""
    yield from standing("machine", ROOTS["machine"], document)
    for name, part in document.get("parts", {}).items():
        yield from _part(part, ("parts", name))
    for index, link in enumerate(document.get("links", ())):
        path: Path = ("links", index)
        yield from standing("link", ROOTS["link"], link, path)
        yield from standing(f"link {link['kind']}", ROOTS[f"link {link['kind']}"], link, path)
        if "topology" in link:
            kind = f"topology {link['topology']}"
            yield from standing(kind, ROOTS[kind], link, path)
    library = document.get("collectives")
    if isinstance(library, Mapping):
        if library.keys() <= LIBRARIES.keys():
            for kind, one in library.items():
                yield from _library(one, ("collectives", kind))
        else:
            yield from _library(library, ("collectives",))


def _library(library: Mapping[str, Any], path: Path) -> Iterator[Found]:
    kind = library.get("kind", "overheads")
    yield from standing("library", ROOTS["library"], library, path)
    yield from standing(f"library {kind}", ROOTS[f"library {kind}"], library, path)


def _part(part: Mapping[str, Any], path: Path) -> Iterator[Found]:
    yield from standing("part", ROOTS["part"], part, path)
    if part["kind"] == "machine":
        yield from (Found(f.key, f.field, (*path, *f.path), f.value) for f in in_machine(part))
    else:
        yield from standing(part["kind"], ROOTS[part["kind"]], part, path)


def in_workload(document: Mapping[str, Any], path: Path = ()) -> Iterator[Found]:
    """Every key of a workload file."""
    for found in standing("workload", ROOTS["workload"], document):
        if not any(found.key.startswith(f"workload.{name}.") for name in ELSEWHERE):
            yield found
    yield from _doors(document, ())
    for name, job in document.get("jobs", {}).items():
        yield from _doors(job, ("jobs", name))


def _doors(document: Mapping[str, Any], path: Path) -> Iterator[Found]:
    if "runtime" in document:
        yield from standing("runtime", ROOTS["runtime"], document["runtime"], (*path, "runtime"))
    if "program" in document:
        yield from _program(document["program"], (*path, "program"))
    for name, program in document.get("programs", {}).items():
        yield from _program(program, (*path, "programs", name))
    if "pipeline" in document:
        yield from _pipeline(document["pipeline"], (*path, "pipeline"))
    for name, service in document.get("services", {}).items():
        here: Path = (*path, "services", name)
        yield from standing("service", ROOTS["service"], service, here)
        yield from _request(service["request"], (*here, "request"))
    for door in ("train", "infer"):
        if door in document:
            yield from _door(door, document[door], (*path, door))


def _request(statements: Sequence[Any], path: Path) -> Iterator[Found]:
    for index, statement in enumerate(statements):
        [(kind, body)] = statement.items()
        here: Path = (*path, index, kind)
        if kind == "choose":
            for name, way in body.items():
                yield from standing("service choose", ROOTS["service choose"], way, (*here, name))
        elif f"service {kind}" in ROOTS:
            yield from standing(f"service {kind}", ROOTS[f"service {kind}"], body, here)
            for key in ("do", "miss"):
                if isinstance(body, Mapping) and key in body:
                    yield from _request(body[key], (*here, key))


def _door(door: str, body: Mapping[str, Any], path: Path) -> Iterator[Found]:
    yield from standing(door, ROOTS[door], body, path)
    for key in ("parallel", "synchronise") if door == "train" else ():
        if isinstance(body.get(key), Mapping):
            yield from standing(f"train.{key}", ROOTS[f"train.{key}"], body[key], (*path, key))
    if door == "train" and isinstance(body.get("failures"), Mapping):
        yield from standing("failures", ROOTS["failures"], body["failures"], (*path, "failures"))
    if door == "train" and "loader" in body:
        yield from _stages(body["loader"], (*path, "loader"))
    model = body.get("model")
    if isinstance(model, Mapping):
        kind = f"model {model.get('kind', 'transformer')}"
        yield from standing(kind, ROOTS[kind], model, (*path, "model"))


def _program(program: Any, path: Path) -> Iterator[Found]:
    if isinstance(program, Mapping) and "do" in program:
        yield from standing("each", ROOTS["each"], program, path)
        yield from _statements(program["do"], (*path, "do"))
    else:
        yield from _statements(program, path)


def _statements(statements: Sequence[Any], path: Path) -> Iterator[Found]:
    for index, statement in enumerate(statements):
        [(kind, body)] = statement.items()
        here: Path = (*path, index, kind)
        if f"statement {kind}" in ROOTS:
            yield from standing(f"statement {kind}", ROOTS[f"statement {kind}"], body, here)
            if isinstance(body, Mapping) and "do" in body:
                yield from _statements(body["do"], (*here, "do"))
        else:
            yield from _op(kind, body, here)


def _op(kind: str, body: Any, path: Path) -> Iterator[Found]:
    cls = ROOTS[f"op {kind}"]
    yield from standing("op", ROOTS["op"], body, path)
    if issubclass(cls, ROOTS["op of several"]):
        yield from standing("op of several", ROOTS["op of several"], body, path)
        algorithm = body.get("algorithm")
        if isinstance(algorithm, Mapping):
            name = f"algorithm {algorithm['kind']}"
            yield from standing(name, ROOTS[name], algorithm, (*path, "algorithm"))
    yield from standing(f"op {kind}", cls, body, path)


def _pipeline(body: Mapping[str, Any], path: Path) -> Iterator[Found]:
    yield from standing("pipeline", ROOTS["pipeline"], body, path)
    yield from _stages(body, path)


def _stages(body: Mapping[str, Any], path: Path) -> Iterator[Found]:
    for index, stage in enumerate(body["stages"]):
        here: Path = (*path, "stages", index)
        yield from standing("stage", ROOTS["stage"], stage, here)
        if "train" in stage:
            yield from _door("train", stage["train"], (*here, "train"))
        for kind, op in stage.items():
            if f"op {kind}" in ROOTS:
                yield from _op(kind, op, (*here, kind))
        yield from _statements(stage.get("do", ()), (*here, "do"))
