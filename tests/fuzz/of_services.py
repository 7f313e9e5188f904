"""Cases of services, served models and simulated plans, made small."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

from tests.fuzz import corpus
from tests.fuzz.case import Made, as_json, shown, text
from tests.fuzz.damage import damaged, paths, scaled

COMMANDS: Final = ("simulate", "simulate", "simulate", "check", "check", "compare")
SERVED: Final[dict[str, Any]] = {
    "hwsim": "workload/1",
    "infer": {"model": "gpt2", "device": "gpu0", "arrivals": {"poisson": "20 1/s"}, "requests": 3, "prompt": 50, "output": 4},
}
ASKED: Final = (
    ["--vary", "n=10,100", "--minimise", "time"],
    ["--vary", "n=5..50:x2", "--require", "time at most 1 ms", "--minimise", "cost", "--prices", "list"],
    ["--vary", "workload.runtime.dispatch=10 us,20 us", "--maximise", "tokens/s"],
)


@cache
def _services() -> tuple[Any, ...]:
    made = []
    for document in corpus.documents("workloads/services"):
        made.append({**document, "for": "20 ms"})
        made[-1].pop("events", None)
        made[-1].pop("expect", None)
    return tuple(made)


@cache
def _serving() -> tuple[Any, ...]:
    made = [SERVED, SERVED]
    for document in corpus.documents("workloads/serving"):
        if isinstance(document.get("infer"), dict):
            infer = {**document["infer"], "requests": 3, "model": "gpt2", "device": "gpu0"}
            made.append({"hwsim": "workload/1", "let": document.get("let", {}), "infer": infer})
    return tuple(made)


def services(dice: random.Random) -> Made:
    """Services that answer requests: damaged, or with a setting."""
    return _changed(dice, _services(), "web-server")


def serving(dice: random.Random) -> Made:
    """A served model."""
    return _changed(dice, _serving(), dice.choice((*5 * ("d2l-4gpu-pcie",), "dgx-a100")))


def _changed(dice: random.Random, documents: tuple[Any, ...], machine: str) -> Made:
    document = dice.choice(documents)
    command, arguments = dice.choice(COMMANDS), ["workload.yaml"]
    if dice.random() < 0.4:
        path, value = dice.choice(list(paths(document)))
        setting = f"workload.{path}={shown(scaled(value, dice))}"
        command = "simulate" if command == "check" else command
        more = ["--set-b", setting] if command == "compare" else ["--set", setting]
        return [command, machine, *arguments, *more], {"workload.yaml": text(document)}
    made = damaged(document, dice, lambda: dice.choice(documents))
    files = {"workload.yaml": text(made) if dice.random() < 0.3 else as_json(made)}
    if command == "check":
        return ["check", *arguments, "--on", machine], files
    more = ["--set-b", "workload.for=10 ms"] if command == "compare" else dice.choice(([], [], ["--json"]))
    return [command, machine, *arguments, *more], files


def planned(dice: random.Random) -> Made:
    """A plan that is carried out: small loops, without many simulations."""
    more = list(dice.choice(ASKED))
    if dice.random() < 0.7:
        at = dice.randrange(len(more))
        more[at] = dice.choice((shown(scaled(more[at], dice)), more[at].replace("n=", "m="), more[at] + ",7", more[at][:-2]))
    more += dice.choice(
        ([], ["--json"], ["--simulate", "0"], ["--rent", "on_demand"], ["--period", "0 s"], ["--journal", "p.jsonl"])
    )
    files = {}
    if dice.random() < 0.3:
        found = corpus.documents("machines/prices")
        files["prices.yaml"] = text(damaged(dice.choice(found), dice, lambda: dice.choice(found)))
        more += ["--prices", "prices.yaml"]
    if "p.jsonl" in more and dice.random() < 0.5:
        files["p.jsonl"] = corpus.journal()
    return ["plan", "d2l-laptop", "d2l/async-loop", *more], files
