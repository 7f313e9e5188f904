"""Columns of varied paths in tables: numbers in SI with their unit in the heading, whole numbers whole, texts as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.studies.cells import column
from hwsim.studies.sweeps import sweep
from hwsim.studies.table import Sweep
from hwsim.units import parse

MACHINE = "hwsim: machine/1\nclass: ideal\nparts:\n  cpu: {kind: cpu, cores: 4, clock: 3 GHz, memory: {bandwidth: 20 GB/s}}\n"
WORKLOAD = """\
hwsim: workload/1
let: {n: 2, time: 5 us}
program:
  - repeat: {times: $n, do: [{busy: {device: cpu, time: $time}}]}
"""


def found() -> Sweep:
    vary: dict[str, Sequence[object] | str] = {
        "n": [1, 20],
        "time": ["3.25 us", "1 ms"],
        "workload.name": ["a", "2 GB"],
        "machine.cpu.memory.bandwidth": "20 GB/s,25 GB/s",
    }
    return sweep(MACHINE, WORKLOAD, vary, workers=1)


@given(st.lists(st.tuples(st.floats(1e-3, 999), st.sampled_from(["kB", "MB", "GB", "B"])), min_size=1, max_size=4))
def test_quantities_of_one_dimension_are_numbers_in_si(given: list[tuple[float, str]]) -> None:
    values = [f"{number!r} {unit}" for number, unit in given]
    made = column("size", values)
    assert made.heading == "size [B]"
    assert [made.cell(value) for value in values] == [parse(value).value for value in values]


@pytest.mark.parametrize("values", [["1 s", "1 GB"], ["1 s", "x"], ["1 s", 1], [True, 1], [None, 2], ["fp16"], []])
def test_values_of_different_kinds_stay_as_the_file_says_them(values: list[object]) -> None:
    made = column("a", values)
    assert (made.heading, made.kind) == ("a", str)


def test_tables_hold_numbers_whose_unit_stands_above_them() -> None:
    study = found()
    headings = ("n", "time [s]", "workload.name", "machine.cpu.memory.bandwidth [B/s]")
    assert study.columns[:4] == headings
    lines = list(csv.DictReader(io.StringIO(study.to_csv())))
    assert list(lines[0])[:4] == list(headings)
    assert [lines[0][name] for name in headings] == ["1", "3.25e-06", "a", "20000000000.0"]
