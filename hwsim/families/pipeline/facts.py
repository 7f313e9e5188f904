"""Facts on pipelines for views, studies, plans and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.families_interface import FamilyReport, SummaryLine
from hwsim.results.result import Result
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.pipeline.starvation import PipelineUse


def found(result: Result) -> Sequence[PipelineUse]:
    """Return the pipelines of a run."""
    every: Sequence[PipelineUse] = result.told["pipeline"].found
    return every


class PipelineFacts(FamilyReport):
    """The facts of `pipeline:`."""

    undrawn = "the workload has no `pipeline:`"

    def rows(self, result: Result) -> Iterator[SummaryLine]:
        """Yield the rate of each pipeline, and the waits of its last stage."""
        from hwsim.families.pipeline import summary

        yield from (SummaryLine(*row) for row in summary.rows(found(result)))

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the entries of all pipelines."""
        from hwsim.families.pipeline import summary

        return {"pipelines": summary.as_dicts(found(result))}

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Yield the total rate, and the average busy share of the last stages."""
        if lines := found(result):
            phases = [line.settled for line in lines]
            yield "batches_per_s", fsum(phase.batches * FEMTO / phase.time_fs for phase in phases if phase.time_fs)
            yield "busy", fsum(phase.busy for phase in phases) / len(phases)

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Yield (unit, amount, rate) of samples, or of batches of unknown size."""
        if not (lines := found(result)):
            return
        has_sizes = all(line.batch for line in lines)
        sizes = [line.batch if has_sizes else 1 for line in lines]
        amount = fsum(line.whole.batches * size for line, size in zip(lines, sizes, strict=True))
        rate = fsum(size * line.settled.rate for line, size in zip(lines, sizes, strict=True))
        yield "samples" if has_sizes else "batches", amount, rate

    def numbers(self, result: Result) -> dict[str, float]:
        """Return the time of an epoch (s)."""
        from hwsim.families.pipeline.starvation import epoch_s

        lines = found(result)
        return {"epoch": epoch_s(lines)} if lines and all(line.settled.rate for line in lines) else {}

    def counts(self, result: Result) -> Iterator[tuple[str, float, float, float]]:
        """Yield the number of epochs, if the run has one pipeline that reads all samples in each."""
        lines = result.simulated.flat.graph.lines
        if len(lines) == 1 and lines[0].epochs and (lines[0].epochs[0] + 1) * lines[0].batch > lines[0].samples:
            yield "epoch", float(len(lines[0].epochs)), 1.0, 1.0


FACTS: FamilyReport = PipelineFacts()
