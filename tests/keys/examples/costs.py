"""Keys of what machines draw and cost."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.storage import MEMBERS
from tests.keys.examples.writing import CPU, PLAIN_GPU, in_turn, machine
from tests.keys.feeling import Example

DRAWN: Final[dict[str, Any]] = {"power": {"idle": "50 W", "loaded": "300 W", "memory": "200 W"}}
KERNELS: Final = ({"compute": {"device": "gpu0", "flop": "1 TFLOP"}}, {"compute": {"device": "gpu0", "bytes": "1 GB"}})


def _drawing(kind: str, **keys: Any) -> Example:
    return Example(
        f"power of {kind}",
        machine(cpu=CPU, it={"kind": kind, "power": "10 W", **keys}),
        in_turn({"busy": {"device": "cpu", "time": "1 s"}}),
    )


EXAMPLES: Final = (
    Example("power of a GPU", machine(gpu={**PLAIN_GPU, **DRAWN, "count": 1}), in_turn(*KERNELS)),
    Example(
        "power of a machine",
        machine(gpu={**PLAIN_GPU, **DRAWN, "count": 1}, more={"power": {"idle": "100 W", "loaded": "500 W"}}),
        in_turn(*KERNELS),
    ),
    Example("price of a part", machine(gpu={**PLAIN_GPU, "count": 1, "price": "30000 USD"}), in_turn(*KERNELS)),
    Example("price of a machine", machine(gpu={**PLAIN_GPU, "count": 1}, more={"price": "30000 USD"}), in_turn(*KERNELS)),
    _drawing("memory", size="1 GB", bandwidth="10 GB/s"),
    _drawing("nic", bandwidth="1 GB/s"),
    _drawing("switch"),
    _drawing("raid", level=0, members=2, ssd=MEMBERS["ssd"]),
    *(_drawing(kind, **keys) for kind, keys in MEMBERS.items()),
    _drawing("disk", read="1 GB/s"),
    _drawing("filesystem", bandwidth="1 GB/s"),
)
