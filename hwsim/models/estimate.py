"""The time of a training step in closed form, without the engine.

    stage  = layers x layer (+ embedding, + output)                  of a micro-batch, forward, again and backward
    step   = microbatches x longest stage + (the other stages) / chunks + sends + gradients + optimizer

which for equal stages is the pipeline's (m + (p - 1)/v) x stage: a bubble of (p - 1)/(v m + p - 1) (Narayanan et al. 2021).
What copies exchange hides behind the layers that compute as far as `hwsim.models.hiding` says.

**Error**: see `docs/validation/models.md`.
**Range**: stages of equal layers; collectives that share no link with others at the same time; the fabric as `Cluster` sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hwsim.devices.roofline import peak_of
from hwsim.models import hiding
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.cluster import Cluster
from hwsim.models.frameworks import Framework
from hwsim.models.layer import Axis, Exchange, Item, Kernel
from hwsim.models.memory import Footprint, training_memory
from hwsim.models.plan import Laid, ParallelPlan, lay
from hwsim.models.speed import Speed
from hwsim.models.stages import Stage, stage_of
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A training step, as estimated.

    Args:
        seconds: from one step to the next.
        shares: seconds by what they go to, adding up to it: matmul, attention, elementwise, output, tp, cp, ep, pp (sends), dp,
            bubble, accumulate, optimizer, host.
        mfu: model FLOP (forward, twice that backward) over what the GPUs' peaks could do; hfu: those computed again included.
        memory: of the stage that needs most; verdict: whether it fits.
    """

    laid: Laid
    seconds: float
    shares: Mapping[str, float]
    tokens_per_second: float
    mfu: float
    hfu: float
    memory: Footprint
    verdict: str


def estimate(model: Transformer, plan: ParallelPlan, cluster: Cluster, framework: Framework, speed: Speed | None = None) -> Step:
    """A step of the plan on all GPUs of a cluster.

    Args:
        speed: what is known of kernels from estimates before, on the same GPUs with the same framework.

    Raises:
        WrongPlan: the plan fits neither the model nor the cluster.
    """
    laid = lay(model, plan, cluster.gpus)
    speed = speed or Speed(cluster.gpu, framework)
    return step(laid, cluster, framework, speed)


def step(laid: Laid, cluster: Cluster, framework: Framework, speed: Speed) -> Step:
    """As `estimate`, of a plan that is laid."""
    plan, m = laid.plan, laid.microbatches
    cluster = replace(cluster, network=cluster.network * framework.network) if framework.network < 1.0 else cluster
    stage = stage_of(laid, framework, 0)
    layer = stage.layer
    shares: dict[str, float] = {}
    ahead = _seconds(layer.forward, laid, cluster, speed)
    back = _seconds((*layer.recompute, *layer.backward), laid, cluster, speed)
    body = dict(ahead)
    _add(body, back, 1.0)
    for name, seconds in body.items():
        shares[name] = m * laid.layers * seconds
    layer_seconds = math.fsum(body.values())
    one = laid.layers * layer_seconds
    first = _seconds(stage.first, laid, cluster, speed)
    final = stage if plan.pp == 1 else stage_of(laid, framework, plan.pp - 1)
    last = _seconds(final.last, laid, cluster, speed)
    before, behind = math.fsum(first.values()), math.fsum(last.values())
    if plan.pp == 1:
        longest = one + before + behind
        _add(shares, first, m)
        _add(shares, last, m)
    else:
        ends = (laid.layers_of(0) * layer_seconds + before, laid.layers_of(plan.pp - 1) * layer_seconds + behind)
        longest = max(one, *ends)
        shares["output"] = m * (longest - one)
        others = laid.model.layers * layer_seconds + before + behind - longest
        hop = cluster.seconds("send", stage.passed, 2, laid.stride("pp"))
        shares["bubble"] = others / plan.chunks
        shares["pp"] = 2.0 * hop * (m * plan.chunks + plan.pp - 1)
    added = math.fsum(_seconds(stage.adding, laid, cluster, speed).values())
    if added > 0:
        shares["accumulate"] = m * added
    heavier = stage if before >= behind else final
    _add(shares, _seconds(heavier.ending, laid, cluster, speed), 1.0)
    passes = laid.layers * math.fsum(ahead.values()), laid.layers * math.fsum(back.values())
    beyond = math.fsum(
        _beyond(each, heavier.number, passes, laid, cluster) for each in heavier.ending if isinstance(each, Exchange)
    )
    if beyond > 0:
        shares["dp"] += beyond
    if stage.gathered:
        shares["dp"] = _sharded(stage, laid, cluster, m * longest)
    if framework.step > 0:
        shares["host"] = framework.step
    return _step(laid, cluster, framework, shares)


