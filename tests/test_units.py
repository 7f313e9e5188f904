"""Units: every expectation here is computed without the table it tests."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import units
from hwsim.formats import format_quantity
from hwsim.units import (
    BANDWIDTH,
    COUNT,
    DATA_RATE,
    ENERGY,
    FREQUENCY,
    RATE,
    RATIO,
    SIZE,
    SPEED,
    TIME,
    TRANSFERS,
    Dimension,
    Quantity,
    UnitError,
    parse,
    parse_as,
    suggest_unit,
)
from tests.each import each

NAMED = [var for var in vars(units).values() if isinstance(var, Dimension)]


@each(
    ("text", "value", "unit"),
    [
        ("12 µs", 1.2e-5, "s"),
        ("3 fs", 3e-15, "s"),
        ("30 min", 1800, "s"),
        ("50000 h", 180_000_000, "s"),
        ("14 day", 1_209_600, "s"),
        ("1e3s", 1000, "s"),
        (".5 s", 0.5, "s"),
        ("5. s", 5, "s"),
        ("64 KiB", 65536, "B"),
        ("80 GiB", 85899345920, "B"),
        ("1 PiB", 2**50, "B"),
        ("1 EB", 10**18, "B"),
        ("1EB", 10**18, "B"),
        ("8 b", 1, "B"),
        ("8 kbit", 1000, "B"),
        ("1 Kib", 128, "B"),
        ("1 Mibit", 131072, "B"),
        ("16 GB/s", 16e9, "B/s"),
        ("400 Gb/s", 50e9, "B/s"),
        ("25 Gbit/s", 3.125e9, "B/s"),
        ("60 MB/min", 1e6, "B/s"),
        ("16 GB / s", 16e9, "B/s"),
        ("640 GFLOP", 640e9, "FLOP"),
        ("1979 TOP/s", 1979e12, "FLOP/s"),
        ("500 kIOPS", 500_000, "1/s"),
        ("4 1/s", 4, "1/s"),
        ("120 1/min", 2, "1/s"),
        ("2.5 GHz", 2.5e9, "1/s"),
        ("7200 rpm", 120, "1/s"),
        ("16 GT/s", 16e9, "T/s"),
        ("700 W", 700, "J/s"),
        ("3 kWh", 10_800_000, "J"),
        ("2 pJ", 2e-12, "J"),
        ("4 pJ/b", 3.2e-11, "J/B"),
        ("6000 USD", 6000, "USD"),
        ("3.6 USD/h", 0.001, "USD/s"),
        ("10000 km", 1e7, "m"),
        ("5 cm", 0.05, "m"),
        ("5 us/km", 5e-9, "s/m"),
        ("95 %", 0.95, "1"),
        ("8", 8, "1"),
        ("-3", -3, "1"),
        ("1e9", 1e9, "1"),
    ],
)
def test_a_text_is_the_quantity_it_says(text: str, value: float, unit: str) -> None:
    found = parse(text)
    assert found.value == pytest.approx(value, rel=1e-15)
    wanted = {"J/s": "W", "1": "1"}.get(unit, unit)
    assert found.dimension.unit == wanted


@pytest.mark.parametrize("number", ["0.1", "100", "7", "1.7", "333", "0.3"])
def test_decimal_prefixes_are_rounded_once(number: str) -> None:
    for prefix, power in (("m", -3), ("u", -6), ("n", -9), ("p", -12)):
        assert parse_as(f"{number} {prefix}s", TIME) == float(f"{number}e{power}")
    for prefix, power in (("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)):
        assert parse_as(f"{number} {prefix}B", SIZE) == float(f"{number}e{power}")


@each(
    ("text", "dimension", "message", "hint"),
    [
        ("16 GBps", BANDWIDTH, "'16 GBps' is not a bandwidth: unknown unit 'GBps'", "did you mean 'GB/s'?"),
        ("16 Gbps", BANDWIDTH, "'16 Gbps' is not a bandwidth: unknown unit 'Gbps'", "did you mean 'Gb/s'?"),
        ("16 gb/s", BANDWIDTH, "'16 gb/s' is not a bandwidth: unknown unit 'gb/s'", "did you mean 'Gb/s'?"),
        ("16 GiBps", BANDWIDTH, "'16 GiBps' is not a bandwidth: unknown unit 'GiBps'", "did you mean 'GiB/s'?"),
        ("64 KB", SIZE, "'64 KB' is not a size: unknown unit 'KB'", "did you mean 'kB' or 'KiB'?"),
        ("64 Kb", SIZE, "'64 Kb' is not a size: unknown unit 'Kb'", "did you mean 'kb' or 'Kib'?"),
        ("5 sec", TIME, "'5 sec' is not a time: unknown unit 'sec'", "did you mean 's'?"),
        ("5 MS", TIME, "'5 MS' is not a time: unknown unit 'MS'", "did you mean 'ms'?"),
        ("12 TFLOPS", SPEED, "'12 TFLOPS' is not a speed: unknown unit 'TFLOPS'", "did you mean 'TFLOP/s'?"),
        ("5 bananas", TIME, "'5 bananas' is not a time: unknown unit 'bananas'", "write it as in '10 us'"),
        ("50,000 B", SIZE, "'50,000 B' is not a size", "write digits without separators, such as 50000"),
        ("fast", TIME, "'fast' is not a time", "write a number and its unit, such as '10 us'"),
        ("160 MB", BANDWIDTH, "'160 MB' is a size, but a bandwidth is needed here", "did you mean '160 MB/s'?"),
        ("3 Gb", BANDWIDTH, "'3 Gb' is a size, but a bandwidth is needed here", "did you mean '3 Gb/s' (bits) or '3 GB/s'?"),
        ("10", DATA_RATE, "10 has no unit: a bandwidth is needed, such as '10 Gb/s'", None),
        ("16 GB/s", SIZE, "'16 GB/s' is a bandwidth, but a size is needed here", None),
        ("16", BANDWIDTH, "16 has no unit: a bandwidth is needed, such as '16 GB/s'", None),
        (16, BANDWIDTH, "16 has no unit: a bandwidth is needed, such as '16 GB/s'", None),
        (0, TIME, "0 has no unit: a time is needed, such as '0 us'", None),
        (True, TIME, "True is not a time", None),
        ("50 %", COUNT, "'50 %' is a ratio, but a number is needed here", None),
        ("50 %", TIME, "'50 %' is a number, but a time is needed here", None),
        ("1e400 B", SIZE, "'1e400 B' is too large to be a number", None),
        ("1e-400 s", TIME, "'1e-400 s' is below the smallest float", None),
        (10**400, SIZE, "the number is too large for a float", None),
        (math.nan, COUNT, "nan is not a finite number", None),
        ("nan s", TIME, "'nan s' is not a time", "write a number and its unit, such as '10 us'"),
        ("", TIME, "'' is not a time", "write a number and its unit, such as '10 us'"),
    ],
)
def test_a_wrong_text_is_named_and_righted(text: str | float, dimension: Dimension, message: str, hint: str | None) -> None:
    with pytest.raises(UnitError) as caught:
        parse_as(text, dimension)
    assert caught.value.message == message
    assert caught.value.hint == hint


PREFIXES = ["", "k", "K", "m", "M", "g", "G", "t", "T", "Ki", "Mi", "Gi", "ki", "mi"]
BIT_WORDS = ["b", "bit", "bits", "bps", "b/s", "bit/s", "bits/s"]
BYTE_WORDS = ["B", "Byte", "Bytes", "Bps", "B/s", "B/sec"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_no_hint_goes_from_bit_to_byte_or_back(prefix: str) -> None:
    for word in BIT_WORDS:
        assert not any("B" in hint for hint in suggest_unit(prefix + word)), prefix + word
    for word in BYTE_WORDS:
        assert not any("b" in hint for hint in suggest_unit(prefix + word)), prefix + word


@given(st.text(alphabet="kKMGTmunibBtsphzFLOPWJ/1%", max_size=8), st.sampled_from([None, *NAMED]))
def test_a_hint_is_a_unit_that_works_and_never_changes_bits_to_bytes(unit: str, wanted: Dimension | None) -> None:
    for hint in suggest_unit(unit, wanted) if unit else []:
        found = parse("1 " + hint)
        assert wanted is None or found.dimension.fits(wanted)
        assert not ("b" in unit and "B" not in unit and "B" in hint)
        assert not ("B" in unit and "b" not in unit and "b" in hint)


@given(st.text(max_size=30), st.sampled_from([TIME, BANDWIDTH, RATIO]))
def test_any_text_is_a_quantity_or_a_unit_error(text: str, dimension: Dimension) -> None:
    for wanted in (None, dimension):
        found, message = math.nan, ""
        try:
            found = parse(text).value if wanted is None else parse_as(text, wanted)
        except UnitError as error:
            message = error.message
        assert math.isfinite(found) != bool(message)


UNITS = ["s", "B", "B/s", "FLOP", "FLOP/s", "1/s", "Hz", "IOPS", "T/s", "W", "J", "USD", "USD/h", "m", "%", "1", "kWh", "b/s"]


@given(st.floats(1e-18, 1e21), st.sampled_from(UNITS))
def test_what_is_written_is_read_back(value: float, unit: str) -> None:
    text = format_quantity(value, unit, digits=17)
    assert parse(text).value == pytest.approx(value, rel=1e-14)


@given(st.floats(1e-18, 1e21), st.sampled_from(UNITS), st.integers(2, 6))
def test_rounding_keeps_so_many_digits(value: float, unit: str, digits: int) -> None:
    found = parse(format_quantity(value, unit, digits)).value
    assert found == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
    assert format_quantity(-value, unit, digits) == "-" + format_quantity(value, unit, digits)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.015, "s", "15.0 ms"),
        (0.0999999, "s", "100 ms"),
        (1.5e-13, "s", "150 fs"),
        (0.0, "s", "0 s"),
        (1, "s", "1.00 s"),
        (119, "s", "119 s"),
        (600, "s", "10.0 min"),
        (36000, "s", "10.0 h"),
        (864000, "s", "10.0 day"),
        (16e9, "B/s", "16 GB/s"),
        (999.6, "B", "1 kB"),
        (1, "B", "1 B"),
        (5e20, "FLOP", "500 EFLOP"),
        (0.95, "%", "95 %"),
        (1200, "1", "1200"),
        (1.2 / 3600, "USD/h", "1.2 USD/h"),
        (50e9, "b/s", "400 Gb/s"),
        (math.inf, "s", "inf s"),
        (-0.015, "s", "-15.0 ms"),
        (1e7, "m", "10000 km"),
    ],
)
def test_a_value_is_written_as_people_write_it(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


quantities = st.builds(Quantity, st.floats(1e-6, 1e6), st.sampled_from(NAMED))


@given(quantities, quantities)
def test_products_and_quotients_undo_each_other(a: Quantity, b: Quantity) -> None:
    back = a * b / b
    assert back.value == pytest.approx(a.value)
    assert back.dimension == a.dimension
    assert (a / b * (b / a)).value == pytest.approx(1)
    assert (a / a).dimension is COUNT


@given(quantities, quantities)
def test_only_like_is_added_to_like(a: Quantity, b: Quantity) -> None:
    if a.dimension.fits(b.dimension):
        assert (a + b).value == a.value + b.value == (b + a).value
        assert (a - b + b).value == pytest.approx(a.value, abs=1e-9)
        assert (a < b) == (a.value < b.value)
    else:
        with pytest.raises(UnitError, match="cannot be added"):
            a + b
        with pytest.raises(UnitError):
            a < b  # noqa: B015


@given(quantities)
def test_numbers_scale_and_are_not_added(a: Quantity) -> None:
    assert (2 * a).value == (a + a).value == (a * 2).value
    assert (a / 4).dimension == a.dimension
    assert (1 / a * a).dimension is COUNT
    if not a.dimension.plain:
        with pytest.raises(UnitError):
            a + 1


def test_dimensions_combine() -> None:
    assert (parse("160 MB") / parse("16 GB/s")).dimension is TIME
    assert (parse("160 MB") / parse("16 GB/s")).value == pytest.approx(0.01)
    assert (parse("700 W") * parse("1 h")).dimension is ENERGY
    assert (parse("16 GT/s") * parse("1 s") / parse("1 s")).dimension is TRANSFERS
    assert parse("1 GHz") == Quantity(1e9, FREQUENCY) == Quantity(1e9, RATE)


def test_every_named_dimension_reads_its_own_example() -> None:
    for dimension in NAMED:
        assert math.isfinite(parse_as(dimension.example, dimension))
