"""`infer:` models that serve requests: their schema, what they are on a machine, and the requests that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwsim.machine import Machine
from hwsim.spec import Mistakes, Tree
from hwsim.workload.file import Workload

if TYPE_CHECKING:
    from hwsim.families.serving.workload.plan import ServicePlan


def plan_services(workload: Workload, machine: Machine, mistakes: Mistakes) -> tuple[ServicePlan, ...]:
    """The services of a workload and of its jobs; what is wrong is noted."""
    plans: list[tuple[str, float, Tree]] = [("", 0.0, workload.infer)] if workload.infer is not None else []
    for name, job in sorted((workload.jobs or {}).items()):
        if job.infer is not None:
            plans.append((name, job.start, job.on_devices(job.infer)))
    if not plans:
        return ()
    from hwsim.families.serving.workload.placing import plan_service  # models are slow to import

    services = [plan_service(tree, machine, mistakes, name=name, start=start) for name, start, tree in plans]
    return tuple(plan for plan in services if plan is not None)
