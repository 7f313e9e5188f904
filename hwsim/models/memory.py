"""Memory on each GPU of a training or of an inference server (bytes).

Activations of a layer that backward needs, in bytes per token of the micro-batch (Korthikanti et al., table 2), with hidden size
h, a heads, sequence length s and tensor parallelism t; activations have 16 bits (inputs of fp8 and fp4 matmuls 8), masks 1 B:

    undivided              10 h       inputs of two norms and of two linear layers, two dropout masks.
    split by tensor        24 h / t   queries, keys, values, output of attention; inside the feed-forward network.
    scores                 5 a s / t  softmax, its mask, its dropout output; not kept by flash or with selective recompute.

Sequence parallelism also splits the undivided part. Full recompute keeps the input of each layer, 2 h.

**Source**: Korthikanti et al., "Reducing activation recomputation in large transformer models", arXiv:2205.05198, 2022;
Rajbhandari et al., "ZeRO", arXiv:1910.02054, 2020 (sharding by stage); Narayanan et al., arXiv:2104.04473 (in flight).
**Range**: other allocations of a framework (communication buffers, fragmentation, the CUDA context) are `RESERVED`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from hwsim.formats import format_quantity
from hwsim.models.architectures import FeedForwardNetwork, Transformer
from hwsim.models.architectures.slices import NARROW, Attention
from hwsim.models.architectures.transformer_layers import share
from hwsim.models.framework import Framework
from hwsim.models.layer import Layer
from hwsim.models.plan import DerivedPlan, ParallelPlan, groups, kinds_of
from hwsim.models.server import PLAIN, ServerKeys, graph_sizes
from hwsim.records import dataclass
from hwsim.units import BYTES

RESERVED: Final = 1.5e9  # bytes: CUDA context, NCCL buffers, cuBLAS workspaces; typical nvidia-smi figures, quoted from memory
FRAGMENTS: Final = 1.05  # fragmentation factor of arrays allocated anew for every micro-batch: `llm_memory.py`
WHOLE: Final = 4.0  # hidden-state arrays that tensor parallelism does not split: inputs of both halves of the current layer,
# gathered or summed, and their gradients
SORTED: Final = 20.0  # bytes per logit in a server's sampler: unsorted and sorted in 32 bits, 64-bit index, probability
SPREAD: Final = 0.15  # relative half-width of the interval of training memory: `calibrate/published/llm_memory.py`
KEPT: Final = {"sgd": 4.0, "adam": 8.0}  # optimizer bytes per CNN or MLP parameter: momentum; two moments
OPTIMIZER: Final = {"adam": 12.0, "sgd": 8.0}  # bytes per parameter: 32-bit weights and moments


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory on one GPU of a stage (bytes).

    Args:
        spread: relative half-width of the 90 % interval of the total.
    """

    stage: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    buffers: float
    cache: float = 0.0
    spread: float = 0.0

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.activations + self.buffers + self.cache

    def verdict(self, size: float | None, gpu: str = "gpu0") -> str:
        """Return whether the total fits into `size` bytes.

        >>> Footprint(0, 50e9, 0, 0, 0, 0).verdict(40 * 2**30)
        'does not fit by 7.05 GB on gpu0'
        >>> Footprint(0, 79e9, 0, 0, 0, 0, spread=0.15).verdict(80 * 2**30)
        'tight: 67.2 GB to 90.8 GB on gpu0'
        """
        if size is None or self.total * (1.0 + self.spread) <= size:
            return "fits"
        if self.total * (1.0 - self.spread) <= size:
            low, high = (format_quantity(self.total * (1.0 + sign_spread), "B") for sign_spread in (-self.spread, self.spread))
            return f"tight: {low} to {high} on {gpu}"
        return f"does not fit by {format_quantity(self.total - size, 'B')} on {gpu}"


