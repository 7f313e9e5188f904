"""Files that are no files, or made to hurt: each is refused in words that say what it is."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
import zipfile
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim.graph.files import npz
from hwsim.results.invariants import BrokenInvariant, checked_text
from hwsim.spec import SpecError, read
from hwsim.spec.packed import read_json
from hwsim.workload.unused_keys import OF_A_CALL
from tests import command

LOOP = "hwsim: workload/1\nprogram: [{busy: {device: cpu, time: 1 ms}}]\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_called_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, thing in ((tmp_path / "pipe", "a pipe"), (tmp_path, "a folder"), (Path(os.devnull), "a device or a socket")):
        assert f"'{name}' is {thing}, not a file" in command.hwsim("simulate", "d2l-laptop", name, code=2).stderr


def test_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SpecError, match="standard input is closed"):
        read("-")


@pytest.mark.parametrize("coding", ["utf-32", "utf-16"])
def test_the_coding_of_a_file_is_named(coding: str, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(LOOP, encoding=coding)
    with pytest.raises(SpecError, match=f"the file is {coding.upper()}"):
        read(tmp_path / "w.yaml")


@pytest.mark.parametrize("text", ['"\\e]0;title\\a"', '"\\u202Egnp.exe"', '"\\x07"', '"\\0"'])
def test_no_text_of_a_file_commands_the_terminal(text: str) -> None:
    with pytest.raises(SpecError, match="the control character U"):
        read(LOOP + f"name: {text}\n")


def test_an_unknown_word_in_the_environment_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HWSIM_FAST", "foo")
    with pytest.raises(SpecError, match="HWSIM_FAST: expected one of auto, always, never, got 'foo'"):
        hwsim.simulate("d2l-laptop", LOOP)


def test_json_is_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "m.json.gz"
    file.write_bytes(gzip.compress(b" " * 100_000 + b"{}"))
    assert read_json(file) == {}
    with pytest.raises(SpecError, match="larger than 0 MB uncompressed"):
        read_json(file, most=99_999)


def test_packed_json_is_read_or_refused_wherever_it_is_damaged(tmp_path: Path) -> None:
    file, dice = tmp_path / "m.json.gz", random.Random(1)
    data = gzip.compress(json.dumps({"ops": [{"name": f"op{index}", "s": index / 7} for index in range(50)]}).encode())
    for _ in range(200):
        torn = bytearray(data)
        torn[dice.randrange(len(torn))] ^= 1 << dice.randrange(8)
        file.write_bytes(torn[: dice.choice((len(torn), dice.randrange(len(torn))))])
        with suppress(SpecError):
            read_json(file)


def test_an_archive_that_would_unpack_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "LARGE", 1_000_000)
    file = tmp_path / "bomb.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("tables.npy", "w") as inside:
        header = io.BytesIO()
        import numpy as np

        np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (3_000_000,)})
        inside.write(header.getvalue())
        for _ in range(3):
            inside.write(bytes(1_000_000))
    with pytest.raises(SpecError, match="the file decompresses to 3 MB, more than 50 times its size"):
        hwsim.load_graph(file)


def tables(change: Any, tmp_path: Path) -> Path:
    """An op graph's file, its tables changed."""
    import numpy as np

    run = hwsim.simulate("d2l-4gpu-pcie", "hwsim: workload/1\nprogram: [{copy: {from: cpu, to: gpu0, bytes: 1 MB}}]\n")
    file = hwsim.save_graph(run.timeline.flat.graph, tmp_path / "g.npz")
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    made = json.loads(arrays["tables"].tobytes())
    change(made)
    arrays["tables"] = np.frombuffer(json.dumps(made).encode(), np.uint8)
    np.savez(file, **arrays)
    return file


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("costs", 0, "moved"), [["uplink:cpu->psw", 1e6]]),
        (("costs", 0, "why", 0, "seconds"), "long"),
        (("costs", 0, "why", 0, "inputs"), [{}]),
        (("costs", 0, "demand", "latency"), [1]),
        (("costs", 0, "demand", "latency"), -1.0),
        (("costs", 0, "demand", "amounts"), [["uplink:cpu->psw", 1e6, 3]]),
        (("capacities", 0, "rate"), "16 GB/s"),
        (("capacities", 0, "rate"), 0.0),
        (("labels", 0, "name"), None),
        (("times",), [1 << 70]),
    ],
)
def test_tables_of_an_op_graph_are_checked_value_by_value(path: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    def change(inside: Any) -> None:
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value

    with pytest.raises(SpecError):
        hwsim.simulate("d2l-4gpu-pcie", tables(change, tmp_path))


def test_a_file_of_an_op_graph_that_contradicts_itself_is_the_file_s_mistake(tmp_path: Path) -> None:
    def change(made: Any) -> None:
        for cost in made["costs"]:
            cost["moved"] = [[name, amount * 1e9, unit] for name, amount, unit in cost["moved"]]

    with pytest.raises(SpecError, match="the op graph contradicts itself"):
        hwsim.simulate("d2l-4gpu-pcie", tables(change, tmp_path))


def test_what_a_user_wrote_is_no_contradiction_of_hwsim() -> None:
    workload = {
        "hwsim": "workload/1",
        "name": "-3 s nan s",
        "program": [{"busy": {"name": "-9 ms", "device": "cpu", "time": "1 s"}}],
    }
    assert "-3 s nan s" in str(hwsim.simulate("d2l-laptop", workload))
    with pytest.raises(BrokenInvariant):
        checked_text("it took -3 s", ["-4 s"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "nan is not a finite number"),
        (float("inf"), "inf is not a finite number"),
        (10**5000, "the number has more than 40 digits"),
        ("\x1b]0;title\a", "the control character U"),
        ("\u202egnp.exe", "the control character U"),
        ({"\x07": 1}, "the control character U"),
        ({(1, 2): 1}, "expected a text as key, got tuple"),
    ],
    ids=["nan", "inf", "digits", "title", "direction", "key", "tuple"],
)
def test_data_holds_nothing_that_a_file_may_not_hold(value: object, said: str) -> None:
    for call in (
        lambda: hwsim.simulate("d2l-laptop", {"hwsim": "workload/1", "name": value, "program": []}),
        lambda: hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": value}),
        lambda: hwsim.sweep("d2l-laptop", "d2l/async-loop", {"n": [value]}, workers=1),
    ):
        with pytest.raises(SpecError, match=said):
            call()


