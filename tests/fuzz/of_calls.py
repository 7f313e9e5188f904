"""Cases that are no command: questions to the explorer, and calls of `import hwsim`; and how they are played."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import hwsim
from hwsim.explorer.questions import HAND, REST
from hwsim.explorer.worker import WorkerState
from hwsim.results.invariants import BrokenInvariant
from tests.fuzz import corpus
from tests.fuzz.case import Case, Made, text
from tests.fuzz.damage import VALUES, damaged, paths, scaled

NEAR: Final = 3  # functions of hwsim that a wrong type may pass
DOORS: Final = sorted(HAND | REST)
RARE: Final = ("more", "grid", "saved", "effects", "animated", "curve")  # these take longest
ODD: Final[tuple[Any, ...]] = (  # values that no file can have; a case names them by number
    (1, 2), {1}, b"x", np.float64(2.5), np.int64(3), np.float32("nan"), float("nan"), float("inf"), Decimal("1.5"),
    Fraction(1, 3), Path("x.yaml"), date(2026, 1, 1), object(), int, len, 1j, range(3), np.array([1, 2]), np.bool_(1),
    {1: 2}, {None: 1}, "a\0b", 10**5000, -0.0, True, frozenset(), "\ud800", bytearray(b"1"), [[[]]], Ellipsis,
)  # fmt: skip
CALLS: Final = (
    ("simulate", 2), ("simulate", 2), ("simulate", 2), ("explain", 2), ("check", 1), ("latency", 1), ("collectives", 1),
    ("roofline", 1), ("topology", 1), ("show", 1), ("schema", 1), ("sweep", 3), ("loads", 1), ("estimate", 2), ("plan", 2),
    ("compare", 2), ("find", 2), ("sensitivity", 2), ("load_graph", 1), ("study", 1), ("export", 4), ("new", 1),
)  # fmt: skip
WORDS: Final = (
    "set", "expect", "fold", "steady", "interval", "machine", "workload", "prices", "workers", "journal", "seed", "nodes", "tp",
    "batch", "global_batch", "vary", "minimise", "path", "strict", "kind", "nothing",
)  # fmt: skip


class Answer(NamedTuple):
    """What came of a call: defect is "" for an answer or a refusal."""

    code: int
    defect: str
    shown: str


def explorer(dice: random.Random) -> Made:
    """A question of the page, with damaged texts or values of other types."""
    machine, workload = corpus.pair(dice)
    question: dict[str, Any] = {
        "machine": text(machine).decode("utf-8", "replace"), "workload": text(workload).decode("utf-8", "replace"), "set": {},
        "file": "machine", "line": 3, "column": 2, "op": 1, "path": "times", "values": ["2"], "paths": [], "steps": 2,
        "kind": "machine", "name": "d2l-laptop", "pixels": 100, "part": [0, 1], "scene": "timeline", "called": {},
    }  # fmt: skip
    found = list(paths({"machine": machine, "workload": workload}))
    path, value = dice.choice(found)
    changed = scaled(value, dice)
    question["set"] = {path: changed if isinstance(changed, str) else json.dumps(changed)}
    if dice.random() < 0.5:
        question = damaged(question, dice, lambda: question)
    door = dice.choice(RARE) if dice.random() < 0.04 else dice.choice([route for route in DOORS if route not in RARE])
    return ["explorer", door], {"question.json": json.dumps(question).encode("utf-8", "surrogatepass")}


def python(dice: random.Random) -> Made:
    """A call of a function with values that are or are not of its types."""
    name, number = dice.choice(CALLS)
    machine, workload = corpus.pair(dice)
    if dice.random() < 0.5:
        machine = damaged(machine, dice, lambda: workload)
    given: list[Any] = [machine, workload, {"n": ["1", 2]}, "out"][:number]
    if name in ("show", "schema", "new", "load_graph", "estimate", "export"):
        given = ["d2l-laptop", "gpt2", "kineto", "out"][:number]
    if dice.random() < 0.5:
        given[dice.randrange(number)] = dice.choice(("d2l-laptop", "d2l/async-loop", "nope", "", "x.yaml", "hwsim: machine/1\n"))
    named = {dice.choice(WORDS): dice.choice(VALUES) for _ in range(dice.choice((0, 0, 1, 2)))}
    if dice.random() < 0.6:
        path, value = dice.choice(list(paths({"machine": machine, "workload": workload})) or [("n", 1)])
        named["set"] = {path: scaled(value, dice)}
    call = {"given": given, "named": named}
    if dice.random() < 0.5:
        spots = [(inside, key) for inside, key in _spots(call) if inside is not call]
        if spots:
            inside, key = dice.choice(spots)
            inside[key] = {"odd": dice.randrange(len(ODD))}
    return ["python", name], {"call.json": json.dumps(call).encode("utf-8", "surrogatepass")}


def _spots(value: Any) -> list[tuple[Any, Any]]:
    from tests.fuzz.damage import spots

    return list(spots(value))


@cache
def _desk() -> WorkerState:
    return WorkerState(())


def ask(case: Case) -> Answer:
    """Play a question."""
    status, said = _desk().answered(case.arguments[1], json.loads(case.files["question.json"].decode("utf-8", "surrogatepass")))
    if status not in (200, 400):
        return Answer(status, f"explorer: {said.decode()[:100]}", said.decode()[:3000])
    return Answer(status, "", "")


def call(case: Case) -> Answer:
    """Play a call: an answer, or an error that a line of hwsim raises on purpose."""
    said = json.loads(case.files["call.json"].decode("utf-8", "surrogatepass"), object_hook=_odd)
    function: Callable[..., Any] = getattr(hwsim, case.arguments[1])
    try:
        answer = function(*said["given"], **said["named"])
        str(answer)
        if hasattr(answer, "to_json"):
            json.dumps(answer.to_json(), allow_nan=False)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except Exception as error:
        if is_refusal(error):
            return Answer(2, "", "")
        raise
    return Answer(0, "", "")


def is_refusal(error: Exception) -> bool:
    """Whether an error is a refusal: a line of hwsim begins with `raise`, the system says it, or an argument has a type that the
    first functions of hwsim cannot use, which Python says itself."""
    if isinstance(error, BrokenInvariant):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/hwsim/" in frame.filename.replace("\\", "/")]
    if isinstance(error, OSError) or (isinstance(error, TypeError | AttributeError | ValueError) and len(own) <= NEAR):
        return True
    return (frames[-1].line or "").startswith("raise ")


def _odd(given: dict[str, Any]) -> Any:
    return ODD[given["odd"]] if given.keys() == {"odd"} and isinstance(given["odd"], int) and given["odd"] < len(ODD) else given
