"""The requests of a service: arrival times, prompt and output lengths, and common beginnings of prompts.

Every random number is a hash of the seed, its name and the number of the request. So the same seed makes the same requests for
every server, a longer run begins with the requests of a shorter one, and another rate or length scales the same draws. Requests
of an arrival process are made in blocks while the service runs; traces and conversations are made before the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.families.serving.workload.conversations import PIECE, Beginnings, SessionKeys, pieces, think_times, turns_of
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.records import dataclass
from hwsim.spec import SpecError
from hwsim.spec.limits import refuse_beyond
from hwsim.ticks import FEMTO
from hwsim.workload.load.arrivals import ArrivalKeys, beginnings, instants, thoughts
from hwsim.workload.load.draws import RandomDraws
from hwsim.workload.load.keys import CountDraw, distribution_of
from hwsim.workload.load.numbers import stream

USUAL: Final = 100  # default number of requests
BLOCK: Final = 4096  # requests made at once
TOO_LONG: Final = 1e9  # tokens: upper bound of a random length
Tokens = NDArray[np.int64]


class Request(NamedTuple):
    """A request.

    Args:
        arrival: arrival time (fs from the start of the service; with `after`, from the end of that answer).
        prompt: prompt tokens.
        output: output tokens.
        ids: ids of the pieces at the beginning of the prompt. Prompts with equal ids have equal tokens. Pieces beyond the prompt
            belong to the answer, and to the prompt of the next turn.
        span: tokens of a piece; the last one may be shorter.
        after: number of the request whose answer this request follows; -1: none.
    """

    arrival: int
    prompt: int
    output: int
    ids: tuple[int, ...] = ()
    span: int = 1
    after: int = -1


@dataclass(frozen=True, slots=True)
class ServiceRequests:
    """All requests of a service, in order; can be iterated any number of times.

    Args:
        make: function that returns a new iterator over the requests.
        count: number of requests.
        most: prompt and output tokens of the longest request.
        cut: number of requests truncated to the model's maximum.
        clients: number of clients, each with one request in flight; None: an open arrival process. With clients, the arrival of a
            request with `after` -1 is the think time of its client.
    """

    make: Callable[[], Iterator[Request]]
    count: int
    most: tuple[int, int]
    cut: int = 0
    clients: int | None = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Request]:
        return self.make()


def draw(keys: InferKeys, longest: int, *, answers: bool = True) -> ServiceRequests:
    """Return all requests of a service.

    Args:
        keys: keys of the `infer:`.
        longest: maximum tokens of prompt and output together; random lengths beyond it are truncated, the output first.
        answers: the model writes tokens (an encoder or a convolutional network does not).

    Raises:
        SpecError: The trace cannot be read, has an invalid line, or a request longer than the model's maximum.
        TooLong: The last request arrives too late.
    """
    arrivals = keys.arrivals
    if isinstance(arrivals, ArrivalKeys) and arrivals.trace is not None:
        return _trace_requests(arrivals, longest, keys.requests, answers=answers)
    count = keys.requests or USUAL
    refuse_beyond("requests", count)
    clients = arrivals.clients if isinstance(arrivals, ArrivalKeys) else None
    if keys.sessions is not None:
        rows, cut = _conversations(keys, keys.sessions, longest, count)
        return _collect(rows, cut, clients)
    lengths = _Lengths.of(keys, longest, answers=answers)
    cut, most = 0, (0, 0)
    for first in range(0, count, BLOCK):
        prompt, output, short = lengths.at(first, min(BLOCK, count - first))
        cut += short
        longest_row = int(np.argmax(prompt + output))
        most = max(most, (int(prompt[longest_row]), int(output[longest_row])), key=sum)
    if clients is None:
        next(islice(_arrival_times(arrivals, keys.seed), count - 1, None))  # raises TooLong if the last request is too late

    def make() -> Iterator[Request]:
        times = _arrival_times(arrivals, keys.seed)
        for first in range(0, count, BLOCK):
            yield from lengths.requests(first, list(islice(times, min(BLOCK, count - first))))

    return ServiceRequests(make, count, most, cut, clients)


def _arrival_times(keys: ArrivalKeys | str, seed: int) -> Iterator[int]:
    """Yield the arrival time of each request (fs); with clients, the think time before it."""
    if isinstance(keys, str):
        while True:
            yield 0
    elif keys.clients is None:
        yield from instants(keys, seed, "arrivals")
    else:
        begin, draws, first = beginnings(keys, seed, "arrivals"), thoughts(keys, seed, "arrivals"), keys.clients
        for low in range(0, first, BLOCK):
            yield from ticks.rounded(np.rint(begin.many(low, min(BLOCK, first - low)) * FEMTO)).tolist()
        while True:
            yield from ticks.rounded(np.rint(draws.many(first, BLOCK) * FEMTO)).tolist()
            first += BLOCK


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Random lengths of prompts and outputs, and common beginnings of prompts."""

    prompt: RandomDraws
    output: RandomDraws | None
    longest: int
    shared: Beginnings | None

    @classmethod
    def of(cls, keys: InferKeys, longest: int, *, answers: bool) -> _Lengths:
        prompt = RandomDraws(stream(keys.seed, "prompt"), distribution_of(keys.prompt))
        output = RandomDraws(stream(keys.seed, "output"), distribution_of(keys.output)) if answers else None
        return cls(prompt, output, longest, None if keys.shared is None else Beginnings.of(keys.shared, keys.seed))

    def at(self, first: int, count: int) -> tuple[Tokens, Tokens, int]:
        """Return (prompt tokens, output tokens, number truncated) of `count` requests."""
        prompt, output = self._draw(first, count)
        if self.shared is not None:
            prompt = prompt + np.array([self.shared.early(first + index) for index in range(count)], np.int64)
        short = np.minimum(prompt, self.longest - (output > 0))
        less = np.minimum(output, self.longest - short)
        return short, less, int(((short < prompt) | (less < output)).sum())  # count

    def _draw(self, first: int, count: int) -> tuple[Tokens, Tokens]:
        if self.shared is not None and self.shared.prompt is not None:
            draws = np.array([self.prompt.at(self.shared.source(first + index)) for index in range(count)], np.float64)
        else:
            draws = self.prompt.many(first, count)
        output = _token_counts(self.output.many(first, count)) if self.output is not None else np.zeros(count, np.int64)
        return _token_counts(draws), output

    def requests(self, first: int, times: Sequence[int]) -> Iterator[Request]:
        """Yield requests with these arrival times."""
        prompts, outputs, _ = self.at(first, len(times))
        if self.shared is None:
            for arrival, prompt, output in zip(times, prompts.tolist(), outputs.tolist(), strict=True):
                yield Request(arrival, prompt, output)
            return
        rows = zip(range(first, first + len(times)), times, prompts.tolist(), outputs.tolist(), strict=True)
        for number, arrival, prompt, output in rows:
            _, ids = self.shared.at(number, max(0, prompt - self.shared.early(number)))
            yield Request(arrival, prompt, output, ids[: prompt // PIECE], PIECE)


def _token_counts(draws: NDArray[np.float64]) -> Tokens:
    return np.maximum(1.0, np.rint(np.minimum(draws, TOO_LONG))).astype(np.int64)


def _conversations(keys: InferKeys, sessions: SessionKeys, longest: int, count: int) -> tuple[list[Request], int]:
    """Return (requests, number truncated); a conversation ends when its context reaches the model's maximum."""
    prompts = RandomDraws(stream(keys.seed, "prompt"), distribution_of(keys.prompt))
    outputs = RandomDraws(stream(keys.seed, "output"), distribution_of(keys.output))
    shared = None if keys.shared is None else Beginnings.of(keys.shared, keys.seed)
    thinks, times = think_times(sessions, keys.seed), _arrival_times(keys.arrivals, keys.seed)
    rows: list[Request] = []
    cut = session = 0
    while len(rows) < count:
        early, start = (0, ()) if shared is None else shared.at(session, 0)
        context, arrival = early, next(times)
        for turn in range(turns_of(sessions, keys.seed, session)):
            prompt, output = (max(1, round(min(draws.at(session, turn), TOO_LONG))) for draws in (prompts, outputs))
            prompt += context
            if prompt >= longest and turn:
                break
            short = min(prompt, longest - 1)
            less = min(output, longest - short)
            cut += short < prompt or less < output
            after = len(rows) - 1 if turn else -1
            rows.append(Request(arrival, short, less, pieces(session, early, start, short + less), PIECE, after))
            if len(rows) == count or short + less >= longest:
                break
            context, arrival = short + less, ticks.femtoseconds(thinks.at(session, turn + 1))
        session += 1
    return rows, cut


def _collect(rows: list[Request], cut: int = 0, clients: int | None = None) -> ServiceRequests:
    most = max(rows, key=lambda row: row.prompt + row.output)
    return ServiceRequests(lambda: iter(rows), len(rows), (most.prompt, most.output), cut, clients)


def _trace_requests(keys: ArrivalKeys, longest: int, count: int | None, *, answers: bool) -> ServiceRequests:
    """Return the requests of a trace. Measured requests are not truncated: one that is too long raises SpecError."""
    trace, place = keys.recorded(tokens=True, most=count), keys.place
    output = trace.output if answers else np.zeros_like(trace.output)
    long = np.flatnonzero(trace.prompt + output > longest)
    if len(long):
        first = int(long[np.argmin(trace.lines[long])])
        tokens = f"{trace.prompt[first]:,} + {output[first]:,}" if answers else f"{trace.prompt[first]:,}"
        message = (
            f"line {trace.lines[first]} of the trace '{keys.trace}' has {tokens} tokens, but the model reads at most {longest:,}"
        )
        more = f"; {len(long) - 1:,} more lines are too long" if len(long) > 1 else ""
        raise SpecError.of(place, message + more, "remove these lines, or use a model with a longer `sequence`")
    rows = enumerate(zip(trace.arrival.tolist(), trace.prompt.tolist(), output.tolist(), strict=True))
    return _collect([Request(*row, tuple(trace.prefix(number)), trace.block or 1) for number, row in rows])


def min_tokens(tokens: int | CountDraw) -> int:
    """Return the smallest number of tokens that a distribution can draw."""
    if isinstance(tokens, int):
        return tokens
    return tokens.uniform[0] if tokens.uniform is not None else 1