def test_data_nested_without_end_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(SpecError, match="nested more than 100 levels deep"):
        hwsim.simulate("d2l-laptop", {"hwsim": "workload/1", "program": circle})


def test_numbers_of_numpy_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    three = hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": 3}, expect=False).makespan_s
    for value in (np.int64(3), np.float32(3)):
        assert hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": value}, expect=False).makespan_s == three
    with pytest.raises(TypeError, match="got Decimal"):
        hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": Decimal(3)})


@pytest.mark.parametrize("given", [3, {1}, None, b"machine"])
def test_what_gives_no_file_is_a_type_error_in_words(given: Any) -> None:
    for call in (hwsim.check, hwsim.latency, hwsim.study, lambda each: hwsim.simulate(each, "d2l/async-loop")):
        with pytest.raises(TypeError, match="expected a library name, a path"):
            call(given)


def test_every_function_takes_a_file_as_text_and_as_data() -> None:
    text, data = LOOP, {"hwsim": "workload/1", "program": [{"busy": {"device": "cpu", "time": "1 ms"}}]}
    assert hwsim.check(text) == hwsim.check(data) == ()
    assert hwsim.show(text) == hwsim.show(data)
    study = {"hwsim": "study/1", "machine": "d2l-laptop", "workload": "d2l/async-loop", "points": {"grid": {"n": [1, 2]}}}
    assert [row.makespan_s for row in hwsim.study(study, workers=1).rows] == [
        row.makespan_s for row in hwsim.study(json.dumps(study) + "\n", workers=1).rows
    ]


@pytest.mark.parametrize("letters", [255, 256, 300, 5000])
def test_a_kind_that_no_folder_can_be_called_by_is_a_mistake_in_the_file(letters: int) -> None:
    machine = f"hwsim: machine/1\nparts: {{gpu: {{kind: {'a' * letters}, use: d2l-gpu}}}}\n"
    with pytest.raises(SpecError):
        hwsim.simulate(machine, "hwsim: workload/1\nprogram: []\n")


@given(
    st.sampled_from(sorted({*OF_A_CALL, "region", "depth", "threads", "remote"})),
    st.sampled_from(["$self", "worker0", "worker*"]),
)
def test_an_op_on_a_machine_inside_is_a_mistake_whatever_its_keys(key: str, place: str) -> None:
    workload = f"hwsim: workload/1\nprogram: {{each: worker*, do: [{{read: {{from: {place}, bytes: 1 MB, {key}: 4}}}}]}}\n"
    with pytest.raises(SpecError):
        hwsim.simulate("d2l-ps-cluster", workload)
