"""Parameter servers: the workers push gradients, the servers sum them, the workers pull the sums.

    servers on separate devices       2 (a + max(S, n S / s) / B)         n workers, s servers, S/s at each
    servers on the workers            2 (a + (n - 1) S / (s B))

One worker as the server: 2 (n - 1) S/B. All workers as servers: 2 (n - 1)/n S/B. With as many servers as workers, the time does
not depend on n; with fewer, it grows as n/s.

Source: Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; d2l 13.7.
Range: push, then pull, all workers at once; stragglers and separate keys belong to the workload.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.plan import CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class ParameterServer(Algorithm):
    """Parameter servers on the first workers, or on separate devices."""

    kind: ClassVar[str] = "parameter-server"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce",)
    presets: ClassVar[Presets | None] = {
        "ps-cpu": {"servers": 1, "on": "beside", "at": ("cpu",)}, "ps-gpu0": {"servers": 1}, "ps-sharded": {},
    }  # fmt: skip

    servers: int | None = field(
        "number of servers, with equal shares of the bytes (default: one per worker)", default=None, minimum=1
    )
    on: Literal["workers", "beside"] = field(
        "location of the servers: workers: the first workers; beside: separate devices", default="workers"
    )
    at: tuple[str, ...] = field("devices of the servers with `on: beside` (default: `cpu`)", default=(), one_or_many=True)

    def count(self, group: RankGroup) -> int:
        """Return the number of servers.

        Raises:
            CannotCollect: more servers than workers, or `at`, with `on: workers`.
        """
        if self.on == "workers" and self.at:
            raise CannotCollect("`at` names separate devices, but the servers are on the workers", "on: beside")
        servers = group.ranks if self.servers is None else self.servers
        if self.on == "workers" and servers > group.ranks:
            raise CannotCollect(f"{servers} servers exceed {group.ranks} workers", "`on: beside` uses separate devices")
        return servers

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan: step 0 pushes, step 1 pulls; server j has chunk j."""
        n, servers = group.ranks, self.count(group)
        first = 0 if self.on == "workers" else n
        routes = [(worker, first + chunk, chunk) for worker in range(n) for chunk in range(servers) if worker != first + chunk]
        push = [PlanSend(0, worker, server, chunk, 1, True) for worker, server, chunk in routes]
        pull = [PlanSend(1, server, worker, chunk) for worker, server, chunk in routes]
        return CollectivePlan(operation, n, servers, (*push, *pull), helpers=0 if self.on == "workers" else servers)

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return push, then pull: the two directions of the same links."""
        rounds = rounds_of(self.plan(operation, group))
        return tuple(replace(stage, name=name) for name, stage in zip(("push", "pull"), rounds, strict=False))
