"""What programs mean, told a second time: a direct interpreter that keeps clocks and knows no graph.

It serves programs whose ops do not compete for anything (each takes its time and no more).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Statements = Sequence[Mapping[str, Any]]
Arrivals = Generator[tuple[str, int], int, None]  # yields (barrier, when it is reached), is sent the release


@dataclass
class Clock:
    """One program: times in fs."""

    runtime: Mapping[str, int] | None
    host: int = 0
    inserted: int = 0
    gate: int = 0
    ends: dict[str, list[int]] = field(default_factory=dict)  # queue -> end of each op
    written: dict[str, tuple[str, int, int]] = field(default_factory=dict)  # value -> queue, number in it, end
    read: dict[str, list[int]] = field(default_factory=dict)
    named: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    awaited: dict[str, int] = field(default_factory=dict)  # queue -> number of ops known to have ended
    frames: list[tuple[Statements, list[dict[str, tuple[str, int, int]]]]] = field(default_factory=list)
    log: list[tuple[str, int]] = field(default_factory=list)

    def run(self, body: Statements) -> Arrivals:
        for statement in body:
            [(kind, keys)] = statement.items()
            if kind == "repeat":
                history: list[dict[str, tuple[str, int, int]]] = []
                self.frames.append((keys["do"], history))
                for _ in range(keys["times"]):
                    history.append({})
                    yield from self.run(keys["do"])
                self.frames.pop()
            elif kind == "wait":
                self.wait(self.asked(keys))
            elif kind == "barrier":
                self.host = max(self.host, self.inserted)
                reached = max([self.host, self.gate, *(end for ends in self.ends.values() for end in ends)])
                release = yield keys, reached
                self.awaited = {queue: len(ends) for queue, ends in self.ends.items()}
                self.gate = release
                if self.runtime is not None:
                    self.host = release + self.runtime["return"]
            else:
                self.issue(keys)

    def asked(self, keys: Any) -> list[tuple[str, int, int]]:
        if keys == "all":
            return [(queue, len(ends), ends[-1]) for queue, ends in self.ends.items()]
        name, back = (keys, 0) if isinstance(keys, str) else (keys["name"], keys["back"])
        if back:
            history = next(past for body, past in reversed(self.frames) if name in names(body))
            found = history[-1 - back].get(name) if back < len(history) else None
        else:
            found = self.named.get(name) or self.written.get(name)
        return [found] if found else []

    def wait(self, wanted: list[tuple[str, int, int]]) -> None:
        news = [op for op in wanted if op[1] > self.awaited.get(op[0], 0)]
        if not news:
            return
        for queue, number, _ in news:
            self.awaited[queue] = max(number, self.awaited.get(queue, 0))
        last = max(end for _, _, end in news)
        if self.runtime is None:
            self.gate = max(self.gate, last)
        else:
            self.host = max(self.host, self.inserted, last) + self.runtime["return"]

    def issue(self, op: Mapping[str, Any]) -> None:
        queue = f"{op['device']}.{op.get('queue', 'compute')}"
        ends = self.ends.setdefault(queue, [])
        start = self.gate
        if self.runtime is not None:
            self.host = max(self.host, self.inserted) + self.runtime["dispatch"]
            self.inserted = self.host
            depth = self.runtime.get("queue_depth")
            if depth is not None and len(ends) >= depth:
                self.inserted = max(self.inserted, ends[-depth])
            start = self.inserted
        reads, writes, updates = (op.get(key, []) for key in ("reads", "writes", "updates"))
        needs = [self.written[value][2] for value in (*reads, *updates) if value in self.written]
        needs += [end for value in updates for end in self.read.get(value, [])]
        needs += [self.named[name][2] for name in op.get("after", []) if name in self.named]
        end = max([start, *ends[-1:], *needs]) + op["fs"]
        ends.append(end)
        for value in reads:
            self.read.setdefault(value, []).append(end)
        here = (queue, len(ends), end)
        for value in (*writes, *updates):
            self.written[value] = here
            self.read[value] = []
        self.named[op["name"]] = here
        for _, history in self.frames:
            history[-1][op["name"]] = here
        self.log.append((op["name"], end))
        if op.get("block"):
            self.wait([here])


def names(body: Statements) -> set[str]:
    """Names of all ops inside."""
    found: set[str] = set()
    for statement in body:
        [(kind, keys)] = statement.items()
        if kind == "repeat":
            found |= names(keys["do"])
        elif kind == "busy":
            found.add(keys["name"])
    return found


def interpret(
    programs: Mapping[str, Statements], runtime: Mapping[str, int] | None
) -> tuple[int, dict[str, list[tuple[str, int]]]]:
    """Makespan, and the ends of all ops by program in order of issue."""
    clocks = {name: Clock(runtime) for name in programs}
    running = {name: clocks[name].run(body) for name, body in programs.items()}
    waiting = {name: next(program, None) for name, program in running.items()}
    while any(waiting.values()):
        asked = [arrival[0] for arrival in waiting.values() if arrival]
        barrier = next(
            gate
            for gate in asked
            if all(arrived and arrived[0] == gate for name, arrived in waiting.items() if _needs(programs[name], gate))
        )
        there = [name for name in programs if (arrived := waiting[name]) and arrived[0] == barrier]
        release = max(arrived[1] for name in there if (arrived := waiting[name]))
        for name in there:
            try:
                waiting[name] = running[name].send(release)
            except StopIteration:
                waiting[name] = None
    ends = [end for clock in clocks.values() for end in (clock.host, clock.gate, *(end for _, end in clock.log))]
    return max(ends, default=0), {name: clock.log for name, clock in clocks.items()}


def _needs(body: Statements, barrier: str) -> bool:
    for statement in body:
        [(kind, keys)] = statement.items()
        if (kind == "barrier" and keys == barrier) or (kind == "repeat" and _needs(keys["do"], barrier)):
            return True
    return False
