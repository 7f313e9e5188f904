"""`hwsim roofline`: ceilings from the part, ops never above them."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.links import KINDS
from hwsim.spec import names
from hwsim.views.kit.figure import push_apart
from hwsim.views.kit.view import Unshowable
from hwsim.views.roofline import draw, say
from hwsim.views.roofline.find import DeviceRoofline
from hwsim.views.roofline.find import find as rooflines
from tests.command import hwsim

LAYER = """\
hwsim: workload/1
name: a layer
let: {gpu: gpu0, cpu: cpu}
program:
  - repeat:
      times: 3
      do:
        - matmul: {name: large, device: $gpu, m: 2048, n: 4096, k: 4096, dtype: fp16}
        - matmul: {name: thin, device: $gpu, m: 1, n: 4096, k: 4096, dtype: fp16}
  - softmax: {name: softmax, device: $gpu, shape: [4096, 4096]}
  - elementwise: {name: tiny, device: $gpu, shape: [64]}
  - elementwise: {name: on the cpu, device: $cpu, shape: [4096, 4096], cores: 2}
  - copy: {from: $cpu, to: $gpu, bytes: 1 MB}
  - wait: all
"""


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.yaml"
    path.write_text(LAYER, encoding="utf-8")
    return path


def under(machine: str, workload: str) -> tuple[DeviceRoofline, ...]:
    lowered = api.prepare(machine, workload)
    return rooflines(lowered.machine, lowered.graph)


@pytest.mark.parametrize("name", names("machine"))
def test_every_machine_of_the_library_has_rooflines_in_order(name: str) -> None:
    machine = api.load_machine(name)
    able = any(placed.kind in ("cpu", "gpu") for placed in machine.devices.values())
    for roofline in rooflines(machine, links=True) if able else ():
        assert roofline.compute
        assert [ceiling.key for ceiling in roofline.memory].count("memory") == 1
        for ceiling in (*roofline.memory, *roofline.compute):
            assert 0 < ceiling.sustained <= ceiling.peak * (1 + 1e-9) < math.inf, f"{roofline.device} {ceiling.key}"
        caches = [ceiling.peak for ceiling in roofline.memory if ceiling.key not in ("memory", *KINDS)]
        assert min(caches, default=math.inf) >= 0.99 * roofline.bandwidth
        for ceiling in roofline.compute:
            assert roofline.ridge(ceiling) * roofline.bandwidth == pytest.approx(ceiling.peak)


@pytest.mark.parametrize("machine", ["p3.16xlarge", "dgx-a100", "dgx-h100", "g4dn.12xlarge", "workstation", "d2l-4gpu-pcie"])
def test_no_op_is_above_its_roof(machine: str) -> None:
    for one in under(machine, LAYER):
        assert one.points
        for point in one.points:
            assert 0 < point.attained <= one.roof(point) * (1 + 1e-9), f"{one.device} {point.name}"
            assert point.peak <= max(ceiling.peak for ceiling in one.compute) * (1 + 1e-9)


@given(m=st.integers(1, 4096), n=st.integers(1, 4096), k=st.integers(1, 4096), dtype=st.sampled_from(["fp16", "fp32", "int8"]))
def test_no_product_is_above_its_roof(m: int, n: int, k: int, dtype: str) -> None:
    op = {"matmul": {"device": "gpu0", "m": m, "n": n, "k": k, "dtype": dtype}}
    lowered = api.prepare(GPU, {"hwsim": "workload/1", "program": [op]})
    (one,) = rooflines(lowered.machine, lowered.graph)
    (point,) = one.points
    assert point.attained <= one.roof(point) * (1 + 1e-9)
    assert point.flop == 2.0 * m * n * k


GPU = api.load_machine("p3.16xlarge")


def test_equal_ops_are_one_line_and_devices_alike_are_one_roofline() -> None:
    cpu, gpu = under("p3.16xlarge", LAYER)
    assert (cpu.device, gpu.device, gpu.identical_count) == ("cpu", "gpu0", 8)
    assert {point.name: point.count for point in gpu.points} == {"large": 3, "thin": 3, "softmax": 1, "tiny": 1}
    assert gpu.idle == (("copy (copy)", 1),)


def test_what_bounds_an_op_is_named() -> None:
    _, gpu = under("p3.16xlarge", LAYER)
    bounds = {point.name: point.bound for point in gpu.points}
    assert bounds["large"].startswith("compute, fp16")
    assert bounds["thin"] == "memory"
    assert bounds["tiny"] == "launch latency"


def test_an_op_in_the_caches_has_no_intensity_and_the_peak_as_its_roof() -> None:
    op = {"elementwise": {"device": "cpu0", "shape": [1000], "working_set": "8 kB", "cores": 1}}
    (one,) = under("p3.16xlarge", {"hwsim": "workload/1", "program": [op]})  # type: ignore[arg-type]
    (point,) = one.points
    assert math.isinf(point.intensity)
    assert one.roof(point) == point.peak
    assert say.document([one])["devices"][0]["ops"][0]["intensity_flop_per_byte"] is None


def test_one_format_only() -> None:
    for roofline in rooflines(GPU, dtype="fp16"):
        assert {ceiling.key.partition(" ")[0] for ceiling in roofline.compute} == {"fp16"}
    with pytest.raises(Unshowable, match="fp4"):
        rooflines(GPU, dtype="fp4")


# ---- the command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("p3.16xlarge", "--device", "gpu9"), "gpu0"),
        (("p3.16xlarge", "--device", "nic"), "'nic' is a nic, which does not compute"),
        (("p3.16xlarge", "--device", "gpu*"), "one of cpu"),
        (("p3.16xlarge", "--dtype", "fp12"), "fp16"),
        (("d2l-laptop", "--dtype", "int4"), "no device computes in int4"),
        (("p3.16xlarge", "--plot", "a.jpg"), ".png, .svg or .pdf"),
        (("p3.16xlarge", "nowhere"), "nowhere"),
        (("-", "-"), "only one of the two"),
    ],
)
def test_mistakes_are_exit_2_and_say_what_to_write(arguments: tuple[str, ...], said: str) -> None:
    done = hwsim("roofline", *arguments, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_a_machine_where_nothing_computes_is_exit_2(tmp_path: Path) -> None:
    path = tmp_path / "disk.yaml"
    path.write_text("hwsim: machine/1\nclass: ideal\nparts: {disk: {kind: disk, use: d2l-hdd}}\n")
    done = hwsim("roofline", path, code=2)
    assert "nothing on this machine computes" in done.stderr
    assert "hint: a roofline needs a cpu or a gpu" in done.stderr


def test_the_figure_is_written_and_is_the_same_twice(tmp_path: Path, layer: Path) -> None:
    """Other formats: `test_study_figure.py`."""
    path, again = tmp_path / "a.svg", tmp_path / "b.svg"
    hwsim("roofline", "p3.16xlarge", layer, "--plot", path)
    hwsim("roofline", "p3.16xlarge", layer, "--plot", again)
    assert path.read_bytes() == again.read_bytes()
    assert path.stat().st_size > 5_000


def test_labels_beside_the_ceilings_do_not_overlap() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    (one,) = rooflines(api.load_machine("dgx-a100"), device="gpu0")
    _, beside = draw._panel(axes, one)
    figure.draw_without_rendering()
    push_apart(axes, beside)
    figure.draw_without_rendering()
    boxes = sorted((label.get_window_extent() for label in beside), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 0.5 for low, high in pairwise(boxes))


def test_a_convolution_is_below_the_roof_of_its_own_format() -> None:
    """The GPU has fp16 units of four times the rate of fp32, which a network in fp32 does not compute on."""
    roofline = under("d2l-4gpu-pcie", "d2l/multi-gpu-resnet18")[0]
    fp32 = next(ceiling.peak for ceiling in roofline.compute if ceiling.key == "fp32")
    convolutions = [point for point in roofline.points if point.kind == "convolution"]
    assert {point.peak for point in convolutions} == {fp32}
    assert all(0.5 < point.attained / roofline.roof(point) <= 1.0 for point in convolutions)
