"""The tools for which a run can be written. A new tool needs a module with a function `files`, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from hwsim import ticks
from hwsim.importers.recording import OmittedEvents
from hwsim.records import dataclass
from hwsim.views.trace.run import TracedRun
from hwsim.views.trace.slices import REPLAYED, between


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported files by name, as chunks, and facts of the run that the format cannot represent."""

    files: Mapping[str, Iterable[bytes]]
    unsaid: tuple[OmittedEvents, ...]


class Tool(NamedTuple):
    """A tool: the module with its writer, and its description for `--help`."""

    module: str
    words: str


TOOLS: Final[Mapping[str, Tool]] = {
    "kineto": Tool("hwsim.exporters.kineto", "PyTorch profiler trace, one per rank, for HTA, Perfetto, TensorBoard."),
    "chakra": Tool("hwsim.exporters.chakra", "Chakra execution trace (.et), one per rank, for ASTRA-sim."),
}


def files(tool: str, run: TracedRun) -> Exported:
    """Return the files of a run for a tool of `TOOLS`, and the facts that they do not contain."""
    exported = cast("Callable[[TracedRun], Exported]", import_module(TOOLS[tool].module).files)(run)
    return Exported(exported.files, (*_never(run), *exported.unsaid))


def _never(run: TracedRun) -> Iterable[OmittedEvents]:
    flat = run.result.timeline.flat
    graph = flat.graph
    if graph.alike is not None and len(graph.alike.programs) > len(graph.alike.first):
        missing = len(graph.alike.programs) - len(graph.alike.first)
        yield OmittedEvents("ranks", missing, 0, "identical to a simulated rank: --no-fold writes each of them")
    replicas = sum(count - 1 for training in graph.trainings for _, count in training.classes)  # integers
    if replicas:
        yield OmittedEvents(
            "replicas", replicas, 0, "data-parallel replicas, identical to a simulated one: --no-fold writes each of them"
        )
    length = run.result.timeline.end - run.result.timeline.start
    pooled = flat.take >= 0
    if pooled.any():
        yield OmittedEvents(
            "ops of pools", int(pooled.sum()), ticks.total(length[pooled]), "ops of pools, whose order is decided at run time"
        )
    if between(graph.labels).any():
        replayed = [entry for entry in run.slices.all if graph.labels[flat.label[entry.op]].kind == REPLAYED]
        if replayed:
            yield OmittedEvents("sizes of collectives", len(replayed), 0, "the op graph of a recording has only their times")
        yield OmittedEvents("marks and shapes of a recording", 1, 0, "the op graph has neither steps nor tensors")
    if run.result.changes:
        yield OmittedEvents(
            "changes of capacities", len(run.result.changes), 0, "failures and slowdowns are included only in the times"
        )


def as_dict(tool: str, run: TracedRun, exported: Exported, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the document `hwsim: export/2`."""
    return {
        "hwsim": "export/2",
        "tool": tool,
        "machine": run.result.machine,
        "workload": run.result.workload,
        "makespan_s": run.result.makespan_s,
        "ranks": run.world,
        "files": [{"name": name, "bytes": size} for name, size in sizes.items()],
        "omitted": [left.to_json() for left in exported.unsaid],
    }
