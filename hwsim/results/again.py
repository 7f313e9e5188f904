"""A run that can be made again with other numbers in its files: what a what-if is worked out with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hwsim.records import dataclass
from hwsim.spec import Tree

if TYPE_CHECKING:
    from hwsim.results.result import Result

Settings = Mapping[str, str]
"""Paths and values, as `--set` takes them: {"machine.cpu.coherence.cluster": "25 ns"}."""


@dataclass(frozen=True, slots=True)
class Again:
    """The files of a run, and how to prepare and simulate them again.

    Args:
        machine: file of the machine as it was run, its `use:` not yet followed.
        workload: file of the workload as it was run.
        simulate: prepares and simulates the run with further settings; raises `SpecError` if they are refused.
    """

    machine: Tree
    workload: Tree
    simulate: Callable[[Settings], Result]
