"""Sources of requests while a service runs: in an order of their own, or after the answers to earlier ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from hwsim.families.serving.workload.requests import Request


class Source:
    """Requests as they come, some after an answer: turns of conversations, and requests by clients, one after another."""

    def __init__(self, requests: Iterable[Request], start: int = 0, clients: int | None = None) -> None:
        self._rows = enumerate(requests)
        self._row = next(self._rows, None)
        self._clients = clients
        self._start = start
        self._due: list[tuple[int, int, Request]] = []
        self._asked: list[tuple[int, int, Request]] = []  # those that waited for an answer
        self._turns: dict[int, tuple[int, Request]] = {}  # by the request whose answer each follows
        for _ in range(1 if self._clients is None else self._clients):
            if self._row is None:  # fewer requests than clients
                break
            self._begins(start, self._due)

    def time(self) -> int | None:
        """When the next request comes, fs; None: none does, as far as is known now."""
        return min((heap[0][0] for heap in (self._due, self._asked) if heap), default=None)

    def unasked(self) -> int | None:
        """When the next of those comes that wait for no answer, fs."""
        return self._due[0][0] if self._due else None

    def take(self) -> tuple[int, Request]:
        """The next request, and its number."""
        heap = min((heap for heap in (self._due, self._asked) if heap), key=lambda heap: heap[0][:2])
        _, number, request = heapq.heappop(heap)
        if self._clients is None and request.after < 0:
            self._begins(self._start, self._due)
        return number, request

    def ended(self, number: int, at: int) -> tuple[int, int] | None:
        """A request is answered: the next turn follows, or the client begins anew."""
        turn = self._turns.pop(number, None)
        if turn is not None:
            heapq.heappush(self._asked, (at + turn[1].arrival, *turn))
            return at + turn[1].arrival, turn[0]
        return None if self._clients is None else self._begins(at, self._asked)

    def _begins(self, since: int, heap: list[tuple[int, int, Request]]) -> tuple[int, int] | None:
        """The next conversation, or request, comes some time after an instant; its turns are kept."""
        if self._row is None:
            return None
        number, request = self._row
        heapq.heappush(heap, (since + request.arrival, number, request))
        self._row = next(self._rows, None)
        while self._row is not None and self._row[1].after >= 0:
            self._turns[self._row[1].after] = self._row
            self._row = next(self._rows, None)
        return since + request.arrival, number