def _seconds(items: Iterable[Item], laid: Laid, cluster: Cluster, speed: Speed) -> dict[str, float]:
    """Seconds by what they go to."""
    found: dict[str, float] = {}
    for item in items:
        if isinstance(item, Kernel):
            found[item.kind] = found.get(item.kind, 0.0) + speed.seconds(item)
        else:
            seconds = item.times * item.exposed * collective(item, laid, cluster)
            found[item.axis] = found.get(item.axis, 0.0) + seconds
    return found


def collective(item: Exchange, laid: Laid, cluster: Cluster) -> float:
    """Seconds of one, alone with its like of the other groups."""
    sizes: dict[Axis, int] = {"tp": laid.plan.tp, "cp": laid.plan.cp, "ep": laid.plan.ep, "pp": 2, "dp": laid.dp}
    ranks = sizes[item.axis]
    if item.axis == "dp" and item.operation != "all-reduce" and item.name == "weights":
        ranks = laid.shards
    return cluster.seconds(item.operation, item.size, ranks, laid.stride(item.axis))


def _sharded(stage: Stage, laid: Laid, cluster: Cluster, computing: float) -> float:
    """What gathering weights and scattering gradients adds to computing."""
    many = laid.plan.chunks * hiding.pieces(laid, stage.number)
    each = [collective(replace(item, size=item.size / many), laid, cluster) for item in stage.gathered]
    moving = laid.microbatches * many * math.fsum(item.times * one for item, one in zip(stage.gathered, each, strict=True))
    exposed = max(item.exposed for item in stage.gathered)
    hidden = (1.0 - exposed) * (moving - math.fsum(each))
    return moving - hidden + hiding.left(hidden, computing)


def _beyond(item: Exchange, stage: int, passes: tuple[float, float], laid: Laid, cluster: Cluster) -> float:
    """What an exchange at the end of a step takes beyond its exposed part.  passes: seconds of one forward, one backward."""
    if item.exposed >= 1.0:
        return 0.0
    forward, backward = passes
    whole = item.times * collective(item, laid, cluster)
    if item.name == "weights":
        return hiding.left((1.0 - item.exposed) * whole, hiding.window(laid, forward))
    each = hiding.pieces(laid, stage)
    many = laid.plan.chunks * each
    exposed = hiding.in_buckets(item, many).exposed
    bucket = collective(replace(item, size=item.size / many), laid, cluster)
    behind = hiding.window(laid, backward, each)
    return (exposed - item.exposed) * whole + hiding.left((1.0 - exposed) * many * bucket, behind)


def _add(shares: dict[str, float], more: Mapping[str, float], times: float) -> None:
    for name, seconds in more.items():
        shares[name] = shares.get(name, 0.0) + times * seconds


def _step(laid: Laid, cluster: Cluster, framework: Framework, shares: Mapping[str, float]) -> Step:
    seconds = math.fsum(shares.values())
    peak = peak_of(cluster.gpu.flop, laid.plan.dtype, "gpu")[1] * laid.gpus
    model = laid.model
    flop = laid.tokens * model.training_flop(laid.sequence)
    again = laid.tokens * model.forward_flop(laid.sequence) if laid.plan.recompute == "full" else 0.0
    if laid.plan.recompute == "selective" and framework.attention == "plain":
        again = laid.tokens * 4.0 * model.layers * model.queries * laid.sequence
    stages = {0, laid.plan.pp - 1}
    memory = max(
        (training_memory(laid, framework.attention, each, framework.gradient) for each in sorted(stages)),
        key=lambda each: each.total,
    )
    return Step(
        laid=laid,
        seconds=seconds,
        shares=shares,
        tokens_per_second=laid.tokens / seconds,
        mfu=flop / (peak * seconds),
        hfu=(flop + again) / (peak * seconds),
        memory=memory,
        verdict=memory.verdict(cluster.gpu.memory.size),
    )
