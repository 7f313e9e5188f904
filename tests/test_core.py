"""The compiled library is found, fits or is left alone, and its longest paths are Python's, bit for bit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from ctypes import ArgumentError
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import hatch_build as built
from hwsim import cli, ticks
from hwsim.engine import core, fast, simulate
from hwsim.engine import longest_paths as inorder
from hwsim.engine.compile import compile_flat
from hwsim.engine.fast import uses_compiled_code
from hwsim.engine.longest_paths import _sweep as sweep
from hwsim.engine.longest_paths import longest_path
from hwsim.families.services.actors import rows, station_rows
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph
from tests.command import hwsim
from tests.engine_graphs import graph_of
from tests.strategies import graphs, make_block
from tests.test_inorder import columns, without_arbitration

SOURCES = Path(__file__).resolve().parent.parent / "core" / "src"
installed = pytest.mark.skipif(not core.is_there(), reason=f"nothing to compare Python with: {core.found()}")


# ---------------------------------------------------------------- finding it


@pytest.fixture
def found_anew() -> Iterator[None]:
    for kept in (core.found, fast._warn):
        kept.cache_clear()
    yield
    for kept in (core.found, fast._warn):
        kept.cache_clear()


def test_hwsim_calls_the_library_of_these_sources(update: bool) -> None:
    now = built.hash_of(SOURCES)
    if update:
        home = Path(core.__file__)
        text = re.sub(r'(?m)^SOURCES: Final = "\w+"', f'SOURCES: Final = "{now}"', home.read_text("utf-8"))
        home.write_text(text, encoding="utf-8", newline="\n")
        return
    assert now == core.SOURCES, "see `pytest --update`, and build the library again"
    header = (SOURCES / "hwsim_core.h").read_text("utf-8")
    states = dict(re.findall(r"HWSIM_(\w+) = (\d+)", header))
    assert {name: int(number) for name, number in states.items()} == {name: getattr(core, name) for name in states}


@pytest.mark.usefixtures("found_anew")
@pytest.mark.parametrize("content", [None, "not a library"])
def test_a_library_that_is_missing_or_damaged_is_left_alone(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / core.library().name).write_text(content, "utf-8")
    monkeypatch.setattr(core, "HOME", tmp_path)
    assert not core.is_there()
    assert ("is not a valid library" if content else "without its compiled core") in str(core.found())
    assert not uses_compiled_code(10**9, choice="auto")
    with pytest.warns(RuntimeWarning, match="compiled code is not available, so simulations are slower"):
        uses_compiled_code(10**9, choice="always")
    assert not uses_compiled_code(0, choice="always")  # without a word: warnings are errors here


@installed
@pytest.mark.usefixtures("found_anew")
def test_a_library_of_other_sources_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "SOURCES", "0" * 64)
    assert "built from another version of hwsim" in str(core.found())
    assert not core.is_there()


@installed
@pytest.mark.usefixtures("found_anew")
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.999, "changed", "no hashes"])
def test_part_of_a_library_is_never_loaded(part: float | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full while pip writes leaves a file that ends the process without a word once it is loaded."""
    there = core.library()
    content = there.read_bytes()
    kept = content[: int(len(content) * part)] if isinstance(part, float) else content[:-1] + bytes([content[-1] ^ 1])
    (tmp_path / there.name).write_bytes(content if part == "no hashes" else kept)
    if part != "no hashes":
        (tmp_path / "hashes.txt").write_bytes((core.HOME / "hashes.txt").read_bytes())
    monkeypatch.setattr(core, "HOME", tmp_path)
    assert ("is not a valid library" if part == "no hashes" else "is damaged") in str(core.found())
    assert not uses_compiled_code(10**9, choice="auto")


@installed
def test_columns_of_another_type_are_refused() -> None:
    kernel = core.kernel("hwsim_longest_path", core.INT, core.LONGS, core.INTS, core.INTS, core.LONGS, core.LONGS, core.LONGS)
    none, short = np.zeros(1, np.int64), np.zeros(1, np.int32)
    with pytest.raises(ArgumentError, match="int32"):
        kernel(0, none, none, short, none, none, none)
    with pytest.raises(ArgumentError, match="C_CONTIGUOUS"):
        kernel(0, none, np.zeros(4, np.int32)[::2], short, none, none, none)


