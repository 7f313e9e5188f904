"""Cases of data that programs write: op graphs, profiles, measurements, rows of studies, traces, logs."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from typing import Any

import numpy as np

from tests.fuzz import corpus
from tests.fuzz.case import Made, text
from tests.fuzz.damage import damaged, json_damaged, torn


def archive(dice: random.Random) -> Made:
    """An op graph, torn as bytes or with other tables and columns."""
    if dice.random() < 0.3:
        return ["simulate", "d2l-4gpu-pcie", "graph.npz"], {"graph.npz": torn(corpus.graph(), dice)}
    return ["simulate", "d2l-4gpu-pcie", "graph.npz"], {"graph.npz": _rewritten(corpus.graph(), dice)}


@cache
def _arrays(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _rewritten(data: bytes, dice: random.Random) -> bytes:
    arrays = dict(_arrays(data))
    tables = json.loads(arrays["tables"].tobytes())
    if dice.random() < 0.7:
        made = json.dumps(damaged(tables, dice, lambda: tables)).encode("utf-8", "surrogatepass")
        arrays["tables"] = np.frombuffer(torn(made, dice) if dice.random() < 0.2 else made, np.uint8)
    else:
        column = arrays[name := dice.choice(list(arrays))].copy()
        if column.size:
            column.flat[dice.randrange(column.size)] = dice.choice(
                (-1, 0, 1, 100, 2**31 - 1) if column.dtype.kind == "i" else (0, 1, 2, 255)
            )
        arrays[name] = column
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def profile(dice: random.Random) -> Made:
    return ["import", "kineto", "run.json", *dice.choice(([], ["--json"]))], {"run.json": json_damaged(corpus.kineto(), dice)}


def measured(dice: random.Random) -> Made:
    match dice.randrange(4):
        case 0:
            name, data = "t.csv", torn(corpus.TIMES.encode(), dice)
        case 1:
            name, data = "t.json", json_damaged(corpus.result(), dice)
            return ["compare", "t.json", "u.json"], {"t.json": data, "u.json": corpus.result()}
        case 2:
            name, data = "measured.json.gz", json_damaged(json.dumps(corpus.RECORDED).encode(), dice)
        case _:
            name, data = "t.json", json_damaged(json.dumps([{"op": "y", "times": 1000, "total": "0.3 s"}]).encode(), dice)
    return ["compare", "d2l-laptop", "d2l/async-loop", name], {name: data}


def earlier(dice: random.Random) -> Made:
    return ["sweep", "d2l-laptop", "d2l/async-loop", "--vary", "n=1..4", "-o", "s.csv"], {"s.journal.jsonl": _journal(dice)}


def _journal(dice: random.Random) -> bytes:
    head, *rows = corpus.journal().splitlines()
    if dice.random() < 0.4:
        return torn(corpus.journal(), dice)
    made = [json.dumps(damaged(json.loads(row), dice, lambda: json.loads(dice.choice(rows)))) for row in rows]
    return b"\n".join([head, *(line.encode("utf-8", "surrogatepass") for line in made)]) + b"\n"


def trace(dice: random.Random) -> Made:
    """A trace of arrivals."""
    lines = "".join(f"{index * dice.choice((1, 2))},{dice.randint(1, 500)},{dice.randint(1, 50)}\n" for index in range(8))
    data = torn(f"arrival,prompt,output\n{lines}".encode(), dice)
    workload = {
        "hwsim": "workload/1",
        "infer": {"model": "gpt2", "device": "gpu0", "arrivals": {"trace": "a.csv"}, "requests": 5},
    }
    made = (
        workload if dice.random() < 0.5 else damaged(workload, dice, lambda: dice.choice(corpus.documents("workloads/serving")))
    )
    return ["simulate", "d2l-4gpu-pcie", "workload.yaml"], {"a.csv": data, "workload.yaml": text(made)}
