"""Cases of other programs' files: profiles, execution traces, configs, graphs of networks, logs, measurements, scripts."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hwsim.importers.chakra_nodes import ChakraNodeKind, ChakraTrace, attribute, node, pack
from tests import traces
from tests.calibrate_logs import FOLDER, LOGS, PARTS
from tests.fuzz.case import Made
from tests.fuzz.damage import json_damaged, torn

CELLS: Final = (None, -1, 0, 1, 2**31, 2**53, 2**62, -(2**63), 0.5, 1e300, "", "x", "\x1b[2J", "\u202e", b"\xff\x00")
CONFIG: Final[dict[str, Any]] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 172,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
    "max_position_embeddings": 512, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
}  # fmt: skip
EXPERTS: Final = {**CONFIG, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 4,
                  "num_experts_per_tok": 2}  # fmt: skip
SCRIPTS: Final = (
    "import numpy as np\na = np.ones(({n}, 30), np.{dtype})\nfor _ in range({times}):\n    np.{function}(a @ a.T)\n",
    "import numpy as np\nx = np.arange({n}, dtype=np.{dtype})\ny = np.{function}(x[::2])\nz = x.reshape({times}, -1)\n",
    "import sys\nimport numpy as np\nnp.{function}(np.zeros(({n}, {times})), axis={axis})\nsys.exit({times})\n",
    "import numpy as np\nwith np.errstate(all='ignore'):\n    r = np.random.default_rng({n}).normal(size={n})\n    r /= {axis}\n",
)
FUNCTIONS: Final = ("sum", "exp", "sort", "mean", "cumsum", "linalg.norm", "fft.fft", "unique", "concatenate", "nothing", "copy")


@cache
def nsys_file() -> bytes:
    """A report of Nsight Systems."""
    with TemporaryDirectory() as folder:
        return traces.write_nsys(Path(folder, "a.sqlite"), {1: traces.run(steps=1, layers=1)}).read_bytes()


@cache
def kineto_file() -> bytes:
    """A profile of PyTorch."""
    return traces.dumps(traces.kineto(traces.run(steps=1, layers=1))).encode()


@cache
def chakra_file() -> bytes:
    """The trace of a rank."""
    gpu = attribute("is_cpu_op", "bool", False)
    exchange = (gpu, attribute("comm_type", "int64", 0), attribute("comm_size", "int64", 4096))
    return pack(
        ChakraTrace(
            "0.0.4",
            (),
            (
                node(1, "forward", ChakraNodeKind.COMP, duration=30, attributes=(gpu, attribute("num_ops", "int64", 10**9))),
                node(2, "backward", ChakraNodeKind.COMP, data=(1,), duration=60, attributes=(gpu,)),
                node(3, "gradients", ChakraNodeKind.COLLECTIVE, data=(1,), duration=50, attributes=exchange),
            ),
        )
    )


def imported(dice: random.Random) -> Made:
    """Any file that `hwsim import` reads."""
    which = dice.choice(("kineto", "kineto", "nsys", "chakra", "huggingface", "huggingface"))
    more = dice.choice(([], [], ["--json"], ["-o", "out.npz"]))
    if which == "nsys":
        return ["import", which, "a.sqlite", *more], {
            "a.sqlite": torn(nsys_file(), dice) if dice.random() < 0.4 else _cell(nsys_file(), dice)
        }
    if which == "chakra":
        return ["import", which, "a.et", *more], {"a.et": torn(chakra_file(), dice)}
    if which == "huggingface":
        data = json.dumps(dice.choice((CONFIG, EXPERTS))).encode()
        return ["import", which, "config.json"], {"config.json": json_damaged(data, dice)}
    more = [*more, *dice.choice(([], [], ["--mode", "exact"], ["--gpu-times", "2"], ["--machine", "dgx-a100"], ["--step", "0"]))]
    return ["import", which, "a.json", *more], {"a.json": json_damaged(kineto_file(), dice)}


def _cell(data: bytes, dice: random.Random) -> bytes:
    """A database with one to three cells of other values, or without a table or column."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(data)
        tables = [name for (name,) in base.execute("select name from sqlite_master where type = 'table'")]
        for _ in range(dice.choice((1, 1, 2, 3))):
            table = dice.choice(tables)
            columns = [row[1] for row in base.execute(f"pragma table_info({table})")]
            if not columns:
                continue
            column = dice.choice(columns)
            with suppress(sqlite3.Error):
                match dice.randrange(8):
                    case 0:
                        base.execute(f"drop table {table}")
                    case 1:
                        base.execute(f"alter table {table} drop column {column}")
                    case 2:
                        base.execute(f"insert into {table} select * from {table}")
                    case _:
                        some = dice.choice(("", " where rowid = 1", " where rowid % 2"))
                        base.execute(f"update {table} set {column} = ?{some}", (dice.choice(CELLS),))
        base.commit()
        return bytes(base.serialize())


