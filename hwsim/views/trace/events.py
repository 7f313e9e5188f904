"""The events of a trace, one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from hwsim.graph.opgraph import Label
from hwsim.views.trace.calls import LAST, RECORD, SYNCHRONISE, WAIT, CudaCall, Sync
from hwsim.views.trace.names import COPIES, arguments_of_collective, moved_of, name_on_gpu
from hwsim.views.trace.run import TracedRun
from hwsim.views.trace.slices import TraceSlice

FEMTO_PER_MICRO: Final = 10**9
FIRST_STREAM: Final = 7  # number of CUDA's default stream in traces
FIRST_THREAD: Final = 1  # Holistic Trace Analysis takes process 0 or thread 0 for a GPU
HOSTS: Final = 1000  # first process number of other devices
CLOSING: Final = 10**9  # duration of the last step mark, which is empty (fs)
_CATEGORIES: Final = {**dict.fromkeys(COPIES, "gpu_memcpy"), "set": "gpu_memset"}  # by kind of GPU op; others: kernels
_CBID: Final = {RECORD: 135, WAIT: 147, SYNCHRONISE: 137, LAST: 165, "cudaLaunchKernel": 211, "cudaMemcpyAsync": 41}


def micro(femtoseconds: int) -> str:
    """Return microseconds with all digits.

    >>> micro(15_000_000_000_000), micro(1), micro(1_500_000_000)
    ('15000', '0.000000001', '1.5')
    """
    micros, rest = divmod(femtoseconds, FEMTO_PER_MICRO)
    return f"{micros}.{rest:09d}".rstrip("0") if rest else str(micros)


class Events:
    """The events of one rank of a run, or of all ranks.

    GPUs are processes from 0 on, and their streams threads from 7 on, as in CUDA traces; other devices follow.
    """

    def __init__(self, run: TracedRun, rank: int | None) -> None:
        self.run, self.flat = run, run.result.timeline.flat
        self.labels = self.flat.graph.labels
        self.shown = [number for number, owner in enumerate(run.ranks) if rank is None or owner == rank]
        self.ranks = sorted({run.ranks[number] for number in self.shown} or {0})
        self.pids: dict[str, int] = {}
        self.places: dict[int, tuple[int, int]] = {}  # process and thread by track, or by -1 - rank
        used: dict[int, int] = {}
        for on_gpu in (True, False):
            for number in self.shown:
                track = run.slices.tracks[number]
                if track.on_gpu == on_gpu:
                    first = 0 if on_gpu else HOSTS
                    pid = self.pids.setdefault(
                        track.device, first + sum((part >= HOSTS) != on_gpu for part in self.pids.values())
                    )
                    tid = used[pid] = used.get(pid, FIRST_STREAM if on_gpu else FIRST_THREAD)
                    used[pid] += 1
                    self.places[number] = (pid, tid)
        virtual = [-1 - part for part in self.ranks if -1 - part in run.calls.of]
        for place, thread in enumerate(virtual):
            self.places[thread] = (HOSTS + len(self.pids), FIRST_THREAD + place)
        self.virtual = virtual
        self.end = max((part.end for part in run.slices.all), default=0)

    def __iter__(self) -> Iterator[str]:
        if not self.run.slices.all:
            return
        yield from self._meta()
        threads = {self._main(rank): rank for rank in self.ranks}
        for thread in sorted({*self.places} | set(threads), key=lambda number: (self.places[number], number)):
            calls = self.run.calls.of.get(thread, ())
            if thread in threads:
                yield from self._steps(thread)
            if thread >= 0:
                yield from self._track(thread)
            for call in calls:
                yield from self._call(call, *self.places[thread])
            if thread in threads:
                yield from self._last(thread)
        for track in self.shown:
            yield from self._queued(track)
        yield from self._syncs()

    def properties(self) -> list[dict[str, Any]]:
        """Return the device properties of the GPUs for the head of the file."""
        machine = self.run.result.built
        entries = []
        for device, pid in self.pids.items():
            if pid >= HOSTS:
                continue
            model = None if machine is None or device not in machine.devices else machine.devices[device].model
            chip = getattr(model, "sms", None)
            entries.append({"id": pid, "name": device, **({"numSms": round(chip)} if isinstance(chip, int | float) else {})})
        return entries

    # ---------------------------------------------------------------- processes and threads

    def _meta(self) -> Iterator[str]:
        tracks = self.run.slices.tracks
        for device, pid in self.pids.items():
            kind = self.run.kinds.get(device, "")
            label = f"GPU {pid}" if pid < HOSTS else kind.upper() or device
            yield from self._process(pid, device, label)
        if self.virtual:
            yield from self._process(self.places[self.virtual[0]][0], "program", "CPU")
        for number, (pid, tid) in self.places.items():
            name = tracks[number].name if number >= 0 else f"rank {-1 - number}"
            yield _meta("thread_name", pid, tid, {"name": name})
            yield _meta("thread_sort_index", pid, tid, {"sort_index": tid})

    @staticmethod
    def _process(pid: int, name: str, label: str) -> Iterator[str]:
        yield _meta("process_name", pid, 0, {"name": name})
        yield _meta("process_labels", pid, 0, {"labels": label})
        yield _meta("process_sort_index", pid, 0, {"sort_index": (pid + HOSTS) % (2 * HOSTS)})  # hosts first

    def _main(self, rank: int) -> int:
        """Return the thread of a rank with the most launches."""
        mine = [number for number in self.places if (self.run.ranks[number] if number >= 0 else -1 - number) == rank]
        threads = [number for number in mine if number < 0 or not self.run.slices.tracks[number].on_gpu]
        return max(threads or mine, key=lambda number: (len(self.run.calls.of.get(number, ())), -self.places[number][1]))

    # ---------------------------------------------------------------- slices

    def _steps(self, thread: int) -> Iterator[str]:
        """Yield marks of loop iterations or training steps, and a last mark, because tools ignore the last one."""
        slices, starts = self.run.slices.all, self._starts(thread)
        place = '"pid": {}, "tid": {}'.format(*self.places[thread])
        for number, (start, end) in enumerate(zip([*starts, self.end], [*starts[1:], self.end, self.end + CLOSING], strict=True)):
            yield (
                f'{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", {place}, "ts": {micro(start)}, '
                f'"dur": {micro(end - start)}, "args": {{"External id": {len(slices) + number + 1}}}}}'
            )

    def _turning(self, thread: int) -> tuple[int, ...]:
        """Return the slices of a thread in order of time; the slices of its GPUs if the program takes no host time."""
        if thread >= 0:
            return self.run.slices.order[thread]
        slices, mine = self.run.slices, (track for track in self.shown if self.run.ranks[track] == -1 - thread)
        every = (number for track in mine for number in slices.order[track])
        return tuple(sorted(every, key=lambda number: (slices.all[number].start, slices.all[number].op)))

    def _starts(self, thread: int) -> list[int]:
        """Return the starts of loop iterations or training steps (fs)."""
        slices, iterations = self.run.slices.all, self.flat.iteration
        starts: list[int] = []
        last = -1
        for number in self._turning(thread):
            turn = int(iterations[slices[number].op])
            if turn > last:
                starts.append(slices[number].start if starts else 0)
                last = turn
        return starts or [0]

    def _track(self, track: int) -> Iterator[str]:
        pid, tid = self.places[track]
        on_gpu, calls = self.run.slices.tracks[track].on_gpu, self.run.calls
        heads: dict[tuple[int, int], str] = {}
        for number in self.run.slices.order[track]:
            part = self.run.slices.all[number]
            key = int(self.flat.label[part.op]), int(self.flat.cost[part.op])
            if key not in heads:
                heads[key] = self._head(part, on_gpu)
            label = self.labels[key[0]]
            begin = micro(part.start)
            facts = [f'"op": {part.op}, "iteration": {self.flat.iteration[part.op]}, "kind": {json.dumps(label.kind)}']
            if on_gpu:
                by = calls.launched[number]
                facts.append(
                    f'"device": {pid}, "stream": {tid}, "context": 1, "correlation": {by}, "External id": {calls.by[number] + 1}'
                )
                facts += self._of_gpu(number, part, label)
            else:
                facts.append(f'"External id": {number + 1}')
            if part.waiting:
                facts.append(f'"waiting_us": {micro(part.waiting)}')
            yield (
                f'{heads[key]}, "pid": {pid}, "tid": {tid}, "ts": {begin}, "dur": {micro(part.end - part.start)}, '
                f'"args": {{{", ".join(facts)}}}}}'
            )
            if on_gpu:
                arrow = f'"id": {by}, "cat": "ac2g", "name": "ac2g"'
                yield f'{{"ph": "f", "bp": "e", {arrow}, "pid": {pid}, "tid": {tid}, "ts": {begin}}}'

    def _head(self, part: TraceSlice, on_gpu: bool) -> str:
        label, cost = self.labels[int(self.flat.label[part.op])], self.run.cost_of(part.op)
        category = "cpu_op" if not on_gpu else _CATEGORIES.get(label.kind, "kernel")
        name = name_on_gpu(label, cost, self.run) if on_gpu else label.name
        return f'{{"ph": "X", "cat": "{category}", "name": {json.dumps(name, ensure_ascii=False)}'

    def _of_gpu(self, number: int, part: TraceSlice, label: Label) -> Iterator[str]:
        if label.kind in COPIES:
            moved = moved_of(self.run.cost_of(part.op), float(self.flat.size[part.op]), self.run)
            yield f'"name": {json.dumps(label.name, ensure_ascii=False)}'
            if moved:
                length = part.end - part.start
                yield f'"bytes": {moved}' + (f', "memory bandwidth (GB/s)": {moved * 1e6 / length:.6g}' if length else "")
            return
        members = self.run.slices.members.get(number)
        if members is not None:
            ranks = self.run.rank_of
            group = tuple(sorted({ranks[member] for member in members if member in ranks}))
            facts = arguments_of_collective(label, self._collective(part.op), group, len(members))
            yield f'"name": {json.dumps(label.name, ensure_ascii=False)}'
            if facts:
                yield json.dumps(facts)[1:-1]

    def _collective(self, op: int) -> Any:
        return self.run.cost_of(self.run.slices.works.get(op, op))

    # ---------------------------------------------------------------- calls

    def _call(self, call: CudaCall, pid: int, tid: int) -> Iterator[str]:
        name = call.name
        if not name:
            label = self.labels[int(self.flat.label[self.run.slices.all[call.slice].op])]
            name = "cudaMemcpyAsync" if label.kind in COPIES else "cudaLaunchKernel"
        start = micro(call.start)
        within = f', "External id": {call.by + 1}' if call.by >= 0 else ""
        yield (
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {start}, '
            f'"dur": {micro(call.end - call.start)}, "args": {{"cbid": {_CBID[name]}, "correlation": {call.number}{within}}}}}'
        )
        if not call.name:
            yield (
                f'{{"ph": "s", "id": {call.number}, "cat": "ac2g", "name": "ac2g", "pid": {pid}, "tid": {tid}, "ts": {start}}}'
            )

    def _last(self, thread: int) -> Iterator[str]:
        """Yield the final synchronization of a program with its GPUs."""
        order = self.run.slices.order[thread] if thread >= 0 else ()
        start = self.run.slices.all[order[-1]].end if order else len(self.run.calls.of.get(thread, ())) + self._starts(thread)[-1]
        rank = self.run.ranks[thread] if thread >= 0 else -1 - thread
        ends = [
            self.run.slices.all[slices[-1]].end
            for track, slices in enumerate(self.run.slices.order)
            if self.run.ranks[track] == rank and self.run.slices.tracks[track].on_gpu and slices
        ]
        if max(ends, default=0) > start:
            pid, tid = self.places[thread]
            number = len(self.run.slices.all) + sum(map(len, self.run.calls.of.values())) + 1 + rank  # integers
            yield from self._call(CudaCall(LAST, start, max(ends), number, -1, -1), pid, tid)
            yield from self._sync("Context Sync", Sync(-1, start, max(ends), number, -1, -1), 0, -1, -1)

    def _syncs(self) -> Iterator[str]:
        """Yield the waits of streams and threads, on the streams."""
        for sync in self.run.calls.syncs:
            source = self.run.slices.all[sync.on].track
            if source not in self.places or (sync.track >= 0 and sync.track not in self.places):
                continue
            pid, stream = self.places[source]
            kind = "Event Sync" if sync.track < 0 else "Stream Wait Event"
            pid, tid = (pid, -1) if sync.track < 0 else self.places[sync.track]
            yield from self._sync(kind, sync, pid, tid, stream)

    @staticmethod
    def _sync(kind: str, sync: Sync, pid: int, tid: int, stream: int) -> Iterator[str]:
        yield (
            f'{{"ph": "X", "cat": "cuda_sync", "name": "{kind}", "pid": {pid}, "tid": {tid}, "ts": {micro(sync.start)}, '
            f'"dur": {micro(sync.end - sync.start)}, "args": {{"cuda_sync_kind": "{kind}", "wait_on_stream": {stream}, '
            f'"wait_on_cuda_event_record_corr_id": {sync.record}, "wait_on_cuda_event_id": {sync.record}, "device": {pid}, '
            f'"stream": {tid}, "context": 1, "correlation": {sync.number}}}}}'
        )

    def _queued(self, track: int) -> Iterator[str]:
        """Yield a counter of ops launched on a stream and not yet ended."""
        if not self.run.slices.tracks[track].on_gpu:
            return
        pid, tid = self.places[track]
        numbers = self.run.slices.order[track]
        changes = sorted(
            [(self.run.calls.at[number], 1) for number in numbers] + [(self.run.slices.all[number].end, -1) for number in numbers]
        )
        depth = 0
        name = json.dumps(f"launched: {self.run.slices.tracks[track].name}", ensure_ascii=False)
        for place, (time, step) in enumerate(changes):
            depth += step
            if place + 1 == len(changes) or changes[place + 1][0] != time:
                place_of = f'"pid": {pid}, "tid": {tid}, "ts": {micro(time)}'
                yield f'{{"ph": "C", "cat": "queue", "name": {name}, {place_of}, "args": {{"ops": {depth}}}}}'


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}, ensure_ascii=False)
