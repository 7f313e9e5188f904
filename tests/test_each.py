"""A test of many values fails where any of them does, and names those."""

from __future__ import annotations

import pytest

from tests.each import each


@each(("number", "word"), [(1, "one"), (2, "two"), (3, "three")])
@each("more", [0, 1])
def odd(number: int, word: str, more: int, said: list[str]) -> None:
    said.append(word)
    assert (number + more) % 2


def test_every_value_is_tried_and_those_that_break_are_named() -> None:
    said: list[str] = []
    with pytest.raises(ExceptionGroup, match="3 of 3") as failed:
        odd(said=said)
    assert said == ["one", "one", "two", "two", "three", "three"]
    assert [error.__notes__ for error in failed.value.exceptions] == [
        [f"number, word: {case}"] for case in ((1, "one"), (2, "two"), (3, "three"))
    ]
    assert [error.__notes__ for group in failed.value.exceptions for error in group.exceptions] == [
        ["more: 1"], ["more: 0"], ["more: 1"],
    ]  # fmt: skip