@cache
def _logs() -> dict[str, bytes]:
    return {tool: (FOLDER / name).read_bytes() for tool, name in LOGS.items()}


def logged(dice: random.Random) -> Made:
    """The log of a benchmark."""
    tool = dice.choice(list(_logs()))
    data = _logs()[tool]
    lines = data.split(b"\n")
    if dice.random() < 0.5:
        for _ in range(dice.choice((1, 1, 2))):
            at = dice.randrange(len(lines))
            words = lines[at].split(b" ")
            odd = dice.choice((b"nan", b"inf", b"-1", b"0", b"1e400", b"1e-320", b"9" * 30, b"", b"x", b"\x1b[31m", b"1e290"))
            words[dice.randrange(len(words))] = odd
            lines[at] = b" ".join(words)
        data = b"\n".join(lines)
    else:
        data = json_damaged(data, dice) if data[:1] == b"{" and data[-2:-1] == b"}" and tool != "vllm" else torn(data, dice)
    part = ["--part", PARTS[tool]] if tool in PARTS else []
    return ["import", tool, "log", *part, *dice.choice(([], ["--json"], ["-o", "part.yaml"]))], {"log": data}


@cache
def _measurements() -> bytes:
    import gzip

    from hwsim_calibrate import store

    data = Path(store.__file__).with_name("data") / "epyc-zen3-vm-2core.json.gz"
    document = json.loads(gzip.decompress(data.read_bytes()))
    rows = document["rows"]
    kept = [{**row, "samples": row.get("samples", [])[:1]} for row in rows[:: max(1, len(rows) // 25)]]
    return json.dumps({**document, "rows": kept}).encode()


def calibrated(dice: random.Random) -> Made:
    """Measurements of a computer, a few rows of them."""
    data = json_damaged(_measurements(), dice)
    match dice.randrange(5):
        case 0:
            return ["calibrate", "diff", "m.json", "n.json"], {"m.json": data, "n.json": _measurements()}
        case 1:
            return ["calibrate", "validate", "m.json"], {"m.json": data}
        case 2:
            return ["calibrate", "fit", "m.json"], {"m.json": data}
        case _:
            return ["calibrate", "show", "m.json"], {"m.json": data}


def recorded(dice: random.Random) -> Made:
    """A script of numpy, which may fail in its own way."""
    script = dice.choice(SCRIPTS).format(
        n=dice.choice((0, 1, 2, 30, 100, -1)), times=dice.choice((0, 1, 3, 10)), axis=dice.choice((0, 1, 2, -1)),
        dtype=dice.choice(("float32", "float64", "int64", "bool_", "complex64", "float16", "str_")),
        function=dice.choice(FUNCTIONS),
    )  # fmt: skip
    data = script.encode() if dice.random() < 0.8 else torn(script.encode(), dice)
    if any(word in data for word in (b"import os", b"open")):  # by chance: nothing but numpy is played
        data = b"import numpy as np\n"
    more = dice.choice(([], ["--runs", "1"], ["--no-loops"], ["--runs", "0"], ["-o", "x/y.yaml"]))
    return ["record", "step.py", *more], {"step.py": data}