def activations(
    model: Transformer, plan: ParallelPlan, sequence: int, attention: Attention = "flash", repeated: float = 0.0
) -> float:
    """Return the activation bytes that one layer of a model of equal layers keeps of one micro-batch on one GPU.

    Args:
        repeated: share of the matmuls that selective recompute repeats; above 0, the results of the other matmuls are kept.

    >>> gpt = Transformer(layers=96, hidden=12288, heads=96, vocab=51200, dropout=True)
    >>> plan = ParallelPlan(tp=8, global_batch=8)
    >>> s, h, a = 2048, 12288, 96
    >>> activations(gpt, plan, s, "plain") == s * h * (10 + 24 / 8 + 5 * a * s / (h * 8))
    True
    """
    rows = plan.microbatch * sequence / plan.cp
    w, t, h = BYTES[plan.stored], plan.tp, model.hidden
    split = t if plan.sequence_parallel else 1
    if plan.recompute == "full":
        return rows * h * w / split
    active = model.top_k * plan.fullest if model.experts > 1 else 1
    vectors = 0 if model.latent is None else model.latent.cached + (model.latent.query_rank or 0)
    mask = 1.0 if model.dropout else 0.0
    n = 1.0 if plan.dtype in NARROW else w  # inputs of narrow matmuls are kept in 8 bits, for the gradient of the weights
    undivided = 2 * h * (w + n) + 2 * h * mask + (active - 1) * h * n + vectors * w
    wide = (model.queries + model.attended + model.keys + model.values) * w  # queries and output, keys and values
    inner = (active * model.of_ffn + model.shared) * (model.gates * w + n)
    if plan.recompute == "selective" and repeated > 0:  # keeps the input, the result of attention and a share of the matmuls
        results = model.queries + model.keys + model.values + (active * model.of_ffn + model.shared) * model.gates
        return rows * w * ((h + vectors) / split + model.attended / t + (1.0 - repeated) * (results / t + 2 * h / split))
    kept = rows * (undivided / split + (wide + inner) / t)
    if attention == "plain" and plan.recompute == "none":
        kept += rows * model.heads * sequence / t * (w + (1 + w) * mask)
    return kept


def in_flight(plan: ParallelPlan, stage: int, microbatches: int) -> float:
    """Return the micro-batches in flight in a stage, in units of whole stages, whose activations are kept.

    >>> plan = ParallelPlan(pp=4, global_batch=16, schedule="1f1b")
    >>> [in_flight(plan, stage, 16) for stage in range(4)]
    [4.0, 3.0, 2.0, 1.0]
    """
    if plan.schedule == "gpipe" or plan.pp == 1:
        return float(microbatches) if plan.schedule == "gpipe" and plan.pp > 1 else 1.0
    if plan.chunks > 1:
        warm = (plan.pp - stage - 1) * 2 + (plan.chunks - 1) * groups(microbatches, plan.pp)[0] + 1
        return min(warm, microbatches * plan.chunks) / plan.chunks
    return float(min(plan.pp - stage, microbatches))


def layer_share(model: Transformer, plan: ParallelPlan) -> float:
    """Return the parameters of a layer on one GPU, before any sharding over replicas, for a model of equal layers."""
    return share(model, plan.tp, plan.ep)


def kept_of(laid: DerivedPlan, stage: int, framework: Framework, times: float = 1.0) -> float:
    """Return the average activation bytes of a virtual stage of a stage for one micro-batch on one GPU, multiplied by `times`."""
    kinds = laid.transformer.kinds
    return math.fsum(
        times
        * count
        / laid.plan.chunks
        * activations(kinds[kind], laid.plan, laid.sequence, framework.attention, framework.repeated)
        for kind, count in laid.kinds_of(stage).items()
    )


def stage_parameters(model: Transformer, plan: ParallelPlan, stage: int) -> float:
    """Return the parameters of a stage on one GPU, before any sharding over replicas."""
    parameters = math.fsum(count * layer_share(model.kinds[kind], plan) for kind, count in kinds_of(model, plan, stage).items())
    if stage == 0:
        parameters += model.embedding_parameters / plan.tp
    if stage == plan.pp - 1:
        parameters += model.head_parameters / plan.tp
        if plan.pp > 1 and model.tied:  # copy of the embedding table
            parameters += model.vocab * model.hidden / plan.tp
    return parameters


def routed_parameters(model: Transformer, plan: ParallelPlan, stage: int) -> float:
    """Return the expert parameters of a stage on one GPU; 0 without expert parallelism."""
    if plan.ep == 1:
        return 0.0
    kinds = ((model.kinds[kind], count) for kind, count in kinds_of(model, plan, stage).items())
    return math.fsum(
        count * kind.experts * kind.expert_parameters / (plan.tp * plan.ep) for kind, count in kinds if kind.experts > 1
    )


def state_bytes(plan: ParallelPlan) -> float:
    """Return the bytes per parameter of a checkpoint: compute weights and optimizer states, each once.

    Fully sharded replicas (fsdp) and replicas that compute in 32 bits keep only the optimizer's copy of the weights.

    >>> state_bytes(ParallelPlan(global_batch=8)), state_bytes(ParallelPlan(global_batch=8, sharding="fsdp", optimizer="sgd"))
    (14.0, 8.0)
    """
    own = plan.sharding == "fsdp" or BYTES[plan.stored] == 4
    return (0.0 if own else BYTES[plan.stored]) + OPTIMIZER[plan.optimizer]


