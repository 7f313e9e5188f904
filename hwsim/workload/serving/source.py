"""Where requests come from while a service runs: in an order of their own, or after the answers to earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from hwsim.workload.serving.requests import Request


class Source(Protocol):
    """Requests as they come."""

    def time(self) -> int | None:
        """When the next request comes, fs; None: none does, as far as is known now."""

    def take(self) -> tuple[int, Request]:
        """That request, and its number."""

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
        """That request, and its number."""
        assert self._next is not None
        found, self._next = self._next, next(self._requests, None)
        self._number += 1
        return self._number, found

    def ended(self, number: int, at: int) -> None:
        """Nobody waits for it to ask again."""
