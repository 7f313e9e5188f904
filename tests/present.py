"""What a test needs to be there."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """The value, which is there."""
    assert value is not None
    return value
