"""Mixture-of-experts layers on a GPU: grouped matmuls whose rows are padded to tiles for each expert.

    blocks = sum over experts of ceil(tokens of the expert / rows of a tile)
    tile   = max(2 rows columns (k + prologue) / FLOP/s of an SM, bytes of its weights / rate of an SM)
    turns  = blocks x column tiles / SMs, at least 1; beyond 1, half of `lost` is added
    time   = start + sum over both matmuls of ((turns x tile)^4 + (active weights / bandwidth)^4)^(1/4) + passes over tokens

The library takes the rows with the shortest time. The tokens are distributed over the experts evenly or by a power law. In a
server, tokens choose experts at random: n tokens with k of E experts each reach E (1 - (1 - k/E)^n) experts.

**Source**: Gale et al., "MegaBlocks", arXiv:2211.15841 (padding, blocks); the constants are fitted; each part file names
the data.
**Error**: see `docs/validation/components.md`.
**Range**: the experts of one GPU; communication between GPUs is a separate collective. The formula accepts numbers or arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.devices.gpu_attention import LIBRARIES, KernelRates, elementwise_max, elementwise_min, round_up, smooth_max
from hwsim.devices.work import ExpertsCall
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Ratio, Seconds

TILES: Final = (8, 16, 32, 64, 128, 256)  # rows of a tile
COLUMNS: Final = 128.0
# (number format of the matmul, bytes of a weight with its share of a scale) by number format of the weights.
FORMATS: Final[Mapping[str, tuple[str, float]]] = {
    "bf16": ("bf16", 2.0),
    "fp8": ("fp8", 1.0),
    "fp8-block": ("fp8", 1.0),
    "nvfp4": ("fp4", 0.5625),
    "mxfp4-mxfp8": ("fp8", 0.53),
    "mxfp4-weights": ("bf16", 0.53),
    "int4-weights": ("bf16", 0.5),
}
LARGEST: Final = 181.0  # side of the largest tile


@functools.lru_cache(maxsize=1024)
def tokens_of(tokens: int, top_k: int, experts: int, skew: float) -> tuple[int, ...]:
    """Return the tokens of each expert, busiest last: an even distribution, or the quantiles of a power law with exponent `skew`.

    >>> tokens_of(8, 2, 4, 0.0), tokens_of(1, 2, 4, 0.0), sum(tokens_of(1000, 8, 64, 1.2))
    ((4, 4, 4, 4), (0, 0, 1, 1), 8000)
    """
    pairs = tokens * top_k
    if skew <= 0:
        return tuple((pairs + expert) // experts for expert in range(experts))
    low, high = (1.0, 0.8 * tokens) if pairs > experts else (0.01, 2.0)
    power = 1.0 - skew
    parts = [(index + 0.5) / experts for index in range(experts)]
    quantiles = [
        low * (high / low) ** part if abs(power) < 1e-9 else ((high**power - low**power) * part + low**power) ** (1.0 / power)
        for part in parts
    ]
    scale, total, counts = pairs / math.fsum(quantiles), 0.0, []
    for expected in quantiles:
        counts.append(round(total + expected * scale) - round(total))
        total += expected * scale
    return tuple(counts)


def experts_call(
    tokens: int, top_k: int, experts: int, hidden: int, inner: int, gates: int, kernel: str, *, weight: float,
    skew: float = 0.0,
) -> ExpertsCall:  # fmt: skip
    """Return a call of `experts` experts on one GPU by `tokens` tokens, with `top_k` experts for each token.

    Args:
        tokens: number of tokens.
        top_k: experts of each token.
        experts: number of experts.
        hidden: size of a token's vector.
        inner: size of an expert's hidden layer.
        gates: 2 with a gate, else 1.
        kernel: name of the kernel.
        weight: size of a weight (B).
        skew: exponent of the power law; 0: even distribution.
    """
    by_expert = tokens_of(tokens, top_k, experts, skew)
    return ExpertsCall(
        tokens=tokens,
        pairs=float(sum(by_expert)),  # integers
        active=float(sum(tokens_of_expert > 0 for tokens_of_expert in by_expert)),
        blocks=blocks_of(by_expert),
        hidden=hidden,
        inner=inner,
        gates=float(gates),
        weight=weight,
        kernel=kernel,
        experts=experts,
    )


def random_experts_call(
    tokens: float, top_k: int, experts: int, local: int, hidden: int, inner: int, gates: int, kernel: str, *, weight: float,
    width: float = 2.0,
) -> ExpertsCall:  # fmt: skip
    """Return a call of `local` of a model's experts on one GPU by `tokens` tokens, each with `top_k` random experts.

    The tokens of an expert are binomially distributed: with few tokens some experts are idle, and one GPU has the largest load.

    >>> call = random_experts_call(16, 8, 128, 128, 64, 64, 2, "flash bf16", weight=2.0)
    >>> round(call.active, 1), call.pairs, random_experts_call(16, 8, 128, 16, 64, 64, 2, "", weight=2.0).pairs > 16
    (82.4, 128.0, True)
    """
    part, pairs = top_k / experts, tokens * top_k * local / experts
    if local < experts:  # the GPU with the largest load among those that share the experts
        sharing = experts / local
        pairs = min(tokens * min(top_k, local), pairs + math.sqrt(2.0 * math.log(sharing) * pairs * (1.0 - 1.0 / sharing)))
    mean = pairs / local
    active_share = 1.0 - (1.0 - part) ** (mean / part)
    return ExpertsCall(
        tokens=tokens,
        pairs=pairs,
        active=local * active_share,
        blocks=tuple(local * _blocks(mean, math.sqrt(mean * (1.0 - part)), active_share, rows) for rows in TILES),
        hidden=hidden,
        inner=inner,
        gates=float(gates),
        weight=weight,
        width=width,
        kernel=kernel,
        experts=local,
    )


def _blocks(mean: float, deviation: float, active: float, rows: int) -> float:
    """Return the average number of blocks of an expert, from the mean and deviation of its tokens and the probability of any.

    >>> round(_blocks(2.0, 1.4, 0.87, 64), 2), round(_blocks(128.0, 11.3, 1.0, 64), 2), round(_blocks(1000.0, 31.6, 1.0, 16), 2)
    (0.87, 2.48, 62.97)
    """
    if deviation > rows:
        return mean / rows + 0.5 - 0.5 / rows
    low = max(1, math.floor((mean - 4.0 * deviation) / rows))
    high = math.ceil((mean + 4.0 * deviation) / rows)
    tails = (math.erfc((index * rows + 0.5 - mean) / (max(deviation, 1e-9) * math.sqrt(2.0))) for index in range(low, high + 1))
    return active + low - 1 + 0.5 * math.fsum(tails)


def kernel_name_of(kernel: str, names: Collection[str]) -> str:
    """Return the name of a call's kernel in `names`: its own, else another library's in the same format; "" if there is none.

    >>> (kernel_name_of("vllm bf16", ("flash bf16", "tensorrt fp8")), kernel_name_of("flash fp8", ("tensorrt fp8",)),
    ...  kernel_name_of("flash nvfp4", ()))
    ('flash bf16', 'tensorrt fp8', '')
    """
    library, _, width = kernel.partition(" ")
    return next((name for library_name in (library, *LIBRARIES) if (name := f"{library_name} {width}") in names), "")


def blocks_of(tokens: Sequence[int]) -> tuple[float, ...]:
    """Return the number of blocks of all experts for each tile size of `TILES`."""
    return tuple(float(sum(-(-token // rows) for token in tokens)) for rows in TILES)  # integers


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKernels:
    """The kernels of a mixture of experts. The defaults describe no measured kernel."""

    efficiency: Ratio = field("share of the peak that large tiles reach", default=0.7, exclusive_minimum=0.0)
    reading: Ratio = field("share of the memory bandwidth at which weights are read", default=0.8, exclusive_minimum=0.0)
    edge: float = field("edge loss e: a tile of a x b reaches 1 / (1 + e (1/a + 1/b)) of the speed of an infinite tile",
                        default=15.0, minimum=0.0)  # fmt: skip
    prologue: float = field("time of the prologue and epilogue of a tile, in steps of k", default=150.0, minimum=0.0)
    lost: float = field("share of the last wave that is lost", default=0.5, minimum=0.0)
    passing: BytesPerSecond = field(
        "bandwidth of one SM in sorts, gathers and sums of tokens", default=20e9, exclusive_minimum=0.0
    )
    tokens: BytesPerSecond | None = field("bandwidth of one SM in the read and write of all tokens around the experts "
                                          "(default: `passing`)", default=None, exclusive_minimum=0.0)  # fmt: skip
    rate: BytesPerSecond = field("bandwidth at which one SM reads weights", default=60e9, exclusive_minimum=0.0)
    start: Seconds = field("startup time of all kernels of the call in a CUDA graph", default=3e-5)
    padded: int = field("rows of every expert after padding, even without tokens; 0: experts with tokens are padded to whole "
                        "tiles",
                        default=0, minimum=0)  # fmt: skip

    def seconds(self, call: ExpertsCall, rates: KernelRates) -> float:
        """Return the time of a call (s)."""
        total, filled = self.start + self.passes(call, rates), self.filled(call)
        for columns, depth in ((call.gates * call.inner, call.hidden), (call.hidden, call.inner)):
            total = total + self.product(filled, rates, columns, depth)
        return total

    def rows(self, call: ExpertsCall) -> float:
        """Return the number of computed rows if every expert is padded."""
        return call.pairs + call.experts * (self.padded - 1)

    def filled(self, call: ExpertsCall) -> ExpertsCall:
        """Return the call with its computed blocks; padded experts without tokens repeatedly read the weights of one expert."""
        return replace(call, blocks=tuple(self.rows(call) / tile for tile in TILES)) if self.padded else call

    def passes(self, call: ExpertsCall, rates: KernelRates) -> float:
        """Return the time (s) to sort, gather and sum tokens; padded rows also pass the activation and the quantization."""
        moved_each = (2 * call.hidden + call.inner) * call.width / rates.multiprocessors
        if self.tokens is None:
            seconds = (2 * call.pairs + call.tokens) * moved_each / self.passing
        else:
            seconds = 2 * call.pairs * moved_each / self.passing + call.tokens * moved_each / self.tokens
        if not self.padded:
            return seconds
        return seconds + self.rows(call) * (call.gates + 2.5) * call.inner * call.width / (self.reading * rates.bandwidth)

    def product(self, call: ExpertsCall, rates: KernelRates, columns: float, depth: float) -> float:
        """Return the time of one grouped matmul (s)."""
        memory = call.active * columns * depth * call.weight / (self.reading * rates.bandwidth)
        steps = depth + self.prologue
        least_tile = COLUMNS * (depth + self.prologue / 4) * call.weight / self.rate
        wide = round_up(columns / COLUMNS) / rates.multiprocessors
        best: float | None = None
        for rows, blocks in zip(TILES, call.blocks, strict=True):
            relative = (1 + 2 * self.edge / LARGEST) / (1 + self.edge * (1 / COLUMNS + 1 / rows))
            speed = self.efficiency * rates.peak * min(relative, 1.0) / rates.multiprocessors
            tile = elementwise_max(2.0 * COLUMNS * rows * steps / speed, least_tile)
            turns = blocks * wide
            busy = elementwise_max(turns + self.lost / 2 * (turns > 1), 1.0) * tile
            best = busy if best is None else elementwise_min(best, busy)
        assert best is not None
        return smooth_max(best, memory)
