"""Statements and ops of an earlier run of the study, for programs that differ from its own in their costs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from hwsim.graph.builder import GraphBuilder, Tables
from hwsim.graph.opgraph import Alike, OpGraph
from hwsim.machine import Machine
from hwsim.spec import Mistakes, Tree
from hwsim.spec.shelf import MOST_BUILT, once, shared_by
from hwsim.workload.emit import HostRuntime, HostTime
from hwsim.workload.file import Rules
from hwsim.workload.groups import RankGroups
from hwsim.workload.reading import Group, read_group

_SPENT: Final = attrgetter("dispatch", "layer", "issue", "back", "call", "compile")


def read_groups(
    named: Sequence[tuple[str, Tree]],
    machine: Machine,
    rules: Rules | None,
    groups: Mapping[str, RankGroups],
    builder: GraphBuilder,
    mistakes: Mistakes,
) -> Sequence[Group]:
    """The programs of a workload or of a job, by name; their labels, costs and queues go into the builder."""
    already, is_first = len(mistakes), builder.is_empty

    def read() -> tuple[list[Group], Tables | None]:
        programs = [read_group(name, tree, machine, rules, groups, builder, mistakes) for name, tree in named]
        return programs, builder.tables() if builder.has_no_ops and len(mistakes) == already else None

    if not is_first or groups:
        return read()[0]
    names = tuple(name for name, _ in named)
    programs, tables = once("groups", (machine, *(tree for _, tree in named)), read, also=(names, rules), most=MOST_BUILT)
    if builder.is_empty and tables is not None:
        builder.begin(tables)
    elif builder.is_empty and len(mistakes) == already:
        return read()[0]  # whose mistakes are said again
    return programs


def with_ops(
    builder: GraphBuilder,
    groups: Sequence[Group],
    runtimes: Sequence[HostRuntime | None],
    write: Callable[[], None],
    alike: Alike | None,
    unfolded: str,
) -> OpGraph:
    """The graph of a builder with the ops of these programs.

    Statements refer to costs by index, so that the ops of equal statements are the same whatever their costs come to.

    Args:
        write: adds the ops to the builder, which are a function of the groups, their runtimes and nothing else.
        alike, unfolded: as of `GraphBuilder.build`.
    """
    latest: dict[str, tuple[object, OpGraph]] | None = shared_by("written") if alike is None and builder.has_no_ops else None
    if latest is None:
        write()
        return builder.build(alike, unfolded)
    form = [(group.hosts, group.body, group.starts, group.start) for group in groups], [_form(each) for each in runtimes]
    form_before, graph = latest.get("", (None, None))
    tables = builder.build(None, unfolded)
    if graph is not None and form_before == form and (graph.labels, graph.queues) == (tables.labels, tables.queues):
        graph = replace(tables, blocks=graph.blocks, ties=graph.ties, buffers=graph.buffers, labels=graph.labels)
    else:
        write()
        graph = builder.build(None, unfolded)
    latest[""] = form, graph
    return graph


def _form(runtime: HostRuntime | None) -> tuple[Any, ...]:
    """All of a runtime but the times of what a device is busy with."""
    if runtime is None:
        return ()
    return runtime.bounded, runtime.free, *map(_without_time, _SPENT(runtime))


def _without_time(spent: HostTime) -> tuple[tuple[int, ...], int | bool]:
    return spent.cost, spent.time if min(spent.cost, default=-1) < 0 else spent.time > 0
