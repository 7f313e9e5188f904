"""Decoding: a schema gets what it asks for, or every reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from hwsim.spec import Mistakes, Place, SpecError, Tree, decode, decode_value, field, place_field, read_text, substitute, tree_of
from hwsim.units import Bytes, BytesPerSecond, Hertz, Quantity, Ratio, Seconds, UnitError, parse
from tests.each import each


@dataclass(frozen=True, slots=True)
class Memory:
    size: Bytes = field("how much it holds", exclusive_minimum=0)
    efficiency: Ratio = field("sustained / peak", default=1.0)


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing to decode."""

    kind: ClassVar[str] = "thing"
    bandwidth: BytesPerSecond = field("peak, per direction")
    latency: Seconds = field("time of zero bytes", default=0.0)
    clock: Hertz | None = field("clock", default=None)
    cores: int = field("cores", default=1, minimum=1, maximum=1024)
    factor: float = field("a factor", default=1.0, minimum=0)
    name: str = field("its name", default="")
    duplex: Literal["full", "half"] = field("directions at once", default="full")
    shared: bool = field("whether others use it", default=False)
    among: tuple[str, ...] = field("who", default=(), one_or_many=True)
    order: tuple[str, ...] = field("in which order", default=())
    between: tuple[str, str] | None = field("two ends", default=None)
    memory: Memory | None = field("its memory", default=None)
    memories: tuple[Memory, ...] = field("several", default=(), one_or_many=True)
    speeds: Mapping[str, BytesPerSecond] = field("by dtype", default_factory=dict)
    ret: Seconds = field("cost of returning", default=0.0, key="return")
    width: int | Literal["auto"] = field("lanes", default="auto")
    algorithm: str | Mapping[str, str] = field("which", default="ring")
    rest: Tree | None = field("kept as it stands", default=None)
    shift: Seconds = field("earlier or later", default=0.0, minimum=-1.0)
    place: Place = place_field()


def thing(text: str, **options: Any) -> Thing:
    mistakes = Mistakes()
    found = decode(read_text(text, "f.yaml"), Thing, mistakes, **options)
    mistakes.raise_if_any()
    assert found is not None
    return found


def wrong(text: str, **options: Any) -> list[tuple[str, str, str | None]]:
    with pytest.raises(SpecError) as caught:
        thing(text, **options)
    return [(str(mistake.place).removeprefix("f.yaml:"), mistake.message, mistake.hint) for mistake in caught.value.mistakes]


FULL = """
bandwidth: 16 GB/s
latency: 500 ns
clock: 2.5 GHz
cores: 24
factor: 1.5
name: a thing
duplex: half
shared: true
among: gpu*
order: [a, b]
between: [cpu, gpu]
memory: {size: 64 GiB, efficiency: 95 %}
memories: {size: 1 GB}
speeds: {fp16: 1 TB/s, fp32: 0.5 TB/s}
return: 8 us
width: auto
algorithm: {big: ring}
rest: [1, {x: 2}]
shift: -1 ms
"""


def test_every_kind_of_field_is_read() -> None:
    found = thing(FULL)
    assert found == Thing(
        16e9,
        5e-7,
        2.5e9,
        24,
        1.5,
        "a thing",
        "half",
        True,
        ("gpu*",),
        ("a", "b"),
        ("cpu", "gpu"),
        Memory(68719476736.0, 0.95),
        (Memory(1e9),),
        {"fp16": 1e12, "fp32": 5e11},
        8e-6,
        "auto",
        {"big": "ring"},
        found.rest,
        -1e-3,
    )
    assert found.rest.plain() == [1, {"x": 2}]
    assert str(found.place) == "f.yaml:2:1"


def test_defaults_hold_for_what_is_not_written() -> None:
    assert thing("bandwidth: 1 GB/s") == Thing(1e9)


def test_null_is_nothing_only_where_nothing_is_allowed() -> None:
    assert thing("bandwidth: 1 GB/s\nclock:\nmemory: null\n").clock is None
    assert wrong("bandwidth: 1 GB/s\ncores:\n")[0][:2] == ("2:1", "'cores' has no value")
    assert wrong("bandwidth:\n")[0] == ("1:1", "'bandwidth' has no value", "peak, per direction: a bandwidth, such as '16 GB/s'")