def recomputed(laid: DerivedPlan, framework: Framework, stage: int = 0) -> float:
    """Return the activation bytes of the layer that backward is recomputing, for the largest layer of a stage."""
    plan = laid.plan
    if plan.recompute == "full" or (plan.recompute == "selective" and framework.repeated > 0):
        kinds = laid.transformer.kinds
        return max(
            (activations(kinds[kind], replace(plan, recompute="none"), laid.sequence, framework.attention)
             for kind in laid.kinds_of(stage)), default=0.0,
        )  # fmt: skip
    return 0.0


def gathered_bytes(laid: DerivedPlan, framework: Framework, stage: int) -> float:
    """Return the bytes of gathered weights of the current and the next layer, plus the gradients of a layer before scattering."""
    model, plan = laid.transformer, laid.plan
    if not plan.gathers:
        return 0.0
    w, kinds = BYTES[plan.stored], laid.kinds_of(stage)
    shares = {kind: layer_share(model.kinds[kind], plan) for kind in kinds}
    layer, layers = max(shares.values(), default=0.0), math.fsum(count * shares[kind] for kind, count in kinds.items())
    gathered = layer * (2 * w + framework.gradient_bytes(plan.stored))
    return gathered + (stage_parameters(model, plan, stage) - layers) * 2 * w if plan.sharding == "fsdp" else gathered


