"""Predict the times of GPU ops: kernels from the operator that launched them, copies and memsets from their bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.aten import plain
from hwsim.importers.lowering import CannotLower
from hwsim.importers.predicting.times import GAP, PredictedTimes
from hwsim.importers.rank_rules import RankRules
from hwsim.importers.recording import Rank, SliceFacts, What
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class _TimedKernel:
    """The time of an operator (s), its errors, and the cost with its derivation."""

    seconds: float
    doubts: tuple[UncertaintySource, ...]
    cost: int


def _amounts(rank: Rank, place: int) -> tuple[float, float] | None:
    """Return the operations and bytes of a slice without a duration; None if the file does not count them."""
    facts = int(rank.slices.facts[place])
    return None if facts < 0 or rank.slices.duration[place] else rank.facts[facts].counted


class KernelPredictor:
    """A predictor of the GPU ops of all ranks."""

    def __init__(self, times: PredictedTimes) -> None:
        self._times = times
        self._known: dict[tuple[int, int, int, str], _TimedKernel | str] = {}

    def predict(self, position: int, explained: RankRules, ops: NDArray[np.intp]) -> None:
        """Predict the GPU ops of a rank."""
        slices, rank = explained.rank.slices, explained.rank
        linked, at = explained.linked, self._times.replay.slice[ops]
        shaped, around = linked.shaped[at], linked.op[at]
        owner = np.where(shaped >= 0, shaped, around)
        is_kernel = slices.what[at] == What.KERNEL
        for op, place in zip(ops[~is_kernel].tolist(), at[~is_kernel].tolist(), strict=True):
            self._moved(position, explained, op, place)
        kernels, owner = ops[is_kernel], owner[is_kernel]
        for op in kernels[owner < 0].tolist():
            place = int(self._times.replay.slice[op])
            amounts = _amounts(rank, place)
            if amounts is None:
                self._times.keep(op, "other", rank.names[slices.name[place]], "launched outside any framework op")
            else:
                self._by_amounts(position, op, rank.names[slices.name[place]], amounts)
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        bounds = np.flatnonzero(np.diff(owner[order], prepend=-1, append=-1))
        for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self._operator(position, explained, int(owner[order[begin]]), kernels[order[begin:stop]])

    def _by_amounts(self, position: int, op: int, name: str, amounts: tuple[float, float]) -> None:
        """Predict a kernel with counted operations and bytes, but no duration, by the roofline of the device."""
        device = self._times.placing.gpus[position]
        flop, moved = amounts
        try:
            lowered = self._times.lowering.on({"compute": {"flop": f"{flop:.0f} FLOP", "bytes": f"{moved:.0f} B"}}, device)
        except CannotLower as error:
            self._times.keep(op, "other", name, str(error))
            return
        seconds = lowered.body + max(lowered.start, self._times.placing.starts[device])
        doubts = (UncertaintySource("product/big", "outside", "operations counted in the file", seconds),)
        self._times.put(op, "amounts", name, lowered, seconds, device, doubts)
        self._times.assumed["counted operations are assumed to be fp32 matmuls, because the file has no data type"] = None

    def _operator(self, position: int, explained: RankRules, owner: int, kernels: NDArray[np.intp]) -> None:
        """Predict the kernels of one call of an operator."""
        rank = explained.rank
        name, number = rank.names[rank.slices.name[owner]], int(rank.slices.facts[owner])
        facts = rank.facts[number] if number >= 0 else None
        kind = self._times.meaning(name, facts).kind
        gap = min(explained.latencies.gap / FEMTO, GAP)
        timed = self._timed(position, name, facts, len(kernels), gap)
        recorded = self._times.body.time[kernels].astype(np.float64) / FEMTO
        if isinstance(timed, str):
            for op in kernels.tolist():
                self._times.keep(op, kind, plain(name), timed, calls=0)
            self._times.sum(kind, plain(name), "kept", timed).count += 1
            return
        total = recorded.sum()
        share = recorded / total if total > 0 else np.full(len(kernels), 1.0 / len(kernels))
        for kernel, part in zip(kernels.tolist(), share.tolist(), strict=True):
            self._times.take(kernel, part * timed.seconds)
        self._times.cost[kernels] = timed.cost
        self._times.sum(kind, plain(name), "predicted", "").add(float(total), timed.seconds, timed.doubts)

    def _timed(self, position: int, name: str, facts: SliceFacts | None, kernels: int, gap: float) -> _TimedKernel | str:
        """Return the time of an operator on the GPU of a rank, or the reason why it has no prediction."""
        device = self._times.placing.gpus[position]
        key = id(self._times.machine.device(device).model), id(facts), kernels, name
        timed = self._known.get(key)
        if timed is None:
            timed = self._known[key] = self._lowered(device, name, facts, kernels, gap)
        return timed

    def _lowered(self, device: str, name: str, facts: SliceFacts | None, kernels: int, gap: float) -> _TimedKernel | str:
        meant = self._times.meaning(name, facts)
        if meant.statement is None:
            return meant.why or "an operator without work"
        if meant.kind == "collectives":
            return "a collective without an NCCL kernel"
        statement = self._times.formats.applied(meant.statement)
        try:
            lowered = self._times.lowering.on(statement, device)
        except CannotLower as error:
            return str(error)
        start = self._times.placing.starts[device]
        seconds = lowered.body + max(lowered.start - gap, kernels * (start - gap), 0.0)
        doubts = lowered.doubts(seconds, kernels)
        return _TimedKernel(seconds, doubts, self._times.derived(name, lowered, seconds, device, doubts))

    def _moved(self, position: int, explained: RankRules, op: int, place: int) -> None:
        """Predict a copy or a memset."""
        rank, slices = explained.rank, explained.rank.slices
        name = rank.names[slices.name[place]]
        number = int(slices.facts[place])
        facts = rank.facts[number] if number >= 0 else SliceFacts()
        is_copy = slices.what[place] == What.COPY
        kind = "copies" if is_copy else "sets"
        size, gpu = facts.bytes, self._times.placing.gpus[position]
        ends = self._times.placing.ends(facts.kind or name, position) if is_copy else (gpu, gpu)
        try:
            if size <= 0:
                raise CannotLower("the file does not state the bytes")
            if ends is None:
                raise CannotLower("the file does not state the direction")
            if not is_copy or ends[0] == ends[1]:
                read = size if is_copy else 0.0
                keys = {"bytes": f"{size + read:.0f} B", "result": f"{size:.0f} B", "mix": "vector"}
                lowered, start = self._times.lowering.on({"compute": keys}, gpu), self._times.placing.starts[gpu]
            else:
                lowered = self._times.lowering.copy(*ends, size, pageable="pageable" in f"{facts.kind} {name}".lower())
                start = lowered.start
        except CannotLower as error:
            self._times.keep(op, kind, name, str(error))
            return
        seconds = lowered.body + max(0.0, start - min(explained.latencies.gap / FEMTO, GAP))
        self._times.put(op, kind, name, lowered, seconds, gpu, lowered.doubts(seconds))
