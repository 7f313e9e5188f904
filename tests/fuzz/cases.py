"""A case from a kind and a seed: files, and the arguments of a command. The same seed gives the same case."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import click
import yaml

from hwsim.cli import COMMANDS, main
from tests.fuzz import corpus
from tests.fuzz.damage import VALUES, damaged, scaled, torn

READERS: Final = ("simulate", "simulate", "simulate", "explain", "check", "check", "show", "sensitivity", "compare")
OF_MACHINES: Final = ("check", "show", "roofline", "latency", "collectives", "estimate")
DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
OTHERS: Final = (
    "machines/parts", "machines/classes", "machines/failures", "machines/prices", "workloads/models", "workloads/runtimes",
    "workloads/frameworks",
)  # fmt: skip
NOT_PLAYED: Final = frozenset(
    {"explore", "calibrate", "record", "new"}
)  # they serve, measure, run scripts, or write where they are


@dataclass(frozen=True)
class Case:
    """Files by name, and arguments."""

    kind: str
    seed: int
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


def case_of(kind: str, seed: int) -> Case:
    """The case of a seed."""
    try:
        arguments, files = KINDS[kind](random.Random(f"{kind} {seed}"))
    except RecursionError:  # nested so deep that it cannot be written
        arguments, files = KINDS[kind](random.Random(f"{kind} {seed} again"))
    return Case(kind, seed, tuple(arguments), files)


Made = tuple[list[str], dict[str, bytes]]


def text(document: Any) -> bytes:
    """A document as a file; JSON is YAML."""
    written = yaml.dump(document, Dumper=DUMPER, allow_unicode=True, sort_keys=False)
    return str(written).encode("utf-8", "surrogatepass")


def _pair(dice: random.Random, which: str, *, bytewise: bool = False) -> Made:
    """A machine and a workload, one of them damaged."""
    machine, workload = corpus.pair(dice)
    documents = {"machine": machine, "workload": workload}
    if not bytewise:
        documents[which] = damaged(documents[which], dice, lambda: corpus.pair(dice)[which == "workload"])
    files = {f"{name}.yaml": text(document) for name, document in documents.items()}
    if bytewise:
        files[f"{which}.yaml"] = torn(files[f"{which}.yaml"], dice)
    return _reading(dice), files


def _reading(dice: random.Random) -> list[str]:
    """A command that reads both files."""
    both = ["machine.yaml", "workload.yaml"]
    match dice.choice(READERS):
        case "check":
            return ["check", *both] if dice.random() < 0.5 else ["check", "workload.yaml", "--on", "machine.yaml"]
        case "show":
            return ["show", dice.choice(both)]
        case "compare":
            return ["compare", *both, "--set-b", "workload.let.n=3"]
        case "simulate":
            more = dice.choice(
                ([], [], ["--json", "--ops"], ["--steady"], ["--fold"], ["--no-fold"], ["--interval"], ["--trace", "t.json.gz"])
            )
            return ["simulate", *both, *more]
        case command:
            return [command, *both]


def _machine(dice: random.Random) -> Made:
    if dice.random() < 0.6:
        return _pair(dice, "machine")
    found = corpus.documents("machines")
    files = {"machine.yaml": text(damaged(dice.choice(found), dice, lambda: dice.choice(found)))}
    command = dice.choice(OF_MACHINES)
    more = {"estimate": ["gpt2"], "show": dice.choice(([], ["--topology"]))}.get(command, [])
    return [command, "machine.yaml", *more], files


def _workload(dice: random.Random) -> Made:
    if dice.random() < 0.8:
        return _pair(dice, "workload")
    found = corpus.documents("workloads")
    files = {"workload.yaml": text(damaged(dice.choice(found), dice, lambda: dice.choice(found)))}
    return [dice.choice(("check", "show")), "workload.yaml"], files


def _bytes(dice: random.Random) -> Made:
    return _pair(dice, dice.choice(("machine", "workload")), bytewise=True)


def _setting(dice: random.Random) -> Made:
    """--set of any path to any value."""
    machine, workload = corpus.pair(dice)
    which, document = dice.choice((("machine", machine), ("workload", workload)))
    path, value = dice.choice(list(_paths(document)) or [("let.n", 3)])
    new = _shown(scaled(value, dice)) if dice.random() < 0.6 else _argument(dice)
    if dice.random() < 0.15:
        path = "".join(dice.choice((path, ".", "*", "[0]", "..", "name", "use")) for _ in range(dice.randint(1, 3)))
    setting = f"{which}.{path}={new}"
    files = {"machine.yaml": text(machine), "workload.yaml": text(workload)}
    if dice.random() < 0.15:
        return [
            "sweep",
            "machine.yaml",
            "workload.yaml",
            "--vary",
            setting.replace("=", f"={dice.choice(('', '1..4', '2,'))}"),
        ], files
    command = dice.choice([each for each in READERS if each not in ("check", "show")])
    more = ["--set-b", setting] if command == "compare" else ["--set", setting]
    return [command, "machine.yaml", "workload.yaml", *more], files


def _paths(document: Any, before: str = "") -> Any:
    for key in document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        yield f"{before}{key}", document[key]
        yield from _paths(document[key], f"{before}{key}.")


def _argument(dice: random.Random) -> str:
    return _shown(dice.choice(VALUES))


def _shown(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value)).replace("\0", "")


@cache
def _options() -> dict[str, list[click.Parameter]]:
    context = click.Context(main)
    played = [name for name in COMMANDS if name not in NOT_PLAYED]
    commands = {name: main.get_command(context, name) for name in played}
    return {
        name: command.params for name, command in commands.items() if command is not None and not isinstance(command, click.Group)
    }


def _option(dice: random.Random) -> Made:
    """Any options of any command, with values of any kind."""
    name = dice.choice(list(_options()))
    machine, workload = corpus.pair(dice)
    files = {"machine.yaml": text(machine), "workload.yaml": text(workload), "study.yaml": corpus.STUDY.encode()}
    given = {"study": ["study.yaml"], "check": ["machine.yaml", "workload.yaml"], "show": ["machine.yaml"], "schema": ["machine"],
             "estimate": ["dgx-a100", "gpt2"]}.get(name, ["machine.yaml", "workload.yaml"])  # fmt: skip
    if name in ("latency", "collectives"):
        given = ["machine.yaml"]
    options = [each for each in _options()[name] if isinstance(each, click.Option) and each.name not in ("cluster", "workers")]
    arguments = [name, *given]
    for option in dice.sample(options, min(len(options), dice.randint(1, 3))):
        arguments.append(dice.choice([*option.opts, *option.secondary_opts]))
        arguments += [_value(option.type, dice) for _ in range(0 if option.is_flag else option.nargs)]
    return arguments, files


def _value(kind: click.ParamType[Any], dice: random.Random) -> str:
    if isinstance(kind, click.Choice) and dice.random() < 0.8:
        return str(dice.choice(list(kind.choices)))
    if isinstance(kind, click.Path) and dice.random() < 0.8:
        return dice.choice(("out.svg", "out.png", "out.csv", "out.json", "out.html", "machine.yaml", "x/out.svg", ".", "out"))
    if isinstance(kind, click.types.IntParamType) and dice.random() < 0.7:
        return str(dice.choice((0, 1, 2, 8, -1, 10**6, 10**20)))
    return _argument(dice)


def _study(dice: random.Random) -> Made:
    document = yaml.safe_load(dice.choice((corpus.STUDY, corpus.DRAWN)))
    made = damaged(document, dice, lambda: dice.choice(corpus.documents("workloads/planning") or (document,)))
    data = text(made) if dice.random() < 0.8 else torn(text(document), dice)
    return [dice.choice(("study", "check")), "study.yaml", *dice.choice(([], ["--set", f"n={_argument(dice)}"]))], {
        "study.yaml": data
    }


def _plan(dice: random.Random) -> Made:
    found = corpus.documents("workloads/planning")
    made = damaged(dice.choice(found), dice, lambda: dice.choice(found))
    return ["check", "plan.yaml"], {"plan.yaml": text(made)}


def _other(dice: random.Random) -> Made:
    """A part, a class, a model, a runtime, prices or failures."""
    folder = dice.choice(OTHERS)
    found = corpus.documents(folder)
    data = text(damaged(dice.choice(found), dice, lambda: dice.choice(found)))
    if folder == "workloads/models" and dice.random() < 0.6:
        return ["estimate", "dgx-a100", "other.yaml"], {"other.yaml": data}
    if folder == "machines/prices" and dice.random() < 0.5:
        return ["simulate", "d2l-laptop", "d2l/async-loop", "--set", "n=5", "--prices", "other.yaml"], {"other.yaml": data}
    return [dice.choice(("check", "check", "show")), "other.yaml"], {"other.yaml": data}


def _archive(dice: random.Random) -> Made:
    """An op graph, torn as bytes or with other tables and columns."""
    if dice.random() < 0.3:
        return ["simulate", "d2l-4gpu-pcie", "graph.parquet"], {"graph.parquet": torn(corpus.table(), dice)}
    if dice.random() < 0.3:
        return ["simulate", "d2l-4gpu-pcie", "graph.npz"], {"graph.npz": torn(corpus.graph(), dice)}
    return ["simulate", "d2l-4gpu-pcie", "graph.npz"], {"graph.npz": _rewritten(corpus.graph(), dice)}


def _rewritten(data: bytes, dice: random.Random) -> bytes:
    import io

    import numpy as np

    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
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


def _json(dice: random.Random, data: bytes) -> bytes:
    """A JSON file, damaged as a document or as bytes, packed or not."""
    document = json.loads(data)
    made = (
        json.dumps(damaged(document, dice, lambda: document)).encode("utf-8", "surrogatepass")
        if dice.random() < 0.7
        else torn(data, dice)
    )
    if dice.random() < 0.3:
        made = corpus.packed(made)
        return torn(made, dice) if dice.random() < 0.5 else made
    return made


def _profile(dice: random.Random) -> Made:
    return ["import", "kineto", "run.json", *dice.choice(([], ["--json"]))], {"run.json": _json(dice, corpus.kineto())}


def _measured(dice: random.Random) -> Made:
    match dice.randrange(4):
        case 0:
            name, data = "t.csv", torn(corpus.TIMES.encode(), dice)
        case 1:
            name, data = "t.json", _json(dice, corpus.result())
            return ["compare", "t.json", "u.json"], {"t.json": data, "u.json": corpus.result()}
        case 2:
            name, data = "measured.json.gz", _json(dice, json.dumps(corpus.RECORDED).encode())
        case _:
            name, data = "t.json", _json(dice, json.dumps([{"op": "y", "times": 1000, "total": "0.3 s"}]).encode())
    return ["compare", "d2l-laptop", "d2l/async-loop", name], {name: data}


def _earlier(dice: random.Random) -> Made:
    sweep = ["sweep", "d2l-laptop", "d2l/async-loop", "--vary", "n=1..4"]
    if dice.random() < 0.5:
        return [*sweep, "--resume", "s.csv"], {"s.csv": torn(corpus.rows(), dice)}
    return [*sweep, "-o", "s.csv"], {"s.journal.jsonl": _journal(dice)}


def _journal(dice: random.Random) -> bytes:
    head, *rows = corpus.journal().splitlines()
    if dice.random() < 0.4:
        return torn(corpus.journal(), dice)
    made = [json.dumps(damaged(json.loads(row), dice, lambda: json.loads(dice.choice(rows)))) for row in rows]
    return b"\n".join([head, *(each.encode("utf-8", "surrogatepass") for each in made)]) + b"\n"


def _trace(dice: random.Random) -> Made:
    """A trace of arrivals."""
    lines = "".join(f"{at * dice.choice((1, 2))},{dice.randint(1, 500)},{dice.randint(1, 50)}\n" for at in range(8))
    data = torn(f"arrival,prompt,output\n{lines}".encode(), dice)
    workload = {
        "hwsim": "workload/1",
        "infer": {"model": "gpt2", "device": "gpu0", "arrivals": {"trace": "a.csv"}, "requests": 5},
    }
    made = (
        workload if dice.random() < 0.5 else damaged(workload, dice, lambda: dice.choice(corpus.documents("workloads/serving")))
    )
    return ["simulate", "d2l-4gpu-pcie", "workload.yaml"], {"a.csv": data, "workload.yaml": text(made)}


KINDS: Final[dict[str, Callable[[random.Random], Made]]] = {
    "machine": _machine,
    "workload": _workload,
    "bytes of either": _bytes,
    "--set and --vary": _setting,
    "options": _option,
    "study": _study,
    "plan": _plan,
    "part, model, prices": _other,
    "op graph": _archive,
    "profile": _profile,
    "measurements": _measured,
    "earlier rows": _earlier,
    "trace of arrivals": _trace,
}
