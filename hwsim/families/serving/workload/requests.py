"""The requests of a service: when each comes, how long its prompt is and how long its answer, and what others have of it.

Every number is drawn by a hash of the seed, its name, and the request: the same seed gives the same requests whatever
serves them, more requests begin with the same ones, and another rate or length stretches them. Requests that come on their own
are drawn block by block while the service runs; a trace and conversations are drawn before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.families.serving.workload.conversations import PIECE, Beginnings, SessionKeys, pieces, thinking, turns_of
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.records import dataclass
from hwsim.spec import Place, SpecError
from hwsim.spec.limits import refuse_beyond
from hwsim.ticks import FEMTO
from hwsim.workload.load.arrivals import ArrivalKeys, beginnings, instants, thoughts
from hwsim.workload.load.draws import Draws
from hwsim.workload.load.keys import CountDraw, distribution_of
from hwsim.workload.load.numbers import stream
from hwsim.workload.load.traces import read_trace

USUAL: Final = 100  # requests unless the file says
BLOCK: Final = 4096  # requests that are drawn together
TOO_LONG: Final = 1e9  # tokens
Tokens = NDArray[np.int64]


class Request(NamedTuple):
    """A request: its arrival (fs after the service began), tokens of its prompt and of its answer.

    ids: the pieces that its prompt begins with, each of `span` tokens (the last may be shorter): prompts with equal ids begin
    alike. Pieces beyond the prompt belong to its answer; the next turn of the conversation begins with them, too.
    after: number of the request whose answer it follows; `arrival` is then fs after that; -1: it follows none.
    """

    arrival: int
    prompt: int
    output: int
    ids: tuple[int, ...] = ()
    span: int = 1
    after: int = -1


@dataclass(frozen=True, slots=True)
class Requests:
    """All requests of a service, in order; they can be gone through again and again.

    Args:
        cut: how many were cut to the longest sequence of the model.
        most: prompt and answer of the one with the most tokens.
        clients: how many ask, the next one when one is answered; None: requests come on their own. The arrival of a request
            that follows none is then the time that its client thinks before it.
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


def draw(keys: InferKeys, longest: int, *, answers: bool = True) -> Requests:
    """All requests of a service.

    Args:
        longest: tokens that the model reads, prompt and answer together; what is drawn beyond is cut, the answer first.
        answers: whether it writes any (an encoder, or a network of convolutions, does not).

    Raises:
        SpecError: the trace cannot be read, or has a line that is none, or one with more tokens than the model reads.
        TooLong: the last of them comes too late.
    """
    arrivals = keys.arrivals
    if isinstance(arrivals, ArrivalKeys) and arrivals.trace is not None:
        return _traced(arrivals.trace, arrivals.place, longest, keys.requests, answers=answers)
    count = keys.requests or USUAL
    refuse_beyond("requests", count)
    clients = arrivals.clients if isinstance(arrivals, ArrivalKeys) else None
    if keys.sessions is not None:
        rows, cut = _conversations(keys, keys.sessions, longest, count)
        return _listed(rows, cut, clients)
    lengths = _Lengths.of(keys, longest, answers=answers)
    cut, most = 0, (0, 0)
    for first in range(0, count, BLOCK):
        prompt, output, short = lengths.at(first, min(BLOCK, count - first))
        cut += short
        at = int(np.argmax(prompt + output))
        most = max(most, (int(prompt[at]), int(output[at])), key=sum)
    if clients is None:
        next(islice(_times(arrivals, keys.seed), count - 1, None))  # that it comes in time

    def make() -> Iterator[Request]:
        times = _times(arrivals, keys.seed)
        for first in range(0, count, BLOCK):
            yield from lengths.requests(first, list(islice(times, min(BLOCK, count - first))))

    return Requests(make, count, most, cut, clients)


