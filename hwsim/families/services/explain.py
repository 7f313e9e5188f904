"""Why answers of services take as long as they do: the waits of the longest ones, and the time of each statement alone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from hwsim.families.services.results.answers import Answers, Services, Statement, Wait
from hwsim.formats import format_quantity, format_share
from hwsim.results.cause import binding
from hwsim.views.kit.lines import WIDTH
from hwsim.views.kit.table import Column, aligned


def lines(services: Services) -> Iterator[str]:
    """The section of the explanation."""
    for answers in services.answers:
        if answers.latency is None or not answers.waits:
            continue
        yield from ("", f"where the time of an answer of {answers.name} goes", *_waits(answers))
    if services.statements:
        yield ""
        yield "how long the statements take alone, and why"
        for statement in services.statements:
            yield from _statement(statement)


def _waits(answers: Answers) -> Iterator[str]:
    mean, above = ({wait.what: wait.seconds for wait in waits} for waits in (answers.waits, answers.waits_above))
    rows = sorted({*mean, *above}, key=lambda what: (-above.get(what, 0.0), what))
    total, longest = (math.fsum(times.values()) for times in (mean, above))
    names = ["its own work" if what == "work" else f"waits for {what}" for what in rows]
    most = f", {format_share(above.get(rows[0], 0.0) / longest)} of it {names[0]}" if longest else ""
    text = f"Answers above p99 take {_time(longest)} in the mean{most}; all answers take {_time(total)}."
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
    yield from aligned([
        Column("", names, right=False),
        Column("in the mean", [_time(mean.get(what, 0.0)) for what in rows]),
        Column("above p99", [_time(above.get(what, 0.0)) for what in rows]),
        Column("share", [format_share(above.get(what, 0.0) / longest) if longest else "" for what in rows]),
    ])  # fmt: skip


def _statement(statement: Statement) -> Iterator[str]:
    line = None if statement.cost is None else binding(statement.cost)
    often = "" if math.isclose(statement.times, 1.0) else f" x {statement.times:.4g}"
    text = f"{statement.name} on {statement.device}: {_time(statement.seconds)}{often} a request of {statement.service}"
    if line is not None:
        numbers = ", ".join(f"{name} = {value}" for name, value, _ in line.inputs)
        text += f"; {line.label} = {line.formula}" + (f" with {numbers}" if numbers else "")
    if statement.drawn:
        text += "; the mean of what is drawn"
    yield from textwrap.wrap(
        text.replace(" %", "\u00a0%"), WIDTH, initial_indent="  ", subsequent_indent=" " * 4, break_long_words=False
    )


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(services: Services) -> dict[str, Any]:
    """The entry of the document; keys end in their unit."""
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
                "alone_s": statement.seconds,
                "times": statement.times,
                "drawn": statement.drawn,
                "lines": [
                    {
                        "label": line.label,
                        "formula": line.formula,
                        "seconds_s": line.seconds,
                        "inputs": [[name, value, str(source)] for name, value, source in line.inputs],
                    }
                    for line in (() if statement.cost is None else statement.cost.why)
                ],
            }
            for statement in services.statements
        ],
    }


def _seconds(waits: tuple[Wait, ...]) -> dict[str, float]:
    return {wait.what: wait.seconds for wait in waits}
