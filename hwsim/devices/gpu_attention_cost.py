"""The cost of fused attention and of experts on one GPU, and its derivation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term
from hwsim.devices.gpu_attention import (
    AttentionKernels,
    AttentionTimes,
    DecodeKernel,
    KernelRates,
    PrefillKernel,
    elementwise_min,
    uncached_share,
)
from hwsim.devices.gpu_experts import ExpertKernels
from hwsim.devices.roofline import CapacityDraw, Input, assemble, latency_term, source_of
from hwsim.devices.work import AttentionCall, ExpertsCall, Work
from hwsim.formats import precise
from hwsim.origins import Origin, UncertaintySource, case_of
from hwsim.records import dataclass

COMPUTE_BOUND_TOKENS: Final = 64  # tokens per expert from which its matmuls are compute-bound
SHORT_PREFILL_TOKENS: Final = 2048  # tokens below which startup and waves dominate


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCost:
    """A call of attention with all inputs of its time.

    Args:
        name: full name of the GPU.
        work: work of the call.
        call: shape of the call.
        kernels: attention kernels of the GPU.
        rates: rates of the GPU in the number format of the work.
        peaks: rates of the GPU in another number format.
        peak_source: source of the peak.
        sources: sources of the GPU's numbers.
        share: share of the peak of every prefill kernel, if the part states only that number.
    """

    name: str
    work: Work
    call: AttentionCall
    kernels: AttentionKernels
    rates: KernelRates
    peaks: Callable[[str], KernelRates]
    peak_source: Origin
    sources: Mapping[str, Origin]
    share: float | None = None

    def times(self, call: AttentionCall) -> tuple[float, float, float]:
        """Return (time, SM time, memory time) in s of calls like this one; the call may contain arrays."""
        if self.call.decoding:
            kernel = self.kernels.strips(self.call, self.work.dtype)[1]
            parts = kernel.parts(call, self._rates(kernel.computes))
        else:
            blocks, rates, share = self._blocks()[1:]
            parts = blocks.parts(call, rates, share)
        body = parts.seconds - parts.start
        return parts.seconds, elementwise_min(parts.busy, body), elementwise_min(self._memory(call)[1], body)

    def _memory(self, call: AttentionCall) -> tuple[float, float]:
        """Return (bytes to or from memory or the last-level cache, memory time in s)."""
        moved = call.outer + call.keys + (0.0 if self.call.decoding else call.fresh * call.written)
        old = call.old * (1 - call.warm)  # earlier keys and values are only in memory
        return moved, (old + (moved - old) * uncached_share(moved, self.rates)) / self.rates.bandwidth

    def _blocks(self) -> tuple[str, PrefillKernel, KernelRates, float]:
        """Return (name, kernel, rates, share of the peak) of a prefill."""
        key, kernel = self.kernels.blocks(self.call, self.work.dtype)
        rates = self._rates(kernel.computes)
        return key, kernel, rates, self.share or kernel.reached(self.call.head, rates)

    def _rates(self, computes: str) -> KernelRates:
        return self.peaks(computes) if computes else self.rates

    def cost(self) -> Cost:
        """Return the cost: SM time and memory time, no faster than its waves, after its start."""
        call, compute, memory = self.call, f"{self.name}.compute", f"{self.name}.memory"
        key, parts, inputs, formula = self._decode_parts() if call.decoding else self._prefill_parts()
        moved, mem_s = self._memory(call)
        body = parts.seconds - parts.start
        busy = Term("compute", "busy", (("busy", precise(parts.busy, "s"), "average over all SMs"),), parts.busy, compute)
        bound = "compute" if parts.computing >= parts.memory else "memory"
        doubts = self._doubts(key, parts)
        body_term = Term(bound, formula, inputs, body, f"{self.name}.{bound}")
        read: tuple[Input, ...] = (
            ("bytes", precise(mem_s * self.rates.bandwidth, "B"), "bytes that miss the last-level cache"),
            ("bandwidth", precise(self.rates.bandwidth, "B/s"), source_of(self.sources, "memory.bandwidth")),
        )
        draws = (
            CapacityDraw(compute, min(parts.busy, body), 1.0, self.work.flop, "FLOP", busy),
            CapacityDraw(compute, 0.0, 1.0, 0.0, "FLOP", body_term),
            CapacityDraw(
                memory, min(mem_s, body), 1.0, moved, "B", Term("memory", "bytes / bandwidth", read, min(mem_s, body), memory)
            ),
        )
        start = latency_term("start of attention", parts.start, self._source(key, "start"))
        return with_doubt_everywhere(
            assemble(draws, clock=compute, bandwidth=self.rates.bandwidth, floor=body, latencies=(start,)), doubts[0]
        )

    def _prefill_parts(self) -> tuple[str, AttentionTimes, tuple[Input, ...], str]:
        call = self.call
        key, kernel, rates, share = self._blocks()
        path = f"prefill.{key}"
        parts = kernel.parts(call, rates, share)
        share_key = next((f"share.{size}" for size in kernel.share if float(size) == call.head), "efficiency")
        share_source = self._source(path, share_key) if self.share is None else source_of(self.sources, "attention")
        inputs = (
            ("computing", precise(parts.computing, "s"), self._blocks_source(kernel, key, share, rates.peak, share_source)),
            ("memory", precise(parts.memory, "s"), "q, k, v and result, from memory or the last-level cache"),
            ("passes", precise(parts.beside, "s"), "over q, k and v before the kernel: " + self._source(path, "keys")),
        )
        return path, parts, inputs, "(computing^4 + memory^4)^(1/4) + passes"

    def _blocks_source(self, kernel: PrefillKernel, key: str, share: float, peak: float, source: Origin) -> Origin:
        call = self.call
        return (
            f"kernel '{key or 'typical'}': blocks of {kernel.rows} queries, {call.heads:g} heads, {call.sequences:g} sequences "
            f"on {self.rates.multiprocessors:g} SMs, {precise(call.seen, '1')} keys per query; "
            f"{precise(share, '%')} of {precise(peak, 'FLOP/s')} (" + source + f"; {kernel.computes or str(self.peak_source)})"
        )

    def _decode_parts(self) -> tuple[str, AttentionTimes, tuple[Input, ...], str]:
        call = self.call
        key, kernel = self.kernels.strips(call, self.work.dtype)
        path, parts = f"decode.{key}", kernel.parts(call, self._rates(kernel.computes))
        inputs = (
            ("computing", precise(parts.computing, "s"), self._strips_source(kernel, key)),
            ("memory", precise(parts.memory, "s"), "KV cache, read once: " + self._source(path, "reading")),
            ("joining", precise(parts.beside, "s"), "combining the pieces: " + self._source(path, "joining")),
        )
        return path, parts, inputs, "(computing^4 + memory^4)^(1/4) + joining"

    def _strips_source(self, kernel: DecodeKernel, key: str) -> Origin:
        call = self.call
        return (
            f"kernel '{key or 'typical'}': {call.sequences:g} x {call.kv_heads:g} KV caches of {call.context:g} tokens on "
            f"{self.rates.multiprocessors:g} SMs, {precise(kernel.rate, 'B/s')}, "
            f"{precise(kernel.each, 's')} a piece (" + self._source(f"decode.{key}", "rate") + ")"
        )

    def _source(self, key: str, number: str) -> Origin:
        return source_of(self.sources, f"attention.{key}.{number}")

    def _regime(self) -> str:
        if self.call.latent > 0:
            return "attention/mla"
        if self.call.decoding:
            return "attention/decode"
        return "attention/prefill" if self.call.queries >= SHORT_PREFILL_TOKENS else "attention/short"

    def _doubts(self, key: str, parts: AttentionTimes) -> tuple[UncertaintySource, ...]:
        source = self._source(key, "start")
        case = case_of(source) or "device"
        if key.endswith("."):  # neither the GPU nor its class has such a kernel
            case = "outside"
        chip = f"{precise(self.rates.peak, 'FLOP/s')}, {self.rates.multiprocessors:g} multiprocessors"
        kernel = f"attention.{key.rstrip('.')} from {precise(parts.start, 's')}"
        return (UncertaintySource(self._regime(), case, f"{chip}, {kernel}", parts.seconds),)


def experts_cost(
    name: str, call: ExpertsCall, kernel: ExpertKernels, rates: KernelRates, sources: Mapping[str, Origin], *, key: str
) -> Cost:
    """Return the cost of a call of experts.

    key: name of the kernel; "" if neither the GPU nor its class has a measured one.
    """
    measured, key = bool(key), f"experts.{key or call.kernel}"
    seconds, compute, memory = kernel.seconds(call, rates), f"{name}.compute", f"{name}.memory"
    body = seconds - kernel.start
    weights = call.active * (call.gates + 1) * call.hidden * call.inner * call.weight
    computed = call.flop * (kernel.rows(call) / call.pairs if kernel.padded else 1.0)
    busy = min(body, computed / (kernel.efficiency * rates.peak))
    memory_s = min(body, weights / rates.bandwidth)
    source = source_of(sources, f"{key}.efficiency")
    case = case_of(source) or "device" if measured else "outside"
    chip = f"{precise(rates.peak, 'FLOP/s')}, {rates.multiprocessors:g} multiprocessors"
    regime = "moe/few" if call.pairs < COMPUTE_BOUND_TOKENS * max(1.0, call.active) else "moe/many"
    filled = kernel.filled(call)
    products = [
        kernel.product(filled, rates, columns, depth)
        for columns, depth in ((call.gates * call.inner, call.hidden), (call.hidden, call.inner))
    ]
    inputs: tuple[Input, ...] = (
        ("up", precise(products[0], "s"), f"{_rows(call, kernel)} ({key}: " + source + ")"),
        ("down", precise(products[1], "s"), "as up"),
        ("passes", precise(kernel.passes(call, rates), "s"), "over all tokens: " + source_of(sources, f"{key}.passing")),
    )
    bound = "compute" if busy > memory_s else "memory"
    doubts = (UncertaintySource(regime, case, f"{chip}, {key} of {precise(kernel.efficiency, '%')}", seconds),)
    body_term = Term(bound, "up + down + passes", inputs, body, f"{name}.{bound}")
    busy_term = Term("compute", "busy", (("busy", precise(busy, "s"), "at the efficiency of large tiles"),), busy, compute)
    read: tuple[Input, ...] = (
        ("weights", precise(weights, "B"), "of the experts with a token"),
        ("bandwidth", precise(rates.bandwidth, "B/s"), source_of(sources, "memory.bandwidth")),
    )
    draws = (
        CapacityDraw(compute, busy, 1.0, call.flop, "FLOP", busy_term),
        CapacityDraw(compute, 0.0, 1.0, 0.0, "FLOP", body_term),
        CapacityDraw(memory, memory_s, 1.0, weights, "B", Term("memory", "weights / bandwidth", read, memory_s, memory)),
    )
    start = latency_term("start of the experts", kernel.start, source_of(sources, f"{key}.start"))
    return with_doubt_everywhere(
        assemble(draws, clock=compute, bandwidth=rates.bandwidth, floor=body, latencies=(start,)), doubts[0]
    )


def _rows(call: ExpertsCall, kernel: ExpertKernels) -> str:
    if kernel.padded:
        return f"{call.pairs:g} rows, and {kernel.padded - 1} more for each of the {call.experts:g} experts, also without tokens"
    return f"{call.pairs:g} rows of {call.active:g} experts, padded to tiles"


def with_doubt_everywhere(cost: Cost, doubt: UncertaintySource) -> Cost:
    """Return the cost with this uncertainty in all lines, because it was measured on whole kernels."""
    return replace(cost, why=tuple(replace(term, doubts=(doubt._replace(seconds=term.seconds),)) for term in cost.why))
