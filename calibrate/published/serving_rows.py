"""Published serving runs as `infer:` workloads: models, machines, number formats and parallel plans by name.

A row states a model, a GPU, a framework, precisions, a plan and a load. This module converts it into a machine and an `infer:`,
in the same way for every model and GPU; omitted settings are the framework's defaults.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from hwsim import api
from hwsim.machine import Machine
from hwsim.spec import SpecError, find
from published.parts import declared

Kind = Literal["dense", "MoE"]
MODELS: Final[tuple[tuple[str, str], ...]] = tuple(map(tuple, declared("serving_rows")["models"]))
LONGER: Final[Mapping[str, int]] = declared("serving_rows")["longer"]
FRAMEWORKS: Final[Mapping[str, str]] = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
PADDING: Final = ((0, 11, 1), (0, 15))  # first and last version of vLLM that pads every expert (see the file vllm-0.12)
UNPADDED: Final = 8  # minimum GPUs per expert from which vLLM does not pad
MACHINES: Final[tuple[tuple[str, str, str], ...]] = tuple(map(tuple, declared("serving_rows")["machines"]))
FORMATS: Final[Mapping[str, str]] = declared("serving_rows")["formats"]
GROUP: Final[Mapping[str, int]] = declared("serving_rows")["group"]
# Names of checkpoints whose 8-bit matrices have one scale each: NVIDIA's checkpoints, and unnamed ones that it serves. The
# makers of these models publish them with block scales.
MODELOPT: Final = r"^(nvidia/|(?!.*(/|deepseek|minimax|kimi)))"


class Line(NamedTuple):
    """One request: arrival in seconds, tokens, and its prompt if prompts repeat (-1: unique)."""

    arrival: float
    prompt: int
    output: int
    key: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One measured run as a simulation.

    Args:
        id: name of the row; group: its framework, model and GPU; kind: kind of its model.
        machine: (a machine of the library, its GPU if different); infer: the simulated `infer:`.
        trace: its requests, if each is known; otherwise `infer` states the load.
        copies: number of replicas that share the load; measured: quantities, in seconds or tokens/s.
        links: links of the machine, if they differ from the library's.
        apart: reason why the row is not scored; "" if it is.
        key: key in other tables.
    """

    id: str
    group: str
    kind: Kind
    machine: tuple[str, str]
    infer: Mapping[str, Any]
    measured: Mapping[str, float]
    trace: tuple[Line, ...] = ()
    copies: int = 1
    apart: str = ""
    key: tuple[str, ...] = ()
    links: Mapping[str, Any] = field(default_factory=dict)


DENSE: Final = frozenset(declared("serving_rows")["dense"])


@dataclass(frozen=True, slots=True)
class Shape:
    """GPUs of a replica: tensor parallelism; data-parallel attention groups; tensor and expert parallelism of experts;
    pipeline.
    """

    tp: int = 1
    attention: int = 1
    expert_tp: int = 1
    ep: int = 1
    pp: int = 1

    @property
    def gpus(self) -> int:
        return self.tp * self.attention * self.pp


def framework_of(backend: str, version: str, shape: Shape, kind: Kind) -> str:
    """Return the library's framework for a row.

    >>> framework_of("vllm", "0.12.0", Shape(tp=4, expert_tp=4), "MoE"), framework_of("vllm", "0.12.0", Shape(tp=4), "dense")
    ('vllm-0.12', 'vllm')
    """
    said = tuple(int(digits) for digits in re.findall(r"\d+", version.partition("rc")[0])[:3])
    padding = backend == "vllm" and kind == "MoE" and PADDING[0] <= said < PADDING[1] and shape.expert_tp < UNPADDED
    return "vllm-0.12" if padding else FRAMEWORKS[backend]


@dataclass(frozen=True, slots=True)
class Subject:
    """A model on a machine of the library; said: the model's name in the row."""

    said: str
    model: str
    machine: tuple[str, str]

    @property
    def kind(self) -> Kind:
        return kind_of(self.model)

    def infer(self, framework: str, shape: Shape, linear: str = "", experts: str = "") -> dict[str, Any]:
        """Return the start of a replica's `infer:`: GPUs, framework, number formats and plan."""
        return {
            "device": devices(self.machine, shape.gpus),
            "framework": framework,
            **formats(self.model, self.said, linear, experts),
            "parallel": parallel(shape, self.kind),
        }

    def has(self, gpus: int) -> bool:
        """Return whether the machine has this number of GPUs."""
        return gpus <= len(loaded(self.machine).devices_of("gpu"))


def subject(model: str, gpu: str) -> Subject | None:
    """Return the model and machine of a row; None if one is not in the library."""
    found, machine = model_of(model), machine_of(gpu)
    return None if found is None or machine is None else Subject(model, found, machine)


def model_of(name: str) -> str | None:
    """Return the library's model with this name, or with the same dimensions; None without one.

    >>> model_of("nvidia/Llama-3.1-8B-Instruct-FP8"), model_of("meta-llama/Llama-2-7b-hf")
    ('llama-3-8b', 'llama-2-7b')
    """
    low = name.lower().replace("_", "-")
    found = next((known for pattern, known in MODELS if re.search(pattern, low)), None)
    return found if found is not None and _known("model", found) else None


def kind_of(model: str) -> Kind:
    """Return whether a model of the library is dense or MoE."""
    return "dense" if model in DENSE else "MoE"


