"""Every warning reaches every command that takes the machine or the workload, with a code that a script can test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import hwsim
from hwsim.spec import CODES, Warning
from hwsim.spec.warning import EXCEEDS
from tests import command

ROOT = Path(__file__).resolve().parent.parent
CPU: Final = """  cpu:
    kind: cpu
    cores: 4
    flop: {fp32: 100 GFLOP/s, fp64: 50 GFLOP/s}
    memory: {size: 1 GB, bandwidth: 20 GB/s, latency: 80 ns}
"""
MEASURED: Final = (
    CPU
    + """    kernels:
      levels: {memory: {beyond: 1 MB, read: 10 GB/s, write: 10 GB/s, update: 10 GB/s}}
      functions: {add: {call: 1 us, each: {fp64: 1 ns}, counts: [1, 1e9]}}
"""
)
GPU: Final = """  gpu:
    kind: gpu
    count: COUNT
    power: 350 W
    flop: {fp16: 100 TFLOP/s, fp32: 50 TFLOP/s}
    memory: {size: 80 GB, bandwidth: 2 TB/s}
"""
SLOT: Final = "links:\n  - {name: slot, between: [cpu, GPUS], kind: pcie, use: pcie4-x16}\n"
DISK: Final = "  disk: {kind: ssd, size: 100 GB, read: 4 GB/s, write: 2 GB/s, latency: 80 us, CACHE}\n"


def machine(parts: str = CPU, more: str = "") -> str:
    return f"hwsim: machine/1\nclass: ideal\n{more}parts:\n{parts}"


def gpus(count: int, name: str = "gpu") -> str:
    return (CPU + GPU).replace("COUNT", str(count)).replace("gpu:", f"{name}:") + SLOT.replace("GPUS", f"{name}*")


def repeat(*ops: str, more: str = "") -> str:
    """A workload with a parameter that a sweep can vary."""
    return f"hwsim: workload/1\n{more}let: {{n: 2}}\nprogram: [{{repeat: {{times: $n, do: [{', '.join(ops)}]}}}}]\n"


BUSY: Final = "{busy: {device: cpu, time: 1 ms}}"


@dataclass(frozen=True)
class Case:
    """A pair that raises one warning.  known: from which of the two it is known: m, w, or only the pair; ran: only by a run."""

    machine: str
    workload: str
    known: str = ""
    set: tuple[str, ...] = ()
    vary: str = "n=2,3"
    ran: bool = False


READS_ANOTHER: Final = repeat(
    "{busy: {device: cpu, time: 1 ms, writes: weights}}", "{busy: {device: cpu, time: 1 ms, reads: weigths}}"
)
ALONE: Final = f"""hwsim: workload/1
let: {{n: 2}}
programs:
  a: [{BUSY}, {{barrier: x}}]
  b: [{{repeat: {{times: $n, do: [{BUSY}]}}}}]
"""
STAGES: Final = """hwsim: workload/1
let: {n: 20}
pipeline:
  batches: $n
  ahead: 1
  stages: [{name: a, at_once: 8, busy: {device: cpu, time: 1 ms}}, {name: b, busy: {device: cpu, time: 1 ms}}]
"""
SERVICE: Final = """hwsim: workload/1
let: {n: 20}
infer:
  {model: gpt2, dtype: fp16, framework: vllm, requests: $n, arrivals: {poisson: 100 1/s}, batching: continuous, batch: 16,
   prompt: {lognormal: {median: 900, sigma: 1}}, output: 10, memory: 90 %, seed: 1}
"""
DAY: Final = "day: {mean: 100 1/s, peak: 150 1/s}"
CLIENTS: Final = """hwsim: workload/1
let: {n: 8}
infer: {model: gpt2, dtype: fp16, framework: vllm, requests: $n, arrivals: {clients: 4, think: 9 ms, ramp: 0 s},
  prompt: 50, output: 5}
"""
APART_BY_NICS: Final = (
    (CPU + GPU).replace("COUNT", "2")
    + """  nic: {kind: nic, count: 2, bandwidth: 200 Gb/s}
links:
  - {name: slot, between: [gpu0, nic0], kind: pcie, use: pcie4-x16}
  - {name: other, between: [gpu1, nic1], kind: pcie, use: pcie4-x16}
  - {name: wire, between: [nic0, nic1], kind: direct, bandwidth: 25 GB/s}
