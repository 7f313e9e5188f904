"""Explanation of latencies: the waits of the slowest requests, and the service time of each statement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from hwsim.families.services.results.responses import ServiceResponses, Services, ServiceWait, Statement
from hwsim.families.services.summary import cause_of
from hwsim.formats import format_quantity, format_share
from hwsim.results.cause import binding
from hwsim.views.kit.lines import wrap_lines
from hwsim.views.kit.table import Column, align_columns


def lines(services: Services) -> Iterator[str]:
    """Yield the section on services of `hwsim explain`."""
    for answers in services.answers:
        if answers.latency is not None and answers.waits:
            yield from ("", *_waits(answers))
    if services.statements:
        yield from ("", "service time of each statement, without waiting")
        for statement in services.statements:
            yield from _statement(statement)


def _waits(answers: ServiceResponses) -> Iterator[str]:
    """Yield a sentence on the slowest requests, and a table of the latency of all and of the slowest by cause."""
    mean, above = ({wait.what: wait.seconds for wait in waits} for waits in (answers.waits, answers.waits_above))
    rows = sorted({*mean, *above}, key=lambda what: (-above.get(what, 0.0), what))
    total, longest = (math.fsum(times.values()) for times in (mean, above))
    names = [cause_of(row) for row in rows]
    most = f", {format_share(above.get(rows[0], 0.0) / longest)} of it {names[0]}" if longest else ""
    text = f"{answers.name}: a request takes {_time(total)} on average; above p99 it takes {_time(longest)}{most}."
    yield from wrap_lines(text, 0)
    yield from align_columns([
        Column("", names, right=False),
        Column("average", [_time(mean.get(what, 0.0)) for what in rows]),
        Column("above p99", [_time(above.get(what, 0.0)) for what in rows]),
        Column("share", [format_share(above.get(what, 0.0) / longest) if longest else "" for what in rows]),
    ])  # fmt: skip


def _statement(statement: Statement) -> Iterator[str]:
    line = None if statement.cost is None else binding(statement.cost)
    often = "" if math.isclose(statement.times, 1.0) else f" x {statement.times:.4g}"
    text = f"{statement.service}: {statement.name} on {statement.device} takes {_time(statement.seconds)}{often} per request"
    if statement.random:
        text += " on average (random)"
    elif line is not None:
        numbers = ", ".join(f"{name} = {value}" for name, value, _ in line.inputs if name != line.formula)
        text += f"; bottleneck: {line.label}, {line.formula}" + (f" with {numbers}" if numbers else "") if numbers else ""
    yield from wrap_lines(text, 2)


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(services: Services) -> dict[str, Any]:
    """Return the entry of the JSON document; keys end in their unit."""
    return {
        "waits": {
            answers.name: {"mean_s": _seconds(answers.waits), "above_p99_s": _seconds(answers.waits_above)}
            for answers in services.answers
            if answers.waits
        },
        "statements": [
            {
                "service": statement.service,
                "name": statement.name,
                "device": statement.device,
                "unloaded_s": statement.seconds,
                "times": statement.times,
                "random": statement.random,
                "lines": [
                    {
                        "label": line.label,
                        "formula": line.formula,
                        "time_s": line.seconds,
                        "inputs": [[name, value, str(source)] for name, value, source in line.inputs],
                    }
                    for line in (() if statement.cost is None else statement.cost.why)
                ],
            }
            for statement in services.statements
        ],
    }


def _seconds(waits: tuple[ServiceWait, ...]) -> dict[str, float]:
    return {wait.what: wait.seconds for wait in waits}
