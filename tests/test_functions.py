"""`import hwsim` offers what the commands answer, by the same names, and every answer shows itself."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import yaml

import hwsim
from hwsim.cli import COMMANDS, main
from hwsim.results.invariants import document
from tests import command
from tests.present import present

ON_THE_COMMAND_LINE: Final = {"course", "doctor", "import"}  # a word of Python: `import_run`
LOOP: Final = ("d2l-laptop", "d2l/async-loop")
HOSTILE: Final = "<script>alert(1)</script>&"
SERVED = """hwsim: workload/1
name: served
let: {n: 2}
program:
  - busy: {name: a, device: cpu, time: "$n * 1 ms"}
expect: {makespan: at most 10 ms}
"""


def answers() -> dict[str, Callable[[], Any]]:
    return {
        "simulate": lambda: hwsim.simulate(*LOOP, set={"n": 10}),
        "sweep": lambda: hwsim.sweep(*LOOP, {"n": [10, 20]}, workers=1),
        "find": lambda: hwsim.find("d2l-laptop", SERVED, "n"),
        "compare": lambda: hwsim.compare(*LOOP, set={"n": 10}, set_a={"blocking": True}, set_b={"blocking": False}),
        "runs": lambda: hwsim.compare(hwsim.simulate(*LOOP, set={"n": 10}), hwsim.simulate(*LOOP, set={"n": 20})),
        "sensitivity": lambda: hwsim.sensitivity("d2l-laptop", "d2l/queue-memory", set={"batches": 2}),
        "explain": lambda: hwsim.explain(*LOOP, set={"n": 10}),
        "latency": lambda: hwsim.latency("d2l-laptop"),
        "roofline": lambda: hwsim.roofline("d2l-gpu-workstation", "d2l/copy-overlap"),
        "collectives": lambda: hwsim.collectives("dgx-a100", op="all-gather", bytes="1MiB..4MiB"),
        "topology": lambda: hwsim.topology("d2l-4gpu-pcie"),
        "estimate": lambda: hwsim.estimate("dgx-a100", "llama-2-7b", tp=8, global_batch=32, sequence=4096),
        "plan": lambda: hwsim.plan(
            {"hwsim": "plan/1", "machine": "d2l-laptop", "workload": "d2l/async-loop", "vary": {"let.blocking": [True, False]},
             "minimise": "time"}, simulate=2,
        ),
    }  # fmt: skip


DRAWN: Final = set(answers()) - {"find", "estimate"}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_commands_are_functions_and_no_room_hides_one() -> None:
    assert set(COMMANDS) - ON_THE_COMMAND_LINE <= set(hwsim.__all__)
    rooms = {path.stem for path in Path(hwsim.__file__).parent.iterdir()}
    assert set(hwsim.__all__) & rooms == set()


def test_importing_hwsim_imports_nothing() -> None:
    said = (
        "import sys, hwsim\nprint([name for name in sys.modules if name.startswith(('hwsim.', 'numpy', 'pandas', 'matplotlib'))])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, encoding="utf-8", check=True, timeout=60)
    assert done.stdout == "['hwsim.version']\n"


@pytest.mark.parametrize("name", answers())
def test_an_answer_shows_itself(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    answer = answers()[name]()
    assert str(answer).endswith("\n")
    assert answer.to_json()["hwsim"].endswith("/2")
    page = answer._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert set(tags.seen) <= {"div", "pre", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert "table" in tags.seen
    printed: list[str] = []
    answer._repr_pretty_(SimpleNamespace(text=printed.append), cycle=False)
    assert printed == [str(answer)], "in a terminal of IPython"
    frame = answer.to_pandas()
    assert len(frame)
    with pytest.raises(ValueError, match="unknown table 'nothing': expected one of"):
        answer.to_pandas("nothing")
    if name in DRAWN:
        assert answer.plot()._repr_png_().startswith(b"\x89PNG")
        if name != "simulate":
            assert answer.plot(tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_a_figure_in_a_notebook_is_the_one_that_is_written(tmp_path: Path) -> None:
    run = hwsim.simulate(*LOOP, set={"n": 10})
    assert run.plot() == run.plot("gantt", tmp_path / "a.png").read_bytes()
    assert run.plot(tmp_path / "alone.png") == tmp_path / "alone.png"
    with pytest.raises(ValueError, match="there is no figure 'gant'"):
        run.plot("gant")


def test_a_statement_is_shown_on_as_many_lines_as_it_needs() -> None:
    shown = hwsim.show("d2l/kvstore-push-pull")
    assert max(map(len, shown.splitlines())) <= 110
    assert "- {busy: {name: forward layer 0, device: gpu0, time: $time, reads: w0}}" in shown


def test_large_numbers_of_a_file_are_shown_with_an_exponent() -> None:
    assert "  loads: 8.0e+9\n" in hwsim.show("d2l/cache-starvation")
    shown = hwsim.show("d2l/cache-starvation")
    run, again = (hwsim.simulate("d2l-quad-core", workload) for workload in ("d2l/cache-starvation", shown))
    assert run.makespan_s == again.makespan_s


def test_names_of_files_are_text_in_a_notebook() -> None:
    busy = {"busy": {"name": HOSTILE, "device": "cpu", "time": "1 ms"}}
    workload = {"hwsim": "workload/1", "name": HOSTILE, "let": {"n": 1}, "program": [busy]}
    for answer in (
        hwsim.simulate("d2l-laptop", workload),
        hwsim.explain("d2l-laptop", workload),
        hwsim.sweep("d2l-laptop", workload, {"n": [1, 2]}, workers=1),
    ):
        page = answer._repr_html_()
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_numbers_of_a_table_are_those_of_the_document() -> None:
    pytest.importorskip("pandas")
    found = hwsim.collectives("dgx-a100", bytes="1MiB,16MiB")
    assert found.to_pandas()["time_s"].tolist() == [row["time_s"] for row in found.to_json()["rows"]]
    run = hwsim.simulate(*LOOP, set={"n": 10})
    assert len(run.to_pandas()) == len(run.ops)
    assert run.to_pandas("limited_by")["time_s"].sum() == pytest.approx(run.makespan_s, rel=1e-12)
    step = hwsim.estimate("dgx-a100", "llama-2-7b", tp=8, global_batch=32, sequence=4096)
    assert step.to_pandas()["time_s"].sum() == pytest.approx(step.seconds, rel=1e-9)


def test_an_estimate_says_what_the_command_says(root: Path) -> None:

    words = ["estimate", "dgx-a100", "llama-2-7b", "--tp", "8", "--global-batch", "32", "--sequence", "4096"]
    said = command.hwsim(*words).stdout
    assert str(hwsim.estimate("dgx-a100", "llama-2-7b", tp=8, global_batch=32, sequence=4096)) == said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hwsim.estimate("dgx-a100", "resnet-50"), "missing `global_batch`"),
        (lambda: hwsim.estimate("dgx-a100", "llama-2-7b", infer="prefill", output=3), "^output is an option of decoding"),
        (lambda: hwsim.estimate("dgx-a100", "llama-2-7b", tp=3, global_batch=32), "3"),
        (lambda: hwsim.explain(*LOOP, op="ad"), "the run has no op 'ad'"),
        (lambda: hwsim.collectives("dgx-a100", op="all-reduc"), "all-reduc"),
        (lambda: hwsim.compare("d2l-laptopp", *LOOP), "there is no machine or workload 'd2l-laptopp'"),
        (lambda: hwsim.latency("d2l-laptop", set={"machine.cpu.corez": 3}), "corez"),
        (lambda: hwsim.show("d2l-gpux"), "there is no file 'd2l-gpux' in the library"),
    ],
)
def test_mistakes_are_spec_errors(call: Callable[[], object], said: str) -> None:
    with pytest.raises(hwsim.SpecError, match=said):
        call()


def test_files_are_checked_shown_and_begun(tmp_path: Path) -> None:
    machine, workload = hwsim.new(tmp_path)
    assert hwsim.check(str(machine)) == hwsim.check(str(workload)) == ()
    with pytest.raises(FileExistsError):
        hwsim.new(tmp_path)
    assert hwsim.show("a100-sxm-40gb").startswith("hwsim: part/1\n")
    assert "  d2l-laptop\n" in hwsim.show()
    assert hwsim.schema("machine")["type"] == "object"
    written = hwsim.export("kineto", tmp_path / "trace", machine, workload)
    assert [path.name for path in written] == ["rank0.json.gz", "rank1.json.gz"]
    with pytest.raises(FileExistsError):
        hwsim.export("kineto", tmp_path / "trace", machine, workload)


def test_an_estimate_takes_the_content_of_files() -> None:
    train = {"model": "llama-2-7b", "global_batch": 32, "sequence": 4096, "parallel": {"tp": 8}}
    written = hwsim.estimate(yaml.safe_load(hwsim.show("dgx-a100")), {"hwsim": "workload/1", "train": train})
    assert written.seconds == hwsim.estimate("dgx-a100", "llama-2-7b", tp=8, global_batch=32, sequence=4096).seconds
    with pytest.raises(TypeError, match="got 3"):
        hwsim.estimate("dgx-a100", 3)  # type: ignore[arg-type]


def test_a_cluster_of_an_estimate_takes_what_is_set() -> None:
    arguments: dict[str, Any] = {"tp": 8, "global_batch": 64, "sequence": 4096, "nodes": 2}
    plain = hwsim.estimate("dgx-a100", "llama-2-7b", **arguments)
    slower = hwsim.estimate("dgx-a100", "llama-2-7b", set={"machine.gpu.memory.bandwidth": "500 GB/s"}, **arguments)
    assert slower.seconds > plain.seconds


def test_what_a_workload_expects_is_left_out_for_who_predicts(root: Path) -> None:

    shown = hwsim.show("d2l/copy-overlap", expect=False)
    assert hwsim.show("d2l/copy-overlap").replace(shown.rpartition("let:")[0], "") != shown
    assert "expect:" not in shown
    assert "let:" in shown
    assert command.hwsim("show", "d2l/copy-overlap", "--no-expect").output == shown


def test_rows_are_compared_by_any_name_of_expect() -> None:
    vary = {"workload.for": ["2 s"]}
    run = hwsim.simulate("web-server", "services/cache", set={"workload.for": "2 s"})
    [answers, *_] = present(run.services).answers
    table = hwsim.sweep("web-server", "services/cache", vary, by=f"{answers.name}.latency_p95", workers=1)
    assert table.ranking.values == (present(answers.latency).at(0.95).value,)
    assert f"{answers.name}.latency_p95" in str(table)


def test_a_script_is_recorded_and_runs_as_a_workload(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text("import numpy as np\nx = np.ones((64, 64))\nfor _ in range(4):\n    x = x @ x * 0.01\n")
    written = hwsim.record(tmp_path / "step.py", tmp_path / "step.yaml", runs=1)
    assert written == tmp_path / "step.yaml"
    assert hwsim.simulate("desktop", written).makespan_s > 0
    with pytest.raises(FileExistsError, match="replace=True"):
        hwsim.record(tmp_path / "step.py", written, runs=1)


def test_a_profile_is_imported_as_the_command_does(tmp_path: Path) -> None:
    pytest.importorskip("pandas")

    event = {"ph": "X", "pid": 1, "tid": 1, "name": "cudaLaunchKernel", "cat": "cuda_runtime", "args": {"correlation": 1}}
    kernel = {**event, "tid": 7, "name": "gemm", "cat": "kernel", "args": {"device": 0, "stream": 7, "correlation": 1}}
    events = [{**event, "ts": 10, "dur": 5}, {**kernel, "ts": 20, "dur": 30}]
    (tmp_path / "p.json").write_text(json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "GPU"}]}))
    found = hwsim.import_run("kineto", tmp_path / "p.json", gpu_times={"gemm": 2})
    words = ["import", "kineto", str(tmp_path / "p.json"), "--gpu-times", "gemm=2"]
    assert command.hwsim(*words).output.startswith(str(found) + "\n  next: hwsim import kineto")
    assert command.hwsim(*words, "--json").output == document(found.to_json())
    assert len(found.to_pandas()) == 1
    present(hwsim.load_graph(found.save(tmp_path / "step.npz")))
    with pytest.raises(hwsim.SpecError, match="did you mean 'kineto'"):
        hwsim.import_run("kinto", tmp_path / "p.json")
    with pytest.raises(hwsim.SpecError, match="requires predicted durations"):
        hwsim.import_run("kineto", tmp_path / "p.json", ranks=4)


def test_the_command_line_writes_to_a_stream_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    main(["schema", "machine"], standalone_mode=False)
    assert json.loads(written.getvalue())["type"] == "object"
