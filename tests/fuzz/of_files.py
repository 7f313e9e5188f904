"""Cases of files of YAML, settings and options: machines, workloads, parts, studies, plans."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

import click

from hwsim.cli import COMMANDS, main
from tests.fuzz import corpus
from tests.fuzz.case import Made, shown, text, written
from tests.fuzz.damage import VALUES, damaged, paths, scaled, torn

READERS: Final = (*6 * ("simulate",), *6 * ("check",), "show", "explain", "sensitivity", "compare")
DRAWN: Final = frozenset({"plot", "report", "animate", "interval"})
OF_MACHINES: Final = ("check", "show", "roofline", "latency", "collectives", "estimate")
OTHERS: Final = (
    "machines/parts", "machines/classes", "machines/failures", "machines/prices", "workloads/models", "workloads/runtimes",
    "workloads/frameworks",
)  # fmt: skip
NOT_PLAYED: Final = frozenset(
    {"explore", "calibrate", "record", "new", "schema"}
)  # they serve, measure, run scripts, write where they are, or say the same each time


def _pair(dice: random.Random, which: str, *, bytewise: bool = False) -> Made:
    """A machine and a workload, one of them damaged."""
    machine, workload = corpus.pair(dice)
    documents = {"machine": machine, "workload": workload}
    if not bytewise:
        documents[which] = damaged(documents[which], dice, lambda: corpus.pair(dice)[which == "workload"])
    files = {f"{name}.yaml": written(document, dice) for name, document in documents.items()}
    if bytewise:
        files[f"{which}.yaml"] = torn(text(documents[which]), dice)
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
            more = dice.choice(([], [], ["--json", "--ops"], ["--fold"], ["--no-fold"], ["--interval"], ["--trace", "t.json.gz"]))
            return ["simulate", *both, *more]
        case "explain":
            return ["explain", *both, *([] if dice.random() < 0.1 else ["--no-what-if"])]
        case command:
            return [command, *both]


def machine(dice: random.Random) -> Made:
    if dice.random() < 0.6:
        return _pair(dice, "machine")
    found = corpus.documents("machines")
    files = {"machine.yaml": written(damaged(dice.choice(found), dice, lambda: dice.choice(found)), dice)}
    command = dice.choice(OF_MACHINES)
    more = {"estimate": ["gpt2"], "show": dice.choice(([], ["--topology"]))}.get(command, [])
    return [command, "machine.yaml", *more], files


def workload(dice: random.Random) -> Made:
    if dice.random() < 0.8:
        return _pair(dice, "workload")
    found = corpus.documents("workloads")
    files = {"workload.yaml": written(damaged(dice.choice(found), dice, lambda: dice.choice(found)), dice)}
    return [dice.choice(("check", "show")), "workload.yaml"], files


def torn_bytes(dice: random.Random) -> Made:
    return _pair(dice, dice.choice(("machine", "workload")), bytewise=True)


def setting(dice: random.Random) -> Made:
    """--set of any path to any value."""
    machine, workload = corpus.pair(dice)
    which, document = dice.choice((("machine", machine), ("workload", workload)))
    path, value = dice.choice(list(paths(document)) or [("let.n", 3)])
    new = shown(scaled(value, dice)) if dice.random() < 0.6 else _argument(dice)
    if dice.random() < 0.15:
        path = "".join(dice.choice((path, ".", "*", "[0]", "..", "name", "use")) for _ in range(dice.randint(1, 3)))
    setting = f"{which}.{path}={new}"
    files = {"machine.yaml": written(machine, dice), "workload.yaml": written(workload, dice)}
    if dice.random() < 0.15:
        return [
            "sweep",
            "machine.yaml",
            "workload.yaml",
            "--vary",
            setting.replace("=", f"={dice.choice(('', '1..4', '2,'))}"),
        ], files
    command = dice.choice([reader for reader in READERS if reader not in ("check", "show")])
    more = ["--set-b", setting] if command == "compare" else ["--set", setting]
    if command == "explain" and dice.random() < 0.9:
        more.append("--no-what-if")
    return [command, "machine.yaml", "workload.yaml", *more], files


def _argument(dice: random.Random) -> str:
    return shown(dice.choice(VALUES))


@cache
def _options() -> dict[str, list[click.Parameter]]:
    context = click.Context(main)
    played = [name for name in COMMANDS if name not in NOT_PLAYED]
    commands = {name: main.get_command(context, name) for name in played}
    return {
        name: command.params for name, command in commands.items() if command is not None and not isinstance(command, click.Group)
    }


def option(dice: random.Random) -> Made:
    """Any options of any command, with values of any kind."""
    name = dice.choice(list(_options()))
    machine, workload = corpus.pair(dice)
    files = {
        "machine.yaml": written(machine, dice),
        "workload.yaml": written(workload, dice),
        "study.yaml": corpus.STUDY.encode(),
    }
    given = {"study": ["study.yaml"], "check": ["machine.yaml", "workload.yaml"], "show": ["machine.yaml"],
             "estimate": ["dgx-a100", "gpt2"]}.get(name, ["machine.yaml", "workload.yaml"])  # fmt: skip
    if name in ("latency", "collectives"):
        given = ["machine.yaml"]
    options = [param for param in _options()[name] if isinstance(param, click.Option) and param.name != "workers"]
    arguments = [name, *given]
    for option in dice.sample(options, min(len(options), dice.randint(1, 3))):
        if option.name in DRAWN and dice.random() < 0.9:  # a figure takes as long as fifty other cases
            continue
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


def study(dice: random.Random) -> Made:
    document = dice.choice(corpus.studies())
    made = damaged(document, dice, lambda: dice.choice(corpus.documents("workloads/planning") or (document,)))
    data = written(made, dice) if dice.random() < 0.8 else torn(text(document), dice)
    return [dice.choice(("study", "check")), "study.yaml", *dice.choice(([], ["--set", f"n={_argument(dice)}"]))], {
        "study.yaml": data
    }


def plan(dice: random.Random) -> Made:
    found = corpus.documents("workloads/planning")
    made = damaged(dice.choice(found), dice, lambda: dice.choice(found))
    return ["check", "plan.yaml"], {"plan.yaml": written(made, dice)}


def other(dice: random.Random) -> Made:
    """A part, a class, a model, a runtime, prices or failures."""
    folder = dice.choice(OTHERS)
    found = corpus.documents(folder)
    data = written(damaged(dice.choice(found), dice, lambda: dice.choice(found)), dice)
    if folder == "workloads/models" and dice.random() < 0.6:
        return ["estimate", "dgx-a100", "other.yaml"], {"other.yaml": data}
    if folder == "machines/prices" and dice.random() < 0.5:
        return ["simulate", "d2l-laptop", "d2l/async-loop", "--set", "n=5", "--prices", "other.yaml"], {"other.yaml": data}
    return [dice.choice(("check", "check", "show")), "other.yaml"], {"other.yaml": data}
