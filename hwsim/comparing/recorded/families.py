"""Kinds of work of kernels and ops, by which recordings and simulations with different names can be compared.

The kind of a kernel is that of the operator that launched it; without one, it is inferred from the kernel name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hwsim.importers.aten import KINDS
from hwsim.results.work import AMONG

COLLECTIVES: Final = "collectives"
COPIES: Final = "copies"
ELEMENTWISE: Final = "elementwise"
OTHER: Final = "other"
_NOT_TOLD: Final = ("other", "no work")
_OF_KIND: Final[Mapping[str, str]] = {
    **KINDS,
    **dict.fromkeys((*AMONG, "exchange"), COLLECTIVES),
    "moe": "matrix products",
    "optimizer": "optimizer",
    "copy": COPIES,
    "set": COPIES,
}
_NAMES: Final = (  # pattern -> kind; the first match counts
    (r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast_kernel", COLLECTIVES),
    (r"^mem(cpy|set)|^copy\b", COPIES),
    (r"flash|fmha|attention", "attention"),
    (r"winograd|conv|dgrad|wgrad|implicit_gemm|fft", "convolutions"),
    (r"gemm|gemv|cutlass|matmul|\bmm\b|addmm|bmm|splitk|dot_kernel|linear", "matrix products"),
    (r"batch_?norm|layer_?norm|group_?norm|rms_?norm|\bbn_|norm_|\bnorm\b", "norms"),
    (r"pool", "pooling"),
    (r"embedding|index_select|gather|lookup", "look-ups"),
    (r"softmax|cross_entropy", "softmax"),
    (r"lstm|gru|rnn", "recurrent"),
    (r"adam|sgd|optimizer|multi_tensor|foreach", "optimizer"),
    (r"reduce|sum|mean|norm", "reductions"),
    (
        r"elementwise|vectorized|pointwise|\bcopy|fill|add|mul|relu|gelu|cat|index|transpose|dropout|activation|triton",
        ELEMENTWISE,
    ),
)
_PATTERNS: Final = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in _NAMES)


def of_name(name: str) -> str:
    """Return the kind of work, inferred from a name.

    >>> of_name("ampere_sgemm_128x64_nn"), of_name("ncclKernel_AllReduce_RING_LL"), of_name("Memcpy HtoD"), of_name("x")
    ('matrix products', 'collectives', 'copies', 'other')
    """
    return next((words for pattern, words in _PATTERNS if pattern.search(name)), OTHER)


def of_op(name: str, kind: str) -> str:
    """Return the kind of work of a simulated op, by its kind, else by its name."""
    if kind in ("kernel", "collective"):
        return of_name(name) if kind == "kernel" else COLLECTIVES
    work = _OF_KIND.get(kind)
    if work in (None, ELEMENTWISE):  # models have elementwise ops for norms, pooling and sums
        by_name = of_name(name if work is None else name.rpartition(".")[2])
        return by_name if by_name != OTHER else work or of_name(kind)
    return work


def of_operator(name: str, work: str, kernel: str) -> str:
    """Return the kind of work of a recorded kernel.

    Args:
        name: name of its operator; "" if unknown.
        work: kind of work of its operator.
        kernel: name of the kernel.
    """
    by_kernel = of_name(kernel)
    if by_kernel in (COPIES, COLLECTIVES) or (work in _NOT_TOLD and not name):
        return by_kernel
    if work not in _NOT_TOLD:
        return work
    by_name = of_name(name)
    return by_name if by_name not in (OTHER, ELEMENTWISE) or by_kernel == OTHER else by_kernel
