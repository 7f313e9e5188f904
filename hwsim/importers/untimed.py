"""Host traces have no times and no kernels: the kernels that their operators launch.

    on_gpus(explain(recording))       # a replay with a kernel for each operator that works on a GPU's tensors

An operator works itself if none that it calls does work of its kind: `linear` calls `addmm`, which works; the gradient of a
convolution works, and so does the sum that it calls for the bias. Operators that only call others (`to`, `contiguous`,
`dropout`) never work themselves: one that calls nothing had nothing to do.

A kernel is launched by its operator, in the order of the file, on one stream; collectives are on a stream of their own, wait
for what was launched before them, and what uses their arrays next waits for them. Launching takes no time, for the file has none.

**Source**: CompositeImplicitAutograd of PyTorch 2 (`native_functions.yaml`); `ProcessGroupNCCL`: a collective waits for the
stream of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hwsim.importers.aten import Meaning, meaning, plain
from hwsim.importers.aten.inputs import words
from hwsim.importers.linking import Linked, link
from hwsim.importers.meeting import collective_of
from hwsim.importers.recording import HOST, Edges, Facts, Ints, Lane, Rank, Recording, Slices, What
from hwsim.importers.replay import Replay, explain
from hwsim.records import dataclass

# They have statements, and all that they do is in the operators that they call.
CALLING: Final = words(
    "to contiguous dropout dropout_ linear matmul batch_norm layer_norm group_norm instance_norm rms_norm softmax log_softmax "
    "nll_loss pad concat hstack vstack adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d max_pool1d "
    "max_pool2d max_pool3d embedding_bag scaled_dot_product_attention relu6 selu square l1_loss argsort msort isfinite "
    "true_divide convolution _convolution conv1d conv2d conv3d"
)
DENSE: Final = frozenset({"matrix products", "convolutions", "attention", "recurrent"})  # one kind where they call one another
_APART: Final = 4  # fs from one op of the file to the next: room for a call and its kernel
_UNKNOWN, _ALLOCATES = "unknown", "allocates"
ASSUMED: Final = (
    "launching takes the host no time: the file has no times of it",
    "fp32 as PyTorch computes it by default: convolutions in TF32 where a GPU can, products not",
)


def on_gpus(replay: Replay) -> Replay:
    """The replay with the kernels of a recording that has neither times nor kernels; others as they are."""
    recording = replay.recording
    if recording.timed or any(lane.device != HOST for rank in recording.ranks for lane in rank.lanes):
        return replay
    launching = with_kernels(recording)
    return replay if launching is recording else explain(launching, replay.mode)


def with_kernels(recording: Recording) -> Recording:
    """The recording with a launch and a kernel for each operator that works on a GPU."""
    launched = [_launched(rank) for rank in recording.ranks]
    if not any(len(each.places) for each in launched):
        return recording
    return replace(recording, ranks=tuple(map(_rank, launched)))


def working(rank: Rank, linked: Linked, meaning_of: Callable[[str, Facts | None], Meaning]) -> list[int]:
    """The operators that work themselves, in order: some have a statement, of others nothing is known."""
    slices = rank.slices
    inside: dict[int, set[str]] = {}
    chosen: list[int] = []
    kinds: dict[tuple[int, int], str] = {}
    marked = np.array([each.collective is not None for each in rank.facts] + [False], bool)[slices.facts]
    is_op = (slices.what == What.OP) | ((slices.what == What.MARK) & marked)
    for place in np.flatnonzero(is_op | (slices.what == What.MARK)).tolist()[::-1]:  # what an op calls comes after it
        parent, below = int(linked.parent[place]), inside.pop(place, set())
        key = int(slices.name[place]), int(slices.facts[place])
        if key not in kinds:
            kinds[key] = _kind(rank, key, meaning_of) if is_op[place] else ""
        kind = kinds[key]
        if kind == _UNKNOWN and below - {_ALLOCATES}:
            kind = ""
        if kind not in ("", _ALLOCATES) and kind not in below and not (kind in DENSE and below & DENSE):
            chosen.append(place)
        if parent >= 0:
            inside.setdefault(parent, set()).update(below | {kind})
    return chosen[::-1]


def _kind(rank: Rank, key: tuple[int, int], meaning_of: Callable[[str, Facts | None], Meaning]) -> str:
    """The kind of work of an operator; "" if it has none."""
    name, facts = rank.names[key[0]], rank.facts[key[1]] if key[1] >= 0 else None
    if plain(name).startswith(("empty", "new_empty", "resize_")):
        return _ALLOCATES
    if plain(name) in CALLING:
        return ""
    meant = meaning_of(name, facts)
    if meant.statement is not None:
        return meant.kind
    is_operator = "::" in name and not name.startswith(("autograd::", "torch::", "c10d::"))
    is_compiled = facts is not None and "kernel_file" in dict(facts.attributes)
    return _UNKNOWN if meant.why and facts is not None and (is_operator or is_compiled) else ""


@dataclass(frozen=True, slots=True, eq=False)
class _Launched:
    """A rank, the operators that launch, the GPU and the kind of each, and its facts as a kernel."""

    rank: Rank
    linked: Linked
    places: tuple[int, ...]
    gpus: tuple[int, ...]
    facts: tuple[Facts | None, ...]

    def exchanges(self) -> list[int]:
        """Positions of collectives among the places."""
        return [at for at, facts in enumerate(self.facts) if facts is not None and facts.collective is not None]


def _launched(rank: Rank) -> _Launched:
    linked = link(rank)
    meanings: dict[tuple[str, Facts | None], Meaning] = {}

    def meaning_of(name: str, facts: Facts | None) -> Meaning:
        key = name, facts
        if key not in meanings:
            meanings[key] = meaning(name, facts)
        return meanings[key]

    places: list[int] = []
    gpus: list[int] = []
    facts: list[Facts | None] = []
    for place in working(rank, linked, meaning_of):
        gpu = device_of(rank, place)
        if gpu < 0:
            continue
        stated = rank.facts[int(rank.slices.facts[place])]
        exchanged = collective_of(rank, linked, place)
        if exchanged is not None:
            facts.append(Facts(collective=exchanged))
        else:
            facts.append(Facts(bytes=stated.bytes, kind=stated.kind) if stated.bytes else None)
        places.append(place)
        gpus.append(gpu)
    return _Launched(rank, linked, tuple(places), tuple(gpus), tuple(facts))


def device_of(rank: Rank, place: int) -> int:
    """Number of the GPU whose tensors an operator has; HOST for none."""
    number = int(rank.slices.facts[place])
    device = dict(rank.facts[number].attributes).get("device", "") if number >= 0 else ""
    kind, _, index = str(device).partition(":")
    return (int(index) if index.isdecimal() else 0) if kind in ("cuda", "hip", "xpu") else HOST


def _rank(launched: _Launched) -> Rank:
    """The rank with calls and kernels after its own slices, and then in order of time."""
    rank, places = launched.rank, np.array(launched.places, np.int64)
    old, count = rank.slices, len(launched.places)
    start, end = old.start * _APART, old.end * _APART
    threads = old.lane[places]
    lanes, facts, names = list(rank.lanes), list(rank.facts), list(rank.names)
    is_exchange = np.zeros(count, bool)
    is_exchange[launched.exchanges()] = True
    gpus = np.array(launched.gpus, np.int64)
    lane_of: dict[tuple[int, bool], int] = {}
    for gpu, exchange in sorted(set(zip(gpus.tolist(), is_exchange.tolist(), strict=True))):
        lane_of[gpu, exchange] = len(lanes)
        lanes.append(Lane("collectives" if exchange else "stream", gpu, len(lanes)))
    streams = np.array([lane_of[key] for key in zip(gpus.tolist(), is_exchange.tolist(), strict=True)], np.int32)
    number_of: dict[Facts, int] = {}
    for each in launched.facts:
        if each is not None and each not in number_of:
            number_of[each] = len(facts)
            facts.append(each)
    named = old.name[places].astype(np.int64)
    for at, each in enumerate(launched.facts):
        if each is not None and each.collective is None:
            named[at] = _numbered(names, f"Memcpy {each.kind}")
    of_kernel = [-1 if each is None else number_of[each] for each in launched.facts]
    is_copy = [each is not None and each.collective is None for each in launched.facts]
    launch = _numbered(names, "launch")
    links = np.arange(count)
    columns = {
        "what": [old.what, np.full(count, What.CALL), np.where(is_copy, What.COPY, What.KERNEL)],
        "name": [old.name, np.full(count, launch), named],
        "lane": [old.lane, threads, streams],
        "start": [start, start[places] + 1, start[places] + 2],
        "duration": [end - start, np.ones(count), np.ones(count)],
        "link": [old.link, links, links],
        "facts": [old.facts, np.full(count, -1), np.array(of_kernel)],
    }
    joined = {name: np.concatenate(parts).astype(getattr(old, name).dtype) for name, parts in columns.items()}
    order = np.lexsort((-joined["duration"], joined["start"]))
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    slices = Slices(**{name: column[order] for name, column in joined.items()})
    edges = _edges(launched, streams, is_exchange)
    stated = Edges(*(where[len(old) + count + column].astype(np.int32) for column in edges))
    devices = tuple((gpu, "") for gpu in sorted(set(launched.gpus)))
    return replace(
        rank,
        slices=slices,
        names=tuple(names),
        lanes=tuple(lanes),
        facts=tuple(facts),
        stated=stated,
        devices=devices,
        memory=None,
    )


def _numbered(names: list[str], name: str) -> int:
    """The number of a name, which is added if it is new."""
    if name not in names:
        names.append(name)
    return names.index(name)


def _edges(launched: _Launched, streams: Any, is_exchange: Any) -> tuple[Ints, Ints]:
    """Kernels (by position) of two streams that wait: a collective for what was launched before, users for a collective."""
    pairs: set[tuple[int, int]] = set()
    last: dict[int, int] = {}
    for at, (gpu, exchange) in enumerate(zip(launched.gpus, is_exchange.tolist(), strict=True)):
        if exchange and gpu in last:
            pairs.add((last[gpu], at))
        elif not exchange:
            last[gpu] = at
    kernel_of = {place: at for at, place in enumerate(launched.places)}
    parent = launched.linked.parent
    passed: dict[int, set[int]] = {}  # by place of a view: collectives whose arrays it is of
    stated = launched.rank.stated
    for before, then in zip(stated.before.tolist(), stated.then.tolist(), strict=True) if stated is not None else ():
        first, second = _around(before, parent, kernel_of), _around(then, parent, kernel_of)
        firsts = passed.get(before, set()) if first < 0 else {first} if is_exchange[first] else set()
        if second < 0:
            passed.setdefault(then, set()).update(firsts)
        pairs |= {(each, second) for each in firsts if each < second and streams[each] != streams[second]}
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _around(place: int, parent: Any, kernel_of: dict[int, int]) -> int:
    """The kernel of an op or of the innermost one around it that has one; -1 for none."""
    while place >= 0 and place not in kernel_of:
        place = int(parent[place])
    return kernel_of.get(place, -1)


__all__ = ["ASSUMED", "device_of", "on_gpus", "with_kernels", "working"]
