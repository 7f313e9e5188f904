"""`infer:` a model that serves requests: the keys of a file.

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
from hwsim.families.serving.workload.autoscaler import ScaleKeys
from hwsim.families.serving.workload.conversations import SessionKeys, SharedKeys
from hwsim.families.serving.workload.offload import OffloadKeys
from hwsim.families.serving.workload.parallel import ApartKeys, SplitKeys
from hwsim.families.serving.workload.routing import ChoiceKeys, Routing, ScoreKeys
from hwsim.families.serving.workload.speculation import SpeculateKeys
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
    """Latency limits of each request (SLO). Goodput is the rate of requests that meet all of them."""

    ttft: Seconds | None = field("maximum time to first token (TTFT)", default=None, exclusive_minimum=0.0, example="200 ms")
    tpot: Seconds | None = field(
        "maximum time per output token after the first, on average (TPOT); an answer of one token meets it",
        default=None, exclusive_minimum=0.0, example="50 ms",
    )  # fmt: skip
    latency: Seconds | None = field("maximum latency to the last token", default=None, exclusive_minimum=0.0, example="10 s")
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class InferKeys:
    """A model that serves requests: the model, its GPUs, the requests and their arrivals, and the settings of the server."""

    model: Tree = field("name of a model in the library, a file, or the dimensions of a model", example="llama-3-8b")
    device: tuple[str, ...] = field("GPUs that serve the model (default: all)", default=(), one_or_many=True, example="gpu0..3")
    parallel: SplitKeys = field("parallel plan of the model over the GPUs", default=SplitKeys(), example="{tp: 2, dp: rest}")
    dtype: Dtype | None = field(
        "number format of weights, activations and the KV cache (default: bf16 if the GPU has it, else fp16; of a convolutional"
        " network fp16 if the GPU has it, else fp32)", default=None,
    )  # fmt: skip
    kv: Literal["bf16", "fp16", "fp8"] | None = field(
        "number format of the KV cache (default: the format in the checkpoint, else `dtype`)", default=None
    )
    framework: str = field(
        "serving framework, which sets kernel times, overlap and server settings (default: vllm, or pytorch-ngc for"
        " a convolutional network)", default="", example="sarathi-serve",
    )  # fmt: skip
    top_p: bool | None = field(
        "tokens are drawn from the most probable part of the vocabulary (top-p or top-k); false: greedy, or temperature alone"
        " (default: as the checkpoint's generation settings say)", default=None, example="false",
    )  # fmt: skip
    arrivals: ArrivalKeys | Literal["all at once"] = field(
        "arrival of requests: a random process, a trace or clients; or all requests at the start",
        default="all at once", example="{poisson: 4 1/s}",
    )  # fmt: skip
    requests: int | None = field("number of requests (default: 100; of a trace all lines)", default=None, minimum=1)
    prompt: int | CountDraw = field(
        "number of prompt tokens, without tokens of `shared` and of earlier turns of `sessions`",
        default=512, minimum=1, example="{lognormal: {median: 600, sigma: 1}}",
    )  # fmt: skip
    output: int | CountDraw = field("number of output tokens, including the first", default=128, minimum=1)
    shared: SharedKeys | None = field(
        "common beginnings of prompts: shared system prompts, or repeated prompts",
        default=None, example="{tokens: 800, groups: 12}",
    )  # fmt: skip
    sessions: SessionKeys | None = field(
        "multi-turn conversations: each prompt contains all earlier turns, and `arrivals` starts conversations",
        default=None, example="{turns: {uniform: [2, 8]}, think: {exponential: 20 s}}",
    )  # fmt: skip
    warm_up: Seconds | Literal["until steady"] = field(
        "time at the start whose arrivals are excluded from the statistics; `until steady`: up to the steady state that MSER-5"
        " finds", default=0.0, minimum=0.0, example="10 s",
    )  # fmt: skip
    batching: Batching = field(
        "continuous: requests join and leave the batch at every iteration; static: all requests of a batch start together, and"
        " the next batch starts when the last of them has ended", default="continuous",
    )  # fmt: skip
    batch: int | None = field(
        "maximum number of requests in the batch of a replica (default: the setting of the framework's server)",
        default=None, minimum=1,
    )  # fmt: skip
    memory: Ratio | None = field(
        "share of GPU memory for weights and KV cache (default: the setting of the framework's server)",
        default=None, exclusive_minimum=0.0, maximum=1.0,
    )  # fmt: skip
    server: ServerKeys = field(
        "settings of the server that differ from the framework's", default=ServerKeys(), example="{budget: 4096, ahead: 0}"
    )
    speculate: SpeculateKeys | None = field(
        "speculative decoding: draft tokens are verified together", default=None, example="{tokens: 3, acceptance: 70 %}"
    )
    adapters: AdapterKeys | None = field(
        "LoRA adapters of the model; each request uses one of them", default=None, example="{count: 32, rank: 16}"
    )
    offload: OffloadKeys | None = field(
        "tiers below GPU memory for the KV cache of prompts", default=None, example="{host: 200 GB}"
    )
    split: ApartKeys | None = field(
        "disaggregated serving: separate GPUs for prefill and decode, instead of `device` and `parallel`", default=None,
        example="{prefill: {device: gpu0..1}, decode: {device: gpu2..7}}",
    )  # fmt: skip
    router: Routing | ChoiceKeys | ScoreKeys = field(
        "choice of the replica for a request: the fewest requests (least); the smallest 4 x queued + running (waiting); each"
        " replica in turn (round robin); the fewest requests of some replicas drawn at random (choices); or the highest score",
        default="least", example="{prefix: 2, queue: 1, room: 1}",
    )  # fmt: skip
    scale: ScaleKeys | None = field(
        "autoscaling: replicas start and stop with the load", default=None, example="{least: 1, most: 8, target: 20, start: 90 s}"
    )
    seed: int = field("seed of the random requests", default=0, minimum=0)
    slo: SloKeys | None = field(
        "latency limits of a request; goodput counts the requests that meet them", default=None,
        example="{ttft: 200 ms, tpot: 50 ms}",
    )  # fmt: skip
    place: Place = place_field()
