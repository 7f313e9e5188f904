"""Cache lines that several cores write: how long a line takes from one core to another, and what false sharing costs.

A line is in one core's hands at a time.  `times` increments by each of n cores of a line they share (the same counter, or
counters that lie in one line) are one after another:

    shared   cores x times x L_c2c(n)           L_c2c: mean over the pairs of these cores
    own      times x cycles / clock              each counter in a line of its own: side by side

so that falsely shared counters are slower than one core alone, however many cores help.
Source: cache coherence protocols (Sorin, Hill and Wood, "A Primer on Memory Consistency and Cache Coherence", 2011);
latencies: nviennot/core-to-core-latency, one way of a compare-and-swap ping-pong.
Error: docs/validation/components.md (core-to-core).  The ratio shared / own is right to a factor of 2 for plain stores:
store buffers let a core write several times before it gives the line away.
Range: a line that is written all the time.  Readers in between, back-off of locks and queues of them are not modelled.
"""

from __future__ import annotations

import math

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Seconds


@dataclass(frozen=True, slots=True)
class Coherence:
    """One-way latency of a line from core to core, by how far apart they are."""

    cluster: Seconds = field("between cores of one cluster (a core complex, a ring, a mesh)", exclusive_minimum=0.0)
    cluster_cores: int | None = field("cores of a cluster (default: all of the socket)", default=None, minimum=1)
    across: Seconds | None = field("between clusters of one socket (default: as inside)", default=None, exclusive_minimum=0.0)
    sockets: Seconds | None = field("between sockets (default: as across clusters)", default=None, exclusive_minimum=0.0)
    threads: Seconds | None = field("between the hardware threads of one core", default=None, exclusive_minimum=0.0,
                                   record="increments are of one thread a core")  # fmt: skip
    spread: float = field("how far pairs of one kind differ: standard deviation over mean", default=0.0, minimum=0.0, maximum=0.5,
                          record="times are of the mean pair")  # fmt: skip

    def pairs(self, cores: int, sockets: int = 1, threads: int = 1) -> tuple[tuple[float, float], ...]:
        """(part of the pairs, seconds) by kind of pair, nearest first; `cores` of each socket, `threads` of each core.

        >>> Coherence(cluster=20e-9, cluster_cores=4, across=90e-9).pairs(8)
        ((0.428..., 2e-08), (0.571..., 9e-08))
        """
        cluster = min(self.cluster_cores or cores, cores)
        number = cores * sockets * threads
        near = math.floor(cores / cluster) * cluster * (cluster - 1) + (cores % cluster) * (cores % cluster - 1)
        socket = cores * (cores - 1) - near
        across = self.cluster if self.across is None else self.across
        far = across if self.sockets is None else self.sockets
        counted = (
            (number * (threads - 1), self.threads if self.threads is not None else self.cluster),
            (near * sockets * threads**2, self.cluster),
            (socket * sockets * threads**2, across),
            (cores**2 * sockets * (sockets - 1) * threads**2, far),
        )
        every = number * (number - 1)
        return tuple((count / every, seconds) for count, seconds in counted if count > 0)

    def transfer(self, used: int, cores: int, sockets: int = 1) -> float:
        """Mean seconds a line takes between any two of `used` cores that fill one socket after another; 0 for one core.

        >>> round(Coherence(cluster=20e-9, cluster_cores=4, across=90e-9).transfer(4, 8) * 1e9, 3)
        20.0
        """
        if used < 2:
            return 0.0
        each = cores // sockets
        full, rest = divmod(used, each)
        counted: list[tuple[float, float]] = []  # (pairs, seconds)
        for busy in (*(each,) * full, rest):
            counted += [(part * busy * (busy - 1), seconds) for part, seconds in (self.pairs(busy) if busy > 1 else ())]
        within = sum(busy * (busy - 1) for busy in (*(each,) * full, rest))  # whole
        across = self.cluster if self.across is None else self.across
        counted.append((used * (used - 1) - within, across if self.sockets is None else self.sockets))
        return math.fsum(count * seconds for count, seconds in counted) / (used * (used - 1))
