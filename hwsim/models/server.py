"""Servers: the order in which requests are read and answered, the memory of the cache, and the time of the host.

The section `server:` of a framework's file; what it leaves out is as of a plain server (`PLAIN`).

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

Prompts = Literal["beside", "before", "alone"]
Admission = Literal["prompt", "answer", "ratio"]
First = Literal["prompts", "answers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Numbers at equal distances."""

    first: int = field("the first", key="from", minimum=1)
    to: int = field("the last", minimum=1)
    by: int = field("from one to the next", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """CUDA graphs of a server: iterations are padded to their sizes."""

    sizes: tuple[int | Steps, ...] | None = field(
        "numbers of tokens for which there is one; none: no iteration is padded", default=None, minimum=1,
        example="[1, 2, 4, {from: 8, to: 256, by: 8}]",
    )  # fmt: skip
    largest: int | None = field("no graph is larger; 0: there are none", default=None, minimum=0)
    each: float | None = field("no graph is larger than so many times `sequences`", default=None, exclusive_minimum=0.0)
    pad: bool | None = field("a batch between two sizes is padded to the next; if not, it has no graph", default=None)
    mixed: bool | None = field("iterations with prompts have graphs as well", default=None)
    eager: Seconds | None = field("of an iteration that no graph has, beyond one with a graph", default=None)
    kernel: Seconds | None = field("the host starts a kernel in, where no graph has it", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Part of the tokens still to be written for which room is kept, where requests join by a ratio."""

    first: Ratio | None = field("at the beginning", default=None, maximum=1.0)
    least: Ratio | None = field("in the end", default=None, maximum=1.0)
    steps: int | None = field("iterations from the one to the other", default=None, minimum=1)
    most: int | None = field("tokens of an answer that count", default=None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The part of a GPU's memory that holds keys and values."""

    of: Literal["all", "free"] | None = field(
        "`part` is of all the memory, weights within; or of what weights and the rest leave free", default=None
    )
    part: Ratio | None = field("of it", default=None, exclusive_minimum=0.0, maximum=1.0)
    kept: Bytes | None = field("bytes that are neither weights nor cache: context, libraries, graphs", default=None)
    activations: float | None = field("times the largest arrays of an iteration that are kept free", default=None, minimum=0.0)
    token: Bytes | None = field("bytes kept free for each token of the budget", default=None)
    graph: Bytes | None = field("bytes kept free for each sequence of the largest graph", default=None)
    gpu: Bytes | None = field("bytes kept free for each GPU of a copy", default=None)
    least: Bytes | None = field("bytes kept free at least", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """Time of the host, beyond the kernels."""

    step: Seconds | None = field("of each iteration", default=None)
    each: Seconds | None = field("of each sequence of an iteration", default=None)
    api: Seconds | None = field("of each request, before the scheduler sees it", default=None)
    out: Seconds | None = field("of a token, from its iteration's end to the client", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSize:
    """Differences on GPUs with this much memory or more."""

    memory: Bytes = field("of a GPU", exclusive_minimum=0.0)
    without: tuple[str, ...] = field("generations of GPUs that this is not for", default=(), one_or_many=True)
    budget: int | None = field("as of the server", default=None, minimum=1)
    sequences: int | None = field("as of the server", default=None, minimum=1)
    largest: int | None = field("graphs are no larger", default=None, minimum=0)
    least: Bytes | None = field("bytes kept free at least", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKeys:
    """A server that puts requests together into iterations; None: not said here."""

    prompts: Prompts | None = field(
        "beside: prompts in the same iterations as answers; before: in iterations of their own, before answers go on; alone: only"
        " when no answer is under way",
        default=None,
    )
    chunked: bool | None = field("prompts are cut to what the budget leaves", default=None)
    budget: int | None = field("tokens of an iteration, answers and prompts together", default=None, minimum=1)
    sequences: int | None = field("requests that are worked on together, at most", default=None, minimum=1)
    admit: Admission | None = field(
        "a request joins when there is room for its prompt; for its whole answer, too; or for a ratio of all answers",
        default=None,
    )
    ratio: Promise | None = field("of `admit: ratio`", default=None, example="{first: 0.7, least: 0.098, steps: 600}")
    spare: Ratio | None = field("part of the cache that no prompt joins with", default=None)
    ahead: int | None = field(
        "iterations that are scheduled before the one under way has ended", default=None, minimum=0, maximum=1
    )
    look: int | None = field("iterations from one look for new requests to the next", default=None, minimum=1)
    gather: int | None = field(
        "iterations that prompts wait at most until every group of data-parallel attention has one; 0: they do not",
        default=None,
        minimum=0,
    )
    first: First | None = field(
        "of `split`, who gives the first token: those who read the prompt; or those who write the answer, once they have a place"
        " for it, from its last token",
        default=None,
    )
    padded: bool | None = field(
        "prompts are padded to the longest, and all keep their places until the longest answer is written", default=None
    )
    block: int | None = field("tokens of a block of the cache", default=None, minimum=1)
    prefixes: bool | None = field("blocks of prompts are kept for requests that begin alike", default=None)
    windows: bool | None = field("layers with a window keep what it sees alone; if not, all tokens", default=None)
    graphs: Graphs | None = field("CUDA graphs", default=None, example="{sizes: [1, 2, 4, 8]}")
    memory: Room | None = field("what holds the cache", default=None, example="{of: all, part: 90 %}")
    host: HostTimes | None = field("what the host takes", default=None, example="{step: 200 us}")
    sizes: tuple[OnSize, ...] | None = field(
        "what differs by the memory of a GPU; the last that applies counts", default=None,
        example="[{memory: 70 GiB, budget: 8192}]",
    )  # fmt: skip

    def over(self, other: ServerKeys) -> ServerKeys:
        """These, and what they leave out of another."""
        merged: ServerKeys = _over(self, other)
        return merged

    def on(self, size: float | None, generation: str | None) -> ServerKeys:
        """These on GPUs of `size` bytes: what is said of them by size is put in.

        >>> keys = ServerKeys(budget=2048, sizes=(OnSize(memory=70e9, budget=8192),))
        >>> keys.on(85e9, "hopper").budget, keys.on(24e9, "ada").budget
        (8192, 2048)
        """
        keys = replace(self, sizes=())
        for entry in self.sizes or ():
            if size is None or size < entry.memory or generation in entry.without:
                continue
            graphs, room = Graphs(largest=entry.largest), Room(least=entry.least)
            keys = ServerKeys(budget=entry.budget, sequences=entry.sequences, graphs=graphs, memory=room).over(keys)
        return keys


def _over(upper: Any, lower: Any) -> Any:
    """A record, with what it leaves out of another of its kind."""
    merged = {}
    for entry in dataclasses.fields(upper):
        mine, theirs = getattr(upper, entry.name), getattr(lower, entry.name)
        if mine is not None and theirs is not None and dataclasses.is_dataclass(mine):
            merged[entry.name] = _over(mine, theirs)
        else:
            merged[entry.name] = theirs if mine is None else mine
    return type(upper)(**merged)


PLAIN: Final = ServerKeys(
    prompts="beside",
    chunked=True,
    budget=2048,
    sequences=256,
    admit="prompt",
    ratio=Promise(first=1.0, least=1.0, steps=1, most=1 << 60),
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
    memory=Room(of="all", part=0.9, kept=1.5e9, activations=0.0, token=0.0, graph=0.0, gpu=0.0, least=0.0),
    host=HostTimes(step=0.0, each=0.0, api=0.0, out=0.0),
    sizes=(),
)


def sizes_of(graphs: Graphs, sequences: int) -> tuple[int, ...]:
    """The batches for which there are graphs, in ascending order.

    >>> sizes_of(Graphs(sizes=(1, 2, Steps(first=4, to=12, by=4)), largest=10, each=1.0), 256)
    (1, 2, 4, 8)
    """
    most = min(graphs.largest or 0, int((graphs.each or 0.0) * sequences))
    return tuple(sorted({size for each in graphs.sizes or () for size in _spread(each) if size <= most}))


def _spread(each: int | Steps) -> Iterable[int]:
    return (each,) if isinstance(each, int) else range(each.first, each.to + 1, each.by)


def padded(tokens: int, sizes: Sequence[int]) -> int:
    """Tokens that an iteration has once it is padded to the next graph; itself beyond the largest.

    >>> padded(3, (1, 2, 4)), padded(5, (1, 2, 4))
    (4, 5)
    """
    at = bisect_left(sizes, tokens)
    return sizes[at] if at < len(sizes) else tokens
