"""Server options in InferenceX's scripts, by framework, GPU, model and date.

Its closed loops state a day, and the scripts of that day state the server options. Models and GPUs that it never ran take the
options common to the framework's other scripts: no prefix caching.

**Source**: SemiAnalysisAI/InferenceX@843c6254ff69: benchmarks/single_node, each file with its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from published.parts import declared

WARMED: Final = "2026-01-22"  # first day whose scripts have warm-up requests
GUESSING: Final[tuple[tuple[str, str, str, str], ...]] = tuple(map(tuple, declared("serving_scripts")["guessing"]))
GUESSED: Final = frozenset(map(tuple, declared("serving_scripts")["guessed"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The options of a script from a day on.

    Args:
        framework, gpus, model, precision, tp: rows to which it applies; "" and 0 mean any. since: first day, as in the rows.
        memory: fraction of GPU memory used by the server. kv: format of the KV cache, "" for the framework's default.
        budget: tokens of an iteration; 0: the framework's default; twice: as many as two prompts.
        sequences: maximum number; 0: the framework's default; per_client: as many as clients.
        look: iterations between two checks for new requests, with fewer than 16 clients and with more.
        marlin: 4-bit experts with Marlin's kernel (VLLM_MXFP4_USE_MARLIN), with the times of int4.
    """

    framework: str
    gpus: tuple[str, ...] = ()
    model: str = ""
    precision: tuple[str, ...] = ()
    since: str = ""
    memory: float = 0.0
    kv: str = ""
    budget: int = 0
    twice: bool = False
    sequences: int = 0
    per_client: bool = False
    look: tuple[int, int] = (1, 1)
    marlin: bool = False
    tp: int = 0

    def is_of(self, framework: str, gpu: str, model: str, precision: str, day: str, tp: int) -> bool:
        """Return whether the script ran a row."""
        return (
            self.framework == framework
            and (not self.gpus or gpu in self.gpus)
            and model.startswith(self.model)
            and (not self.precision or precision in self.precision)
            and day >= self.since
            and self.tp in (0, tp)
        )


SCRIPTS: Final[tuple[Script, ...]] = tuple(Script(**record) for record in declared("serving_scripts")["scripts"])


def may_guess(framework: str, gpu: str, model: str, precision: str, day: str) -> bool:
    """Return whether scripts with multi-token prediction existed."""
    return model.startswith("deepseek") and any((framework, gpu, precision) == said[:3] and day >= said[3] for said in GUESSING)


def guesses(framework: str, model: str, day: str) -> bool:
    """Return whether a row of that day used multi-token prediction."""
    return model.startswith("deepseek") and (framework, day) in GUESSED


def script_of(framework: str, gpu: str, model: str, precision: str, day: str, tp: int = 0) -> Script | None:
    """Return the script of a row; None if its framework has none."""
    found = [script for script in SCRIPTS if script.is_of(framework, gpu, model, precision, day, tp)]
    return found[-1] if found else None


def server(script: Script, clients: int, prompt: int, groups: int = 1) -> dict[str, Any]:
    """Return the `server:` of a row."""
    found: dict[str, Any] = {"prefixes": False}
    if script.framework == "trtllm":  # MAX_NUM_TOKENS
        found["budget"] = max(8192, clients + prompt + 64)
        if groups > 1:  # attention_dp_config: {enable_balance: true, batching_wait_iters: 0, timeout_iters: 60}
            found["gather"] = 60
    if script.budget or script.twice:
        found["budget"] = 2 * prompt if script.twice else script.budget
    if script.sequences or script.per_client:
        found["sequences"] = max(1, clients) if script.per_client else script.sequences
    if script.memory:
        found["memory"] = _memory(script)
    if script.look != (1, 1):
        found["look"] = script.look[clients >= 16]
    return found


def _memory(script: Script) -> Mapping[str, Any]:
    part = f"{100 * script.memory:g} %"
    if script.framework == "sglang":  # --mem-fraction-static: of all memory, without another reserve
        return {"part": part, "kept": "0 B", "token": "0 B", "graph": "0 B", "gpu": "0 B", "least": "0 B"}
    return {"part": part}
