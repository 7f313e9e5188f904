"""Fused attention on a GPU: blocks of queries in prefill, pieces of the KV cache in decode.

A prefill cuts the queries of each head into blocks of `rows` queries, which run on the SMs in waves. A block iterates over the
keys that its last query attends to:

    keys   = average keys per query + (rows - 1) / 2, at most the context; plus `prologue` to start and end a block
    step   = rows x flop / (share x peak of an SM): one key against a block of queries
    busy   = max(step x keys of the longest block / alone, step x (blocks / SMs + lost) x keys)
    time   = start + passes over q, k, v + (busy^4 + memory^4)^(1/4)

The share of the peak grows with the head size, because each score requires one exponential, whatever the length of the vectors:

    1 / share = 1 / efficiency + peak / (4 head x exponentials)

It is read from a table if a kernel was measured; between and beyond the measured head sizes it follows this law.

Decode reads the KV cache. A strip is the part of the cache that the query heads of one KV head read for one sequence. Strips
are cut into pieces until the GPU is full (split-KV):

    pieces = tokens / 128, at most `filled` waves
    memory = bytes / bandwidth
    alone  = waves x (bytes of a piece / rate of an SM + each)
    time   = start + (memory^4 + alone^4 + computing^4)^(1/4) + time to combine the pieces

**Source**: Dao, "FlashAttention-2", arXiv:2307.08691; Shah et al., "FlashAttention-3", arXiv:2407.08608 (exponentials and
matmuls); Dao et al., "Flash-Decoding", 2023 (pieces of the cache). The constants are fitted; each part file names the data.
**Error**: see `docs/validation/components.md`.
**Range**: all sequences of a call have the same length. The formulas accept numbers or arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hwsim.demand import fourth_power, fourth_root
from hwsim.devices.kind import prefix_problems
from hwsim.devices.work import AttentionCall
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import BytesPerSecond, Ratio, Seconds

EXPONENTIALS_PER_CLOCK: Final = 16.0  # exponentials that an NVIDIA SM starts per clock
FLOP_PER_EXPONENTIAL: Final = 512.0  # maximum 16-bit FLOP per exponential (Blackwell: 499), for GPUs with separate vector units
CACHED_OUTPUT_SHARE: Final = 0.6  # share of the last-level cache that holds the previous kernel's output
KEYS: Final = 128.0  # minimum tokens of a piece of the KV cache
DEPTH: Final = 64.0  # tokens of the KV cache that a block processes at once
HEAD_SIZE_MULTIPLE: Final = 32  # multiple that head sizes are padded to
WINDOW_KERNEL_TOKENS: Final = 1024  # tokens of a window below which special kernels exist
LATENT: Final = " latent"
WIDE: Final = 64  # query heads of one latent vector from which the `wide` kernel is used
LIBRARIES: Final = ("flash", "tensorrt")  # libraries whose kernels replace those of unmeasured libraries, best first
PLAIN: Final = (float, int)  # numbers, not arrays
QUERIES: Final = 8.0  # multiple that the query heads of a block are padded to


@dataclass(frozen=True, slots=True)
class KernelRates:
    """The rates of a GPU that determine attention.

    Args:
        peak: FLOP/s in the number format of the computation.
        exponentials: exponentials that the SMs start per second.
        bandwidth: nominal memory bandwidth (B/s).
        read: sustained read bandwidth of the memory (B/s).
        multiprocessors: number of SMs.
        cache: size of the last-level cache (B).
    """

    peak: float
    exponentials: float
    bandwidth: float
    read: float
    multiprocessors: float
    cache: float = 0.0


def elementwise_max(first: Any, second: Any) -> float:
    """Return the maximum of two numbers, or the elementwise maximum of arrays.

    >>> elementwise_max(1.0, 2.0), elementwise_min(1.0, 2.0)
    (2.0, 1.0)
    """
    larger: float
    if isinstance(first, PLAIN) and isinstance(second, PLAIN):
        larger = max(first, second)
        return larger
    import numpy as np  # imported for arrays only

    larger = np.maximum(first, second)
    return larger


def elementwise_min(first: float, second: float) -> float:
    """Return the minimum of two numbers, or the elementwise minimum of arrays."""
    return -elementwise_max(-first, -second)


def round_up(number: float) -> float:
    """Return a number or array rounded up.

    >>> round_up(1.25), round_up(2.0)
    (2.0, 2.0)
    """
    return -(-number // 1)


def smooth_max(*seconds: float) -> float:
    """Return a smooth maximum of times, for numbers or arrays.

    >>> round(smooth_max(1e-3, 1e-6), 9), round(smooth_max(1e-3, 1e-3), 6)
    (0.001, 0.001189)
    """
    total = 0.0
    for term in seconds:
        total = total + fourth_power(term / 1e-3)  # not in place, because it may be an array
    longest: float = 1e-3 * fourth_root(total)
    return longest


def uncached_share(size: float, rates: KernelRates) -> float:
    """Return the share of `size` bytes that is not in the last-level cache."""
    part: float = fourth_power(size) / (fourth_power(size) + fourth_power(CACHED_OUTPUT_SHARE * rates.cache))
    return part


class AttentionTimes(NamedTuple):
    """The parts of the time of a kernel of attention (s).

    Attributes:
        start: startup time.
        beside: time of the passes before the kernel, or to combine the pieces after it.
        computing: time of the SM that finishes last.
        memory: transfer time.
        busy: average busy time of the SMs.
    """

    start: float
    beside: float
    computing: float
    memory: float
    busy: float

    @property
    def seconds(self) -> float:
        return self.start + self.beside + smooth_max(self.computing, self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillKernel:
    """A prefill kernel of attention. The defaults describe no measured kernel; class defaults are more accurate."""

    rows: int = field("number of queries in a block", default=128, minimum=1)
    computes: str = field("number format of the matmuls (default: format of q)", default="", example="fp8")
    packed: bool = field("whether the query heads of one KV head share a block", default=False)
    share: Mapping[str, Ratio] = field("share of the peak reached by long sequences, by head size", default_factory=dict)
    efficiency: Ratio = field("share of the peak that the matmuls would reach without the softmax",
                              default=0.75, exclusive_minimum=0.0)  # fmt: skip
    exponentials: float = field("sustained share of the peak rate of exponentials", default=1.0, exclusive_minimum=0.0)
    prologue: float = field("time of the prologue and epilogue of a block, in keys", default=150.0, minimum=0.0)
    lost: float = field("time lost in the last wave, in blocks", default=1.2, minimum=0.0)
    alone: float = field("speed of a block that is alone on its SM, relative to a full SM", default=1.0, exclusive_minimum=0.0)
    queries: float = field("number of passes over q (reads or writes) before the kernel", default=0.5, minimum=0.0)
    keys: float = field("number of passes over k and v (reads or writes) before the kernel", default=2.0, minimum=0.0)
    passing: BytesPerSecond = field("bandwidth of one SM to data in the last-level cache", default=40e9, exclusive_minimum=0.0)
    start: Seconds = field("startup time of all kernels of the call in a CUDA graph", default=10e-6)
    kernel: Seconds | None = field("startup time without the passes before the kernel (default: half of `start`)", default=None)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        for size in self.share:
            if not size.isdigit() or int(size) < 1:
                yield f"share.{size}", f"expected a head size, got '{size}'", "such as 128"

    def law(self, head: float, rates: KernelRates) -> float:
        """Return the share of the peak from the law of head sizes."""
        return 1.0 / (1.0 / self.efficiency + rates.peak / (4.0 * head * self.exponentials * rates.exponentials))

    def reached(self, head: float, rates: KernelRates) -> float:
        """Return the share of the peak for a head size: from the table, interpolated in 1 / head, extrapolated by the law.

        >>> rates = KernelRates(peak=1e12, exponentials=1e10, bandwidth=1e12, read=1e12, multiprocessors=100)
        >>> kernel = PrefillKernel(share={"64": 0.4, "128": 0.5})
        >>> [round(kernel.reached(head, rates), 3) for head in (64, 80, 96, 128, 256)]
        [0.4, 0.385, 0.462, 0.5, 0.534]
        """
        stated = self.share.get(f"{head:g}")
        if stated is not None:
            return stated
        size = -(-head // HEAD_SIZE_MULTIPLE) * HEAD_SIZE_MULTIPLE
        table = sorted((float(row), share) for row, share in self.share.items())
        below = [row for row in table if row[0] <= size]
        above = [row for row in table if row[0] >= size]
        if below and above:
            (low, slow), (high, fast) = below[-1], above[0]
            part = 0.0 if high == low else (1 / low - 1 / size) / (1 / low - 1 / high)
            share = 1.0 / ((1 - part) / slow + part / fast)
        elif table:
            neighbour, share = below[-1] if below else above[0]
            share *= self.law(size, rates) / self.law(neighbour, rates)
        else:
            share = self.law(size, rates)
        return share * head / size

    def parts(self, call: AttentionCall, rates: KernelRates, share: float) -> AttentionTimes:
        """Return the parts of the time of a call, over all its kernels."""
        packed_heads = 1.0 if not self.packed else call.heads / call.kv_heads
        blocks = round_up(call.queries * packed_heads / self.rows) * call.heads / packed_heads * call.sequences
        rows = elementwise_min(self.rows / packed_heads, call.queries)
        keys = elementwise_min(call.seen + (rows - 1) / 2, call.context)
        longest = elementwise_min(call.window + (call.window <= 0) * call.context + rows, call.context)
        turns = blocks / rates.multiprocessors
        step = call.each * self.rows * rates.multiprocessors / (share * rates.peak)
        wave_s = step * turns * (keys + self.prologue)
        tail_s = step * self.lost * (turns > 1) * (keys + self.prologue)
        computing = elementwise_max(step * (longest + self.prologue) / self.alone, wave_s + tail_s)
        # activations were written just before, so a part of them is in the last-level cache
        memory_s, cache_s = (
            uncached_share(call.outer + call.keys, rates) / rates.read,
            1.0 / (self.passing * rates.multiprocessors),
        )
        byte = memory_s + cache_s
        cold = (1 - call.warm) * call.old * (1.0 / rates.read - memory_s)
        passes = self.queries * call.outer / 2 + self.keys * call.fresh
        start = self.start * call.written + (1 - call.written) * (self.start / 2 if self.kernel is None else self.kernel)
        return AttentionTimes(start, passes * byte * call.written, computing, (call.outer + call.keys) * byte + cold, wave_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeKernel:
    """A decode kernel of attention. The defaults describe no measured kernel."""

    heads: int = field("number of query heads of one KV head that a block processes together", default=32, minimum=1)
    widest: int | None = field("maximum number of query heads per KV head that share a block; unlimited if omitted",
                               default=None, minimum=1)  # fmt: skip
    lone: bool = field("whether the KV cache of a KV head with a single query head is split, too", default=True)
    filled: float = field("split-KV: maximum number of waves of blocks that the pieces form", default=1.5, exclusive_minimum=0.0)
    reading: Ratio = field("sustained share of the memory bandwidth", default=0.85, exclusive_minimum=0.0)
    cached: BytesPerSecond = field("bandwidth of one SM to data in the last-level cache", default=150e9, exclusive_minimum=0.0)
    queries: float = field("number of passes over q and the result, e.g. to transpose or quantize them", default=1.0, minimum=0.0)
    computes: str = field("number format of the matmuls (default: format of q)", default="", example="fp8")
    rate: BytesPerSecond = field("bandwidth at which one SM reads the KV cache", default=30e9, exclusive_minimum=0.0)
    share: Ratio = field("share of the peak that the matmuls reach", default=0.2, exclusive_minimum=0.0)
    each: Seconds = field("fixed time of a block, however short its piece of the KV cache", default=1.5e-6)
    joining: Seconds = field("time to combine the pieces of the KV cache; each piece adds a sixteenth of it", default=1e-6)
    start: Seconds = field("startup time of all kernels of the call in a CUDA graph; half of it if no cache is written",
                           default=9e-6)  # fmt: skip

    def parts(self, call: AttentionCall, rates: KernelRates) -> AttentionTimes:
        """Return the parts of the time of a call."""
        tokens = elementwise_min(call.context, call.window + (call.window <= 0) * call.context)
        token = 2 * call.head * call.kv_width
        group = call.heads / call.kv_heads
        size = tokens * token * call.sequences * call.kv_heads
        memory_s_per_byte = (1 - call.warm * (1 - uncached_share(size + call.outer, rates))) / (self.reading * rates.bandwidth)
        memory = size * memory_s_per_byte + (size + self.queries * call.outer) / (self.cached * rates.multiprocessors)
        split = 0.0 if self.widest is None else 1.0 * (group > self.widest)
        block_heads = split + (1 - split) * self.heads
        blocks = call.sequences * call.kv_heads * round_up(group / block_heads)
        max_pieces = self.filled * rates.multiprocessors / blocks
        pieces = elementwise_max(1.0, elementwise_min(round_up(tokens / KEYS), max_pieces // 1))
        if not self.lone:
            pieces = 1 + (pieces - 1) * (group > 1)
        turns = elementwise_max(1.0, blocks * pieces / rates.multiprocessors)
        depth = round_up(tokens / pieces / DEPTH) * DEPTH
        longest_s = turns * (depth * token / self.rate + self.each)
        wide = elementwise_min(block_heads, round_up(group / QUERIES) * QUERIES)
        computing = turns * depth * wide * call.each * rates.multiprocessors / (self.share * rates.peak)
        joining = self.joining * (1 + pieces / 16) * (pieces > 1)
        busy = blocks * pieces / rates.multiprocessors * (depth * token / self.rate + self.each)
        return AttentionTimes(self.start * (1 + call.written) / 2, joining, smooth_max(longest_s, computing), memory, busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKernels:
    """The attention kernels of a GPU's libraries.

    A kernel's name consists of the library (flash, tensorrt) and words for the kind of kernel. `fp8`: 8-bit computation.
    `kv8`: only the KV cache has 8 bits. `window`: attention to fewer than 1024 tokens. `encoder`: attention to all tokens.
    `latent`: one latent vector for all heads; `wide`: a latent kernel for 64 or more query heads, whose rows fill the tiles of
    the matrix units.
    """

    prefill: Mapping[str, PrefillKernel] = field("prefill kernels by name (many queries per sequence)", default_factory=dict)
    decode: Mapping[str, DecodeKernel] = field("decode kernels by name (one query per sequence)", default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        for name, blocks in self.prefill.items():
            yield from prefix_problems(f"prefill.{name}", blocks.problems())

    def blocks(self, call: AttentionCall, dtype: str) -> tuple[str, PrefillKernel]:
        """Return (name, kernel) of a prefill; the name is "" if no such kernel is known."""
        return next(((name, self.prefill[name]) for name in names_of(call, dtype) if name in self.prefill), ("", PrefillKernel()))

    def strips(self, call: AttentionCall, dtype: str) -> tuple[str, DecodeKernel]:
        """Return (name, kernel) of a decode step; the name is "" if no such kernel is known."""
        return next(((name, self.decode[name]) for name in names_of(call, dtype) if name in self.decode), ("", DecodeKernel()))


@functools.lru_cache(maxsize=256)
def _names(library: str, dtype: str, narrow: bool, kind: str) -> tuple[str, ...]:
    formats = [*([" fp8"] if dtype == "fp8" else []), *([" kv8"] if narrow else []), ""]
    libraries = dict.fromkeys((library, *LIBRARIES))
    if LATENT in kind:  # latent attention is another algorithm: another library's latent kernel is closer than a non-latent one
        kinds = dict.fromkeys((kind, LATENT, ""))
        return tuple(f"{name}{format_word}{word}" for word in kinds for name in libraries for format_word in formats)
    kinds = dict.fromkeys((kind, ""))
    return tuple(f"{name}{format_word}{word}" for name in libraries for word in kinds for format_word in formats)


def names_of(call: AttentionCall, dtype: str) -> tuple[str, ...]:
    """Return the names of the kernels that a call can use, best first.

    >>> names_of(AttentionCall(1, 64, 0, 8, 8, 128, window=128), "fp16")[:3]
    ('flash window', 'flash', 'tensorrt window')
    >>> names_of(AttentionCall(1, 1, 64, 128, 1, 288, latent=2176), "bf16")[:3]
    ('flash latent wide', 'tensorrt latent wide', 'flash latent')
    """
    if call.latent > 0:
        kind = f"{LATENT} wide" if call.heads >= WIDE * call.kv_heads else LATENT
    else:
        kind = " window" if 0 < call.window < WINDOW_KERNEL_TOKENS else "" if call.causal > 0 else " encoder"
    return _names(call.library, dtype, call.kv_width < call.width, kind)
