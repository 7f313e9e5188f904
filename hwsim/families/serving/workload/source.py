"""The source of requests of a running service: open arrivals, and requests that follow an earlier answer."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from hwsim.families.serving.workload.requests import Request


class RequestSource:
    """A source of requests in order of arrival. Turns of conversations and requests of clients follow an earlier answer."""

    def __init__(self, requests: Iterable[Request], start: int = 0, clients: int | None = None) -> None:
        self._rows = enumerate(requests)
        self._row = next(self._rows, None)
        self._clients = clients
        self._start = start
        self._due: list[tuple[int, int, Request]] = []
        self._asked: list[tuple[int, int, Request]] = []  # requests that follow an answer
        self._turns: dict[int, tuple[int, Request]] = {}  # next turn by the number of the request before it
        for _ in range(1 if self._clients is None else self._clients):
            if self._row is None:  # fewer requests than clients
                break
            self._schedule(start, self._due)

    def time(self) -> int | None:
        """Return the arrival time of the next request (fs); None if no arrival is known yet."""
        due, asked = self._due, self._asked
        if due and asked:
            return min(due[0][0], asked[0][0])
        return due[0][0] if due else asked[0][0] if asked else None

    def unasked(self) -> int | None:
        """Return the arrival time of the next request that follows no answer (fs); None without one."""
        return self._due[0][0] if self._due else None

    def take(self) -> tuple[int, Request]:
        """Remove and return the next (number, request)."""
        due, asked = self._due, self._asked
        heap = due if due and not (asked and asked[0][:2] < due[0][:2]) else asked
        _, number, request = heapq.heappop(heap)
        if self._clients is None and request.after < 0:
            self._schedule(self._start, self._due)
        return number, request

    def ended(self, number: int, end_fs: int) -> tuple[int, int] | None:
        """Return (arrival time, number) of the request that follows this answer; None without one."""
        turn = self._turns.pop(number, None)
        if turn is not None:
            heapq.heappush(self._asked, (end_fs + turn[1].arrival, *turn))
            return end_fs + turn[1].arrival, turn[0]
        return None if self._clients is None else self._schedule(end_fs, self._asked)

    def _schedule(self, since: int, heap: list[tuple[int, int, Request]]) -> tuple[int, int] | None:
        """Schedule the next request or conversation, relative to an instant."""
        if self._row is None:
            return None
        number, request = self._row
        heapq.heappush(heap, (since + request.arrival, number, request))
        self._row = next(self._rows, None)
        while self._row is not None and self._row[1].after >= 0:
            self._turns[self._row[1].after] = self._row
            self._row = next(self._rows, None)
        return since + request.arrival, number
