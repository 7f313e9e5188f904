"""`services:` programs that answer requests: their schema, their programs of steps, and where each of them is served."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hwsim.machine import Machine
from hwsim.spec import Mistakes
from hwsim.workload.file import Workload

if TYPE_CHECKING:
    from hwsim.workload.services.program import Program


def plan_program(workload: Workload, machine: Machine, mistakes: Mistakes, shared: Collection[str]) -> Program | None:
    """The services of a workload and of its jobs as one program; None without any, or once mistakes are noted.

    Args:
        shared: capacities that others draw from, too.
    """
    if not workload.of_services:
        return None
    from hwsim.workload.services.plan import plan

    return plan(workload, machine, mistakes, shared)
