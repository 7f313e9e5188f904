"""The requests of a service: when each comes, how long its prompt is and how long its answer.

Each number is drawn by hash of (seed, service, what it is, number of the request): the same seed gives the same requests whatever
serves them, more requests begin with the same ones, and another rate or spread stretches them (common random numbers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass
from hwsim.spec import Mistake, Place, SpecError
from hwsim.workload.load.arrivals import ArrivalKeys, instants
from hwsim.workload.load.draws import Draws
from hwsim.workload.load.keys import CountDraw, distribution_of
from hwsim.workload.load.numbers import stream
from hwsim.workload.load.traces import Trace, read_trace
from hwsim.workload.serving.schema import InferKeys

USUAL: Final = 100  # requests unless the file says
BLOCK: Final = 4096  # requests that are drawn together
LONGEST: Final = 1e9  # tokens of a draw


class Request(NamedTuple):
    """A request: its arrival (fs after the service began), tokens of its prompt and of its answer.

    ids: of the pieces that its prompt begins with, each of `span` tokens (the last may be shorter): prompts with equal ids begin
    alike.
    """

    arrival: int
    prompt: int
    output: int
    ids: tuple[int, ...] = ()
    span: int = 1


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
        trace = read_trace(arrivals.trace, arrivals.place, tokens=True, most=keys.requests)
        _refuse_longer(trace, longest, arrivals.trace, arrivals.place, answers=answers)
        rows: Iterator[tuple[int, int, int]] = zip(
            trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist(), strict=True
        )
    else:
        rows = islice(_rows(keys), keys.requests or USUAL)
    requests, cut = [], 0
    for arrival, prompt, output in rows:
        output = output if answers else 0
        short = min(prompt, longest - (1 if output else 0))
        less = min(output, longest - short)
        cut += short < prompt or less < output
        requests.append(Request(arrival, short, less))
    return Drawn(tuple(requests), cut)


def _refuse_longer(trace: Trace, longest: int, name: str, place: Place, *, answers: bool) -> None:
    """Reject requests of a trace that are too long: a measured request is not cut."""
    over = np.flatnonzero(trace.prompt + (trace.output if answers else 0) > longest)
    if len(over):
        first = over[np.argmin(trace.lines[over])]
        prompt, output = int(trace.prompt[first]), int(trace.output[first])
        tokens = f"{prompt:,} + {output:,}" if answers else f"{prompt:,}"
        message = (
            f"line {trace.lines[first]} of the trace '{name}' has {tokens} tokens, more than the {longest:,} that the model reads"
        )
        more = f"; {len(over) - 1:,} more lines have, too" if len(over) > 1 else ""
        raise SpecError([Mistake(place, message + more, "leave them out, or take a model with a longer `sequence`")])


def least(tokens: int | CountDraw) -> int:
    """The fewest tokens that can be drawn."""
    if isinstance(tokens, int):
        return tokens
    return tokens.uniform[0] if tokens.uniform is not None else 1


def _rows(keys: InferKeys) -> Iterator[tuple[int, int, int]]:
    """Arrival (fs), tokens of the prompt and of the answer, one after another without end."""
    times = instants(keys.arrivals, keys.seed, "arrivals") if isinstance(keys.arrivals, ArrivalKeys) else None
    number = 0
    while True:
        lengths = (_lengths(value, keys.seed, what, number).tolist() for what, value in
                   (("prompt", keys.prompt), ("output", keys.output)))  # fmt: skip
        came = [0] * BLOCK if times is None else islice(times, BLOCK)
        yield from zip(came, *lengths, strict=True)
        number += BLOCK


def _lengths(keys: int | CountDraw, seed: int, what: str, first: int) -> NDArray[np.int64]:
    drawn = Draws(stream(seed, what), distribution_of(keys)).many(first, BLOCK)
    return np.maximum(1, np.rint(np.minimum(drawn, LONGEST))).astype(np.int64)


def mean_tokens(requests: Sequence[Request]) -> tuple[float, float]:
    """Mean tokens of a prompt and of an answer."""
    count = max(1, len(requests))
    return sum(each.prompt for each in requests) / count, sum(each.output for each in requests) / count  # integers
