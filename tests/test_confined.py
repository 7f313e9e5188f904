"""Reading confined to folders: a file of a stranger makes hwsim read nothing else, and tell nothing of what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hwsim
from hwsim import api
from hwsim.models.configs.translation import read_config
from hwsim.spec import SpecError, find, read
from hwsim.spec.confined import confined, may_read
from hwsim.studies.session import Session

SECRET = "hunter2: the first line"
LOOP = "hwsim: workload/1\nprogram: [{busy: {device: cpu, time: 1 ms}}]\n"
MACHINE = "hwsim: machine/1\nclass: ideal\nparts: {cpu: {use: d2l-laptop-cpu, kind: cpu}}\n"


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A folder that may be read, and a secret outside of it."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    for name in ("secret.yaml", "secret.json", "secret.txt", "secret.csv", "secret"):
        (outside / name).write_text(SECRET + "\n")
    np.savez(outside / "secret.npz", a=np.zeros(3))
    (inside / "part.yaml").write_text("hwsim: part/1\nkind: gpu\nflop: {fp32: 1 TFLOP/s}\nmemory: {bandwidth: 1 GB/s}\n")
    return inside, outside


def refused(call: Any) -> str:
    with pytest.raises(SpecError) as caught:
        call()
    text = str(caught.value)
    assert "hunter2" not in text
    return text


@pytest.mark.parametrize(
    "name", ["OUT/secret.yaml", "OUT/secret.json", "IN/../outside/secret.yaml", "IN/link.yaml", "OUT/none.yaml"]
)
@pytest.mark.parametrize(
    "text",
    [
        "use: NAME",
        "parts: {gpu: {kind: gpu, use: NAME}}",
        "let: {x: NAME}\nparts: {gpu: {kind: gpu, use: $x}}",
        "parts: {}\ncollectives: {use: NAME}",
    ],
)
def test_a_machine_uses_no_file_outside(places: tuple[Path, Path], text: str, name: str) -> None:
    inside, outside = places
    (inside / "link.yaml").symlink_to(outside / "secret.yaml")
    name = name.replace("OUT", str(outside)).replace("IN", str(inside))
    given = f"hwsim: machine/1\n{text.replace('NAME', name)}\n"
    assert "lies outside" in refused(lambda: Session(given, LOOP, roots=[inside]).run())


@pytest.mark.parametrize(
    "text",
    [
        "train: {model: OUT/secret.json, gpus: 1, global_batch: 8, dtype: fp16}",
        "train: {model: OUT/secret.yaml, gpus: 1, global_batch: 8, dtype: fp16}",
        "train: {model: resnet-50, gpus: 1, global_batch: 8, dtype: fp16, framework: {use: OUT/secret.yaml}}",
        "program: [{busy: {device: cpu0, time: 1 ms}}]\nruntime: {use: OUT/secret.yaml}",
        "infer: {model: gpt2, dtype: fp16, framework: vllm, arrivals: {trace: OUT/secret.csv}}",
        "requests: 4\nservices: {a: {device: cpu0, arrivals: {every: 1 s}, request: [{busy: {time: {values: OUT/secret.txt}}}]}}",
    ],
)
def test_a_workload_reads_no_data_outside(places: tuple[Path, Path], text: str) -> None:
    inside, outside = places
    given = "hwsim: workload/1\n" + text.replace("OUT", str(outside)) + "\n"
    assert "lies outside" in refused(lambda: Session("dgx-a100", given, roots=[inside]).run())


def test_a_setting_uses_no_file_outside(places: tuple[Path, Path]) -> None:
    inside, outside = places
    session = Session("d2l-gpu-workstation", "d2l/copy-overlap", roots=[inside])
    said = refused(lambda: session.run({"machine.gpu.use": f"{outside}/secret.yaml"}))
    assert "lies outside" in said
    assert session.run().makespan_s > 0


def test_graphs_and_configs_are_confined(places: tuple[Path, Path]) -> None:
    inside, outside = places
    with confined([inside]):
        assert "lies outside" in refused(lambda: hwsim.load_graph(outside / "secret.npz"))
        assert "lies outside" in refused(lambda: api.simulate(MACHINE, str(outside / "secret.npz")))
        assert "lies outside" in refused(lambda: read_config(outside / "secret.json"))
        assert "lies outside" in refused(lambda: read(outside / "secret"))


def test_what_may_be_read_is_read(places: tuple[Path, Path]) -> None:
    inside, _ = places
    machine = f"hwsim: machine/1\nclass: ideal\nparts: {{gpu: {{kind: gpu, use: {inside}/part.yaml}}}}\n"
    work = "hwsim: workload/1\nprogram: [{compute: {device: gpu, flop: 1 GFLOP}}]\n"
    assert Session(machine, work, roots=[inside]).run().makespan_s == pytest.approx(1e-3)
    assert "lies outside" in refused(lambda: Session(machine, work, roots=[]).run())


def test_a_folder_inside_can_only_be_narrower(places: tuple[Path, Path]) -> None:
    inside, outside = places
    with confined([inside]), confined([outside, inside]):
        assert may_read(inside / "part.yaml")
        assert not may_read(outside / "secret.yaml")
        assert not may_read(inside / ".." / "outside" / "secret.yaml")
        assert may_read(find("machine", "dgx-a100"))
    with confined([inside]), confined(None):
        assert not may_read(outside / "secret.yaml")
    assert may_read(outside / "secret.yaml")


def test_what_is_not_there_is_said_as_what_is(places: tuple[Path, Path]) -> None:
    """A mistake tells nothing of what lies outside, not even whether it is there."""
    inside, outside = places
    with confined([inside]):
        there = refused(lambda: find("machine", f"{outside}/secret.yaml"))
        missing = refused(lambda: find("machine", f"{outside}/missed.yaml"))
    assert there.replace("secret", "missed") == missing
    circle = inside / "circle.yaml"
    circle.symlink_to(circle)
    with confined([inside]):
        refused(lambda: read(circle))


def test_every_file_that_a_run_opens_is_asked_for(root: Path) -> None:
    """Whoever opens files in the rooms below the command line asks whether it may, or reads what comes with hwsim."""
    opens = re.compile(r"\.open\((?!zlib)|read_text\(encoding|read_bytes\(\)|\bopen\(|np\.load\(")
    above = {"cli", "explorer", "planning", "comparing", "sensitivities", "studies", "exporters", "importers", "views", "engine"}
    rooms = sorted(folder.name for folder in (root / "hwsim").iterdir() if folder.is_dir() and folder.name not in above)
    found = {}
    for path in sorted(file for room in rooms for file in (root / "hwsim" / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if opens.search(text):
            found[path.relative_to(root / "hwsim").as_posix()] = "refuse_outside" in text or "near(" in text
    asked = {name for name, asks in found.items() if asks}
    assert {"spec/yaml_parser.py", "workload/load/keys.py", "workload/load/traces.py", "models/configs/translation.py"} <= asked
    by_their_caller = {"graph/files/npz.py"}  # `load_graph` asks
    by_their_caller |= {"spec/packed.py"}  # of files that the command line names
    actors = "families/services/actors"
    others = {f"{actors}/compiled.py", f"{actors}/play.py", "machine/net.py"}  # what they call open is no file
    others |= {"results/errors.py", "devices/typical_functions.py", "functions/new.py", "devices/functions.py"}  # of the package
    others |= {"communication/tuning.py", "machine/classes.py"}  # of the package
    assert set(found) - asked <= by_their_caller | others


def test_the_two_files_of_a_session_are_confined_too(places: tuple[Path, Path]) -> None:
    inside, outside = places
    for name in ("secret.yaml", "nowhere.yaml"):
        for files in ((str(outside / name), LOOP), (MACHINE, str(outside / name))):
            said = refused(lambda files=files: Session(*files, roots=[inside]))
            assert "lies outside" in said
            assert "hunter2" not in said