@each(
    ("line", "column", "message", "hint"),
    [
        ("banwidth: 1 GB/s", 1, "unknown key 'banwidth' in thing", "did you mean 'bandwidth'?"),
        ("ret: 1 s", 1, "unknown key 'ret' in thing", "did you mean 'rest'?"),
        ("latency: 5", 10, "5 has no unit: a time is needed, such as '5 us'", None),
        ("latency: 5 sec", 10, "'5 sec' is not a time: unknown unit 'sec'", "did you mean 's'?"),
        ("latency: 5 MB", 10, "'5 MB' is a size, but a time is needed here", None),
        ("latency: -5 us", 10, "'-5 us' cannot be negative", None),
        ("latency: true", 10, "true is not a time", "such as '10 us'"),
        ("latency: {v: 5 us}", 10, "expected a number, got a mapping", "a number with a source is {value: ..., source: ...}"),
        ("latency: {value: 5 us, surce: x}", 24, "unknown key 'surce' next to `value`", "did you mean 'source'?"),
        ("shift: -2 s", 8, "'-2 s' is below the minimum of -1.00 s", None),
        ("cores: 0", 8, "0 is below the minimum of 1", None),
        ("cores: 2000", 8, "2000 is above the maximum of 1024", None),
        ("cores: 1.5", 8, "1.5 is not a whole number", None),
        ("cores: 1e40", 8, "1e+40 is too large", None),
        ("cores: true", 8, "true is not a whole number", None),
        ("cores: '8'", 8, "'8' is not a whole number", "write 8 without quotes"),
        ("cores: 017", 8, "'017' is not a whole number", "write 17 (or 0o... for octal)"),
        ("cores: 1_000", 8, "'1_000' is not a whole number", "write 1000"),
        ("factor: fast", 9, "'fast' is not a number", None),
        ("factor: -1", 9, "-1 cannot be negative", None),
        ("name: 8", 7, "8 is not a text", "put it in quotes"),
        ("duplex: ful", 9, "'ful' is not one of full, half", "did you mean 'full'?"),
        ("shared: yes", 9, "'yes' is not true or false", "write true"),
        ("among: 8", 8, "8 is not a text", "put it in quotes"),
        ("order: a", 8, "expected a list, got 'a'", "write [a]"),
        ("between: [a]", 10, "expected a list of 2, got a list of 1", None),
        ("memory: {size: 0 B}", 16, "'0 B' must be more than 0", None),
        ("memory: {size: 1 GB, efficiency: 95}", 34, "95 is above the maximum of 100 %", "did you mean '95 %'?"),
        ("memory: {efficiency: 95 %}", 9, "'size' is missing", "how much it holds: a size, such as '160 MB'"),
        ("memory: 64 GiB", 9, "expected a mapping for memory, got '64 GiB'", "its keys: size, efficiency"),
        ("speeds: {fp16: 1}", 16, "1 has no unit: a bandwidth is needed, such as '1 GB/s'", None),
        ("speeds: 1 GB/s", 9, "expected a mapping, got '1 GB/s'", "from names to a bandwidth, such as '16 GB/s'"),
        ("width: wide", 8, "'wide' is not a whole number or 'auto'", None),
        ("algorithm: [a]", 12, "a list is not a text or a mapping from names, each a text", None),
    ],
)
def test_each_mistake_has_its_place_and_its_words(line: str, column: int, message: str, hint: str | None) -> None:
    assert wrong(f"bandwidth: 16 GB/s\n{line}\n") == [(f"2:{column}", message, hint)]


def test_all_mistakes_come_at_once() -> None:
    found = wrong("latency: 5\ncores: 0\nmemory: {size: 5 s, speed: 1}\nwidht: 3\n")
    assert [mistake[0] for mistake in found] == ["1:1", "1:10", "2:8", "3:16", "3:21", "4:1"]
    assert found[0][1] == "'bandwidth' is missing"


def test_what_is_no_mapping_is_said_to_be_none() -> None:
    assert wrong("[1]")[0][1] == "expected a mapping for thing, got a list"


def test_callers_read_some_keys_themselves() -> None:
    assert thing("kind: thing\nuse: x\nbandwidth: 1 GB/s", ignore=("kind", "use")).bandwidth == 1e9
    assert wrong("kind: thing\nbandwidth: 1 GB/s\n")[0][1] == "unknown key 'kind' in thing"


