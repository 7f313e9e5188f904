"""What views, studies, plans and costs say of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.doors import Fact, Facts
from hwsim.results.result import Result
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.pipeline.starving import PipelineUse


def found(result: Result) -> Sequence[PipelineUse]:
    """The pipelines of a run."""
    every: Sequence[PipelineUse] = result.told["pipeline"].found
    return every


class OfPipelines(Facts):
    """`pipeline:`."""

    undrawn = "the workload has no pipeline, between whose stages batches could lie"

    def rows(self, result: Result) -> Iterator[Fact]:
        """The rate of each pipeline, and what its last stage waits for."""
        from hwsim.families.pipeline import summary

        yield from (Fact(*row) for row in summary.rows(found(result)))

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """Each pipeline."""
        from hwsim.families.pipeline import summary

        return {"pipelines": summary.as_dicts(found(result))}

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Batches a second of all, and how busy their last stages are."""
        if lines := found(result):
            phases = [line.settled for line in lines]
            yield "batches_per_s", fsum(phase.batches * FEMTO / phase.time_fs for phase in phases if phase.time_fs)
            yield "busy", fsum(each.busy for each in phases) / len(phases)

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Samples, or batches where their size is not given."""
        if not (lines := found(result)):
            return
        has_sizes = all(line.batch for line in lines)
        sizes = [line.batch if has_sizes else 1 for line in lines]
        amount = fsum(line.whole.batches * size for line, size in zip(lines, sizes, strict=True))
        rate = fsum(size * line.settled.rate for line, size in zip(lines, sizes, strict=True))
        yield "samples" if has_sizes else "batches", amount, rate

    def numbers(self, result: Result) -> dict[str, float]:
        """Seconds of an epoch."""
        from hwsim.families.pipeline.starving import epoch_s

        lines = found(result)
        return {"epoch": epoch_s(lines)} if lines and all(line.settled.rate for line in lines) else {}

    def counts(self, result: Result) -> Iterator[tuple[str, float, float, float]]:
        """Epochs of one pipeline that reads all of its samples in each."""
        lines = result.simulated.flat.graph.lines
        if len(lines) == 1 and lines[0].epochs and (lines[0].epochs[0] + 1) * lines[0].batch > lines[0].samples:
            yield "epoch", float(len(lines[0].epochs)), 1.0, 1.0


FACTS: Facts = OfPipelines()
