"""Discrete-event simulation engine for op graphs on shared capacities, independent of kinds of devices and ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from hwsim.engine.compile import CompiledGraph, compile_flat
from hwsim.engine.fast import LARGE, Choice, uses_compiled_code
from hwsim.engine.issued import IssuedOp
from hwsim.engine.longest_paths import is_in_order, longest_path
from hwsim.engine.verdict import Deadlock, check, deadlock
from hwsim.graph.flat import FlatGraph, flatten
from hwsim.graph.opgraph import Change, OpGraph, capacities_of
from hwsim.results.invariants import BrokenInvariant
from hwsim.results.timeline import Timeline
from hwsim.spec.memo import memo_table

if TYPE_CHECKING:
    from collections.abc import Generator

    from simpy import Event

    from hwsim.engine.driver import Driver
    from hwsim.engine.host import Host, Progress, Server
    from hwsim.engine.plain import PlainEngine
else:

    def __getattr__(name: str) -> object:
        """Import names that need SimPy on first use, because many runs need none of them."""
        if name not in NEED_SIMPY:
            raise AttributeError(f"module 'hwsim.engine' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(NEED_SIMPY[name]), name)


NEED_SIMPY: Final = {
    "Event": "simpy", "Driver": "hwsim.engine.driver", "PlainEngine": "hwsim.engine.plain",
    "Host": "hwsim.engine.host", "Progress": "hwsim.engine.host", "Server": "hwsim.engine.host",
}  # fmt: skip
MOST_PLAYED: Final = 4  # memoized timelines per study

__all__ = [
    "Actor", "BrokenInvariant", "Deadlock", "Driver", "Event", "Host", "IssuedOp", "PlainEngine", "Server", "Waits", "Which",
    "simulate",
]  # fmt: skip

Waits: TypeAlias = "Generator[Event, None, None]"  # a SimPy process
Actor: TypeAlias = "Callable[[Host], Waits]"  # a SimPy process that submits graphs or limits capacities
Which: TypeAlias = 'Literal["auto", "simpy"]'  # auto: fastest engine for the graph; simpy: reference engine with SimPy processes


def simulate(
    graph: OpGraph,
    *,
    actors: Sequence[Actor] = (),
    changes: Sequence[Change] = (),
    server: Callable[[Host], Server] | None = None,
    progress: Progress | None = None,
    fast: Choice | None = None,
    which: Which = "auto",
) -> Timeline:
    """Simulate a graph, with actors that submit further graphs or change capacities.

    A graph without arbitration is simulated as a longest path. Compiled code simulates large graphs if it is installed. The
    timeline does not depend on the engine.

    Args:
        actors: processes that run concurrently.
        changes: changes of capacities, in order of time if they are lazy.
        server: function that creates the server of ops that are simulated request by request (see `Cost.played`); the server
            reports the end of each op to the host.
        progress: callback with the numbers of completed and of known ops.
        fast: whether to use compiled code; None: as HWSIM_FAST (see `hwsim.engine.fast`).
        which: "simpy": simulate every op as a SimPy process (see `hwsim.engine.plain`), with the same timeline.

    Raises:
        Deadlock: ops wait for each other, or for an event that never occurs.
        BrokenInvariant: the result is inconsistent (a defect of hwsim).
    """
    played = memo_table("timelines") if which == "auto" and not actors and not changes and server is None else None
    before = None
    if played:
        from hwsim.graph.equality import is_same

        before = next((timeline for timeline in played.values() if is_same(timeline.flat.graph, graph)), None)
    if before is not None:
        again: Timeline = replace(before, flat=replace(before.flat, graph=graph))
        again.found.update(before.found)
        return again
    limited = capacities_of(changes) if changes else frozenset()
    flat = flatten(graph) if which == "auto" and not actors else None
    compiled = None if flat is None else compile_flat(flat, changing=limited)
    timeline = None
    if flat is not None and compiled is not None and server is None:
        timeline = _at_once(flat, compiled, fast, changes)
    if timeline is not None:
        flat = compiled = None  # free the columns of millions of ops
        if progress is not None and len(timeline):
            progress(len(timeline), len(timeline))
        unfinished = timeline.unfinished()
    else:
        host = _host(graph, which, flat, compiled, limited)
        host.progress = progress
        host.server = None if server is None else server(host)
        if changes:
            from hwsim.engine.driver import capacity_changer

            host.env.process(capacity_changer(changes, alone=not actors and server is None)(host))
        for actor in actors:
            host.env.process(actor(host))
        if flat is None:
            host.submit(graph)
        timeline = host.run()
        unfinished = host.unfinished()
    if unfinished:
        raise deadlock(timeline.flat, unfinished)
    check(timeline)
    if played is not None:
        while len(played) >= MOST_PLAYED:
            del played[next(iter(played))]
        played[id(timeline)] = timeline
    return timeline


def _host(graph: OpGraph, which: Which, flat: FlatGraph | None, compiled: CompiledGraph | None, limited: Collection[str]) -> Host:
    """The engine on SimPy's clock: the driver, with the graph loaded if it is compiled, or the reference engine."""
    if which == "simpy":
        from hwsim.engine.plain import PlainEngine

        return PlainEngine(graph.capacities, graph.pools, limited=limited)
    from hwsim.engine.driver import Driver

    driver = Driver(graph.capacities, graph.pools, closed=flat is not None, limited=limited)
    if flat is not None and compiled is not None:
        driver.start(flat, compiled, driver.env.event())
    return driver


def _at_once(flat: FlatGraph, compiled: CompiledGraph, fast: Choice | None, changes: Sequence[Change]) -> Timeline | None:
    """The timeline from the longest path or compiled code, without SimPy; None if that is not possible."""
    size = len(flat) + (len(changes) if isinstance(changes, tuple) else LARGE)
    is_fast = uses_compiled_code(size, len(compiled.classes), fast)
    if is_in_order(flat, compiled):
        return longest_path(flat, compiled, fast=is_fast)
    if not is_fast:
        return None
    from hwsim.engine.native import play

    return play(flat, compiled, changes)
