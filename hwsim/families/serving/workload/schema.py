"""`infer:` a model that serves requests, as a file says it.

infer:
  model: llama-3-8b
  parallel: {tp: 2}
  arrivals: {poisson: 4 1/s}
  requests: 500
  prompt: {lognormal: {median: 600, sigma: 1}}
  output: 250
"""

from __future__ import annotations

from typing import Literal

from hwsim.families.serving.workload.adapters import AdapterKeys
from hwsim.families.serving.workload.conversations import SessionKeys, SharedKeys
from hwsim.families.serving.workload.offload import OffloadKeys
from hwsim.families.serving.workload.routing import Routing, ScoreKeys
from hwsim.families.serving.workload.scaling import ScaleKeys
from hwsim.families.serving.workload.speculating import SpeculateKeys
from hwsim.families.serving.workload.splitting import ApartKeys, SplitKeys
from hwsim.models.server import ServerKeys
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Ratio, Seconds
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.keys import CountDraw

Batching = Literal["continuous", "static"]
Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8"]


@dataclass(frozen=True, slots=True)
class SloKeys:
    """Service level of each request; requests a second that keep all of it are the goodput."""

    ttft: Seconds | None = field("its first token comes within", default=None, exclusive_minimum=0.0, example="200 ms")
    tpot: Seconds | None = field(
        "mean time between its later tokens, at most; an answer of one token keeps it",
        default=None,
        exclusive_minimum=0.0,
        example="50 ms",
    )
    latency: Seconds | None = field("its last token comes within", default=None, exclusive_minimum=0.0, example="10 s")
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class InferKeys:
    """Requests that a model answers: which model, on which devices, when they come, and how they are put together."""

    model: Tree = field("a model of the library or of a file, or its dimensions", example="llama-3-8b")
    device: tuple[str, ...] = field("what it is served on (default: all GPUs)", default=(), one_or_many=True, example="gpu0..3")
    parallel: SplitKeys = field("how it is laid over the devices", default=SplitKeys(), example="{tp: 2, dp: rest}")
    dtype: Dtype | None = field(
        "number format of weights, activations and the KV cache (default: bf16 where the gpu has it, else fp16)", default=None
    )
    kv: Literal["bf16", "fp16", "fp8"] | None = field(
        "number format of keys and values (default: as the checkpoint has them, else as `dtype`)", default=None
    )
    framework: str = field(
        "whose kernels and overlaps (default: vllm; of images pytorch-ngc)", default="", example="sarathi-serve"
    )
    arrivals: ArrivalKeys | Literal["all at once"] = field(
        "when requests come", default="all at once", example="{poisson: 4 1/s}"
    )
    requests: int | None = field("how many (default: 100; of a trace all its lines)", default=None, minimum=1)
    prompt: int | CountDraw = field("tokens of a prompt", default=512, minimum=1, example="{lognormal: {median: 600, sigma: 1}}")
    output: int | CountDraw = field("tokens of an answer, the first included", default=128, minimum=1)
    shared: SharedKeys | None = field(
        "what prompts begin with alike: system prompts, or prompts that come again",
        default=None,
        example="{tokens: 800, groups: 12}",
    )
    sessions: SessionKeys | None = field(
        "conversations: several requests, each with all that was said before; then those come, or have a client",
        default=None,
        example="{turns: {uniform: [2, 8]}, think: {exponential: 20 s}}",
    )
    warm_up: Seconds | Literal["until steady"] = field(
        "requests that come before do not count (until steady: as found by MSER-5)", default=0.0, minimum=0.0, example="10 s"
    )
    batching: Batching = field(
        "continuous: requests join and leave from one token to the next; static: a batch goes through together",
        default="continuous",
    )
    batch: int | None = field(
        "requests that are worked on together, at most, on each copy (default: as the framework's server)",
        default=None,
        minimum=1,
    )
    memory: Ratio | None = field(
        "of a GPU's memory that weights and KV cache have (default: as the framework's server)",
        default=None,
        exclusive_minimum=0.0,
        maximum=1.0,
    )
    server: ServerKeys = field(
        "what differs from the `server:` of the framework", default=ServerKeys(), example="{budget: 4096, ahead: 0}"
    )
    speculate: SpeculateKeys | None = field(
        "tokens that are guessed and verified together", default=None, example="{tokens: 3, acceptance: 70 %}"
    )
    adapters: AdapterKeys | None = field(
        "sets of narrow matrices beside the model's (LoRA); each request has one", default=None, example="{count: 32, rank: 16}"
    )
    offload: OffloadKeys | None = field(
        "where keys and values of prompts go that the GPUs have no room for", default=None, example="{host: 200 GB}"
    )
    split: ApartKeys | None = field(
        "prompts are read on some GPUs and answers written on others, instead of `device` and `parallel`", default=None,
        example="{prefill: {device: gpu0..1}, decode: {device: gpu2..7}}",
    )  # fmt: skip
    router: Routing | ScoreKeys = field(
        "which copy a request goes to: the one with the fewest requests (least); 4 x waiting + worked on (waiting); in turn;"
        " or by scores",
        default="least",
        example="{prefix: 2, queue: 1, room: 1}",
    )
    scale: ScaleKeys | None = field(
        "copies are started and stopped by the load", default=None, example="{least: 1, most: 8, target: 20, start: 90 s}"
    )
    seed: int = field("another seed, other requests", default=0, minimum=0)
    slo: SloKeys | None = field(
        "what every request is to keep: goodput counts those that do", default=None, example="{ttft: 200 ms, tpot: 50 ms}"
    )
    place: Place = place_field()
