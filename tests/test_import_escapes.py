"""No string of any importer's file commands the terminal: a marker goes into every string, and comes out of none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hwsim.importers.chakra_nodes import ChakraNodeKind, ChakraTrace, attribute, node, pack
from tests.calibrate_logs import FOLDER, LOGS, PARTS
from tests.command import hwsim
from tests.traces import dumps, kineto, run, write_nsys

MARKER = "\x1b]0;x\x07\u202e\x9b"
RAW = [char.encode() for char in ("\x1b", "\x07", "\u202e", "\x9b")]
HF = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, "_name_or_path": "a/b", "hidden_act": "silu",
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every string; of a key, the path of its value and `None`."""
    if isinstance(value, str) and not value.startswith("@"):
        yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield (*path, key, None)
        yield from places(child, (*path, key))


def marked(value: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return value + MARKER
    copy = dict(value) if isinstance(value, dict) else list(value)
    if path[1:] == (None,):
        copy[path[0] + MARKER] = copy.pop(path[0])
    else:
        copy[path[0]] = marked(copy[path[0]], path[1:])
    return copy


def distinct(document: Any) -> Iterator[Any]:
    """A document for each string, of those that differ in more than the number of an event."""
    seen = set()
    for path in places(document):
        at: Any = document
        for key in path:
            at = path[-2] if key is None else at[key]
        kind = tuple(key for key in path if not isinstance(key, int)), str(at)
        if kind not in seen:
            seen.add(kind)
            yield marked(document, path)


def check(folder: Path, *arguments: str, output: str = "") -> None:
    """Nothing raw in what a command prints or writes."""
    for more in ((), ("--json",), *([("-o", str(folder / output))] if output else [])):
        done = hwsim(*arguments, *more, code=None)
        assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
        written = (folder / output).read_bytes() if more[:1] == ("-o",) and (folder / output).exists() else b""
        for name, data in (("stdout", done.stdout_bytes), ("stderr", done.stderr_bytes), (output, written)):
            assert not any(raw in data for raw in RAW), (name, data[:2000])
        if more == ("--json",) and done.exit_code == 0:
            json.loads(done.stdout)
        if output:
            (folder / output).unlink(missing_ok=True)


@pytest.mark.parametrize("tool", ["kineto", "huggingface"])
def test_no_string_of_json_reaches_the_terminal(tool: str, tmp_path: Path) -> None:
    file = tmp_path / "rank0.json"
    document: Any = {"kineto": kineto(run(world=2, steps=1, layers=1), host="a"), "huggingface": HF}[tool]
    for changed in distinct(document):
        file.write_text(dumps(changed))
        check(tmp_path, "import", tool, str(file), output="m.yaml" * (tool == "huggingface"))


def test_no_string_of_chakra_reaches_the_terminal(tmp_path: Path) -> None:
    def name(called: str, value: str) -> Any:
        return attribute(called, "string", value)

    odd = MARKER + "a"
    for head, nodes in (
        (name(odd, "x"), ()), (name("hwsim.gpu.0", odd), ()), (name("hwsim.host", odd), ()),
        *((name("x", "x"), graph) for graph in (
            (node(1, odd, ChakraNodeKind.COMP, duration=5),), (node(1, "a", ChakraNodeKind.COMP, duration=5,
            attributes=(name(odd, "x"),)),),
            (node(1, "a", ChakraNodeKind.COMP, duration=5, attributes=(name("kernel", odd),)),),
            (node(1, "a", ChakraNodeKind.COMP, duration=5, attributes=(name("hwsim.lane", odd),)),),
            (node(1, "a", ChakraNodeKind.COLLECTIVE, duration=5, attributes=(name("pg_name", odd),)),))),
    ):  # fmt: skip
        (tmp_path / "a.0.et").write_bytes(
            pack(ChakraTrace("0.0.4", (head,), nodes or (node(1, "a", ChakraNodeKind.COMP, duration=5),)))
        )
        check(tmp_path, "import", "chakra", str(tmp_path / "a.0.et"))


def test_no_string_of_nsight_reaches_the_terminal(tmp_path: Path) -> None:
    for table, column in (("StringIds", "value"), ("TARGET_INFO_GPU", "name"), ("NVTX_EVENTS", "text")):
        file = write_nsys(tmp_path / f"{table}.sqlite", {1000: run(steps=1, layers=1)})
        with closing(sqlite3.connect(file)) as base:
            base.execute(f"UPDATE {table} SET {column} = {column} || ?", (MARKER,))
            base.execute(f'CREATE TABLE "odd{MARKER}" (start INT, end INT)')
            base.execute(f'INSERT INTO "odd{MARKER}" VALUES (1, 2)')
            base.commit()
        check(tmp_path, "import", "nsys", str(file))


@pytest.mark.parametrize("tool", LOGS)
def test_no_line_of_a_log_reaches_the_terminal(tool: str, tmp_path: Path) -> None:
    lines = (FOLDER / LOGS[tool]).read_text().split("\n")
    part = ["--part", PARTS[tool]] if tool in PARTS else []
    for number in range(0, len(lines), max(1, len(lines) // 3)):
        changed = [line + MARKER if index == number else line for index, line in enumerate(lines)]
        (tmp_path / "log").write_text("\n".join(changed))
        check(tmp_path, "import", tool, str(tmp_path / "log"), *part, output="part.yaml")
