"""The engine written out in SimPy plays every run of the library, to the same bytes; and each keeps what its file promises."""

from __future__ import annotations

from json import loads

import pytest

from hwsim import api
from hwsim.engine import Which
from hwsim.spec import find, names, read
from hwsim.views.summary import document as json
from tests.command import hwsim

LARGE = {"imagenet-epoch", "llama3-8b-serving", "resnet50-dp", "scale/tp8-dp", "d2l/hybridize", "d2l/queue-memory"}
PAIRS = [
    pytest.param(str(wanted.text("machine")), name, id=name, marks=[pytest.mark.slow] if name in LARGE else [])
    for name in names("workload")
    if (wanted := read(find("workload", name)).get("expect")) is not None and wanted.get("machine") is not None
]


MANY = 40  # requests of a served model; of those whose 256 clients ask at once, 300


def document(machine: str, workload: str, engine: Which, changed: dict[str, object]) -> str:
    try:
        run = api.simulate(machine, workload, expect=not changed, engine=engine, set=changed)
    except api.OutOfMemory as verdict:
        run = verdict.run
    assert changed or {verdict.status for verdict in run.verdicts} <= {"met"}
    return json.document(run, ops=True, rank=None)


@pytest.mark.parametrize(("machine", "workload"), PAIRS)
def test_simpy_alone_says_what_the_fast_engines_say(machine: str, workload: str) -> None:
    fewer: dict[str, object] = {"workload.infer.requests": 300 if workload == "serving/offline" else MANY}
    served = read(find("workload", workload)).get("infer") is not None
    plain, usual = (document(machine, workload, engine, fewer if served else {}) for engine in ("simpy", "auto"))
    assert plain == usual
    assert not served or loads(usual)["serving"][0]["rows"]


@pytest.mark.parametrize("option", ["--engine=simpy"])
def test_the_command_line_offers_it(option: str) -> None:
    pair = ["simulate", "d2l-laptop", "d2l/async-loop", "--set", "n=50"]
    plain, usual = (hwsim(*pair, *options) for options in (option.split(), option.split()[:-1]))
    assert plain.output == usual.output
