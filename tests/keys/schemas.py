"""Every key of every schema, and where each of them stands in a document.

A key is named by its path: `gpu.l2.size`, `op access.remote`, `link pcie.gen`; `*` stands for a name that the file chooses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from hwsim import devices, links
from hwsim.communication import KINDS as ALGORITHMS
from hwsim.failures import Failures
from hwsim.families.pipeline.workload import PipelineKeys, StageKeys
from hwsim.families.services.workload.schema import STATEMENTS as SERVICE_STATEMENTS
from hwsim.families.services.workload.schema import ServiceKeys, WayKeys
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from hwsim.machine.schema import LibraryEntry, LinkEntry, MachineFile, PartEntry
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.models import Framework
from hwsim.models.architectures import ARCHITECTURES as MODELS
from hwsim.ops import OPS
from hwsim.ops.exchange import ExchangeOp
from hwsim.ops.op import Op
from hwsim.spec import FieldPlan, plan
from hwsim.workload.file import RankProgram, Runtime, Workload
from hwsim.workload.parser import STATEMENTS

ROOTS: Final[Mapping[str, Any]] = {
    "machine": MachineFile,
    "part": PartEntry,
    "link": LinkEntry,
    "library": LibraryEntry,
    **devices.KINDS,
    **{f"link {name}": cls for name, cls in links.KINDS.items()},
    **{f"topology {name}": cls for name, cls in TOPOLOGIES.items()},
    **{f"library {name}": cls for name, cls in LIBRARIES.items()},
    **{f"algorithm {name}": cls for name, cls in ALGORITHMS.items()},
    **{f"model {name}": cls for name, cls in MODELS.items()},
    "framework": Framework,
    "workload": Workload,
    "runtime": Runtime,
    "each": RankProgram,
    "pipeline": PipelineKeys,
    "stage": StageKeys,
    "train": TrainKeys,
    "train.parallel": ParallelKeys,
    "train.synchronise": SynchroniseKeys,
    "failures": Failures,
    "infer": InferKeys,
    **{f"statement {name}": cls for name, cls in STATEMENTS.items()},
    "service": ServiceKeys,
    **{f"service {name}": cls for name, cls in SERVICE_STATEMENTS.items()},
    "service choose": WayKeys,
    "op": Op,
    "op of several": ExchangeOp,
    **{f"op {name}": cls for name, cls in OPS.items()},
}
ALIKE: Final = frozenset(
    {
        "cpu.memory.dram",
        "gpu.memory.dram",
        "infer.server",
        "infer.split.prefill.server",
        "infer.split.decode.server",
        "infer.arrivals.bursts.size",
        "infer.arrivals.think",
        "infer.sessions.think",
        "service.arrivals",
        "infer.sessions.turns",
        "infer.shared.tokens",
        *(f"{kind}.power" for kind in devices.KINDS if kind != "gpu"),
    }
)  # schemas shared with another kind of part, of which few keys are used here
ELSEWHERE: Final = frozenset({"runtime", "pipeline", "train", "infer"})  # keys of `workload` that have a root of their own


@dataclass(frozen=True, slots=True)
class Found:
    """A key in a document.  path: the keys and numbers that lead to its value."""

    key: str
    field: FieldPlan
    path: tuple[str | int, ...]
    value: Any


def keys() -> dict[str, FieldPlan]:
    """Every key of every schema."""
    return {name: field for root, cls in ROOTS.items() for name, field in _keys(root, cls, ())}


def _keys(prefix: str, cls: Any, above: tuple[Any, ...]) -> Iterator[tuple[str, FieldPlan]]:
    for field in own(prefix, cls):
        name = f"{prefix}.{field.key}"
        yield name, field
        for inner, many in inside(field):
            if inner not in above and name not in ALIKE:
                yield from _keys(f"{name}.*" if many else name, inner, (*above, cls))


def own(prefix: str, cls: Any) -> Iterator[FieldPlan]:
    """The keys of a schema that stand under this name: those of every op under `op` alone."""
    shared = {field.key for field in plan(ExchangeOp if issubclass(cls, ExchangeOp) else Op)}
    skip = shared if prefix.startswith("op ") and issubclass(cls, Op) and prefix != "op of several" else set()
    if prefix == "op of several":
        skip = {field.key for field in plan(Op)}
    yield from (field for field in plan(cls) if field.key not in skip)


def inside(each: FieldPlan) -> list[tuple[Any, bool]]:
    """(schema that the value of a key has, whether under names that the file chooses); parts in parts have their own root."""
    return [(cls, many) for cls, many in _schemas(each.annotation, many=False) if not hasattr(cls, "kind")]


def _schemas(annotation: Any, *, many: bool) -> Iterator[tuple[Any, bool]]:
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type) and plan(annotation):
        if annotation.__module__ not in ("hwsim.spec.tree", "hwsim.units"):
            yield annotation, many
        return
    origin = getattr(annotation, "__origin__", None)
    arguments = get_args(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _schemas(arguments[1], many=True)
    elif not hasattr(annotation, "__metadata__"):
        for inner in arguments:
            yield from _schemas(inner, many=many)


def standing(
    prefix: str, cls: Any, document: Any, path: tuple[str | int, ...] = (), above: tuple[Any, ...] = ()
) -> Iterator[Found]:
    """The keys of a schema that a mapping gives, those inside it too."""
    if not isinstance(document, Mapping):
        return
    for field in own(prefix, cls):
        if field.key not in document:
            continue
        value, here, name = document[field.key], (*path, field.key), f"{prefix}.{field.key}"
        yield Found(name, field, here, value)
        for inner, many in () if name in ALIKE else inside(field):
            if inner in above:
                continue
            rows = value.items() if many and isinstance(value, Mapping) else [("", value)]
            for key, one in rows:
                for place, item in _items(one, (*here, key) if many else here):
                    yield from standing(f"{name}.*" if many else name, inner, item, place, (*above, cls))


def _items(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """A value, or those in a list of them, however deep."""
    if isinstance(value, list | tuple):
        for number, member in enumerate(value):
            yield from _items(member, (*path, number))
    else:
        yield path, value
