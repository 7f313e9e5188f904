"""Translate the names and metadata of collectives of other tools."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.recording import RecordedCollective

NAMES: Final = {  # letters of the name in another tool -> name of hwsim's op
    "allreduce": "allreduce", "allreducecoalesced": "allreduce", "allgather": "allgather", "allgatherbase": "allgather",
    "allgatherintotensor": "allgather", "allgatherintotensorcoalesced": "allgather", "allgathercoalesced": "allgather",
    "reducescatter": "reduce-scatter", "reducescatterbase": "reduce-scatter", "reducescattertensor": "reduce-scatter",
    "reducescattertensorcoalesced": "reduce-scatter", "reducescattercoalesced": "reduce-scatter",
    "alltoall": "alltoall", "alltoallv": "alltoall", "alltoallbase": "alltoall", "alltoallsingle": "alltoall",
    "broadcast": "broadcast", "broadcastoop": "broadcast", "reduce": "reduce", "reduceoop": "reduce", "gather": "gather",
    "scatter": "scatter", "barrier": "barrier", "send": "send", "isend": "send", "recv": "recv", "irecv": "recv",
    "sendrecv": "sendrecv",  # kernel of NCCL for all-to-all, send and recv
}  # fmt: skip
DTYPES: Final = {
    "float32": "fp32", "float64": "fp64", "float16": "fp16", "int64": "int64", "int32": "int32", "int16": "int16",
    "uint8": "int8", "complex64": "complex64", "complex128": "complex128", "long int": "int64", "short int": "int16",
    "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8", "float": "fp32", "f32": "fp32", "half": "fp16", "f16": "fp16",
    "bfloat16": "bf16", "bf16": "bf16", "double": "fp64", "f64": "fp64", "int": "int32", "i32": "int32", "u32": "int32",
    "int32_t": "int32", "long": "int64", "i64": "int64", "u64": "int64", "int64_t": "int64", "short": "int16",
    "char": "int8", "signed char": "int8", "int8_t": "int8", "i8": "int8", "byte": "int8", "unsigned char": "int8",
    "uint8_t": "int8", "u8": "int8", "bool": "bool", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
    "complexfloat": "complex64", "complexdouble": "complex128",
}  # fmt: skip
_KERNEL: Final = re.compile(r"(?:nccl|rccl)\w*?Kernel_(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|SendRecv|AllToAll)")
_KERNEL_DTYPE: Final = re.compile(
    r"_(?:Sum|Prod|Max|Min|MinMax|PreMulSum|SumPostDiv)_([a-z]\w*?)(?:_RING|_TREE|_NVLS|_COLLNET|_PAT|\(|$)"
)


def collective_name(name: str) -> str:
    """Return the name of hwsim's op for the name of a collective in another tool; "" for other calls (init, wait).

    >>> collective_name("nccl:_all_gather_base"), collective_name("all_to_allv"), collective_name("wait")
    ('allgather', 'alltoall', '')
    """
    return NAMES.get(re.sub(r"[^a-z]", "", name.rpartition(":")[2].lower()), "")


def dtype_name(name: str) -> str:
    """Return hwsim's name of a data type of PyTorch or NCCL; "" if unknown.

    >>> dtype_name("Float"), dtype_name("c10::BFloat16"), dtype_name("unsigned char")
    ('fp32', 'bf16', 'int8')
    """
    return DTYPES.get(name.rpartition("::")[2].removeprefix("torch.").lower(), "")


def of_kernel(name: str) -> RecordedCollective | None:
    """Return the collective in the name of an NCCL or RCCL kernel; None for other kernels.

    >>> of_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)").dtype
    'fp32'
    """
    match = _KERNEL.search(name)
    if match is None:
        return None
    dtype = _KERNEL_DTYPE.search(name)
    kind = collective_name(match[1])
    is_moved = kind not in ("allreduce", "reduce", "reduce-scatter")  # NCCL moves data as bytes if it does not reduce
    return RecordedCollective(kind, dtype=dtype_name(dtype[1]) if dtype and not is_moved else "")


def of_metadata(args: Mapping[str, Any]) -> RecordedCollective | None:
    """Return the collective in the metadata of PyTorch ("Collective name", "In msg nelems", ...); None if there is none.

    Raises:
        ValueError: a number or list is invalid.
    """
    name = collective_name(str(args.get("Collective name", "")))
    if not name:
        return None
    size = int(args.get("Group size", 0))
    start, stride = int(args.get("Global rank start", 0)), int(args.get("Global rank stride", 0))
    ranks = _numbers(args.get("Process Group Ranks"))
    if len(ranks) != size and size > 0 and stride > 0:  # long lists are truncated: "[0, 1, ...]"
        ranks = tuple(range(start, start + size * stride, stride))
    if len(ranks) != size:
        ranks, size = ((), size) if size else (ranks, len(ranks))
    return RecordedCollective(
        name, int(args.get("In msg nelems", 0)), int(args.get("Out msg nelems", 0)), dtype_name(str(args.get("dtype", ""))),
        ranks, size, str(args.get("Process Group Name", "")),
        peer=int(args.get("Dst Rank" if name == "send" else "Src Rank", -1)) if name in ("send", "recv") else -1,
    )  # fmt: skip


def of_tensors(name: str, shapes: Any, dtypes: Any) -> RecordedCollective | None:
    """Return the collective of an annotation `nccl:NAME` with tensor shapes; None for other annotations."""
    kind = collective_name(name) if name.startswith("nccl:") else ""
    if not kind:
        return None
    arrays = [shape for shape in shapes or () if isinstance(shape, list) and shape and {*map(type, shape)} == {int}]
    elements = sum(map(math.prod, arrays))  # integers
    return RecordedCollective(kind, elements, 0, dtype_name(str(dtypes[0])) if dtypes else "")


def _numbers(text: Any) -> tuple[int, ...]:
    """Parse a list of numbers that PyTorch writes as text; () if it is truncated."""
    try:
        values = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return ()
    return tuple(int(value) for value in values) if isinstance(values, list) else ()
