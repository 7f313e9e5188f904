"""Machines of published collectives, as described by their sources, and curves that are in no table.

If a source does not describe its network, the bandwidth is that of its long messages (from the half used for fitting). Then
only latencies and protocols remain to be fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from published.parts import declared

MACHINES: Final[Mapping[str, str]] = declared("collective_machines")["machines"]

STAS: Final[Mapping[tuple[str, int, int], tuple[float, ...]]] = {
    (name, ranks, nodes): tuple(rates) for name, ranks, nodes, rates in declared("collective_machines")["stas"]
}


_BOARDS: Final = declared("collective_machines")["boards"]
SERVING: Final[Mapping[str, str]] = {
    server["name"]: _BOARDS[server["board"]].format(**server) for server in declared("collective_machines")["serving"]
}
