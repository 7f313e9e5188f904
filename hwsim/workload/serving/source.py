"""Sources of requests while a service runs: in an order of their own, or after the answers to earlier ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Protocol

from hwsim.workload.serving.requests import Request, Requests


class Source(Protocol):
    """Requests as they come."""

    def time(self) -> int | None:
        """When the next request comes, fs; None: none does, as far as is known now."""

    def take(self) -> tuple[int, Request]:
        """The next request, and its number."""

    def ended(self, number: int, at: int) -> None:
        """A request is answered."""


class Listed:
    """Requests that come when they come, whatever is answered."""

    def __init__(self, requests: Iterator[Request], start: int = 0) -> None:
        self._requests = requests
        self._start = start
        self._number = -1
        self._next = next(requests, None)

    def time(self) -> int | None:
        """When the next request comes, fs."""
        return None if self._next is None else self._start + self._next.arrival

    def take(self) -> tuple[int, Request]:
        """The next request, and its number."""
        assert self._next is not None
        found, self._next = self._next, next(self._requests, None)
        self._number += 1
        return self._number, found

    def ended(self, number: int, at: int) -> None:
        """Nobody waits for it to ask again."""


class Asked:
    """Requests, some after an answer: turns of conversations, and requests by clients, one after another."""

    def __init__(self, requests: Requests, start: int = 0) -> None:
        self._rows = enumerate(requests)
        self._row = next(self._rows, None)
        self._clients = requests.clients
        self._start = start
        self._due: list[tuple[int, int, Request]] = []
        self._turns: dict[int, tuple[int, Request]] = {}  # by the request whose answer each follows
        for _ in range(1 if self._clients is None else self._clients):
            self._begins(start)

    def time(self) -> int | None:
        """When the next request comes, fs; None: none does, as far as is known now."""
        return self._due[0][0] if self._due else None

    def take(self) -> tuple[int, Request]:
        """The next request, and its number."""
        _, number, request = heapq.heappop(self._due)
        if self._clients is None and request.after < 0:
            self._begins(self._start)
        return number, request

    def ended(self, number: int, at: int) -> None:
        """A request is answered: the next turn follows, or the client begins anew."""
        turn = self._turns.pop(number, None)
        if turn is not None:
            heapq.heappush(self._due, (at + turn[1].arrival, *turn))
        elif self._clients is not None:
            self._begins(at)

    def _begins(self, since: int) -> None:
        """The next conversation, or request, comes some time after an instant; its turns are kept."""
        if self._row is None:
            return
        number, request = self._row
        heapq.heappush(self._due, (since + request.arrival, number, request))
        self._row = next(self._rows, None)
        while self._row is not None and self._row[1].after >= 0:
            self._turns[self._row[1].after] = self._row
            self._row = next(self._rows, None)
