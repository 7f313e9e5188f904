"""Names of slices as in PyTorch's Kineto, by which other tools recognize kernels, copies and collectives."""

from __future__ import annotations

import re
from typing import Any, Final

from hwsim.demand import Cost
from hwsim.graph.opgraph import Label
from hwsim.results.bound import COLLECTIVES
from hwsim.views.trace.run import TracedRun
from hwsim.views.trace.slices import REPLAYED

COPIES: Final = frozenset({"copy", "send"})
_KERNELS: Final = {
    "allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "alltoall": "SendRecv",
    "broadcast": "Broadcast", "reduce": "Reduce", "gather": "SendRecv", "scatter": "SendRecv", "send": "SendRecv",
}  # fmt: skip
_CALLED: Final = {  # name in PyTorch by name of the op
    "allreduce": "allreduce", "allgather": "_allgather_base", "reducescatter": "_reduce_scatter_base", "alltoall": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier", "send": "send",
}  # fmt: skip
_RECORDED: Final = re.compile("AllReduce|AllGather|ReduceScatter|Broadcast|Reduce(?!Scatter)")
_OF_KERNEL: Final = {kernel: name for name, kernel in _KERNELS.items() if kernel != "SendRecv"}
_KINDS: Final = {"cpu": "H", "gpu": "D"}


def operation_of(label: Label, cost: Cost | None) -> str:
    """Return the collective of an op, in lower case without separators; "" for other ops, or if it is unknown."""
    if label.kind not in COLLECTIVES:
        return ""
    if label.kind == REPLAYED and cost is None:
        return _OF_KERNEL.get(next(iter(_RECORDED.findall(label.name)), ""), "")
    named = cost.exchange.operation if cost is not None and cost.exchange is not None else label.kind
    plain = named.replace("-", "").replace("_", "")
    return plain if plain in _CALLED else ""


def name_on_gpu(label: Label, cost: Cost | None, run: TracedRun) -> str:
    """Return the name of a slice on a stream: of a kernel, or of a copy or collective as in CUDA and NCCL."""
    if (label.kind == REPLAYED and cost is None) or (label.kind in COPIES and label.name.startswith("Mem")):
        return label.name  # as it was recorded
    if label.kind in COPIES:
        return f"Memcpy {_way(cost, run)}"
    if label.kind not in COLLECTIVES:
        return label.name
    operation = _KERNELS.get(operation_of(label, cost), "Generic")
    words = [] if cost is None or cost.choice is None else cost.choice.name.replace("-", "").upper().replace(",", "").split()
    return f"ncclKernel_{'_'.join([operation, *words])}(ncclDevComm*, unsigned long, ncclWork*)"


def _way(cost: Cost | None, run: TracedRun) -> str:
    """Return source and target of a copy, by its links, such as `HtoD (Pinned -> Device)`."""
    drawn = (run.capacities[name] for name, _ in (cost.demand.amounts if cost is not None else ()))
    ends = [link.ends for link in drawn if link.kind == "way"]
    sources, targets = {source for source, _ in ends}, {target for _, target in ends}
    way = "".join(
        next((_KINDS[run.kinds[device]] for device in sorted(side) if run.kinds.get(device) in _KINDS), "")
        for side in (sources - targets, targets - sources)
    )
    return {"HD": "HtoD (Pinned -> Device)", "DH": "DtoH (Device -> Pinned)", "DD": "PtoP (Device -> Device)"}.get(
        way, "DtoD (Device -> Device)"
    )


def arguments_of_collective(label: Label, cost: Cost | None, group: tuple[int, ...], members: int) -> dict[str, Any]:
    """Return the arguments of a collective as in PyTorch: name, group, and number of elements, which are bytes.

    Args:
        label: label.
        cost: cost; None without one.
        group: participating ranks; () if unknown.
        members: number of participating ranks.
    """
    operation = operation_of(label, cost)
    if not operation:
        return {}
    exchange = None if cost is None else cost.exchange
    size = exchange.ranks if exchange is not None else members
    facts: dict[str, Any] = {"Collective name": _CALLED[operation], "Group size": size, "dtype": "Byte"}
    if exchange is not None:
        all_bytes, part = round(exchange.bytes), round(exchange.bytes / max(1, size))
        facts["In msg nelems"] = part if operation == "allgather" else all_bytes
        facts["Out msg nelems"] = part if operation == "reducescatter" else all_bytes
    if group and len(group) == size:
        facts["Process Group Ranks"] = f"[{', '.join(map(str, group))}]"
        facts["Process Group Name"] = ",".join(map(str, group)) if size > 1 and size < 33 else f"{size} ranks from {group[0]}"
    return facts


def moved_of(cost: Cost | None, size: float, run: TracedRun) -> int:
    """Return the bytes that a copy moves; 0 if unknown."""
    if cost is None:
        return 0
    carried = (amount for name, amount, unit in cost.moved if unit == "B" and run.capacities[name].kind in ("way", "both"))
    return round(size * max(carried, default=0.0))
