"""The entry point of `infer:` workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwsim.families.serving.service_run import PlannedModels
from hwsim.families_interface import FamilyInterface, OtherActivity, quantities_by_job
from hwsim.machine import Machine
from hwsim.results.batches import STATISTICS
from hwsim.spec import Mistakes
from hwsim.units import COUNT, RATE, TIME, Dimension
from hwsim.workload.file import Workload


class Infer(FamilyInterface):
    """The interface of `infer:` workloads to the rest of hwsim."""

    quantities: Mapping[str, Dimension] = {  # see `hwsim.families.serving.results.statistics`
        **{f"{measure}_{part}": TIME for measure in ("ttft", "tpot", "latency") for part in STATISTICS},
        "requests_per_s": RATE,
        "tokens_per_s": RATE,
        "goodput": RATE,
        "gpu_hours": TIME,
        "replicas_mean": COUNT,
    }
    answers = issues = True
    unfolded = "is a training or a service, which folds its own ranks"

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Add the keys of `infer:` to the JSON schema; their `model` may be a name or a mapping."""
        from hwsim.families.serving.workload.schema import InferKeys
        from hwsim.workload.schema import embedded, put_schema

        infer = embedded(InferKeys, definitions)
        put_schema(infer["properties"]["model"], {"anyOf": [{"type": "string"}, {"type": "object"}]})
        put_schema(out["properties"]["infer"], infer)

    def check(self, workload: Workload, mistakes: Mistakes) -> None:
        """Add the mistakes in keys and models."""
        from hwsim.families.serving.workload.placement import check_service

        for tree in workload.trees("infer"):
            check_service(tree, mistakes)

    def wanted(self, workload: Workload) -> dict[str, Dimension]:
        """Return the quantities of each served model."""
        return quantities_by_job(workload.written_as("infer"), self.quantities)

    def plan(self, workload: Workload, machine: Machine, mistakes: Mistakes, beside: OtherActivity) -> PlannedModels | None:  # noqa: ARG002
        """Return the services of a workload and of its jobs; None without any."""
        from hwsim.families.serving.workload.placement import plan_service
        from hwsim.workload.load.arrivals import FIXED, UNSTEADY

        trees = [("", 0.0, workload.infer)] if workload.infer is not None else []
        jobs = sorted((workload.jobs or {}).items())
        trees += [(name, job.start, job.on_devices(job.infer)) for name, job in jobs if job.infer is not None]
        planned = [plan_service(tree, machine, mistakes, name=name, start=start) for name, start, tree in trees]
        plans = tuple(plan for plan in planned if plan is not None)
        for plan in plans:
            arrivals = plan.keys.arrivals
            unsteady = workload.events or len(workload.jobs or ()) > 1 or (not isinstance(arrivals, str) and arrivals.changes)
            if isinstance(plan.keys.warm_up, str) and unsteady:
                mistakes.add(plan.keys.model.place, UNSTEADY, FIXED)
        return PlannedModels(plans) if plans else None


DOOR: FamilyInterface = Infer()
