"""Parameters and arithmetic: exactly this much, and nothing that can run or blow up."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import ExpressionError, Mistakes, evaluate, expression, parameters, read_text, substitute
from hwsim.units import Quantity, UnitError, parse

NAMES: dict[str, Any] = {
    "n": 1000,
    "batch": 64,
    "size": "110 kB",
    "time": "30 min",
    "algorithm": "ring",
    "block": False,
    "half": 0.5,
    "rank": 3,
    "ranks": 4,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$n", 1000),
        ("$algorithm", "ring"),
        ("$size", "110 kB"),
        ("$block", False),
        ("$n * 2", 2000),
        ("2 + 3 * $batch", 194),
        ("(2 + 3) * $batch", 320),
        ("$n / 8", 125.0),
        ("$n // 300", 3),
        ("$n % 300", 100),
        ("$n mod 300", 100),
        ("-$n + 1", -999),
        ("--$n", 1000),
        ("($rank + 1) mod $ranks", 0),
        ("($rank - 1) mod $ranks", 2),
        ("ceil($n / 300)", 4),
        ("floor($n/300)", 3),
        ("round($half * 5)", 2),
        ("min($n, $batch, 100)", 64),
        ("max($n, $batch)", 1000),
        ("$n * 1e3", 1e6),
        ("$n / 10 / 10", 10.0),
        ("50 % * $n", 500.0),
        ("$n * 50 %", 500.0),
        ("7 // 2 * $rank", 9),
    ],
)
def test_arithmetic_is_what_it_looks_like(text: str, value: object) -> None:
    found = evaluate(text, NAMES)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$batch * 38.5 MB", "2464 MB"),
        ("$size * $batch", "7.04 MB"),
        ("$size / 2", "55 kB"),
        ("$size + 1 kB", "111 kB"),
        ("$size / 1 s", "110 kB/s"),
        ("3 GB/s * 2 s", "6 GB"),
        ("min($size, 1 MB)", "110 kB"),
        ("$time + 30 min", "1 h"),
        ("1 h - $time", "30 min"),
        ("$size mod 100 kB", "10 kB"),
        ("2 * 3 us/km * 1 km", "6 us"),
        ("-$time", "-30 min"),
    ],
)
def test_units_are_kept(text: str, value: str) -> None:
    found, wanted = evaluate(text, NAMES), parse(value)
    assert isinstance(found, Quantity)
    assert found.dimension == wanted.dimension
    assert found.value == pytest.approx(wanted.value)


def test_units_that_cancel_leave_a_number() -> None:
    assert evaluate("$time / 1 min", NAMES) == pytest.approx(30)
    assert evaluate("ceil($size / 4 kB)", NAMES) == 28
    assert evaluate("$size // 4 kB", NAMES) == 27


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$m", "unknown parameter '$m'"),
        ("$n +", "is incomplete"),
        ("$n )", "')' is out of place"),
        ("($n", "')' is missing"),
        ("$n ** 2", "'*' is out of place"),
        ("$n . x", "unexpected '. x'"),
        ("__import__('os') + $n", "unexpected|out of place"),
        ("$n[0]", "unexpected"),
        ("$n + 1 s", "cannot be added"),
        ("$n * 3 bananas", "unknown unit"),
        ("$algorithm + 1", "'ring' is not a quantity"),
        ("$block + 1", "'$block' is not a number"),
        ("ceil(1 s * $n)", "one number without a unit"),
        ("min()", "not an expression"),
        ("layer $n", "'layer' is out of place"),
        ("(" * 100 + "$n" + ")" * 100, "nested more than 40"),
        ("$n" + " + 1" * 200, "more than 500 characters"),
        ("10 s // $n", "numbers without units"),
        ("$5", "unexpected"),
    ],
)
def test_what_is_no_expression_is_said(text: str, message: str) -> None:
    with pytest.raises((ExpressionError, UnitError)) as caught:
        evaluate(text, NAMES)
    assert any(phrase in str(caught.value) for phrase in message.split("|"))


def substituted(text: str, names: dict[str, Any] | None = None) -> tuple[Any, list[tuple[str, str]]]:
    mistakes = Mistakes()
    found = substitute(read_text(text, "f"), NAMES if names is None else names, mistakes)
    return found.plain(), [(str(mistake.place), mistake.message) for mistake in mistakes]


def test_parameters_are_put_in_everywhere() -> None:
    assert substituted("a: $n\nb: [$batch, {c: $n * 2}]\nd: x\n") == ({"a": 1000, "b": [64, {"c": 2000}], "d": "x"}, [])


def test_a_dollar_can_be_written() -> None:
    assert substituted("a: costs $$5\nb: $$n\nc: a $ b\n") == ({"a": "costs $5", "b": "$n", "c": "a $ b"}, [])


def test_what_a_rank_only_knows_is_left_for_later() -> None:
    found, wrong = substituted("a: $self\nb: ($rank + $k) mod $ranks\nc: $ranks * $size\n", {"k": 2, "size": "4 MB"})
    assert not wrong
    assert found["a"] == "$self"
    assert evaluate(found["b"], {"rank": 3, "ranks": 4}) == 1
    assert evaluate(found["c"], {"ranks": 4}) == parse("16 MB")


def test_mistakes_in_expressions_have_places() -> None:
    _, wrong = substituted("a: $m\nb: 1\nc: [x, $n / 0]\nd: $n + 1 s\ne: ($rank + ) mod $ranks\nf: $n * 1e308 * 1e308\n")
    assert [mistake[0] for mistake in wrong] == ["f:1:4", "f:3:8", "f:4:4", "f:5:4", "f:6:4"]
    assert wrong[1][1] == "'$n / 0' divides by zero"
    assert wrong[4][1] == "'$n * 1e308 * 1e308' is too large to be a number"


def let(text: str, given: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    mistakes = Mistakes()
    found = parameters(read_text(text, "f"), mistakes, given)
    return {key: value.plain() if hasattr(value, "plain") else value for key, value in found.items()}, [
        mistake.message for mistake in mistakes
    ]


def test_parameters_may_be_made_of_others_in_any_order() -> None:
    assert let("total: $batch * $n\nbatch: 64\nn: 2\nlist: [$n, 3]\n") == (
        {"batch": 64, "n": 2, "total": 128, "list": [2, 3]},
        [],
    )
    assert let("n: 2\nm: $n\n", {"n": 5}) == ({"n": 5, "m": 5}, [])


def test_parameters_in_a_circle_are_refused() -> None:
    assert let("a: $b\nb: $c\nc: $a\nd: 1\n")[1] == [f"parameter '{name}' is part of a cycle: a, b, c" for name in "abc"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank: 3", "the parameter name 'rank' is reserved ($rank)"),
        ("a-b: 3", "'a-b' is not a valid parameter name: use letters, digits and _"),
        ("[1]", "`let`: expected a mapping from names to values, got a list"),
    ],
)
def test_names_of_parameters_are_words(text: str, message: str) -> None:
    assert let(text)[1] == [message]


def test_numbers_cannot_be_made_to_explode() -> None:
    text = "a0: 1000000000000000000000000000000\n" + "".join(f"a{i + 1}: $a{i} * $a{i}\n" for i in range(40))
    assert any("too large" in message for message in let(text)[1])


def test_lists_cannot_be_made_to_explode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "MAX_NODES", 10_000)
    text = "a0: [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i + 1}: [{', '.join([f'$a{i}'] * 10)}]\n" for i in range(30))
    assert "the file exceeds 10,000 values or 100 levels with its parameters" in let(text)[1]
    text = "a0: [x]\n" + "".join(f"a{i + 1}: [$a{i}]\n" for i in range(300))
    assert "the file exceeds 10,000 values or 100 levels with its parameters" in let(text)[1]


@given(st.text(alphabet="$nabc0123456789.+-*/%() ,smodGBMi", max_size=25))
def test_any_text_is_a_value_or_a_mistake(text: str) -> None:
    try:
        found = evaluate(text, {"n": 3, "a": "5 MB"})
    except (ExpressionError, UnitError, ZeroDivisionError, OverflowError):
        return
    assert isinstance(found, str | int | float | Quantity)
    assert math.isfinite(found.value if isinstance(found, Quantity) else float(found))


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner)


@given(st.recursive(st.integers(0, 50).map(str), _joined, max_leaves=12))
def test_whole_numbers_are_worked_out_as_python_does(text: str) -> None:
    assert evaluate(text + " + $zero", {"zero": 0}) == eval(text)


@given(st.integers(-100, 100), st.integers(1, 20))
def test_mod_is_never_negative(a: int, b: int) -> None:
    assert evaluate("$a mod $b", {"a": a, "b": b}) == a % b
