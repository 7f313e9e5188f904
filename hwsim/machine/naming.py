"""How names are ordered, joined and listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SHOWN: Final = 8


class UnknownName(ValueError):
    """A name that nothing has, or that several have where one is needed."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def listed(names: Sequence[str]) -> str:
    """The names in words, the middle of a long list left out.

    >>> listed(["gpu0", "gpu1"]), listed([f"gpu{n}" for n in range(100)])
    ('gpu0, gpu1', 'gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, ..., gpu99')
    """
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return ", ".join([*names[: _SHOWN - 2], "...", names[-1]])


def below(scope: str, name: str) -> str:
    """The full name of what a scope calls `name`."""
    return f"{scope}.{name}" if scope else name