# ---------------------------------------------------------------- longest paths


@installed
@settings(max_examples=120, deadline=None)
@given(graphs().map(without_arbitration))
def test_longest_paths(graph: OpGraph) -> None:
    flat = flatten(graph)
    made = compile_flat(flat)
    assert columns(longest_path(flat, made, fast=True)) == columns(longest_path(flat, made))


@installed
@pytest.mark.parametrize(("each", "is_compiled"), [(2**62, True), (2**63 - 1, True), (2**63, False)])
def test_many_queues_are_compiled_however_much_they_do(each: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = 64
    body = replace(make_block([-1] * queues), time=ticks.column([each] * queues))
    swept = []

    def noticed(*given: Any) -> tuple[list[int], list[int]]:
        swept.append(given)
        return sweep(*given)

    monkeypatch.setattr(inorder, "_sweep", noticed)
    timeline = simulate(graph_of(body), fast="always")
    assert set(timeline.end.tolist()) == {each}
    assert (not swept) == is_compiled


@installed
def test_a_longest_path_that_wraps_is_found_again_by_python() -> None:
    body = make_block([-1] * 5, time=[2**62 + 1] * 5, edges=[(op, op + 1, 0) for op in range(4)])
    flat = flatten(graph_of(body))
    timeline = longest_path(flat, compile_flat(flat), fast=True)
    assert timeline.end.tolist() == [(2**62 + 1) * (op + 1) for op in range(5)]


# ---------------------------------------------------------------- columns of services


def test_names_of_columns_are_those_of_the_library() -> None:
    header = (SOURCES / "services" / "rows.h").read_text("utf-8")
    spaces: dict[str, dict[str, int]] = {}
    for space, body in re.findall(r"namespace (\w+) \{\n(.*?)\n\}  // namespace", header.split("FARTHEST", 1)[1], re.DOTALL):
        for listed in re.findall(r"enum [\w: _]+\{(.*?)\}", body, re.DOTALL):
            at = -1
            for name, number in re.findall(r"(\w+)(?: = (\d+))?(?:,|\s|$)", re.sub(r"//.*", "", listed)):
                at = int(number) if number else at + 1
                spaces.setdefault(space, {})[name] = at
        spaces[space].update({name: int(number) for name, number in re.findall(r"(\w+) = (\d+)[,;]", body)})
    for module, own in ((rows, ("step", "service", "strand", "timer", "counts")), (station_rows, ("station", "member"))):
        names = {name: number for space in reversed(own) for name, number in spaces[space].items()}
        mine = {name: number for name, number in vars(module).items() if name.isupper() and isinstance(number, int)}
        assert {name: names.get(name) for name in mine if name not in ("FARTHEST", "LARGEST")} == {
            name: number for name, number in mine.items() if name not in ("FARTHEST", "LARGEST")
        }


# ---------------------------------------------------------------- saying whether it is there


@pytest.mark.usefixtures("found_anew")
def test_doctor_says_whether_it_is_there_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("compiled core: loaded" in hwsim("doctor").output) == core.is_there()
    core.found.cache_clear()
    monkeypatch.setattr(core, "HOME", tmp_path)
    said = hwsim("doctor")
    assert "compiled core: none" in said.output
    assert "hint: install a C++ compiler" in said.output
    told = json.loads(hwsim("doctor", "--json").output)
    assert (told["compiled_core"], told["compiled_core_missing"]) == (False, core.found())


@pytest.mark.usefixtures("found_anew")
@pytest.mark.parametrize(("long", "is_said"), [(0.0, True), (math.inf, False)])
def test_a_long_run_without_it_says_so(long: float, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "HOME", tmp_path)
    monkeypatch.setattr(cli, "LONG", long)
    said = hwsim("simulate", "d2l-laptop", "d2l/async-loop")
    assert said.stderr.count("see `hwsim doctor`") == is_said
