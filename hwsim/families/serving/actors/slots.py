"""LoRA adapter slots in the GPU memory of a replica, and the requests that wait for a slot.

    slots.has(sequence)              whether its adapter is in a slot, or a slot can be freed for it
    slots.takes(sequence, now)       a request joins; its adapter is loaded if necessary
    slots.gives(sequence)            a request no longer needs its adapter
    slots.holds(sequence, now)       a request waits for a slot, and others pass it
    slots.returns()                  waiting requests that may join now, in order

An adapter without running requests stays in its slot until the slot is needed (least recently used first). As in vLLM, requests
behind a request that waits for a slot pass it. Adapters are loaded before the iteration that needs them. A request that loads its
prompt from a lower tier holds its slot from the start of the load.

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
    """The adapter slots of a replica.

    Args:
        adapters: adapters of the model.
        places: number of slots.
        coming: number of adapters loaded before the next iteration.
        taken, loads: counts as in `AdapterUse`.
        held: requests that wait for a slot.
        waits: waiting times of earlier requests (fs).
    """

    adapters: Adapters
    places: int
    coming: int = 0
    taken: int = 0
    loads: int = 0
    held: deque[Sequence] = field(default_factory=deque)
    waits: list[int] = field(default_factory=list)
    _used: dict[int, int] = field(default_factory=dict)  # running requests by adapter
    _unused: dict[int, None] = field(default_factory=dict)  # adapters in slots without requests, least recently used first
    _since: dict[int, int] = field(default_factory=dict)  # start of the wait by request (fs)
    _changed: bool = False

    def has(self, sequence: Sequence) -> bool:
        """Whether the adapter of a request is in a slot, or a slot can be freed for it."""
        adapter = self.adapters.of(sequence.number)
        return len(self._used) < self.places or adapter in self._used

    def takes(self, sequence: Sequence, instant: int) -> None:
        """Give a request its slot, and load its adapter if necessary."""
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
        """Release the slot of a request."""
        adapter = self.adapters.of(sequence.number)
        self._used[adapter] -= 1
        if not self._used[adapter]:
            del self._used[adapter]
            self._unused[adapter] = None
            self._changed = True

    def holds(self, sequence: Sequence, instant: int) -> None:
        """Add a request that waits for a slot."""
        self._since.setdefault(sequence.number, instant)
        self._changed = self._changed and bool(self.held)  # earlier changes freed no slot for it
        self.held.append(sequence)

    @property
    def is_due(self) -> bool:
        """Whether a waiting request may join after the next iteration."""
        return self._changed and bool(self.held)

    def returns(self) -> list[Sequence]:
        """Remove and return the waiting requests that may join now, in order."""
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
        """Empty all slots, as after a restart."""
        self._unused.clear()
