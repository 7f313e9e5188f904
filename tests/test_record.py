"""A script of numpy is recorded call by call, sees numpy as it always is, and becomes a workload that simulates."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

import hwsim
from hwsim.comparing.measured import against, read_table
from hwsim.spec import SpecError
from hwsim_calibrate.recording.arrays import TracedArray
from hwsim_calibrate.recording.loops import fold
from hwsim_calibrate.recording.nodes import Loop
from hwsim_calibrate.recording.numpy_patches import recording
from hwsim_calibrate.recording.output import document, packed
from hwsim_calibrate.recording.script import Recording, ScriptFailed, record_script
from hwsim_calibrate.recording.tape import Step, Tape
from tests.each import each

MLP = """
import numpy as np
rng = np.random.default_rng(0)
x, y = rng.random((32, 20), dtype=np.float32), rng.random((32, 4), dtype=np.float32)
w = rng.random((20, 4), dtype=np.float32)
for _ in range(6):
    g = x @ w - y
    w = w - np.float32(1e-3) * (x.T @ g)
"""
K_MEANS = """
import numpy as np
rng = np.random.default_rng(1)
points = rng.random((300, 2))
centers = points[:3].copy()
for _ in range(9):
    away = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2)
    which = away.argmin(axis=1)
    mine = (which[:, None] == np.arange(3)).astype(np.float64)
    new = (mine.T @ points) / mine.sum(axis=0)[:, None]
    shift = np.abs(new - centers).max()
    centers = new
"""
ODD = """
import numpy as np, pickle, copy, io
from numpy.random import Generator, PCG64, RandomState
g = Generator(PCG64(1))
r = RandomState(3)
x = g.normal(size=(4, 3))
r.shuffle(x)
g.permuted(x, axis=0)
y = pickle.loads(pickle.dumps(x))
z = copy.deepcopy(x)
assert (y == x).all() and (z == x).all()
b = io.BytesIO()
np.save(b, x)
b.seek(0)
assert (np.load(b) == x).all()
x[0, 1] = 5
x[x > 1] = 0
np.add.at(x, ([0, 0], [1, 1]), 1.0)
q, rr = np.linalg.qr(x)
u = np.unique(x)
np.random.seed(1)
a = [row.sum() for row in x]
m = np.ma.masked_array(x, x > 0).sum()
s = np.array([x, x])
o = np.outer(x[0], x[1])
k = np.array(["a", "b"])
c = x.astype(complex)
d = (c * 2).real.sum()
e = x.view(np.int64)
f = np.frompyfunc(lambda v: v, 1, 1)(x)
h = np.histogram(x)
l = np.apply_along_axis(sum, 0, x)
dm = np.divmod(x, 2)
mean = x.mean(axis=(0,), keepdims=True)
t = np.tensordot(x, x, axes=([0], [0]))
p = np.pad(x, 1)
cs = np.cumsum(x, axis=1)
w = np.nonzero(x > 0)
v = x.flat[3]
big = np.zeros(0) + 1
zz = np.zeros((0, 3)) @ np.zeros((3, 2))
dt = np.array(["2020-01-01"], dtype="M8[D]") + 1
st = np.sort(x, axis=0)
ms = np.median(x)
x.sort()
gr = np.gradient(x)
mg = np.meshgrid([1,2],[3])
e1 = np.einsum("ii", np.eye(3))
ee = np.einsum("ij->j", x)
e3 = np.einsum("ij,jk", x, x.T, optimize=True)
"""
TEXT = """
import numpy as np
for _ in range(10):
    a = np.random.normal(size=(40, 40))
    b = np.dot(a, a)
