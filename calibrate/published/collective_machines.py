"""The machines of published collectives, as far as their sources describe them, and curves that are in no table.

Where a source does not say what its network is, the rates are those that its own long messages reach (fitted, on the half
that parameters are fitted to), so that only latencies and protocols are left to fit.
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
    each["name"]: _BOARDS[each["board"]].format(**each) for each in declared("collective_machines")["serving"]
}