def test_sources_stand_where_a_file_has_them() -> None:
    text = "bandwidth: {value: 16 GB/s, source: standard, ref: p. 3, ci95: [1, 2], points: 30}\nsource: guess\n"
    text += "memory: {size: 1 GB, ref: x}\n"
    assert thing(text, sourced=True).bandwidth == 16e9
    assert [mistake[1] for mistake in wrong(text)] == ["unknown key 'source' in thing", "unknown key 'ref' in memory"]
    assert thing("bandwidth: 1 GB/s\nwidth: {value: 8, source: standard}\ncores: {value: 8, spread: 0 %}\n").width == 8
    for unsure in (
        "return: {value: 8 us, source: guess}",
        "width: {value: 8, source: guess}",
        "cores: {value: 8, source: guess}",
    ):
        assert wrong(f"bandwidth: 1 GB/s\n{unsure}\n")[0][1] == "no result includes the uncertainty of this number (guess)"


def test_numbers_may_come_worked_out() -> None:
    tree = tree_of(
        {"bandwidth": parse("38.5 GB/s") * 2, "cores": 4.0, "factor": Quantity(2.0, (parse("1 s") / parse("1 s")).dimension)}
    )
    mistakes = Mistakes()
    found = decode(tree, Thing, mistakes)
    assert (found.bandwidth, found.cores, found.factor) == (77e9, 4, 2.0)
    assert isinstance(found.cores, int)
    decode(tree_of({"bandwidth": parse("1 s"), "cores": parse("2 s")}), Thing, mistakes)
    assert [mistake.message for mistake in mistakes] == [
        "1.0 s is a time, but a bandwidth is needed here",
        "1.0 s is a time, but a whole number is needed here".replace("1.0", "2.0"),
    ]


def test_a_parameter_reaches_its_field() -> None:
    mistakes = Mistakes()
    tree = substitute(read_text("bandwidth: $rate * 2\ncores: $n * 2\n"), {"rate": "8 GB/s", "n": 4}, mistakes)
    found = decode(tree, Thing, mistakes)
    mistakes.raise_if_any()
    assert (found.bandwidth, found.cores) == (16e9, 8)


def test_a_single_value_can_be_decoded() -> None:
    mistakes = Mistakes()
    assert decode_value(tree_of("5 us"), Seconds, mistakes) == 5e-6
    assert decode_value(tree_of(["a", "b"]), tuple[str, ...], mistakes) == ("a", "b")
    assert decode_value(tree_of({"a": 1}), Any, mistakes) == {"a": 1}
    assert decode_value(tree_of("x"), int, mistakes) is None
    assert len(mistakes) == 1


@dataclass(frozen=True)
class Picky:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.low < 0:
            raise UnitError("low is below zero", "raise it")


def test_a_class_may_refuse_what_does_not_go_together() -> None:
    mistakes = Mistakes()
    assert decode(read_text("{low: 3, high: 2}"), Picky, mistakes) is None
    assert decode(read_text("{low: -3, high: 2}", "g"), Picky, mistakes) is None
    assert [(mistake.message, mistake.hint) for mistake in mistakes] == [
        ("low is above high", None),
        ("low is below zero", "raise it"),
    ]


@dataclass(frozen=True)
class Loop:
    times: int = 1
    do: tuple[Loop, ...] = ()


def test_a_schema_may_hold_itself() -> None:
    mistakes = Mistakes()
    text = "do: [{times: 2, " * 40 + "}]" * 40
    found = decode(read_text("{" + text + "}"), Loop, mistakes)
    mistakes.raise_if_any()
    for _ in range(40):
        (found,) = found.do
    assert found == Loop(2)
    assert decode(read_text("do: [{do: [{time: 1}]}]"), Loop, mistakes) is None
    assert [str(mistake.place) for mistake in mistakes] == ["<text>:1:13"]


def test_a_schema_that_cannot_be_read_is_a_programmers_error() -> None:
    with pytest.raises(TypeError, match="a schema cannot have"):
        decode_value(tree_of("x"), bytes, Mistakes())


def test_what_an_alias_repeats_is_noted_once_and_refused_each_time() -> None:
    text = "bandwidth: 1 GB/s\nmemory: &m {sise: 1 GB}\nmemories: [*m, *m]\n"
    assert [flaw[:2] for flaw in wrong(text)] == [("2:9", "'size' is missing"), ("2:13", "unknown key 'sise' in memory")]
