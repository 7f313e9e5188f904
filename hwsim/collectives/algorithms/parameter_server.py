"""Parameter servers: the workers push their gradients, the servers add them up, the workers pull the sums.

    servers beside the workers        2 (a + max(S, n S / s) / B)         n workers, s servers, S/s at each
    servers are workers themselves    2 (a + (n - 1) S / (s B))

One worker as the server: 2 (n - 1) S/B.  All of them: 2 (n - 1)/n S/B.  With as many servers as workers the
time does not depend on n; with fewer it grows as n/s.

Source: Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; d2l 13.7.
Range: push and pull one after the other, all workers at once; a late worker, and keys of their own, are the workload's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, Literal

from hwsim.collectives.plan import CannotCollect, Group, Operation, Plan, Send
from hwsim.collectives.rounds import Round, Wires, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field

WHOLE: Final = 1_000_000  # numbers of an array below which MXNet leaves it on one server (MXNET_KVSTORE_BIGARRAY_BOUND)


@dataclass(frozen=True, slots=True)
class ParameterServer:
    """`servers` of them: the first workers themselves, or devices beside them."""

    kind: ClassVar[str] = "parameter-server"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce",)

    servers: int | None = field("how many share the bytes; as many as there are workers if left out", default=None, minimum=1)
    on: Literal["workers", "beside"] = field("workers: the first of them; beside: devices of their own", default="workers")
    at: tuple[str, ...] = field("the devices beside the workers, `cpu` if left out", default=(), one_or_many=True)

    def count(self, group: Group) -> int:
        """Number of servers.

        Raises:
            CannotCollect: more servers on the workers than there are.
        """
        found = group.ranks if self.servers is None else self.servers
        if self.on == "workers" and found > group.ranks:
            raise CannotCollect(f"{found} servers on {group.ranks} workers", "`on: beside` puts them on devices of their own")
        return found

    def plan(self, operation: Operation, group: Group) -> Plan:
        """Step 0 pushes, step 1 pulls; chunk j is server j's."""
        n, servers = group.ranks, self.count(group)
        first = 0 if self.on == "workers" else n
        routes = [(worker, first + chunk, chunk) for worker in range(n) for chunk in range(servers) if worker != first + chunk]
        push = [Send(0, worker, server, chunk, 1, True) for worker, server, chunk in routes]
        pull = [Send(1, server, worker, chunk) for worker, server, chunk in routes]
        return Plan(operation, n, servers, (*push, *pull), helpers=0 if self.on == "workers" else servers)

    def rounds(self, operation: Operation, group: Group) -> tuple[Round, ...]:
        """Push, then pull: the two directions of the same links."""
        found = rounds_of(self.plan(operation, group))
        return tuple(
            Round(name, each.pairs, each.times, each.reduce) for name, each in zip(("push", "pull"), found, strict=False)
        )

    def seconds(self, operation: Operation, group: Group, size: float, wires: Wires) -> float:  # noqa: ARG002
        """The closed form."""
        n, servers = group.ranks, self.count(group)
        if self.on == "beside":
            return 2 * wires.step(max(1.0, n / servers) * size, size / servers)
        if n == 1:
            return 0.0
        port = max((n - 1) / servers, 1.0 if servers < n else 0.0)
        return 2 * wires.step(port * size, size / servers)


def shards(numbers: Sequence[int], servers: int) -> tuple[tuple[int, int, float], ...]:
    """(key, server, part of the key) of arrays with that many numbers each, as MXNet's key-value store spreads them.

    An array of a million numbers or more is cut evenly over all servers; a smaller one goes whole to the server
    (key x 9973) mod servers.

    Source: MXNet 1.x, src/kvstore/kvstore_dist.h, EncodeDefaultKey.

    >>> shards([10, 4_000_000], 2)
    ((0, 0, 1.0), (1, 0, 0.5), (1, 1, 0.5))
    """
    return tuple(_spread(numbers, servers))


def _spread(numbers: Sequence[int], servers: int) -> Iterator[tuple[int, int, float]]:
    for key, count in enumerate(numbers):
        if count < WHOLE:
            yield key, key * 9973 % servers, 1.0
        else:
            yield from ((key, server, 1 / servers) for server in range(servers))


def imbalance(numbers: Sequence[int], servers: int) -> float:
    """How much more the fullest server holds than the mean.

    >>> imbalance([100, 100, 100], 2)
    1.3333333333333333
    """
    held = [0.0] * servers
    for key, server, part in shards(numbers, servers):
        held[server] += part * numbers[key]
    return max(held) * servers / math.fsum(held)