def training_memory(laid: DerivedPlan, framework: Framework | None = None, stage: int = 0) -> Footprint:
    """Return the memory of a stage on each GPU.

    Fully sharded replicas (fsdp) keep only the optimizer's weights, and gradients of the same width. The embedding and the
    output, which belong to no layer, stay gathered from forward to backward. Replicas with zero-3 also keep 16-bit weights.
    """
    framework = framework or Framework()
    model, plan = laid.transformer, laid.plan
    parameters, shards = stage_parameters(model, plan, stage), laid.sharers
    w, gradient = BYTES[plan.stored], framework.gradient_bytes(plan.stored)
    experts = routed_parameters(model, plan, stage)

    def held(width: float, *, shared: bool) -> float:
        """Return the bytes of all parameters; if sharded, experts only over the replicas with the same experts."""
        if not shared:
            return parameters * width
        if plan.ep == 1:
            return parameters * width / shards
        return (parameters - experts) * width / shards + experts * width / max(1, shards // plan.ep)

    weights, gradients = held(w, shared=plan.gathers), held(gradient, shared=plan.gathers or plan.level == 2)
    if plan.gathers and plan.sharding == "fsdp":
        weights, gradients = 0.0, held(4.0, shared=True)
    twice = 4.0 if w == 4.0 and weights else 0.0  # 32-bit weights are the optimizer's
    optimizer = held(OPTIMIZER[plan.optimizer] - twice, shared=plan.level >= 1)
    flying = in_flight(plan, stage, laid.microbatches)
    kept = flying * math.fsum(
        count * activations(model.kinds[kind], plan, laid.sequence, framework.attention, framework.repeated)
        for kind, count in laid.kinds_of(stage).items()
    )
    kept += recomputed(laid, framework, stage)
    rows = plan.microbatch * laid.sequence / plan.cp
    buffers = WHOLE * rows * model.hidden * w if plan.tp > 1 else 0.0
    if stage == plan.pp - 1:
        buffers += rows * model.vocab / plan.tp * framework.logits
    buffers += gathered_bytes(laid, framework, stage)
    return Footprint(stage, weights, gradients, optimizer, FRAGMENTS * kept, RESERVED + FRAGMENTS * buffers, spread=SPREAD)


def network_memory(layers: Sequence[Layer], plan: ParallelPlan, stage: int, microbatches: int) -> Footprint:
    """Return the memory of a CNN or MLP stage on its GPU: weights, gradients and optimizer in 32 bits, and kept activations.

    **Range**: excludes workspaces of libraries and the driver's context (0.3 to 1 GB).
    """
    parameters, width = math.fsum(layer.parameters for layer in layers), BYTES[plan.dtype]
    weights = (4.0 + (width if width < 4 else 0.0)) * parameters
    kept = in_flight(plan, stage, microbatches) * math.fsum(layer.kept_bytes for layer in layers)
    return Footprint(stage, weights, 4.0 * parameters, KEPT[plan.optimizer] * parameters, kept, 0.0, spread=SPREAD)


def batch_memory(network: FeedForwardNetwork, layers: Sequence[Layer], dtype: str) -> Footprint:
    """Return the memory of a CNN or MLP in inference: weights, and the largest input plus output of a layer."""
    results = [layer.output_bytes for layer in layers]
    largest = max((before + after for before, after in pairwise(results)), default=0.0)
    return Footprint(0, network.parameters * BYTES[dtype], 0.0, 0.0, largest, 0.0)


def serving_memory(
    model: Transformer, tp: int, tokens: float, dtype: str = "bf16", pp: int = 1, *, groups: int = 1, kept: str = ""
) -> Footprint:
    """Return the weights, and the KV cache of `tokens` tokens of all layers, on each GPU (bytes).

    Quantized weights count in their own format.

    Args:
        groups: groups of `tp` GPUs with separate sequences (data-parallel attention); the experts are spread over all groups.
        kept: data type of keys and values, if it differs from the model's.
    """
    w = BYTES[dtype]
    heads = (
        max(1.0, model.of_kv_heads / tp) / model.of_kv_heads if model.latent is None else 1.0
    )  # one latent vector for all heads
    copied = math.fsum(kind.layers * kind.whole for kind in model.kinds) * w
    weights = model.parameters * w if model.quantised is None else model.weight_bytes(w)
    narrow = w if model.quantised is None else model.quantised.width
    experts = math.fsum(kind.layers * kind.experts * kind.expert_weights for kind in model.kinds if kind.experts > 1) * narrow
    on_each = (weights - experts * (1.0 - 1.0 / groups)) / (tp * pp) + copied / pp * (1.0 - 1.0 / tp)
    cached = model.kv_bytes(BYTES[kept or model.kept(dtype)])
    return Footprint(0, on_each, 0.0, 0.0, 0.0, RESERVED, tokens * cached * heads / (pp * groups))


def cache_room(
    model: Transformer,
    tp: int,
    size: float | None,
    dtype: str,
    server: ServerKeys,
    *,
    pp: int = 1,
    groups: int = 1,
    kept: str = "",
) -> tuple[Footprint, int | None]:
    """Return the memory on each GPU with an empty KV cache, and the capacity of the cache in tokens (None: unlimited).

    Servers run the largest iteration before they allocate the cache. Its largest arrays are reserved, including the logits of all
    sequences, which are sorted. `kept` covers the driver's context and the libraries.

    **Source**: vllm 0.19.0, v1/worker/gpu_worker.py; sglang 0.5.9, srt/server_args.py; TensorRT-LLM, _torch/pyexecutor/_util.py.
    Checked on one server: vLLM 0.28, Llama-3.1-8B on 102 GB at 92 % has 574,608 tokens (LLMServingSim's bench/examples); this
    function is within 1 %.
    """
    keys = server.over(PLAIN)
    room, graphs = keys.memory, keys.graphs
    assert room is not None
    assert graphs is not None
    budget, sequences = keys.budget or 0, keys.sequences or 0
    largest = max(graph_sizes(graphs, sequences), default=0)
    arrays = (room.activations or 0.0) * iteration_arrays(model, tp, min(budget, model.sequence * sequences), sequences, dtype)
    free = (room.token or 0.0) * budget + (room.graph or 0.0) * largest + (room.gpu or 0.0) * tp
    empty = serving_memory(model, tp, 0, dtype, pp, groups=groups, kept=kept)
    empty = replace(empty, buffers=(room.kept or 0.0) + arrays + max(free, room.least or 0.0))
    if size is None or not model.causal:
        return empty, None
    part = room.part or 1.0
    left = part * size - empty.total if room.of == "all" else part * (size - empty.total)
    return empty, max(0, int(left // serving_memory(model, tp, 1, dtype, pp, groups=groups, kept=kept).cache))


def iteration_arrays(model: Transformer, tp: int, tokens: int, sequences: int, dtype: str) -> float:
    """Return the bytes of the largest arrays that coexist in an iteration: those of a layer, or the logits."""
    width = max(BYTES[dtype], 2.0)
    active = model.top_k if model.experts > 1 else 1
    inner = (active * model.of_ffn + model.shared) * (model.gates + 1) / tp
    layer = tokens * width * (3 * model.hidden + max(inner, (model.queries + model.keys + model.values) / tp))
    logits = min(sequences, tokens) * model.vocab * SORTED if model.causal else 0.0
    return layer + logits
