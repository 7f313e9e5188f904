"""Reading YAML: what is understood, and where exactly each mistake is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import Mistake, SpecError, read, read_bytes, read_text, yaml_parser
from hwsim.spec.yaml_writer import flow
from tests.each import each


def mistakes_of(text: str | bytes) -> tuple[Mistake, ...]:
    with pytest.raises(SpecError) as caught:
        read_bytes(text, "f.yaml") if isinstance(text, bytes) else read_text(text, "f.yaml")
    return caught.value.mistakes


def only(text: str | bytes) -> tuple[str, str, str | None]:
    (mistake,) = mistakes_of(text)
    assert "\n" not in mistake.message
    return str(mistake.place), mistake.message, mistake.hint


@each(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("1e9", 1e9),
        ("1.5e3", 1500.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("017", "017"),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("0", 0),
        ("-8", -8),
        ("+8", 8),
        ("~", None),
        ("null", None),
        ("", None),
        ("=", "="),
        ("'8'", "8"),
        ('"true"', "true"),
        ("''", ""),
        ("gpu*", "gpu*"),
        ("$n", "$n"),
        ("1.2.3", "1.2.3"),
        ("-", None),
        ("0x", "0x"),
        ("1e", "1e"),
        (".", "."),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    if text == "-":
        assert read_text("a: [-1]").plain() == {"a": [-1]}
        return
    found = read_text(f"a: {text}\n").plain()["a"]
    assert found == value
    assert type(found) is type(value)


def test_every_value_knows_where_it_stands() -> None:
    b = read_text("a: 1\nb:\n  - x\n  - {c: 'é', d: 2}\n", "f.yaml").get("b")
    mapping = b.elements()[1]
    assert str(mapping.place) == "f.yaml:4:5"
    assert [str(value.place) for _, value in mapping.items()] == ["f.yaml:4:9", "f.yaml:4:17"]
    assert str(mapping.key_place("d")) == "f.yaml:4:14"


def test_columns_count_characters_not_bytes() -> None:
    assert only("é: ü\nßß: [ü, !x 1]\n")[0] == "f.yaml:2:9"


@each(
    ("text", "place", "message"),
    [
        ("", "f.yaml:1:1", "the file is empty"),
        ("# only a comment\n", "f.yaml:1:1", "the file is empty"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1", "duplicate key 'a' (first in line 1)"),
        ("a: !!python/object:os.system x\n", "f.yaml:1:4", "tags are not supported: '!!python/object:os.system'"),
        ("a: !thing {b: 1}\n", "f.yaml:1:4", "tags are not supported: '!thing'"),
        ("8: a\n", "f.yaml:1:1", "expected a text as key, got 8"),
        ("~: a\n", "f.yaml:1:1", "expected a text as key, got nothing"),
        ("? [a, b]\n: c\n", "f.yaml:1:3", "expected a text as key, got a list"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "f.yaml:3:3", "merge keys ('<<') are not supported"),
        ("a: .nan\n", "f.yaml:1:4", ".nan is not a finite number"),
        ("a: 1e999\n", "f.yaml:1:4", "1e999 is too large to be a number"),
        ("a: " + "9" * 5000, "f.yaml:1:4", "the number has more than 40 digits"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1", "expected one document, but a second document begins here"),
        ("a: &x [*x]\n", "f.yaml:1:8", "the alias '*x' is inside its own anchor"),
        ("a: *gpu\n", "f.yaml:1:4", "there is no anchor '&gpu' before this alias"),
        ("a: [gpu[*], psw]\n", "f.yaml:1:10", "this is not YAML: did not find expected alphabetic or numeric character"),
        ("a:\n\tb: 1\n", "f.yaml:2:1", "this is not YAML: a tab in the indentation"),
        ("a: %5\n", "f.yaml:1:4", "this is not YAML: a text cannot begin with '%'"),
        ("a: @x\n", "f.yaml:1:4", "this is not YAML: a text cannot begin with '@'"),
        ("a: b: c\n", "f.yaml:1:5", "this is not YAML: unexpected ':'"),
        (b"a: \xff\n", "f.yaml:1:4", "the byte 0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), "f.yaml:1:1", "the file is UTF-16"),
        ("a: 1\nb: x\0y\n", "f.yaml:2:5", "a NUL byte does not belong in a text file"),
        ("a: x\x1by\n", "f.yaml:1:5", "the control character U+001B does not belong in a text file"),
        ("a: \ud800\n", "f.yaml:1:4", "the control character U+D800 does not belong in a text file"),
        ("[" * 900, "f.yaml:1:101", "nested more than 100 levels deep"),
        ("".join(" " * i + f"a{i}:\n" for i in range(5000)), "f.yaml:101:101", "nested more than 100 levels deep"),
        ("- " * 300 + "x", "f.yaml:1:201", "nested more than 100 levels deep"),
        (b"a: " + b"x" * 20_000_001, "f.yaml", "the file is larger than 20 MB"),
    ],
)
def test_what_is_not_understood_is_said_with_its_place(text: str | bytes, place: str, message: str) -> None:
    found = only(text)
    assert found[:2] == (place, message)


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "[" * 10**6])
def test_deeper_than_any_reader_of_yaml_goes_is_said_the_same(text: str) -> None:
    assert only(text)[1] == "nested more than 100 levels deep"


def test_hints_say_what_to_do() -> None:
    assert only("a:\n\tb: 1\n")[2] == "indent with spaces"
    assert "in quotes" in (only("a: [gpu[*], psw]\n")[2] or "")
    assert only("8: a\n")[2] == "write '8' in quotes"


def test_all_mistakes_of_a_file_come_at_once_in_order() -> None:
    found = mistakes_of("a: .nan\nb: !x 1\na: 2\n9: 1\n")
    assert [mistake.place.line for mistake in found if mistake.place] == [1, 2, 3, 4]


def test_a_message_shows_the_line_and_a_caret_under_the_column() -> None:
    with pytest.raises(SpecError) as caught:
        read_text("hwsim: machine/1\nparts: {gpu: .nan}\n", "cluster.yaml")
    assert str(caught.value).split("\n") == [
        "cluster.yaml:2:14: .nan is not a finite number",
        "    parts: {gpu: .nan}",
        "                 ^",
    ]


def test_a_long_line_is_cut_around_the_caret() -> None:
    (mistake,) = mistakes_of("a: [" + "1, " * 400 + ".nan, " + "1, " * 400 + "1]\n")
    lines = str(mistake).split("\n")
    assert all(len(line) < 120 for line in lines)
    assert lines[1][lines[2].index("^") :].startswith(".nan")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(20)
)


def test_an_alias_bomb_is_refused() -> None:
    assert only(BOMB)[1] == "more than 1,000,000 values with aliases expanded"


def test_aliases_cannot_nest_beyond_the_limit() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(150))
    assert only(text)[1] == "nested more than 100 levels deep"


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert yaml_parser.MAX_NODES == 1_000_000
    monkeypatch.setattr(yaml_parser, "MAX_NODES", 1000)
    assert only("[" + "1," * 1_001 + "]")[1].startswith("more than 1,000 values")
    assert read_text("[" + "1," * 990 + "]").plain() == [1] * 990


def test_an_alias_repeats_its_anchor() -> None:
    assert read_text("a: &x {b: 1}\nc: [*x, *x]\n").plain() == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


def test_a_byte_order_mark_and_other_line_ends_are_fine() -> None:
    assert read_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "f").plain() == {"a": 1, "b": 2}
    assert str(read_text("a: 1\r\nb: {c: 2}\r\n", "f").key_place("b")) == "f:2:1"


def test_files_that_cannot_be_read_are_mistakes(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.yaml", "the file does not exist"), (tmp_path, "expected a file, got a directory")):
        with pytest.raises(SpecError, match=message):
            read(path)
    with pytest.raises(SpecError, match="cannot be read"):
        read("x\0y")
    with pytest.raises(SpecError, match=r"cannot be read|does not exist"):
        read("x" * 5000)


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    assert read("-").plain() == {"a": 1}


def test_the_pure_python_parser_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwsim.spec.yaml_parser._LOADER", yaml.SafeLoader)
    assert read_text("a: [1, {b: 'x'}]\nc: &d 1e3\ne: *d\n").plain() == {"a": [1, {"b": "x"}], "c": 1000.0, "e": 1000.0}
    assert only("a: 1\na: 2\n")[0] == "f.yaml:2:1"
    assert "nested more than 100" in only("[" * 300)[1]


texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, categories=["L", "N", "P", "S", "Zs"]), max_size=12)
keys = texts.map(lambda text: "k" + text)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(-1e15, 1e15).filter(lambda x: x == 0 or abs(x) > 1e-3)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, min_size=1, max_size=4), st.booleans())
def test_what_yaml_writes_is_read_back(value: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    found = read_text(text).plain()
    again = yaml.safe_load(text)
    assert found == again or _differs_only_as_documented(found, again)


def _differs_only_as_documented(ours: Any, theirs: Any) -> bool:
    """A writer that knows YAML 1.1 may leave 1.2's numbers (`1e9`, `0o17`) without quotes: they are texts to it only."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(_differs_only_as_documented(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_differs_only_as_documented, ours, theirs))
    return bool(ours == theirs) or (isinstance(theirs, str) and isinstance(ours, int | float))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_tree_or_a_spec_error(data: bytes) -> None:
    found: object = ""
    try:
        found = read_bytes(data, "f")
    except SpecError as error:
        found = str(error)
    assert found


def test_the_thousandth_mistake_is_the_last() -> None:
    with pytest.raises(SpecError) as caught:
        read_text("".join(f"a{index}: .nan\n" for index in range(5000)))
    assert len(caught.value.mistakes) == 1000
    assert str(caught.value).endswith("... and 950 more")


SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
    | st.sampled_from(["16 GB/s", "$x", "2024", "1e3", "Null", "=", "<<", "-", "- a", "a: b", "0x1f", ".5", "+.inf"])
)  # fmt: skip
KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)


@given(
    st.recursive(SCALARS, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3), max_leaves=8)
)
def test_a_value_that_is_written_is_read_again(value: Any) -> None:
    assert read_text(f"a: {flow(value)}\nb: [{flow(value)}]\n").plain() == {"a": value, "b": [value]}
