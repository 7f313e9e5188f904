"""Workloads: programs, trainings, services and pipelines in YAML, and their translation to op graphs.

workload = read_workload(read("workload.yaml"), mistakes)
graph = lower(workload, machine, mistakes)
"""

from __future__ import annotations

from hwsim.graph.builder import GraphBuilder, OpRef, block
from hwsim.workload.events import changes, disturbances
from hwsim.workload.file import Runtime, Workload, read_workload
from hwsim.workload.lower import lower
from hwsim.workload.statement_checks import check_statements, suspicions

__all__ = [
    "GraphBuilder",
    "OpRef",
    "Runtime",
    "Workload",
    "block",
    "changes",
    "check_statements",
    "disturbances",
    "lower",
    "read_workload",
    "suspicions",
]