"""
)
EXPERTS: Final = """hwsim: workload/1
let: {n: 5}
infer:
  model: {kind: transformer, layers: 2, hidden: 256, heads: 4, vocab: 1000, sequence: 512, experts: 4, top_k: 2}
  dtype: fp16
  framework: vllm
  parallel: {groups: 2, ep: 2}
  requests: $n
  arrivals: {poisson: 100 1/s}
  prompt: 50
  output: 10
"""
FULL: Final = """hwsim: workload/1
let: {n: 300}
infer: {model: gpt2, dtype: fp16, framework: vllm, requests: $n, arrivals: {poisson: 30000 1/s}, prompt: 50, output: 50}
"""
JITTER: Final = f"""hwsim: workload/1
let: {{n: 2}}
events: [{{at: 0 s, part: gpu*, jitter: 5 %, every: 1 ms, for: 2 ms}}]
program: {{each: gpu*, do: [{{repeat: {{times: $n, do: [{BUSY}]}}}}]}}
"""

STALL: Final = """hwsim: workload/1
let: {n: 20}
events: [{at: 1 ms, part: cpu, down: 5 ms}]
pipeline:
  batches: $n
  checkpoint: {every: 5, bytes: 1 MB, to: disk}
  stages: [{name: a, busy: {device: cpu, time: 1 ms}}, {name: b, busy: {device: cpu, time: 1 ms}}]
"""
ERF: Final = repeat("{elementwise: {function: erf, count: 1e6, dtype: fp64, inputs: 1, device: cpu}}")
FAR: Final = repeat("{access: {device: cpu, count: 100, bytes: 64 B, working_set: 10 TB, pattern: random}}")
THREADS: Final = repeat("{compute: {device: cpu, flop: 1 GFLOP, threads: 2}}")
EXP: Final = repeat("{elementwise: {device: cpu, function: exp, count: 1e6}}")
CACHE: Final = "cache: {size: 9 GB, write: 4 GB/s}"

ASKS: Final = """hwsim: workload/1
let: {n: 20}
services:
  a: {device: cpu, arrivals: {every: 10 ms}, request: [{ask: {service: b, timeout: 1 ms}}]}
  b: {device: cpu, request: [{busy: {time: 2 ms}}]}
requests: $n
"""

APART: Final = """hwsim: workload/1
let: {n: 2}
programs:
  a: [{repeat: {times: $n, do: [{allreduce: {among: gpu*, bytes: 1 MB}}]}}]
  b: [{repeat: {times: $n, do: [{allreduce: {among: gpu*, bytes: 1 MB}}]}}]
