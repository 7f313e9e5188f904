"""The family of workloads `services:`: schema, checks and planning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwsim.families_interface import FamilyInterface, FamilyPlan, OtherActivity, quantities_by_job
from hwsim.machine import Machine
from hwsim.ops import OPS, ExchangeOp, FetchOp
from hwsim.results.batches import STATISTICS
from hwsim.spec import Mistakes, Tree
from hwsim.units import COUNT, RATE, RATIO, TIME, Dimension
from hwsim.workload.file import Workload


class ServicesFamily(FamilyInterface):
    """The family of `services:`."""

    quantities: Mapping[str, Dimension] = {  # see `hwsim.families.services.results`
        **{f"latency_{part}": TIME for part in STATISTICS},
        **dict.fromkeys(("requests_per_s", "goodput"), RATE),
        **dict.fromkeys(("refused", "failed", "wasted"), RATIO),
        "in_flight_mean": COUNT,
    }
    answers = True
    exact = False

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Add services to the JSON Schema; keys of their ops are unchecked, because any value may be random."""
        from hwsim.workload.schema import put_schema

        services = {"type": "object", "additionalProperties": _service(definitions)}
        put_schema(out["properties"]["services"], services)
        put_schema(definitions["Job"]["properties"]["services"], services)

    def kept(self, tree: Tree) -> frozenset[str]:
        """Return names of values that are kept per request with `as`."""
        from hwsim.families.services.workload.random_values import kept_of

        return kept_of(tree)

    def check(self, workload: Workload, mistakes: Mistakes) -> None:
        """Add the mistakes in all services."""
        from hwsim.families.services.workload.plan import check_services

        check_services(workload, mistakes)

    def wanted(self, workload: Workload) -> dict[str, Dimension]:
        """Return the quantities of each service and of its branches."""
        from hwsim.families.services.workload.plan import choices_of

        names = (entry for name, ways in choices_of(workload).items() for entry in (name, *(f"{name}.{way}" for way in ways)))
        return quantities_by_job(names, self.quantities)

    def plan(self, workload: Workload, machine: Machine, mistakes: Mistakes, beside: OtherActivity) -> FamilyPlan | None:
        """Return all services as one program, or None if mistakes were noted."""
        from hwsim.families.services.workload.plan import plan

        return plan(workload, machine, mistakes, beside.capacities, beside.changes)


def _service(definitions: dict[str, Any]) -> dict[str, Any]:
    from hwsim.families.services.workload import schema
    from hwsim.workload.schema import embedded, put_schema

    request = {"type": "array", "items": {"$ref": "#/$defs/Request"}}
    ops = {kind: {"type": "object"} for kind, op in OPS.items() if not issubclass(op, ExchangeOp | FetchOp)}
    inside = {}
    for kind, cls in schema.STATEMENTS.items():
        inside[kind] = embedded(cls, definitions)
        for key in ("do", "miss"):
            if key in inside[kind]["properties"]:
                put_schema(inside[kind]["properties"][key], request)
    inside["ask"] = {"anyOf": [{"type": "string"}, inside["ask"]]}
    way = embedded(schema.WayKeys, definitions)
    put_schema(way["properties"]["do"], request)
    definitions["Request"] = {
        "title": "statement of a request",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": {
            **ops,
            **inside,
            "choose": {"type": "object", "additionalProperties": way},
            "together": {"type": "array", "items": request},
        },
    }
    service = embedded(schema.ServiceKeys, definitions)
    put_schema(service["properties"]["request"], request)
    return service


DOOR: FamilyInterface = ServicesFamily()