"""


def recorded(tmp_path: Path, text: str, **options: Any) -> Recording:
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    return record_script(script, **options)


def told(tmp_path: Path, body: str) -> list[Step]:
    """The calls of a few lines."""
    return list(recorded(tmp_path, "import numpy as np\n" + body).steps)


def statements(found: Recording, **options: Any) -> list[Any]:
    document_: Any = yaml.safe_load(document(found, **options)[0])
    listed: list[Any] = document_["program"]["do"]
    return listed


def makespan(tmp_path: Path, found: Recording, machine: str = "laptop", **options: Any) -> float:
    path = tmp_path / "written.yaml"
    path.write_text(document(found, **options)[0], encoding="utf-8")
    return hwsim.simulate(machine, path).makespan_s


# ---- what is recorded ----


def test_the_calls_of_a_training_step_are_these(tmp_path: Path) -> None:
    steps = recorded(tmp_path, MLP).steps
    assert [step.name for step in steps[:3]] == ["random", "random", "random"]
    turn = [(step.name, step.line) for step in steps[3:9]]
    assert turn == [("matmul", "7"), ("subtract", "7"), ("transpose", "8"), ("matmul", "8"), ("multiply", "8"), ("subtract", "8")]
    assert len(steps) == 3 + 6 * 6
    back = steps[6].op
    assert (back.kind, dict(back.keys)) == ("matmul", {"m": 20, "n": 4, "k": 32, "dtype": "fp32", "form": "a"})


@each(
    ("line", "kind", "keys"),
    [
        ("y = x + 1", "elementwise", {"function": "add", "form": "scalar", "shape": [8, 6], "dtype": "fp32", "inputs": 1}),
        ("y = np.add(x, x, out=x)", "elementwise", {"function": "add", "into": "self", "form": "same"}),
        ("x += 1", "elementwise", {"function": "add", "into": "self"}),
        ("np.multiply(x, 2, out=z)", "elementwise", {"function": "multiply", "into": "out"}),
        ("y = x + x[0]", "elementwise", {"form": "row", "rows": 8, "inputs": 1}),
        ("y = x + x[:, :1]", "elementwise", {"form": "column", "rows": 8}),
        ("y = x[:, 1:4] * x[:, 2:5]", "elementwise", {"form": "strided", "rows": 8, "shape": [8, 3]}),
        ("y = x > 0", "elementwise", {"function": "greater", "result": "bool"}),
        ("y = x.sum(axis=0)", "reduce", {"function": "sum", "form": "columns method", "rows": 8}),
        ("y = np.max(x, axis=1)", "reduce", {"function": "max", "form": "rows", "rows": 8}),
        ("y = np.mean(x)", "reduce", {"function": "mean", "shape": [8, 6]}),
        ("y = np.add.reduce(x, axis=1)", "reduce", {"function": "sum", "form": "rows"}),
        ("y = x.astype(np.float64)", "elementwise", {"function": "astype", "form": "from fp32", "dtype": "fp64", "flop_each": 0}),
        ("y = x.T.reshape(48)", "elementwise", {"function": "copyto", "flop_each": 0}),
        ("y = x.reshape(48)", "elementwise", {"function": "reshape", "count": 0}),
        ("y = x[i]", "access", {"function": "takerows", "count": 2, "bytes": "24 B"}),
        ("y = x.ravel()[i]", "access", {"function": "index", "bytes": "4 B"}),
        ("y = np.take(x.ravel(), i)", "access", {"function": "take", "bytes": "4 B"}),
        ("y = x.ravel()[i.astype(np.uint8)]", "access", {"function": "index_cast"}),
        ("y = x[i, i]", "access", {"function": "indices", "count": 2}),
        ("y = x[:, i]", "access", {"function": "takecolumns", "count": 16}),
        ("x[i] = 2", "access", {"function": "put", "count": 12}),
        ("np.add.at(x.ravel(), i, 1)", "access", {"function": "add_at"}),
        ("y = x[x > 1]", "compute", {"function": "compress", "flop": "48 FLOP"}),
        ("x[x > 1] = 0", "compute", {"function": "setmask", "flop": "48 FLOP"}),
        ("y = np.nonzero(x)", "compute", {"function": "nonzero", "flop": "48 FLOP"}),
        ("y = np.where(x > 0)", "compute", {"function": "nonzero"}),
        ("y = np.unique(x)", "compute", {"function": "unique", "dtype": "fp32"}),
        ("y = np.percentile(x, 50)", "compute", {"function": "percentile"}),
        ("y = np.searchsorted(np.arange(16.0), x)", "compute", {"function": "searchsorted", "flop": "192 FLOP"}),
        ("y = np.linalg.inv(np.eye(6))", "compute", {"function": "inv", "flop": "216 FLOP", "bytes": "576 B", "result": "288 B"}),
        ("y = np.fft.fft(x)", "compute", {"function": "fft", "dtype": "complex64", "rows": 8.0}),
        ("y = np.maximum.accumulate(x)", "reduce", {"function": "cummax"}),
        ("y = x ** 2", "elementwise", {"function": "square"}),
        ("y = (-x) ** 3", "elementwise", {"function": "power", "form": "signed"}),
        ("y = np.argsort(np.arange(64))", "elementwise", {"function": "argsort", "form": "sorted"}),
        ("y = np.sort(x, axis=0)", "elementwise", {"function": "sort", "form": "across sorted"}),
        ("y = np.sort(np.arange(64)[::-1] % 3, kind='stable')", "elementwise", {"form": "stable few"}),
        ("y = x.astype(np.int16)", "elementwise", {"function": "astype", "dtype": "int16"}),
        ("y = x + np.float64(1) * 1j", "elementwise", {"function": "add"}),
        ("y = np.ascontiguousarray(x.T)", "elementwise", {"function": "copy", "form": "across"}),
        ("y = np.random.default_rng(1).normal(size=5)", "elementwise", {"function": "normal", "form": "generator"}),
        ("x[1:3] = 0", "elementwise", {"function": "fill", "into": "out", "shape": [2, 6]}),
        ("z[:] = x", "elementwise", {"function": "copyto", "into": "out", "shape": [8, 6]}),
        ("y = np.dot(x, x.T)", "matmul", {"m": 8, "n": 8, "k": 6}),
        ("y = np.stack([x, x]) @ x.T", "matmul", {"m": 8, "n": 8, "k": 6, "batch": 2}),
        ("y = x @ x[0]", "matmul", {"m": 8, "n": 1, "k": 6}),
        ("y = np.einsum('ij,kj->ik', x, x)", "compute", {"function": "einsum", "flop": "768 FLOP", "bytes": "640 B"}),
        ("y = np.where(x > 0, x, z)", "elementwise", {"function": "where", "inputs": 2}),
        ("y = np.clip(x, 0, 1)", "elementwise", {"function": "clip"}),
        ("y = np.concatenate([x, z])", "elementwise", {"function": "concatenate", "shape": [16, 6]}),
        ("y = np.sort(x)", "elementwise", {"function": "sort", "rows": 8}),
        ("y = np.zeros((3, 4))", "elementwise", {"function": "zeros", "inputs": 0, "shape": [3, 4], "dtype": "fp64"}),
        ("y = np.random.rand(5)", "elementwise", {"function": "random", "inputs": 0, "shape": [5]}),
        ("y = np.einsum('ij,kj->ik', x, x)", "compute", {"form": "inner", "rows": 768 / 6}),
        ("y = np.einsum('ij,kj,k->i', x, x, x[:, 0], optimize=True)", "compute", {"form": "path", "flop": "192 FLOP"}),
        ("y = np.lexsort((x[0], i.repeat(3)))", "compute", {"function": "lexsort", "dtype": "fp32", "flop": "31 FLOP"}),
        ("y = np.lib.stride_tricks.sliding_window_view(x[0], 3).max(axis=1)", "reduce", {"form": "rows method", "rows": 4}),
        ("y = np.median(x, axis=0)", "compute", {"function": "median", "form": "across", "rows": 6}),
        ("y = np.argpartition(x, 2)", "compute", {"function": "argpartition"}),
        ("y = np.nanmean(np.where(np.arange(6) > 3, np.nan, x))", "compute", {"function": "nanmean", "form": "missing"}),
        ("y = np.take_along_axis(x[:2], i[:, None], 1)", "compute", {"function": "take_along_axis", "flop": "2 FLOP"}),
        ("y = np.sin(np.linspace(0, 99, 400))", "elementwise", {"function": "sin", "form": "smooth"}),
        ("np.random.default_rng(1).shuffle(x)", "compute", {"function": "shuffle", "form": "rows", "flop": "8 FLOP"}),
        ("y = np.linalg.svd(np.ones((8, 2)), full_matrices=False)", "compute", {"form": "tall", "flop": "32 FLOP"}),
        ("y = np.random.default_rng(1).integers(0, 256, 9, np.uint8)", "elementwise", {"form": "generator full"}),
        ("y = np.random.default_rng(1).integers(0, 9, 5)", "elementwise", {"function": "integers", "dtype": "int64"}),
    ],
)  # fmt: skip
def test_a_call_becomes_this_op(tmp_path: Path, line: str, kind: str, keys: dict[str, Any]) -> None:
    before = "x = np.ones((8, 6), np.float32); z = np.ones((8, 6), np.float32); i = np.array([1, 3])\n"
    last = told(tmp_path, before + line + "\n")[-1]
    assert last.op.kind == kind
    assert {key: last.op.keys.get(key) for key in keys} == keys
    assert not last.op.reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("y = np.trace(x)", "trace: hwsim has no op for this call"),
        ("y = x.astype(np.longdouble)", "float128"),
        ("y = np.array([1.0, 2.0])", "Python objects"),
        ("y, z = np.modf(x)", "modf: hwsim has no op for this call"),
    ],
)
def test_what_hwsim_has_no_op_for_is_busy_and_said(tmp_path: Path, line: str, why: str) -> None:
    found = recorded(tmp_path, "import numpy as np\nx = np.eye(6)\n" + line + "\n")
    assert found.steps[-1].op.kind == "busy"
    assert why in found.steps[-1].op.reason
    text, measured = document(found)
    assert why in measured["ops"][-1]["uncalibrated"]
    assert "# uncalibrated: " in text
    assert "uncalibrated" in yaml.safe_load(text)["notes"]


def test_values_go_from_call_to_call_by_name(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import numpy as np\na = np.ones(10)\nb = a * 2\nb += a[1:2]\nc = b.sum()\n")
    ops = [next(iter(statement.values())) for statement in statements(found)]
    assert ops[0]["writes"] == {"ones@2": {"shape": [10], "dtype": "fp64"}}
    assert ops[1]["reads"] == ["ones@2"]
    assert ops[3]["updates"] == ["multiply@3"]
    assert ops[3]["reads"] == ["ones@2"]  # a view is the array it is of
    assert ops[4]["reads"] == ["multiply@3"]


def test_the_end_of_an_update_of_a_part_is_no_copy(tmp_path: Path) -> None:
    steps = told(tmp_path, "a = np.ones(10)\na[2:4] += 1\n")
    assert [step.name for step in steps] == ["ones", "slice", "add"]


# ---- the script and numpy ----


def test_the_script_sees_the_values_of_numpy(tmp_path: Path) -> None:
    seen_by = "seen = (centers.tolist(), float(shift), isinstance(centers, np.ndarray), f'{centers}')"
    text = f"{K_MEANS}\nfrom pathlib import Path\n{seen_by}\nPath(%r).write_text(repr(seen))\n"
    plain, seen = tmp_path / "plain.txt", tmp_path / "seen.txt"
    exec(compile(text % str(plain), "plain", "exec"), {"__name__": "__main__"})
    recorded(tmp_path, text % str(seen))
    assert plain.read_text() == seen.read_text()


def test_numpy_is_restored_whatever_the_script_does(tmp_path: Path) -> None:
    before = {name: getattr(np, name) for name in dir(np)}, {name: getattr(np.random, name) for name in dir(np.random)}
    recorded(tmp_path, TEXT)
    with pytest.raises(ScriptFailed):
        recorded(tmp_path, "import numpy as np\nnp.zeros(3)\nraise ValueError('no')\n")
    with pytest.raises(KeyboardInterrupt):
        recorded(tmp_path, "import numpy as np\nnp.zeros(3)\nraise KeyboardInterrupt\n")
    after = {name: getattr(np, name) for name in dir(np)}, {name: getattr(np.random, name) for name in dir(np.random)}
    assert before == after
    assert type(np.zeros(2) + 1) is np.ndarray


def test_in_place_gives_back_the_very_array() -> None:
    with recording(Tape()):
        a = np.ones(4)
        before, b = a, np.exp(a, out=a)
        a += 1
        assert a is before is b
        assert np.asarray(a) is a
        assert isinstance(a, TracedArray)
        assert isinstance(np.random.default_rng(0), np.random.Generator)
    assert (a + 1).tolist() == [np.e + 2] * 4  # arrays outlive the recording, and still compute


def test_a_script_has_its_arguments_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("import numpy as np\ndef make(n): return np.ones(n)\n")
    text = "import sys, beside_it\nassert sys.argv[1:] == ['4', '--x'] and __name__ == '__main__'\n"
    text += "beside_it.make(int(sys.argv[1]))\n"
    steps = recorded(tmp_path, text, arguments=["4", "--x"]).steps
    assert [(step.name, step.line, step.op.keys["shape"]) for step in steps] == [("ones", "beside_it:2", [4])]


def test_a_failing_script_shows_its_own_traceback(tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed) as failed:
        recorded(tmp_path, "import numpy as np\n\ndef f():\n    return np.zeros(2) @ np.zeros(3)\nf()\n")
    assert "line 5, in <module>" in str(failed.value)
    assert "line 4, in f" in str(failed.value)
    assert "recording" not in str(failed.value)


def test_several_runs_give_the_median_and_print_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = recorded(tmp_path, TEXT + "print('once')\n", runs=3)
    assert capsys.readouterr().out == "once\n"
    assert found.runs == 3
    assert len(found.steps) == 20
    assert not found.notes


def test_runs_that_differ_are_said(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    text = (
        f"import numpy as np\nfrom pathlib import Path\np = Path({str(counter)!r})\nn = int(p.read_text()) if p.exists() else 1\n"
    )
    found = recorded(tmp_path, text + "p.write_text(str(n + 1))\nnp.ones(n)\n", runs=3)
    assert found.notes == ("2 of 3 runs made different calls than the first run and were ignored",)


def test_whatever_a_script_does_with_numpy_is_recorded_and_simulates(tmp_path: Path) -> None:
    found = recorded(tmp_path, ODD)
    assert len(found.steps) > 80
    assert makespan(tmp_path, found) > 0


# ---- loops ----


def test_ten_turns_of_the_text_are_a_repeat_of_ten(tmp_path: Path) -> None:
    found = statements(recorded(tmp_path, TEXT))
    assert [list(statement) for statement in found] == [["repeat"]]
    assert found[0]["repeat"]["times"] == 10
    assert [next(iter(statement)) for statement in found[0]["repeat"]["do"]] == ["elementwise", "matmul"]


def test_a_value_of_the_turn_before_takes_two_turns(tmp_path: Path) -> None:
    """k-means looks at old and new centers side by side: names alternate."""
    recorded_ = recorded(tmp_path, K_MEANS)
    nodes = fold(recorded_.steps).nodes
    [outer] = [node for node in nodes if isinstance(node, Loop)]
    assert (outer.times, outer.doubled) == (4, True)


@pytest.mark.parametrize("text", [MLP, TEXT])
def test_folded_takes_the_very_time_of_unfolded(tmp_path: Path, text: str) -> None:
    found = recorded(tmp_path, text)
    whole, folded = makespan(tmp_path, found, loops=False), makespan(tmp_path, found)
    assert folded == whole
    assert len(statements(found)) < len(statements(found, loops=False))


# ---- the workload and what was measured ----


@pytest.mark.parametrize("machine", ["laptop", "desktop", "c5.18xlarge", "d2l-laptop", "dgx-a100", "workstation"])
def test_a_recording_simulates_on_machines_with_a_cpu(tmp_path: Path, machine: str) -> None:
    assert makespan(tmp_path, recorded(tmp_path, K_MEANS), machine) > 0


def test_it_runs_on_a_cpu_of_another_name_if_told(tmp_path: Path) -> None:
    path = tmp_path / "written.yaml"
    path.write_text(document(recorded(tmp_path, MLP))[0], encoding="utf-8")
    run = hwsim.simulate("d2l-vector-units", path, set={"device": "server"})
    assert {row.device for row in run.ops} == {"server"}


def test_a_recording_is_a_table_of_measurements(tmp_path: Path) -> None:
    found = recorded(tmp_path, MLP + "u = np.trace(x.T @ x + np.eye(20))\n")
    text, measured = document(found)
    path, table = tmp_path / "written.yaml", tmp_path / "written.measured.json.gz"
    path.write_text(text, encoding="utf-8")
    table.write_bytes(packed(measured))
    compared = against({"machine": "laptop", "workload": path}, "", read_table(table))
    assert math.fsum(op.measured_s for op in compared.ops) == pytest.approx(found.inside)
    assert math.fsum(op.predicted_s for op in compared.ops) == pytest.approx(hwsim.simulate("laptop", path).makespan_s)
    assert sum(op.times for op in compared.ops) == len(found.steps)
    assert not compared.missing
    trace = next(op for op in compared.ops if op.name.startswith("trace@"))
    assert trace.known_by == "stated"
    assert trace.error == pytest.approx(0.0, abs=1e-3)
    path.write_text(document(recorded(tmp_path, TEXT))[0], encoding="utf-8")
    with pytest.raises(SpecError, match="the run has no op"):
        against({"machine": "laptop", "workload": path}, "", read_table(table))


def test_a_recording_says_where_cupy_was_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    assert recorded(tmp_path, "import cupy\nimport numpy as np\nnp.ones(3) + 1\n").notes == (
        "the script uses cupy, whose calls are not recorded",
    )
