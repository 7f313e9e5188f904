"""What came of pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hwsim.doors import Told
from hwsim.results.timeline import Timeline

if TYPE_CHECKING:
    from hwsim.families.pipeline.starving import PipelineUse


@dataclass(frozen=True)
class Ran(Told):
    """The pipelines of a run."""

    timeline: Timeline

    @cached_property
    def found(self) -> tuple[PipelineUse, ...]:
        """Each program's, with the phases of its epochs."""
        from hwsim.families.pipeline.starving import pipelines

        return pipelines(self.timeline)