def _times(keys: ArrivalKeys | str, seed: int) -> Iterator[int]:
    """The arrival of each request in fs; of clients, the time that is thought before it."""
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
    """Tokens of prompts and answers, and what prompts have in common."""

    prompt: Draws
    output: Draws | None
    longest: int
    shared: Beginnings | None

    @classmethod
    def of(cls, keys: InferKeys, longest: int, *, answers: bool) -> _Lengths:
        prompt = Draws(stream(keys.seed, "prompt"), distribution_of(keys.prompt))
        output = Draws(stream(keys.seed, "output"), distribution_of(keys.output)) if answers else None
        return cls(prompt, output, longest, None if keys.shared is None else Beginnings.of(keys.shared, keys.seed))

    def at(self, first: int, count: int) -> tuple[Tokens, Tokens, int]:
        """(tokens of prompts, of answers, how many of them are cut) of requests one after another."""
        prompt, output = self._drawn(first, count)
        if self.shared is not None:
            prompt = prompt + np.array([self.shared.early(first + index) for index in range(count)], np.int64)
        short = np.minimum(prompt, self.longest - (output > 0))
        less = np.minimum(output, self.longest - short)
        return short, less, int(((short < prompt) | (less < output)).sum())  # count

    def _drawn(self, first: int, count: int) -> tuple[Tokens, Tokens]:
        if self.shared is not None and self.shared.prompt is not None:
            draws = np.array([self.prompt.at(self.shared.source(first + index)) for index in range(count)], np.float64)
        else:
            draws = self.prompt.many(first, count)
        output = _whole(self.output.many(first, count)) if self.output is not None else np.zeros(count, np.int64)
        return _whole(draws), output

    def requests(self, first: int, times: Sequence[int]) -> Iterator[Request]:
        """Requests one after another, with their arrivals."""
        prompts, outputs, _ = self.at(first, len(times))
        if self.shared is None:
            for arrival, prompt, output in zip(times, prompts.tolist(), outputs.tolist(), strict=True):
                yield Request(arrival, prompt, output)
            return
        drawn = zip(range(first, first + len(times)), times, prompts.tolist(), outputs.tolist(), strict=True)
        for number, arrival, prompt, output in drawn:
            _, ids = self.shared.at(number, max(0, prompt - self.shared.early(number)))
            yield Request(arrival, prompt, output, ids[: prompt // PIECE], PIECE)


def _whole(draws: NDArray[np.float64]) -> Tokens:
    """Numbers of tokens, 1 at least."""
    return np.maximum(1.0, np.rint(np.minimum(draws, TOO_LONG))).astype(np.int64)


def _conversations(keys: InferKeys, sessions: SessionKeys, longest: int, count: int) -> tuple[list[Request], int]:
    """(requests of conversations one after another, how many were cut): a conversation ends when the model reads no more."""
    prompts = Draws(stream(keys.seed, "prompt"), distribution_of(keys.prompt))
    outputs = Draws(stream(keys.seed, "output"), distribution_of(keys.output))
    shared = None if keys.shared is None else Beginnings.of(keys.shared, keys.seed)
    thinks, times = thinking(sessions, keys.seed), _times(keys.arrivals, keys.seed)
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


def _listed(rows: list[Request], cut: int = 0, clients: int | None = None) -> Requests:
    """Requests that are all known."""
    most = max(rows, key=lambda row: row.prompt + row.output)
    return Requests(lambda: iter(rows), len(rows), (most.prompt, most.output), cut, clients)


def _traced(name: str, place: Place, longest: int, count: int | None, *, answers: bool) -> Requests:
    """The lines of a file; one that is too long is a mistake: a measured request is not cut."""
    trace = read_trace(name, place, tokens=True, most=count)
    output = trace.output if answers else np.zeros_like(trace.output)
    long = np.flatnonzero(trace.prompt + output > longest)
    if len(long):
        first = int(long[np.argmin(trace.lines[long])])
        tokens = f"{trace.prompt[first]:,} + {output[first]:,}" if answers else f"{trace.prompt[first]:,}"
        message = (
            f"line {trace.lines[first]} of the trace '{name}' has {tokens} tokens, more than the {longest:,} that the model reads"
        )
        more = f"; {len(long) - 1:,} more lines have, too" if len(long) > 1 else ""
        raise SpecError.of(place, message + more, "leave them out, or take a model with a longer `sequence`")
    rows = enumerate(zip(trace.arrival.tolist(), trace.prompt.tolist(), output.tolist(), strict=True))
    return _listed([Request(*row, tuple(trace.prefix(number)), trace.block or 1) for number, row in rows])


def least(tokens: int | CountDraw) -> int:
    """The fewest tokens that can be drawn."""
    if isinstance(tokens, int):
        return tokens
    return tokens.uniform[0] if tokens.uniform is not None else 1
