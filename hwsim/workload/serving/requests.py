"""The requests of a service: when each comes, how long its prompt is and how long its answer.

Everything is drawn before the run from one generator for each thing (arrivals, prompts, outputs), so that the same seed gives
the same requests whatever serves them, and more requests begin with the same ones.

**Source**: numpy's PCG64, seeded by a SeedSequence: the streams are the same on every platform.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.spec import Mistake, Place, SpecError
from hwsim.workload.serving.schema import ArrivalKeys, InferKeys, LengthKeys

USUAL: Final = 100  # requests unless the file says
MOST: Final = 1_000_000
_COLUMNS: Final = ("arrival", "prompt", "output")


class Request(NamedTuple):
    """A request: its arrival (fs after the service began), tokens of its prompt and of its answer."""

    arrival: int
    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """The requests in order of arrival, and the number that were cut to the longest sequence of the model."""

    requests: tuple[Request, ...]
    cut: int = 0


def draw(keys: InferKeys, longest: int, *, answers: bool = True) -> Drawn:
    """All requests of a service.

    Args:
        longest: tokens that the model reads, prompt and answer together; what is drawn beyond is cut, the answer first.
        answers: whether it writes any (an encoder, or a network of convolutions, does not).

    Raises:
        SpecError: the trace cannot be read, or has a line that is none, or one with more tokens than the model reads.
    """
    arrivals = keys.arrivals
    if isinstance(arrivals, ArrivalKeys) and arrivals.trace is not None:
        rows = _traced(arrivals.trace, arrivals.place)[: keys.requests]
        _refuse_longer(rows, longest, arrivals.trace, arrivals.place, answers=answers)
    else:
        count = keys.requests or USUAL
        seeds = np.random.SeedSequence(keys.seed).spawn(3)
        times, prompts, outputs = (np.random.Generator(np.random.PCG64(each)) for each in seeds)
        lengths = _lengths(keys.prompt, count, prompts), _lengths(keys.output, count, outputs)
        rows = list(zip(_arrivals(arrivals, count, times), *lengths, strict=True))
    requests, cut = [], 0
    for arrival, prompt, output in sorted(rows, key=lambda each: each[0]):
        output = output if answers else 0
        short = min(prompt, longest - (1 if output else 0))
        less = min(output, longest - short)
        cut += short < prompt or less < output
        requests.append(Request(arrival, short, less))
    return Drawn(tuple(requests), cut)


def _refuse_longer(rows: Sequence[tuple[int, int, int]], longest: int, name: str, place: Place, *, answers: bool) -> None:
    """Reject requests of a trace that are too long: a measured request is not cut."""
    lines = [number for number, (_, prompt, output) in enumerate(rows, 2) if prompt + (output if answers else 0) > longest]
    if lines:
        _, prompt, output = rows[lines[0] - 2]
        tokens = f"{prompt:,} + {output:,}" if answers else f"{prompt:,}"
        message = f"line {lines[0]} of the trace '{name}' has {tokens} tokens, more than the {longest:,} that the model reads"
        more = f"; {len(lines) - 1:,} more lines have, too" if len(lines) > 1 else ""
        raise SpecError([Mistake(place, message + more, "leave them out, or take a model with a longer `sequence`")])


def least(tokens: int | LengthKeys) -> int:
    """The fewest tokens that can be drawn."""
    if isinstance(tokens, int):
        return tokens
    return tokens.uniform[0] if tokens.uniform is not None else 1


def _arrivals(keys: ArrivalKeys | str, count: int, generator: np.random.Generator) -> list[int]:
    """Arrival of each request in fs."""
    if isinstance(keys, ArrivalKeys) and keys.poisson is not None:
        gaps = generator.exponential(1.0 / keys.poisson, count)
        return [ticks.femtoseconds(each) for each in np.cumsum(gaps).tolist()]
    if isinstance(keys, ArrivalKeys) and keys.every is not None:
        return [ticks.femtoseconds(number * keys.every) for number in range(count)]
    return [0] * count


def _lengths(keys: int | LengthKeys, count: int, generator: np.random.Generator) -> list[int]:
    if isinstance(keys, int):
        return [keys] * count
    if keys.uniform is not None:
        low, high = keys.uniform
        return [int(each) for each in generator.integers(low, high, count, endpoint=True).tolist()]
    if keys.lognormal is not None:
        drawn = generator.lognormal(math.log(keys.lognormal.median), keys.lognormal.sigma, count)
        return [max(1, round(each)) for each in np.minimum(drawn, 1e9).tolist()]
    return [1] * count


def _traced(name: str, place: Place) -> list[tuple[int, int, int]]:
    """The lines of a CSV file."""
    near = Path(place.file).parent if place.file and not place.file.startswith("<") else Path()
    path = near / name
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError([Mistake(place, f"the trace '{name}' cannot be read: {error.__class__.__name__}",
                                 "a CSV file with the columns arrival, prompt, output")]) from error  # fmt: skip
    if not lines or any(column not in lines[0] for column in _COLUMNS):
        raise SpecError([Mistake(place, f"the trace '{name}' has not the columns arrival, prompt and output",
                                 "its first line names them; arrival in seconds, the others in tokens")])  # fmt: skip
    if len(lines) > MOST:
        raise SpecError([Mistake(place, f"the trace '{name}' has {len(lines):,} requests; the limit is {MOST:,}", None)])
    return [_line(name, number, line, place) for number, line in enumerate(lines, 2)]


def _line(name: str, number: int, line: dict[str, str], place: Place) -> tuple[int, int, int]:
    try:
        arrival, prompt, output = (float(line[column]) for column in _COLUMNS)
    except (TypeError, ValueError):
        arrival = prompt = output = -1.0
    if not (0 <= arrival < 1e9 and 1 <= prompt < 1e9 and 1 <= output < 1e9):
        message = f"line {number} of the trace '{name}' is no request: {', '.join(str(line[column]) for column in _COLUMNS)}"
        raise SpecError([Mistake(place, message, "seconds, tokens of the prompt, tokens of the answer: 12.5, 600, 250")])
    return ticks.femtoseconds(arrival), int(prompt), int(output)


def mean_tokens(requests: Sequence[Request]) -> tuple[float, float]:
    """Mean tokens of a prompt and of an answer."""
    count = max(1, len(requests))
    return sum(each.prompt for each in requests) / count, sum(each.output for each in requests) / count  # integers
