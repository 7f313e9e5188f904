"""What InferenceX's scripts give their servers beside the defaults of each framework, by framework, GPU, model and date.

Its closed loops state a day; the scripts of that day state the server. Models and GPUs that it never ran have what its other
scripts of that framework have in common: no prefix cached.

**Source**: SemiAnalysisAI/InferenceX@843c6254ff69: benchmarks/single_node, each file with its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from published.parts import declared

WARMED: Final = "2026-01-22"  # the first day whose scripts ask for some requests before those that are measured
GUESSING: Final[tuple[tuple[str, str, str, str], ...]] = tuple(map(tuple, declared("serving_scripts")["guessing"]))
GUESSED: Final = frozenset(map(tuple, declared("serving_scripts")["guessed"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The options of a script, from a day on.

    Args:
        framework, gpus, model, precision, tp: whose; "" and 0 are any. since: the first day, as a row writes it.
        memory: the part of a GPU's memory that the server may use. kv: the format of keys and values, "" if the framework's.
        budget: tokens of an iteration; 0: the framework's; twice: as many as two prompts.
        sequences: at most; 0: the framework's; per_client: as many as there are clients.
        look: iterations between two looks for requests, with less than 16 clients and with more.
        marlin: experts in four bits by Marlin's kernel (VLLM_MXFP4_USE_MARLIN), whose times are those of int4.
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
        """Whether a row was run by it."""
        return (
            self.framework == framework
            and (not self.gpus or gpu in self.gpus)
            and model.startswith(self.model)
            and (not self.precision or precision in self.precision)
            and day >= self.since
            and self.tp in (0, tp)
        )


SCRIPTS: Final[tuple[Script, ...]] = tuple(Script(**each) for each in declared("serving_scripts")["scripts"])


def may_guess(framework: str, gpu: str, model: str, precision: str, day: str) -> bool:
    """Whether there were scripts with multi-token prediction."""
    return model.startswith("deepseek") and any((framework, gpu, precision) == said[:3] and day >= said[3] for said in GUESSING)


def guesses(framework: str, model: str, day: str) -> bool:
    """Whether a row of that day is one of them."""
    return model.startswith("deepseek") and (framework, day) in GUESSED


def script_of(framework: str, gpu: str, model: str, precision: str, day: str, tp: int = 0) -> Script | None:
    """The script that ran a row; None if its framework has none."""
    found = [script for script in SCRIPTS if script.is_of(framework, gpu, model, precision, day, tp)]
    return found[-1] if found else None


def server(script: Script, clients: int, prompt: int, groups: int = 1) -> dict[str, Any]:
    """`server:` of a row."""
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
    if script.framework == "sglang":  # --mem-fraction-static: of all, nothing else is kept
        return {"part": part, "kept": "0 B", "token": "0 B", "graph": "0 B", "gpu": "0 B", "least": "0 B"}
    return {"part": part}
