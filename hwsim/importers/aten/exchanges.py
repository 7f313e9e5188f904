"""Translate PyTorch collectives, with sizes as nccl-tests count them."""

from __future__ import annotations

from typing import Final

from hwsim.importers.aten.inputs import Inputs, numel
from hwsim.importers.aten.products import Statement
from hwsim.importers.collectives import collective_name
from hwsim.importers.recording import RecordedCollective, SliceFacts
from hwsim.units import BYTES

SPACES: Final = (
    "c10d::", "c10d.", "c10d_functional::", "_c10d_functional", "nccl:", "record_param_comms", "gloo:", "mpi:",
    "ncclDevKernel", "ncclKernel",
)  # fmt: skip


def whole_bytes(exchanged: RecordedCollective) -> float:
    """Return the bytes of a collective as in nccl-tests: all parts for gathers and scatters, else per rank; 0 if unknown."""
    width = BYTES.get(exchanged.dtype, 4.0)
    given, got = exchanged.elements_in * width, exchanged.elements_out * width
    if exchanged.name in {"allgather", "gather"}:
        return max(got, given * max(exchanged.size, len(exchanged.ranks), 1)) if given or got else 0.0
    if exchanged.name in {"reduce-scatter", "scatter"}:
        return max(given, got)
    return given or got


def exchange(name: str, facts: SliceFacts) -> Statement | None:
    """Return the statement of a collective without its members; {} if its size is unknown; None for other operators."""
    if not name.startswith(SPACES) and facts.collective is None:
        return None
    exchanged = facts.collective
    if exchanged is not None:
        size, kind = whole_bytes(exchanged), exchanged.name
    else:
        kind = collective_name(name)
        size = _of_shapes(Inputs(facts), kind)
    if not kind or size <= 0:
        return {}
    amount = {"bytes": f"{size:.0f} B"}
    if kind in {"reduce", "barrier"}:
        return {"collective": {"operation": kind, **amount}}
    return {"send" if kind == "recv" else kind: amount}


def _of_shapes(inputs: Inputs, kind: str) -> float:
    places = [index for index in range(len(inputs.facts.shapes or ())) if inputs.is_list(index) or inputs.has(index)]
    arrays = [inputs.shapes(place) if inputs.is_list(place) else (inputs.shape(place),) for place in places]
    counts = [sum(map(numel, shapes)) for shapes in arrays]  # integers
    sizes = [count * BYTES[inputs.dtype(place)] for place, count in zip(places, counts, strict=True)]
    if not sizes:
        return 0.0
    return max(sizes) if kind in {"allgather", "gather", "reduce-scatter", "scatter"} else sizes[0]