"""
NARROW: Final = """\
hwsim: workload/1
let: {n: 4}
train: {model: gpt2, sequence: 128, microbatch: 1, global_batch: $n, dtype: fp8, optimizer: sgd}
"""

OF_ROWS: Final = ("service-deadlock", "mixed-provenance")  # alone they end with 1, or are none: see tests of plans and of classes
CASES: Final = {
    "class-guessed": Case(machine(gpus(2)).replace("class: ideal\n", ""), repeat(BUSY), "m"),
    "power-over-budget": Case(machine(gpus(8), "supply: 2 kW\n"), repeat(BUSY), "m"),
    "name-ends-in-digit": Case(machine(gpus(2, "gpu1")), repeat(BUSY), "m"),
    "ambiguous-parameter": Case(machine(more="let: {n: 2}\n"), repeat(BUSY), set=("let.n=3",), vary="let.n=3,4"),
    "runtime-replaced": Case(
        machine(),
        repeat(BUSY, more="runtime: {use: mxnet, dispatch: 75 us}\n"),
        set=("workload.runtime.use=numpy",),
        vary="workload.runtime.use=numpy,pytorch-eager",
    ),
    "never-written": Case(machine(), READS_ANOTHER, "w"),
    "size-in-bits": Case(machine(), repeat("{compute: {device: cpu, flop: 1 GFLOP, bytes: 8 Mb}}"), "w"),
    "lone-barrier": Case(machine(), ALONE, "w"),
    "idle-workers": Case(machine(), STAGES, "w", vary="n=10,20"),
    "duplicate-collectives": Case(machine(gpus(2)), APART, "w"),
    "disk-full": Case(machine(CPU + DISK.replace(", CACHE", "")), repeat("{write: {to: disk, bytes: 80 GB}}")),
    "split-access-faster": Case(machine(CPU + DISK.replace("CACHE", CACHE)), repeat("{write: {to: disk, bytes: 15 GB}}")),
    "working-set-too-large": Case(machine(), FAR),
    "synchronized-clients": Case(machine(gpus(1)), CLIENTS, vary="n=8,10"),
    "partial-cycle": Case(
        machine(gpus(1)),
        SERVICE.replace("900, sigma: 1}}", "90, sigma: 0.1}}").replace("poisson: 100 1/s", DAY),
        vary="n=10,20",
        ran=True,
    ),
    "older-pcie-card": Case(machine(gpus(1).replace("    power", "    pcie: 3\n    power")), repeat(BUSY)),
    "no-expert-dispatch": Case(machine(APART_BY_NICS), EXPERTS, vary="n=5,10"),
    "requests-truncated": Case(machine(gpus(1)), SERVICE, vary="n=10,20"),
    "unsupported-format": Case(machine(gpus(1)), NARROW),
    "overloaded": Case(machine(gpus(1)), FULL, vary="n=300,400", ran=True),
    "no-steady-state": Case(machine(gpus(1)), FULL.replace("30000", "2000"), vary="n=40,50", ran=True),
    "not-folded": Case(machine(gpus(64)), JITTER),
    "not-calibrated": Case(machine(MEASURED), ERF, ran=True),
    "no-effect": Case(machine(), THREADS),
    "not-measured": Case(machine(), EXP),
    "mean-access-time": Case(
        machine(CPU + "  disk: {kind: hdd, use: hdd-7200rpm}\n"),
        ASKS.replace("{ask: {service: b, timeout: 1 ms}}", "{ask: b}").replace(
            "{busy: {time: 2 ms}}", "{read: {from: disk, bytes: 4 KiB, access: random, times: 8, depth: 4}}"
        ),
        vary="n=10,20",
        ran=True,
    ),
    "no-requests": Case(
        machine(), ASKS.replace("{ask: {service: b, timeout: 1 ms}}", "{busy: {time: 1 ms}}"), vary="n=10,20", ran=True
    ),
    "timeout-too-short": Case(machine(), ASKS, vary="n=10,20", ran=True),
    "no-work-lost": Case(machine(CPU + DISK.replace(", CACHE", "")), STALL, vary="n=10,20"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


def pair(code: str, folder: Path) -> tuple[str, str]:
    case = CASES[code]
    for kind, text in (("machine", case.machine), ("workload", case.workload)):
        (folder / f"{code}-{kind}.yaml").write_text(text, encoding="utf-8")
    return str(folder / f"{code}-machine.yaml"), str(folder / f"{code}-workload.yaml")


def ran(*words: str) -> str:
    """All that a command printed; it may end with the verdict that memory is too small."""
    said = command.hwsim(*words, code=None)
    assert said.exit_code in (0, 3), (words, said.output, said.exception)
    return said.output


def codes(text: str) -> set[str]:
    """Codes below the key `warnings`, at the top of a document or in its rows."""
    document: dict[str, Any] = json.loads(text[text.index("{") :])
    rows = [document, *document.get("rows", ())]
    return {warning["code"] for row in rows for warning in row.get("warnings", ())}


def test_every_code_has_a_pair_that_raises_it() -> None:
    assert {*CASES, *OF_ROWS} == set(CODES)
    assert set(CODES) >= EXCEEDS


@pytest.mark.parametrize("code", CASES)
def test_a_warning_reaches_every_command_that_takes_the_pair(code: str, files: Path) -> None:
    case = CASES[code]
    both = pair(code, files)
    settings = [word for setting in case.set for word in ("--set", setting)]
    simulate = ["simulate", *both, *settings]
    assert f"warning[{code}]:" in ran(*simulate)
    assert f"warning[{code}]:" in ran(*simulate, "--quiet")
    assert code in codes(ran(*simulate, "--json"))
    explain = ["explain", *both, *settings, "--no-what-if"]
    assert f"warning[{code}]:" in ran(*explain)
    assert code in codes(ran(*explain, "--json"))
    sweep = ["sweep", *both, "--vary", case.vary, "--workers", "1"]
    assert f"a  warning[{code}], all rows:" in ran(*sweep)
    assert code in codes(ran(*sweep, "--json"))
    if not case.ran:
        assert f"warning[{code}]:" in ran("roofline", *both, *settings)
        assert code in codes(ran("roofline", *both, *settings, "--json"))


@pytest.mark.parametrize("code", [code for code, case in CASES.items() if case.known])
def test_a_warning_of_one_file_reaches_the_commands_that_take_it_alone(code: str, files: Path) -> None:
    machine, workload = pair(code, files)
    alone = machine if CASES[code].known == "m" else workload
    assert f"warning[{code}]:" in ran("check", alone)
    assert f"warning[{code}]:" in ran("show", alone)
    if alone == workload:
        return
    training = ["gpt2", "--global-batch", "8", "--sequence", "64", "--dtype", "fp16"]
    for words in (["latency"], ["roofline"], ["collectives", "--bytes", "1MiB"], ["estimate", *training], ["show", "--topology"]):
        command = [words[0], machine, *words[1:]]
        assert f"warning[{code}]:" in ran(*command)
        assert code in codes(ran(*command, "--json"))
    assert f"warning[{code}]:" in ran("latency", machine, "--explain", "mutex")


def test_a_code_that_nobody_lists_is_refused() -> None:
    with pytest.raises(ValueError, match="no warning 'something'"):
        Warning("something", "text")


def test_the_page_of_codes_lists_all_of_them() -> None:
    page = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == sorted(CODES)


def test_the_fastest_row_says_what_it_exceeds(files: Path) -> None:
    machine = (
        "hwsim: machine/1\nclass: ideal\nlet: {n: 1}\nsupply: 2 kW\nparts:\n"
        + CPU
        + GPU.replace("COUNT", "$n")
        + SLOT.replace("GPUS", "gpu*")
    )
    split = "hwsim: workload/1\nprogram: {each: gpu*, do: [{compute: {flop: 1e15 FLOP / $ranks, dtype: fp16, bytes: 1 kB}}]}\n"
    text = str(hwsim.sweep(machine, split, {"let.n": (1, 2, 4, 8)}, workers=1))
    assert "1.25 s at n 8 (warning power-over-budget)" in text
    assert "within the limits of the machine: 2.50 s at n 4" in text
    assert "a  warning[power-over-budget], 1 of 4 rows: the machine" in text


def test_programs_that_differ_are_not_expected_to_fold() -> None:
    text = "hwsim: workload/1\nprograms:\n" + "".join(
        f"  p{n}: [{{busy: {{device: cpu, time: {n + 1} ms}}}}]\n" for n in range(70)
    )
    assert hwsim.simulate(machine(), text).warnings == ()
    run = hwsim.simulate(machine(), text, fold="always")
    assert [warning.code for warning in run.warnings] == ["not-folded"]
    assert "warning: not-folded: " in run._repr_html_()


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("program: [{busy: {device: gpu, time: 1 ms, writes: {x: 40 GB}}}]", "out of memory on gpu"),
        ("program: [{write: {to: disk, bytes: 4 GB}}]", "disk-full"),
    ],
)
def test_a_run_that_the_machine_cannot_do_meets_nothing(file: str, why: str, tmp_path: Path) -> None:
    machine = tmp_path / "m.yaml"
    machine.write_text("""\
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {size: 64 GB, bandwidth: 100 GB/s}}
  gpu: {kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
  disk: {kind: disk, size: 1 GB, read: 1 GB/s, write: 1 GB/s}
links: [{name: a, between: [cpu, gpu], kind: pcie, bandwidth: 10 GB/s},
        {name: b, between: [cpu, disk], kind: direct, bandwidth: 10 GB/s}]
""")
    workload = tmp_path / "w.yaml"
    workload.write_text(f"hwsim: workload/1\nexpect: {{makespan: at most 10 h}}\n{file}\n")
    said = command.hwsim(
        "simulate", machine, workload, "--expect", "--json", code=3 if why.startswith("out of memory") else 0
    ).output
    assert f'"the machine cannot do what was simulated: {why}"' in said
    assert '"status": "met"' not in said
