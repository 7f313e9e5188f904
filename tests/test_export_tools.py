"""What other tools make of exported runs: SimGrid and Holistic Trace Analysis where they are installed, ASTRA-sim's own files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

import hwsim
from hwsim.exporters.tools import Exported, files
from hwsim.views.trace.run import run_of

MESH, FOUR = "p3.16xlarge", "d2l-4gpu-pcie"


def exported(tool: str, machine: str, workload: Any, **options: Any) -> tuple[hwsim.Run, Exported]:
    run = hwsim.simulate(machine, workload, expect=False, fold="never", **options)
    return run, files(tool, run_of(run))


def write(exported: Exported, folder: Path) -> Path:
    for name, chunks in exported.files.items():
        (folder / name).write_bytes(b"".join(chunks))
    return folder


def program(*statements: dict[str, Any], each: str = "") -> dict[str, Any]:
    body: Any = {"each": each, "do": list(statements)} if each else list(statements)
    return {"hwsim": "workload/1", "program": body}


# ---- SimGrid

COPIES = program(
    *({"copy": {"name": f"to {n}", "from": "cpu", "to": f"gpu{n}", "bytes": f"{(n + 1) * 48} MB"}} for n in range(4))
)
CROSSED = program(  # unequal copies that share links one after another, and an exchange send by send beside them
    *({"copy": {"name": f"{n}", "from": f"gpu{n}", "to": f"gpu{(n + 3) % 4}", "bytes": f"{(n + 2) * 30} MB"}} for n in range(4)),
    {"allreduce": {"among": "gpu*", "bytes": "160 MB", "algorithm": "ring", "steps": "explicit"}},
)
NETWORKS = {
    "copies that share a switch": (FOUR, COPIES),
    "a ring among copies": (FOUR, CROSSED),
    "lanes": ("d2l-pcie-lanes", "d2l/pcie-lanes-shared"),
}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that is exported, compiled."""
    if shutil.which("g++") is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        pytest.skip("SimGrid or g++ is not installed (Debian: libsimgrid-dev)")
    folder = tmp_path_factory.mktemp("simgrid")
    write(exported("simgrid", FOUR, COPIES)[1], folder)
    subprocess.run(["g++", "play.cpp", "-o", "play", "-lsimgrid"], cwd=folder, check=True, timeout=300)
    return folder / "play"


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_every_op_ends_when_simgrid_ends_it(name: str, play: Path, tmp_path: Path) -> None:
    run, given = exported("simgrid", *NETWORKS[name])
    write(given, tmp_path)
    done = subprocess.run(
        [play, "platform.xml", "ops.txt"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120
    )
    ends = [float(line.split()[1]) for line in done.stdout.splitlines()]
    assert ends == pytest.approx((run.timeline.end / 1e15).tolist(), rel=1e-6, abs=1e-12)


def test_a_platform_has_both_directions_of_a_link_and_the_capacities_that_transfers_share() -> None:
    _, given = exported("simgrid", FOUR, CROSSED)
    platform = b"".join(given.files["platform.xml"]).decode()
    assert 'sharing_policy="SPLITDUPLEX"' in platform
    assert 'direction="UP"' in platform
    assert 'direction="DOWN"' in platform
    lines = b"".join(given.files["ops.txt"]).decode().splitlines()
    assert sum(line.startswith("c ") for line in lines) == 4 + 24
    [left] = given.unsaid  # a step that adds up passes the memory twice
    assert (left.name, left.count) == ("ops (unequal)", 12)


def test_simgrid_is_told_what_it_cannot_express() -> None:
    _, given = exported("simgrid", MESH, "resnet50-dp")
    assert {left.name for left in given.unsaid} >= {"ops (alone)"}
    assert all(left.count > 0 and left.duration > 0 for left in given.unsaid)


# ---- ASTRA-sim


def test_astra_sim_s_files_have_the_form_of_its_examples(reference_data: Path, tmp_path: Path) -> None:
    examples = reference_data / "traces" / "chakra" / "astra"
    if not examples.is_dir():
        pytest.skip("no inputs of ASTRA-sim in the reference data")
    write(exported("astra-sim", "dgx-a100", "d2l/bucketed-overlap")[1], tmp_path)
    network, system = ((tmp_path / name).read_text() for name in ("network.yml", "system.json"))
    example = yaml.safe_load((examples / "net" / "Switch_8.yml").read_text())
    own = yaml.safe_load(network)
    assert own.keys() == example.keys()
    assert [type(value[0]) for value in own.values()][:2] == [str, int]
    wanted = json.loads((examples / "sys" / "ring_1.json").read_text())
    assert json.loads(system).keys() == wanted.keys()
    assert sorted(path.name for path in tmp_path.glob("*.et")) == [f"trace.{rank}.et" for rank in range(8)]


@pytest.mark.parametrize(
    ("machine", "workload", "dimensions"),
    [
        ("dgx-a100", "d2l/bucketed-overlap", [("Switch", 8, 274.5)]),
        (MESH, "resnet50-dp", [("Ring", 8, 46.0)]),
        ("d2l-ps-cluster", program({"allreduce": {"among": "worker*.gpu*", "bytes": "8 MB"}}, each="worker*.gpu*"), None),
    ],
)
def test_a_network_is_a_dimension_inside_a_node_and_one_between_nodes(machine: str, workload: Any, dimensions: Any) -> None:
    _, given = exported("astra-sim", machine, workload)
    network = yaml.safe_load(b"".join(given.files["network.yml"]))
    rows = list(zip(network["topology"], network["npus_count"], network["bandwidth"], strict=True))
    if dimensions is None:
        assert [count for _, count, _ in rows] == [4, 8]
        return
    assert [(topology, count) for topology, count, _ in rows] == [(topology, count) for topology, count, _ in dimensions]
    assert [rate for *_, rate in rows] == pytest.approx([rate for *_, rate in dimensions], rel=0.1)
    assert any(left.name == "collectives" for left in given.unsaid)


def test_links_that_are_not_equal_are_listed() -> None:
    _, given = exported("astra-sim", "d2l-8gpu-nvlink", "d2l/allreduce-160mb")
    [left] = [left for left in given.unsaid if left.name == "unequal links"]
    assert left.count == 5


# ---- Holistic Trace Analysis

ANALYSES = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
folder, ranks = sys.argv[1], int(sys.argv[2])
ta = TraceAnalysis(trace_files={n: f"{folder}/rank{n}.json.gz" for n in range(ranks)}, trace_dir=folder)
found = {"temporal": ta.get_temporal_breakdown(visualize=False).to_dict("records")}
found["kernels"] = ta.get_gpu_kernel_breakdown(visualize=False)[0].to_dict("records")
found["idle"] = ta.get_idle_time_breakdown(ranks=[0], visualize=False)[0].to_dict("records")
found["overlap"] = ta.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"].tolist()
queue = ta.get_queue_length_summary(ranks=[0])
found["queue"] = [float(value) for value in queue[("queue_length", "max")]]
found["launches"] = len(ta.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0])
found["sequences"] = len(ta.get_frequent_cuda_kernel_sequences("dispatch", folder, min_pattern_len=2, rank=0, visualize=False))
graph, fine = ta.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
found["critical"] = [fine, {str(key): float(value) for key, value in graph.summary().items()}]
print("\\n" + json.dumps(found))
"""


@pytest.mark.slow
def test_holistic_trace_analysis_finds_what_was_simulated(tmp_path: Path) -> None:
    python = os.environ.get("HWSIM_HTA_PYTHON", sys.executable)  # HTA 0.5.0 needs pandas < 3, others do not
    if python == sys.executable and find_spec("hta") is None:
        pytest.skip("Holistic Trace Analysis is not installed, nor is its Python in $HWSIM_HTA_PYTHON")
    run, given = exported("kineto", MESH, "resnet50-dp")
    write(given, tmp_path)
    environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}  # else it cuts every time to whole microseconds
    command = [python, "-c", ANALYSES, str(tmp_path), "8"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if "pandas" in done.stderr:
        pytest.skip("Holistic Trace Analysis 0.5.0 fails with this version of pandas")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    kernels = [each for each in run.ops if each.queue == "gpu0.compute"]
    busy = sum(each.duration_s for each in kernels) * 1e6
    assert found["temporal"][0]["compute_time(us)"] == pytest.approx(busy, rel=1e-5)
    assert {each["kernel_type"] for each in found["kernels"]} == {
        "COMPUTATION", "COMMUNICATION", "COMPUTATION overlapping COMMUNICATION",
    }  # fmt: skip
    assert all(each["idle_time"] > -1e-3 for each in found["idle"])
    assert all(50 < percent < 100 for percent in found["overlap"])
    assert max(found["queue"]) > 100
    assert found["launches"] == sum(each.device == "gpu0" for each in run.ops)
    assert found["sequences"] > 0
    fine, critical = found["critical"]
    assert fine
    assert critical["gpu_compute_bound"] > 80
