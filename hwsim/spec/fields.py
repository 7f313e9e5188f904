"""Fields of schemas (frozen dataclasses) with a description and bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

from hwsim.spec.mistakes import NOWHERE

_NONE_GIVEN: Final = dataclasses.MISSING


def field(
    doc: str,
    *,
    default: Any = _NONE_GIVEN,
    default_factory: Callable[[], Any] | Any = _NONE_GIVEN,
    key: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive_minimum: float | None = None,
    one_or_many: bool = False,
    choices: Iterable[str] | None = None,
    example: str | None = None,
    record: str | None = None,
    doubted: bool = True,
    kw_only: bool | Any = _NONE_GIVEN,
) -> Any:
    """Return a dataclass field with metadata for decoding and documentation.

    Args:
        doc: description in one line.
        default, default_factory: default value; without either, the key is required.
        key: key in the file, if it differs from the field's name (`return`).
        minimum, maximum, exclusive_minimum: bounds in SI units, for the number or every number of a tuple.
            A field with a unit cannot be negative unless its minimum is below zero.
        one_or_many: for `tuple[X, ...]`: whether a single X is accepted for a tuple of one.
        choices: for `str`: accepted texts.
        example: value that the documentation shows.
        record: reason why no result depends on the value; every other key changes a result, warns or is refused.
        doubted: whether results include the uncertainty of the number, if they do for its class (`doubts_of`); False: a stated
            uncertainty is refused.
        kw_only: whether the field is keyword-only, as in a base of classes with required fields.
    """
    options = {
        "key": key,
        "minimum": minimum,
        "maximum": maximum,
        "exclusive_minimum": exclusive_minimum,
        "one_or_many": one_or_many or None,
        "choices": tuple(choices) if choices is not None else None,
        "example": example,
        "record": record,
        "doubted": None if doubted else False,
    }
    metadata = {"doc": doc, **{name: value for name, value in options.items() if value is not None}}
    if default_factory is not _NONE_GIVEN:
        return dataclasses.field(default_factory=default_factory, metadata=metadata, kw_only=kw_only)
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def place_field() -> Any:
    """Return a field of type Place that `decode` sets to the place of the mapping, for later mistakes."""
    return dataclasses.field(default=NOWHERE, compare=False, repr=False, kw_only=True)
