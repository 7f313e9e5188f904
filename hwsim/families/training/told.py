"""What came of trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hwsim.doors import Told
from hwsim.families.training.results import Training, expected_of, trainings
from hwsim.results.invariants import numbers
from hwsim.results.timeline import Timeline


@dataclass(frozen=True)
class Trained(Told):
    """The trainings of a run."""

    timeline: Timeline

    @cached_property
    def found(self) -> tuple[Training, ...]:
        """Each, from its ops."""
        return trainings(self.timeline)

    def expected(self) -> Mapping[str, float]:
        """Quantities of each training."""
        return expected_of(self.found)

    def breaches(self) -> Iterator[str]:
        """Numbers that are none."""
        return numbers(self.found, "trainings")
