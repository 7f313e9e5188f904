"""Tools that a run is written for: name -> writer. A new tool is a module with a function `files`, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from hwsim import ticks
from hwsim.importers.recording import Left
from hwsim.records import dataclass
from hwsim.views.trace.run import Run
from hwsim.views.trace.slices import REPLAYED, between


@dataclass(frozen=True, slots=True)
class Exported:
    """Files by name, each in chunks, and what the format cannot say of the run."""

    files: Mapping[str, Iterable[bytes]]
    unsaid: tuple[Left, ...]


class Tool(NamedTuple):
    """The module whose function `files` writes a run for it, and what it reads in words."""

    module: str
    words: str


TOOLS: Final[Mapping[str, Tool]] = {
    "kineto": Tool("hwsim.exporters.kineto", "JSON of PyTorch's profiler, a file for each rank: HTA, Perfetto, TensorBoard."),
    "chakra": Tool("hwsim.exporters.chakra", "Chakra execution traces (.et), a file for each rank: ASTRA-sim."),
}


def files(tool: str, run: Run) -> Exported:
    """The files of a run for a tool of `TOOLS`, with what of the run no file for any of them has."""
    exported = cast("Callable[[Run], Exported]", import_module(TOOLS[tool].module).files)(run)
    return Exported(exported.files, (*_never(run), *exported.unsaid))


def _never(run: Run) -> Iterable[Left]:
    flat = run.result.timeline.flat
    graph = flat.graph
    if graph.alike is not None and len(graph.alike.programs) > len(graph.alike.first):
        missing = len(graph.alike.programs) - len(graph.alike.first)
        yield Left("ranks", missing, 0, "equal to a rank that was simulated: --no-fold writes each")
    replicas = sum(many - 1 for training in graph.trainings for _, many in training.classes)  # integers
    if replicas:
        yield Left("replicas", replicas, 0, "of data-parallel training, equal to one that was simulated: --no-fold writes each")
    length = run.result.timeline.end - run.result.timeline.start
    pooled = flat.take >= 0
    if pooled.any():
        yield Left(
            "ops of pools", int(pooled.sum()), ticks.total(length[pooled]), "whose turn is decided anew whenever one is free"
        )
    if between(graph.labels).any():
        replayed = [entry for entry in run.slices.all if graph.labels[flat.label[entry.op]].kind == REPLAYED]
        if replayed:
            yield Left("sizes of collectives", len(replayed), 0, "the op graph of a recording has their times alone")
        yield Left("marks and shapes of a recording", 1, 0, "its op graph has neither steps nor tensors")
    if run.result.changes:
        yield Left("changes of capacities", len(run.result.changes), 0, "failures and slowdowns are in the times alone")


def as_dict(tool: str, run: Run, exported: Exported, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The document `hwsim: export/1`."""
    return {
        "hwsim": "export/1",
        "tool": tool,
        "machine": run.result.machine,
        "workload": run.result.workload,
        "makespan_s": run.result.makespan_s,
        "ranks": run.world,
        "files": [{"name": name, "bytes": size} for name, size in sizes.items()],
        "unsaid": [left.to_json() for left in exported.unsaid],
    }
