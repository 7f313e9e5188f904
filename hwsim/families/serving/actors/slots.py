"""Places for adapters (LoRA) in the memory of a copy's GPUs, and the requests that wait for one.

    slots.has(sequence)              its adapter is there, or there is a place for it
    slots.takes(sequence, now)       it joins; its adapter is loaded if it is not there
    slots.gives(sequence)            it needs its adapter no more
    slots.holds(sequence, now)       it waits for a place, and lets others pass
    slots.returns()                  those that may join now, in order

An adapter that no request under way uses keeps its place until another takes it, the one that was used longest ago first. A
request whose adapter has no place is passed by those behind it, as in vLLM. Loads happen before the iteration that they are for.
A request whose prompt is brought back from a tier below the GPUs has its place from when that begins.

**Source**: vllm 0.19.0, v1/core/sched/scheduler.py (`max_loras`), lora/worker_manager.py (an LRU cache of adapters on the GPUs).
"""

from __future__ import annotations

from collections import deque
from dataclasses import field

from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.workload.adapters import Adapters
from hwsim.records import dataclass


@dataclass(slots=True)
class Slots:
    """The places of a copy.

    Args:
        coming: adapters that the next iteration loads first. taken, loads: as of `AdapterUse`.
        held: requests that wait for a place; waits: fs of those that have waited.
    """

    adapters: Adapters
    places: int
    coming: int = 0
    taken: int = 0
    loads: int = 0
    held: deque[Sequence] = field(default_factory=deque)
    waits: list[int] = field(default_factory=list)
    _used: dict[int, int] = field(default_factory=dict)  # by adapter, requests under way
    _unused: dict[int, None] = field(default_factory=dict)  # there as well, those that were used longest ago first
    _since: dict[int, int] = field(default_factory=dict)  # by request, from when on it waits
    _changed: bool = False

    def has(self, sequence: Sequence) -> bool:
        """Whether its adapter is there, or there is a place for it."""
        adapter = self.adapters.of(sequence.number)
        return len(self._used) < self.places or adapter in self._used

    def takes(self, sequence: Sequence, instant: int) -> None:
        """A request joins."""
        adapter = self.adapters.of(sequence.number)
        self.taken += 1
        self._used[adapter] = self._used.get(adapter, 0) + 1
        since = self._since.pop(sequence.number, -1)
        if since >= 0:
            self.waits.append(instant - since)
        if self._used[adapter] > 1:
            return
        if adapter in self._unused:
            del self._unused[adapter]
            return
        if len(self._used) + len(self._unused) > self.places:
            del self._unused[next(iter(self._unused))]
        self.loads += 1
        self.coming += 1
        self._changed = True

    def gives(self, sequence: Sequence) -> None:
        """A request needs its adapter no more."""
        adapter = self.adapters.of(sequence.number)
        self._used[adapter] -= 1
        if not self._used[adapter]:
            del self._used[adapter]
            self._unused[adapter] = None
            self._changed = True

    def holds(self, sequence: Sequence, instant: int) -> None:
        """A request waits for a place."""
        self._since.setdefault(sequence.number, instant)
        self._changed = self._changed and bool(self.held)  # what came before it has no place for it
        self.held.append(sequence)

    @property
    def is_due(self) -> bool:
        """Whether some of those that wait may join after the next iteration."""
        return self._changed and bool(self.held)

    def returns(self) -> list[Sequence]:
        """Requests that waited and may join now, in order."""
        if not self.is_due:
            return []
        self._changed = False
        free, back, rest = self.places - len(self._used), list[Sequence](), deque[Sequence]()
        for sequence in self.held:
            is_in_use = self.adapters.of(sequence.number) in self._used
            if is_in_use or free > 0:
                back.append(sequence)
                free -= not is_in_use
            else:
                rest.append(sequence)
        self.held = rest
        return back

    def forgets(self) -> None:
        """The copy is started anew."""
        self._unused.clear()
