"""Every answer of the library, frozen: a number that moves is meant to move, and the change log says why.

Each answer is the JSON of a command, its numbers rounded to twelve digits, as a hash in golden/freeze.json.
`pytest tests/test_freeze.py -m "slow or not slow" --update` accepts what is printed now; the names that changed are the ones
to explain.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from hwsim.spec import find, names, read
from tests.command import hwsim

GOLDEN: Final = Path(__file__).parent / "golden" / "freeze.json"
SLOW: Final = frozenset(
    {"imagenet-epoch", "llama3-8b-serving", "resnet50-dp", "bert-large", "scale/tp8-dp", "scale/mlp-dp", "d2l/hybridize",
     "d2l/queue-memory", "d2l/data-loading", "d2l/multi-gpu-resnet18", "d2l/layer-split", "mlperf-storage-cosmoflow"}
)  # fmt: skip
CLUSTERS: Final = (
    "dgx-2",
    "dgx-a100",
    "dgx-h100",
    "p3.16xlarge",
    "p4d.24xlarge",
    "p5.48xlarge",
    "d2l-4gpu-pcie",
    "d2l-8gpu-nvlink",
)
FEW: Final = ("--set", "workload.infer.requests=100")  # of a served model; all of them in the slow cases
NO_ROOF: Final = frozenset({"d2l-channels", "d2l-disks", "d2l-memory", "d2l-platters"})  # nothing computes there
MODELS: Final = ("gpt2-xl", "llama-3-8b", "llama-3-70b", "mixtral-8x7b")


def _cases() -> dict[str, tuple[tuple[str, ...], bool]]:
    """Name -> the command's words, and whether it is slow."""
    found: dict[str, tuple[tuple[str, ...], bool]] = {}

    def add(*words: str, slow: bool = False) -> None:
        found[" ".join(words)] = (words, slow)

    for workload in names("workload"):
        file = read(find("workload", workload))
        machine = expect.text("machine") if (expect := file.get("expect")) is not None else None
        for few in ((), FEW) if file.get("infer") is not None else ((),):
            if machine is not None:
                slow = not few and (workload in SLOW or file.get("infer") is not None)
                add("simulate", str(machine), workload, "--no-expect", "--json", "--ops", *few, slow=slow)
                add("explain", str(machine), workload, "--no-what-if", "--json", *few, slow=slow)
    for machine in CLUSTERS:
        add("collectives", machine, "--algorithm", "all", "--bytes", "1KiB..1GiB:x8", "--json", slow=True)
        for operation in ("all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"):
            add("collectives", machine, "--op", operation, "--bytes", "1KiB..1GiB:x8", "--json", slow=True)
    for machine in names("machine"):
        if not machine.startswith("scale/"):
            add("latency", machine, "--json", slow=True)
            if machine not in NO_ROOF:
                add("roofline", machine, "--json", "--links", slow=True)
    for machine in ("dgx-a100", "dgx-h100"):
        for model in MODELS:
            tp = "8" if model in ("llama-3-70b", "mixtral-8x7b") else "1"
            add("estimate", machine, model, "--nodes=4", "--plan=auto", "--global-batch=64", "--json", slow=True)
            for phase in ("decode", "prefill"):
                output = ("--output=64",) if phase == "decode" else ()
                words = (f"--infer={phase}", "--prompt=512", *output, "--batch=8", f"--tp={tp}", "--json")
                add("estimate", machine, model, *words, slow=True)
    return found


CASES: Final = _cases()


def rounded(value: Any) -> Any:
    """The same with floats of twelve digits: the last ones may depend on the mathematical library of a system.

    Without intervals, which move with every measurement that is added, and have tests of their own, and without places of files.
    """
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, dict):
        return {key: rounded(child) for key, child in value.items() if key != "interval" and not (key == "place" and child)}
    return [rounded(child) for child in value] if isinstance(value, list) else value


def answer(words: tuple[str, ...]) -> str:
    """A hash of what a command prints."""
    run = hwsim(*words, code=None)
    assert run.exit_code in (0, 3), run.output
    text = run.stdout
    shown = json.dumps(rounded(json.loads(text)), sort_keys=True) if text.startswith("{") else text
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if slow else []) for name, (_, slow) in CASES.items()]
)
def test_an_answer_of_the_library_is_what_it_was(name: str, update: bool) -> None:
    frozen: dict[str, str] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    now = answer(CASES[name][0])
    if update:
        kept = {case: value for case, value in {**frozen, name: now}.items() if case in CASES}
        GOLDEN.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
        return
    assert frozen.get(name) == now, f"hwsim {name}: another answer than before"