def machine_of(name: str) -> tuple[str, str] | None:
    """Return the machine with GPUs of this name.

    >>> machine_of("b200_sxm"), machine_of("NVIDIA GB300")
    (('dgx-b200', ''), ('gb200-nvl72', 'gb300'))
    """
    low = name.lower().replace("_", " ")
    return next(((machine, gpu) for pattern, machine, gpu in MACHINES if re.search(pattern, low)), None)


@functools.cache
def _known(kind: str, name: str) -> bool:
    try:
        return bool(find(kind, name))
    except SpecError:
        return False


@functools.cache
def loaded(machine: tuple[str, str]) -> Machine:
    """Return the loaded machine."""
    name, gpu = machine
    if not gpu:
        return api.load_machine(name)
    return api.load_machine(f"hwsim: machine/1\nuse: {name}\nparts: {{tray: {{parts: {{gpu: {{use: {gpu}}}}}}}}}\n")


def machine_with(served: Served) -> Machine:
    """Return the machine of a row."""
    if not served.links:
        return loaded(served.machine)
    return api.load_machine(f"hwsim: machine/1\nuse: {served.machine[0]}\nlinks: {json.dumps(served.links)}\n")


def devices(machine: tuple[str, str], count: int) -> list[str]:
    """Return the first GPUs of a machine.

    >>> devices(("dgx-h100", ""), 2)
    ['gpu0', 'gpu1']
    """
    return list(loaded(machine).devices_of("gpu")[:count])


def shape_of(row: Mapping[str, str], prefix: str = "") -> Shape:
    """Return the plan of a row.

    Two rows of one run show what the columns mean: where tensor and expert parallel of the experts are equal and their product
    is said to be the group, the group is no larger than either. Where tensor parallel and data-parallel attention are equal
    and their product is said to be expert parallel, attention is tensor parallel: the same runs, to the digit, stand in the table
    once more with tensor and expert parallel alone. A row without a number of groups has as many as make attention's GPUs those
    of its experts.

    >>> columns = {"tp_size": "64", "attention_dp_size": "1", "moe_tp_size": "8", "moe_ep_size": "8", "pp_size": "1"}
    >>> shape_of(columns)
    Shape(tp=8, attention=1, expert_tp=1, ep=8, pp=1)
    >>> shape_of({"tp_size": "4", "attention_dp_size": "4", "moe_ep_size": "16"})
    Shape(tp=4, attention=1, expert_tp=1, ep=4, pp=1)
    >>> shape_of({"tp_size": "2", "moe_tp_size": "4"}), shape_of({"tp_size": "4", "moe_tp_size": "2", "moe_ep_size": "2"})
    (Shape(tp=2, attention=2, expert_tp=4, ep=1, pp=1), Shape(tp=4, attention=1, expert_tp=2, ep=2, pp=1))
    """
    tp, attention, expert_tp, ep, pp = (
        whole(row.get(f"{prefix}{name}", ""), 1)
        for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "pp_size")
    )
    if not row.get(f"{prefix}attention_dp_size"):
        attention = max(1, expert_tp * ep // tp)
    elif expert_tp == ep > 1 and max(tp, attention) == expert_tp * ep:
        tp, attention, expert_tp = max(1, tp // ep), max(1, attention // ep), 1
    elif tp == attention > 1 and ep == tp * attention:
        attention, ep = 1, tp
    group = tp * attention
    if expert_tp * ep != group:
        ep = min(ep, group)
        expert_tp = max(1, group // ep)
    return Shape(tp, attention, expert_tp, ep, pp)


def whole(text: str, default: int) -> int:
    """Return an integer from a column; the default if it is empty.

    >>> whole("8.0", 1), whole("", 1)
    (8, 1)
    """
    return round(float(text)) if text else default


def model_keys(name: str, said: str, linear: str = "", experts: str = "") -> Any:
    """Return the `model:` of a library model with weights in these formats, or in those of its checkpoint.

    said: name of the model in the row.
    """
    form = linear or experts
    keys: dict[str, Any] = {}
    if form:
        group = {} if form == "fp8" and re.search(MODELOPT, said.lower()) else {"group": GROUP[form]}
        keys["quantised"] = {"format": form, **group, **({} if linear else {"of": "experts"})}
    longest = next((most for pattern, most in LONGER.items() if re.search(pattern, said.lower())), None)
    if longest is not None:
        keys["sequence"] = longest
    return {"use": name, **keys} if keys else name


def parallel(shape: Shape, kind: Kind) -> dict[str, Any]:
    """Return the `parallel:` of a replica."""
    found: dict[str, Any] = {"tp": shape.tp, "dp": 1}
    if shape.pp > 1:
        found["pp"] = shape.pp
    if kind == "MoE" and shape.attention > 1:
        found["groups"] = shape.attention
    if kind == "MoE" and shape.ep > 1:
        found["ep"] = shape.ep
    return found


def formats(model: str, said: str, linear: str, experts: str = "") -> dict[str, Any]:
    """Return model and number formats from the words of a row.

    In 4-bit checkpoints of MoE models, only experts have 4 bits, as published by their makers; gpt-oss is published only in
    this form.
    """
    linear, experts = FORMATS.get(linear, ""), FORMATS.get(experts or linear, "")
    if model.startswith("gpt-oss"):
        return {"model": model}
    if kind_of(model) == "MoE" and experts in ("nvfp4", "int4", "mxfp4"):
        return {"model": model_keys(model, said, "", experts)}
    return {"model": model_keys(model, said, linear or experts)}


def read(data: Path, name: str) -> Path:
    """Return the path of a table of serving runs."""
    return data / "validation" / "serving" / name
