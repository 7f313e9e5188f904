"""Expectations, ranges and JSON Schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import field, place_field
from hwsim.spec.expectation import parse_expectation
from hwsim.spec.mistakes import Place
from hwsim.spec.ranges import is_range, parse_range
from hwsim.spec.schema import json_schema
from hwsim.units import BANDWIDTH, COUNT, RATE, TIME, Bytes, Dimension, Ratio, Seconds, UnitError, parse_as


@pytest.mark.parametrize(
    ("text", "low", "high", "dimension"),
    [
        ("15 ms +- 1 %", 0.01485, 0.01515, TIME),
        ("15 ms +- 2 ms", 0.013, 0.017, TIME),
        ("15 ms±1%", 0.01485, 0.01515, TIME),
        ("15 ms +/- 1 %", 0.01485, 0.01515, TIME),
        ("at most 2 s", -math.inf, 2, TIME),
        ("at least 400 1/s", 400, math.inf, RATE),
        ("9 ms .. 11 ms", 0.009, 0.011, TIME),
        ("1..3", 1, 3, COUNT),
        ("at  least 16 GB/s", 16e9, math.inf, BANDWIDTH),
        (8, 8, 8, COUNT),
    ],
)
def test_expectations_are_bounds(text: str | int, low: float, high: float, dimension: Dimension) -> None:
    found = parse_expectation(text)
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.dimension == dimension
    assert found.check(low if math.isfinite(low) else high)
    assert not found.check((high if math.isfinite(high) else low) * (2 if math.isfinite(high) else 0.5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("15 ms", "'15 ms' has no tolerance"),
        ("< 2 s", "expected a comparison in words"),
        ("15 ms +- 1 MB", "a time with a tolerance that is a size"),
        ("at most fast", "'fast' is not a quantity"),
        ("3 s .. 1 s", "lower limit of '3 s .. 1 s' is above the upper limit"),
        ("1 s .. 1 MB", "goes from a time to a size"),
        ("15 ms +- -1 %", "a negative tolerance"),
        (1.5, "1.5 has no tolerance"),
        (True, "True has no tolerance"),
        ("", "has no tolerance"),
        ("15 ms +- 1 sec", "unknown unit 'sec'"),
    ],
)
def test_what_is_no_expectation_is_said(text: object, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_expectation(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..4", (1, 2, 3, 4)),
        ("1..512:x2", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
        ("16..100:x2", (16, 32, 64)),
        ("0..32:+8", (0, 8, 16, 24, 32)),
        ("1 MB..8 MB:x2", (1e6, 2e6, 4e6, 8e6)),
        ("7..7", (7,)),
        ("1..2:x1.5", (1.0, 1.5)),
    ],
)
def test_ranges_are_values(text: str, values: tuple[float, ...]) -> None:
    found = parse_range(text).values()
    assert found == pytest.approx(values)
    assert all(type(a) is type(b) for a, b in zip(found, values, strict=True) if isinstance(b, int))


def test_a_logarithmic_range_has_as_many_points_as_asked() -> None:
    found = parse_range("1..512:log").values(10)
    assert found == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    assert parse_range("1 MB..1 GB:log").values(4) == pytest.approx((1e6, 1e7, 1e8, 1e9))
    assert parse_range("1..4:log").values(10) == (1, 2, 3, 4)
    assert parse_range("2..9:log").values(1) == (9,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1-4", "is not a range"),
        ("4..1", "the lower limit of '4..1' is above the upper limit"),
        ("0..4:x2", "must be above 0"),
        ("1..4:x1", "must be more than 1"),
        ("1..4:y2", "is not a range"),
        ("1..1e9", "more than 100,000 values"),
        ("1 s..1 MB:x2", "from a time to a size"),
        ("1..8 MB:x2", "has no unit"),
        ("1 MB..8 MB", "has no step"),
        ("1..4:+0", "must be positive and have the unit"),
        ("1..4:+1 s", "must be positive and have the unit"),
        ("gpu0..3", "is not a quantity"),
        ("0..4:log", "must be above 0"),
        ("1..1e300:x1.0000001", "more than"),
    ],
)
def test_what_is_no_range_is_said(text: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_range(text)
    assert message in caught.value.message


def test_names_are_not_ranges() -> None:
    assert is_range("1..512")
    assert is_range("1 MB..2 MB:x2")
    assert not any(map(is_range, ("gpu0..3", "ring", 8, None, "node0..95.gpu*")))


@given(st.integers(1, 1000), st.integers(0, 1000), st.sampled_from(["", ":x2", ":log", ":+3"]))
def test_ranges_stay_inside_and_grow(low: int, more: int, how: str) -> None:
    found = parse_range(f"{low}..{low + more}{how}").values()
    assert found[0] >= low
    assert found[-1] <= low + more
    assert all(a < b for a, b in pairwise(found))


@dataclass(frozen=True)
class Inner:
    """Something inside."""

    size: Bytes = field("how much")
    again: Inner | None = field("one more", default=None)


@dataclass(frozen=True)
class Outer:
    """Something to describe.

    At length.
    """

    latency: Seconds = field("time of zero bytes", example="100 ns")
    share: Ratio = field("how much of it", default=1.0)
    count: int = field("how many", default=1, minimum=1)
    mode: Literal["a", "b"] = field("which", default="a")
    inner: Inner | None = field("inside", default=None)
    names: tuple[str, ...] = field("who", default=(), one_or_many=True)
    speeds: Mapping[str, float] = field("by dtype", default_factory=dict)
    ret: bool = field("whether it returns", default=True, key="return")
    place: Place = place_field()


def test_a_schema_describes_its_class() -> None:
    found = json.loads(json.dumps(json_schema(Outer, header="machine/1", ignore={"kind": {"type": "string"}}, sourced=True)))
    assert found["required"] == ["hwsim", "latency"]
    assert list(found["properties"])[:3] == ["hwsim", "kind", "latency"]
    assert found["description"] == "Something to describe."
    assert found["additionalProperties"] is False
    assert found["properties"]["return"]["description"] == "whether it returns"
    assert found["properties"]["count"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert found["properties"]["count"]["default"] == 1
    assert found["properties"]["latency"]["examples"] == ["100 ns"]
    assert found["$defs"]["Inner"]["properties"]["again"]["anyOf"][0] == {"$ref": "#/$defs/Inner"}
    assert "place" not in found["properties"]
    assert "source" in found["properties"]


def test_a_schema_asks_for_units() -> None:
    text = json_schema(Outer)["properties"]["latency"]["anyOf"][0]
    for good in ("100 ns", "1e-3 s", "$t", "$n * 3 s"):
        assert re.search(text["pattern"], good)
    for bad in ("100", "1e9", "-.5", "fast"):
        assert not re.search(text["pattern"], bad)
    assert parse_as(text["examples"][0], TIME) > 0
