"""Settings of inference servers: scheduling of prefill and decode, memory of the KV cache, and host times.

They are the section `server:` of a framework's file. Omitted keys have the values of `PLAIN`, a plain server.

    keys = framework.server.over(PLAIN).on(size, generation)
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds

PrefillOrder = Literal["beside", "before", "alone"]
Admission = Literal["prompt", "answer", "ratio"]
FirstTokenWorkers = Literal["prompts", "answers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """A range of numbers with a constant distance."""

    first: int = field("first size of the range", key="from", minimum=1)
    to: int = field("last size of the range, included", minimum=1)
    by: int = field("distance between two sizes", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """The CUDA graphs of a server. Iterations are padded to the captured batch sizes."""

    sizes: tuple[int | SizeRange, ...] | None = field(
        "batch sizes (tokens) that are captured as CUDA graphs; an empty list: no graphs, no padding", default=None, minimum=1,
        example="[1, 2, 4, {from: 8, to: 256, by: 8}]",
    )  # fmt: skip
    largest: int | None = field("largest batch size (tokens) that is captured; 0: no graphs", default=None, minimum=0)
    each: float | None = field("largest captured batch size, as a multiple of `sequences`", default=None, exclusive_minimum=0.0)
    pad: bool | None = field("pad a batch to the next captured size; false: such a batch runs without a graph", default=None)
    mixed: bool | None = field("iterations that include prefill use CUDA graphs, too", default=None)
    eager: Seconds | None = field("additional host time of an iteration that runs without a CUDA graph", default=None)
    kernel: Seconds | None = field("host time of a kernel launch in an iteration with prefill and without a graph", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReservation:
    """The share of outstanding output tokens for which `admit: ratio` reserves KV cache."""

    first: Ratio | None = field("initial share of the outstanding output tokens that is reserved", default=None, maximum=1.0)
    least: Ratio | None = field("lowest share, reached after `steps` iterations", default=None, maximum=1.0)
    steps: int | None = field("iterations in which the share falls linearly from `first` to `least`", default=None, minimum=1)
    most: int | None = field("maximum output tokens of a request that are counted", default=None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMemory:
    """The part of a GPU's memory that holds the KV cache."""

    of: Literal["all", "free"] | None = field("base of `part`: all: the whole GPU memory, weights included; free: the memory "
                                              "beside weights and reserves", default=None)  # fmt: skip
    part: Ratio | None = field("share of that memory that the server may use", default=None, exclusive_minimum=0.0, maximum=1.0)
    kept: Bytes | None = field("memory reserved for the CUDA context, libraries and CUDA graphs", default=None)
    activations: float | None = field("memory reserved, as a multiple of the largest activations", default=None, minimum=0.0)
    token: Bytes | None = field("memory reserved per token of `budget`", default=None)
    graph: Bytes | None = field("memory reserved per sequence of the largest CUDA graph", default=None)
    gpu: Bytes | None = field("memory reserved per GPU of a tensor-parallel group", default=None)
    least: Bytes | None = field("minimum of the memory reserved by `token`, `graph` and `gpu` together", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """Time of the host, in addition to the kernels."""

    step: Seconds | None = field("host time of an iteration", default=None)
    each: Seconds | None = field("host time of an iteration for each of its sequences", default=None)
    api: Seconds | None = field("time of a request in the API server, before it reaches the scheduler", default=None)
    out: Seconds | None = field("time from the end of an iteration until the client receives its token", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySizeOverride:
    """Settings that differ on GPUs with at least this much memory."""

    memory: Bytes = field("minimum memory of the GPU", exclusive_minimum=0.0)
    without: tuple[str, ...] = field("GPU generations that are excluded", default=(), one_or_many=True)
    budget: int | None = field(
        "maximum tokens per iteration on these GPUs, instead of the server's `budget`", default=None, minimum=1
    )
    sequences: int | None = field(
        "maximum sequences in a batch on these GPUs, instead of the server's `sequences`", default=None, minimum=1
    )
    largest: int | None = field(
        "largest batch with a CUDA graph on these GPUs, instead of `graphs.largest`", default=None, minimum=0
    )
    least: Bytes | None = field("minimum reserved memory on these GPUs, instead of `memory.least`", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKeys:
    """The settings of a server with continuous batching. None: the key is omitted in this file."""

    prompts: PrefillOrder | None = field("scheduling of prefill: beside: in the same iterations as decode; before: in separate "
                                    "iterations, ahead of decode; alone: only while no request decodes",
                                    default=None)  # fmt: skip
    chunked: bool | None = field("chunked prefill: a prompt beyond the rest of `budget` is split over iterations", default=None)
    budget: int | None = field("maximum tokens of an iteration, prefill and decode together", default=None, minimum=1)
    sequences: int | None = field("maximum requests that are processed concurrently (batch slots)", default=None, minimum=1)
    admit: Admission | None = field("KV cache that must be free to admit a request: prompt: for its prompt; answer: for prompt "
                                    "and answer; ratio: for its prompt and a share (`ratio`) of all outstanding output tokens",
                                    default=None)  # fmt: skip
    ratio: OutputReservation | None = field("share of the outstanding output tokens that `admit: ratio` reserves",
                                  default=None, example="{first: 0.7, least: 0.098, steps: 600}")  # fmt: skip
    spare: Ratio | None = field("share of KV cache blocks that stay free when a request is admitted (watermark)", default=None)
    ahead: int | None = field("iterations scheduled before the running one ends (asynchronous scheduling)",
                              default=None, minimum=0, maximum=1)  # fmt: skip
    look: int | None = field("number of iterations between two polls for new requests", default=None, minimum=1)
    gather: int | None = field("data-parallel attention: maximum iterations that prefill is delayed until every group has a "
                               "prompt; 0: no delay", default=None, minimum=0)  # fmt: skip
    first: FirstTokenWorkers | None = field(
        "with `split`, the workers that emit the first token: prompts: prefill workers; answers: decode workers, which "
        "recompute the last prompt token once they have admitted the request", default=None)  # fmt: skip
    padded: bool | None = field("static batching: prompts are padded to the longest, and all batch slots stay occupied until "
                                "the longest answer ends", default=None)  # fmt: skip
    block: int | None = field("tokens of a KV cache block", default=None, minimum=1)
    prefixes: bool | None = field("prefix caching: requests with a common prefix share its KV cache blocks", default=None)
    windows: bool | None = field("layers with a sliding window cache only tokens of the window; false: all tokens", default=None)
    graphs: Graphs | None = field("CUDA graphs of the server", default=None, example="{sizes: [1, 2, 4, 8]}")
    memory: CacheMemory | None = field("memory of the KV cache", default=None, example="{of: all, part: 90 %}")
    host: HostTimes | None = field("host time outside kernels, by part of an iteration", default=None, example="{step: 200 us}")
    sizes: tuple[MemorySizeOverride, ...] | None = field(
        "settings that depend on the GPU's memory; a later matching entry overrides an earlier one",
        default=None, example="[{memory: 70 GiB, budget: 8192}]")  # fmt: skip

    def over(self, other: ServerKeys) -> ServerKeys:
        """Return these settings, with omitted ones taken from `other`."""
        merged: ServerKeys = _merge(self, other)
        return merged

    def on(self, size: float | None, generation: str | None) -> ServerKeys:
        """Return the settings for GPUs with `size` bytes of memory, after applying the matching entries of `sizes`.

        >>> keys = ServerKeys(budget=2048, sizes=(MemorySizeOverride(memory=70e9, budget=8192),))
        >>> keys.on(85e9, "hopper").budget, keys.on(24e9, "ada").budget
        (8192, 2048)
        """
        keys = replace(self, sizes=())
        for entry in self.sizes or ():
            if size is None or size < entry.memory or generation in entry.without:
                continue
            graphs, room = Graphs(largest=entry.largest), CacheMemory(least=entry.least)
            keys = ServerKeys(budget=entry.budget, sequences=entry.sequences, graphs=graphs, memory=room).over(keys)
        return keys


def _merge(upper: Any, lower: Any) -> Any:
    merged = {}
    for entry in dataclasses.fields(upper):
        mine, theirs = getattr(upper, entry.name), getattr(lower, entry.name)
        if mine is not None and theirs is not None and dataclasses.is_dataclass(mine):
            merged[entry.name] = _merge(mine, theirs)
        else:
            merged[entry.name] = theirs if mine is None else mine
    return type(upper)(**merged)


PLAIN: Final = ServerKeys(
    prompts="beside",
    chunked=True,
    budget=2048,
    sequences=256,
    admit="prompt",
    ratio=OutputReservation(first=1.0, least=1.0, steps=1, most=1 << 60),
    spare=0.0,
    ahead=0,
    look=1,
    gather=0,
    first="prompts",
    padded=False,
    block=16,
    prefixes=False,
    windows=True,
    graphs=Graphs(sizes=(), largest=1 << 30, each=float(1 << 30), pad=True, mixed=True, eager=0.0, kernel=0.0),
    memory=CacheMemory(of="all", part=0.9, kept=1.5e9, activations=0.0, token=0.0, graph=0.0, gpu=0.0, least=0.0),
    host=HostTimes(step=0.0, each=0.0, api=0.0, out=0.0),
    sizes=(),
)


def graph_sizes(graphs: Graphs, sequences: int) -> tuple[int, ...]:
    """Return the captured batch sizes in ascending order, up to the limits `largest` and `each` x `sequences`.

    >>> graph_sizes(Graphs(sizes=(1, 2, SizeRange(first=4, to=12, by=4)), largest=10, each=1.0), 256)
    (1, 2, 4, 8)
    """
    max_size = min(graphs.largest or 0, int((graphs.each or 0.0) * sequences))
    return tuple(sorted({size for entry in graphs.sizes or () for size in _expand(entry) if size <= max_size}))


def _expand(entry: int | SizeRange) -> Iterable[int]:
    return (entry,) if isinstance(entry, int) else range(entry.first, entry.to + 1, entry.by)


def padded_tokens(tokens: int, sizes: Sequence[int]) -> int:
    """Return the next captured batch size, or `tokens` itself above the largest.

    >>> padded_tokens(3, (1, 2, 4)), padded_tokens(5, (1, 2, 4))
    (4, 5)
    """
    index = bisect_left(sizes, tokens)
    return sizes[index] if index < len(sizes) else tokens
