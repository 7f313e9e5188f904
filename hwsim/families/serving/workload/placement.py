"""The plan of an `infer:` on a machine: replicas on GPUs, memory for the KV cache, and checks of invalid combinations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim import ticks
from hwsim.devices import Gpu
from hwsim.families.serving.workload.adapters import adapters_of, with_load_time
from hwsim.families.serving.workload.autoscaler import fixed_scale, scale_of
from hwsim.families.serving.workload.offload import offload_of
from hwsim.families.serving.workload.parallel import SplitKeys
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families.serving.workload.requests import ServiceRequests, draw, min_tokens
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.serving.workload.settings import server_of, settings_of
from hwsim.families.serving.workload.speculation import speculation_of
from hwsim.formats import format_quantity, percent
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models.architectures import Model, Transformer
from hwsim.models.framework import Framework, Software, framework_of
from hwsim.models.library import written_model
from hwsim.models.memory import Footprint, cache_room, serving_memory
from hwsim.models.plan import uneven_widths
from hwsim.models.server import ServerKeys
from hwsim.spec import Mistakes, Place, SpecError, Tree, decode
from hwsim.units import BYTES
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.keys import CountDraw

USUAL: Final = "vllm"
USUAL_NETWORK: Final = "pytorch-ngc"
ANYTHING: Final = 10**9  # tokens: sequence limit of a network that reads no tokens


def plan_service(tree: Tree, machine: Machine, mistakes: Mistakes, *, name: str = "", start: float = 0.0) -> ServicePlan | None:
    """Return the plan of an `infer:`; None if it is not valid, which is noted in `mistakes`."""
    read_keys = decode_service(tree, mistakes)
    if read_keys is None:
        return None
    keys, model, software = read_keys
    if keys.split is None:
        return _plan_part(tree, tree, machine, mistakes, keys, model, software, name, start)
    split, written = keys.split, tree.get("split") or tree
    if keys.scale is not None:
        message = "`scale` and `split` exclude each other: prefill and decode have separate replicas, each with its own `scale`"
        mistakes.add(keys.scale.place, message, "split: {prefill: {..., scale: {...}}, decode: {..., scale: {...}}}")
        return None
    if keys.offload is not None:
        mistakes.add(keys.offload.place, "`offload` is not modelled with `split`", "leave out `offload`")
        return None
    if keys.adapters is not None and keys.adapters.slots is not None:
        message = "`slots`, which load adapters on demand, are not modelled with `split`"
        mistakes.add(keys.adapters.place, message, "leave out `slots`: all adapters are on the GPUs")
        return None
    plans = []
    for part, part_tree in ((split.prefill, written.get("prefill") or tree), (split.decode, written.get("decode") or tree)):
        of_part = replace(
            keys, device=part.device, parallel=part.parallel, server=part.server.over(keys.server), scale=part.scale
        )
        of_part = replace(of_part, speculate=None) if part is split.prefill else of_part
        plans.append(_plan_part(tree, part_tree, machine, mistakes, of_part, model, software, name, start))
    prompts, answers = plans
    if prompts is None or answers is None:
        return None
    if not answers.answers or answers.settings.padded:
        mistakes.add(written.place, "`split` needs continuous batching and a model that writes tokens", "leave it out")
        return None
    gpus_of_parts = [{gpu for copy in plan.copies for gpu in copy} for plan in (prompts, answers)]
    if both := sorted(gpus_of_parts[0] & gpus_of_parts[1]):
        mistakes.add(written.place, f"{both[0]} is used for prefill and for decode", "separate GPUs for each part")
        return None
    if prompts.dtype != answers.dtype:
        mistakes.add(written.place, f"the KV cache is {prompts.dtype} in prefill, {answers.dtype} in decode", "dtype: fp16")
        return None
    try:
        machine.route(prompts.copies[0][0], answers.copies[0][0])
    except NoRoute as error:
        mistakes.add(written.place, f"no link for the KV cache: {error}", "GPUs that are connected")
        return None
    if prompts.scale is not None or answers.scale is not None:  # without `scale:`, all replicas of a part are always on
        prompts, answers = (replace(plan, scale=plan.scale or fixed_scale(len(plan.copies))) for plan in (prompts, answers))
    return replace(answers, prompts=prompts)


def _plan_part(
    tree: Tree,
    at: Tree,
    machine: Machine,
    mistakes: Mistakes,
    keys: InferKeys,
    model: Model,
    software: Framework | Software,
    name: str,
    start: float,
) -> ServicePlan | None:
    """Return the plan of a service, or of a part of it; `at` is the mapping with `device` and `parallel`."""
    try:
        names = machine.devices_of("gpu") if at.get("device") is None else machine.select(keys.device)
    except UnknownName as error:
        mistakes.add(_place_of(at, "device"), error.message, error.hint)
        return None
    gpu = _common_gpu(machine, names, _place_of(at, "device"), mistakes)
    copies = _replicas(keys, model, names, _place_of(at, "parallel"), mistakes)
    if gpu is None or not copies:
        return None
    dtype = keys.dtype or ("bf16" if "bf16" in gpu.flop else "fp16")
    if not isinstance(model, Transformer):
        dtype = keys.dtype or ("fp16" if "fp16" in gpu.flop else "fp32")
    answers = isinstance(model, Transformer) and model.causal
    server = server_of(
        software.server if isinstance(software, Framework) else ServerKeys(), keys, gpu.memory.size, gpu.generation
    )
    if isinstance(model, Transformer) and model.cache == "window" and server.windows is False:
        model = replace(model, cache="all")
    if keys.top_p is not None:
        if answers and isinstance(model, Transformer):
            model = replace(model, top_p=keys.top_p)
        else:
            mistakes.add(_place_of(tree, "top_p"), "`top_p` needs a model that writes tokens", "leave out `top_p`")
    before = len(mistakes)
    guesses = None
    if keys.speculate is not None and answers and isinstance(model, Transformer):
        guesses = speculation_of(keys.speculate, model, keys.seed, mistakes)
    adapters = None
    if keys.adapters is not None and isinstance(model, Transformer) and answers and isinstance(software, Framework):
        adapters = adapters_of(keys.adapters, model, keys.parallel.tp, dtype, keys.seed, mistakes)
        if adapters is not None and adapters.slots is not None:
            adapters = with_load_time(adapters, machine, copies, keys.adapters.place, mistakes)
            if keys.batching == "static":
                message = "`slots`, which load adapters on demand, are not modelled with `batching: static`"
                mistakes.add(keys.adapters.place, message, "leave out `slots`: all adapters are on the GPUs")
    elif keys.adapters is not None:
        mistakes.add(_place_of(tree, "adapters"), "adapters need a model that writes tokens", "leave out `adapters`")
    if len(mistakes) > before:
        return None
    more, of_adapters = None if guesses is None else guesses.memory(keys, dtype), 0.0
    if adapters is not None:
        weights, cache = more or (0.0, 0.0)
        more = weights + adapters.size / keys.parallel.pp, cache
        of_adapters = adapters.size / keys.parallel.pp
    memory, tokens = _gpu_memory(model, keys, dtype, gpu, copies, server, tree, mistakes, more, of_adapters)
    if tokens == 0:
        return None
    windowed = isinstance(model, Transformer) and model.cache == "window"
    verified = 1 if guesses is None else 1 + guesses.tokens
    settings = settings_of(server, answers=answers, windowed=windowed, groups=keys.parallel.groups, verified=verified)
    stages = keys.parallel.pp
    if stages > 1:  # every stage has the server's work for a batch; `sequences` counts all batches
        sequences = max(1, settings.sequences // stages)
        settings = replace(settings, step=stages * settings.step, each=stages * settings.each, sequences=sequences)
    drawn = _draw_requests(keys, _max_sequence(model), answers, tree, mistakes)
    if drawn is None or not _fits(drawn, None if tokens is None else tokens // stages, model, settings.block, tree, mistakes):
        return None
    token_bytes = 0.0
    if isinstance(model, Transformer) and answers:
        parallel = keys.parallel
        token_bytes = serving_memory(model, parallel.tp, 1, dtype, parallel.pp, groups=parallel.groups, kept=keys.kv or "").cache
    offload = None
    if keys.offload is not None:
        if not settings.prefixes or settings.padded:
            mistakes.add(keys.offload.place, "`offload` needs a server with a prefix cache", "server: {prefixes: true}")
            return None
        offload = offload_of(keys.offload, machine, copies, token_bytes * settings.block, mistakes)
        if offload is None:
            return None
        settings = replace(settings, late=offload.late)
    scale = None
    if keys.scale is not None:
        scale = scale_of(keys.scale, copies, memory.weights, mistakes)
        if scale is None:
            return None
    return ServicePlan(
        name=name,
        start=ticks.femtoseconds(start),
        keys=keys,
        model=model,
        software=software,
        gpu=gpu,
        dtype=dtype,
        copies=copies,
        settings=settings,
        tokens=tokens if answers else None,
        token_bytes=token_bytes,
        memory=memory,
        speculation=guesses,
        adapters=adapters,
        offload=offload,
        scale=scale,
        requests=drawn,
        is_spread=keys.parallel.groups > 1 and _crosses_nics(machine, copies[0]),
    )


def _crosses_nics(machine: Machine, gpus: Sequence[str]) -> bool:
    """Whether the route from the first GPU to the last passes a NIC."""
    try:
        ends = [link.target for link in machine.route(gpus[0], gpus[-1])]
    except NoRoute:
        return False
    return any(machine.device(end).kind == "nic" for end in ends)


def check_service(tree: Tree, mistakes: Mistakes) -> None:
    """Add every mistake of an `infer:` that can be found without a machine."""
    read_keys = decode_service(tree, mistakes)
    if read_keys is not None:
        keys, model, _ = read_keys
        _draw_requests(keys, _max_sequence(model), isinstance(model, Transformer) and model.causal, tree, mistakes)


def decode_service(tree: Tree, mistakes: Mistakes) -> tuple[InferKeys, Model, Framework | Software] | None:
    """Return keys, model and framework, which need no machine; None if they are not valid, which is noted in `mistakes`."""
    keys = decode(tree, InferKeys, mistakes)
    if keys is None or not _is_consistent(keys, tree, mistakes):
        return None
    model, place = written_model(keys.model, mistakes), _place_of(tree, "framework")
    if model is None:
        return None
    usual = USUAL if isinstance(model, Transformer) else USUAL_NETWORK
    try:
        return keys, model, framework_of(model, keys.framework or usual, place.folder, place, work="serve")
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def _max_sequence(model: Model) -> int:
    """Return the maximum number of tokens of a prompt and its answer."""
    return model.sequence if isinstance(model, Transformer) else ANYTHING


def _place_of(tree: Tree, key: str) -> Place:
    found = tree.get(key)
    return tree.place if found is None else found.place


def _is_consistent(keys: InferKeys, tree: Tree, mistakes: Mistakes) -> bool:
    """Whether the keys are consistent; contradictions are noted in `mistakes`."""
    before = len(mistakes)
    if keys.speculate is not None and keys.batching == "static":
        message = "`speculate` needs continuous batching: a static batch writes one token of each answer at a time"
        mistakes.add(tree.key_place("speculate"), message, "batching: continuous")
    slots = None if keys.adapters is None else keys.adapters.slots
    for plan in (keys, *(() if keys.split is None else (keys.split.prefill, keys.split.decode))):
        for key, value in (("scale", plan.scale), ("offload", keys.offload), ("adapters", slots)):
            if plan.parallel.pp > 1 and value is not None:
                message = f"pipeline parallelism is not modelled with `{key}`"
                mistakes.add(plan.parallel.place, message, "pp: 1, and a larger tp")
    parts = ("arrivals", "prompt", "output", "shared", "sessions", "router", "speculate", "scale")
    for key, value in ((key, getattr(keys, key)) for key in parts):
        if value is None or isinstance(value, int | str):
            continue
        written = tree.get(key)
        for inner, message, hint in value.problems():
            mistakes.add(written.key_place(inner) if written is not None and inner else _place_of(tree, key), message, hint)
    for part in () if keys.split is None else (keys.split.prefill, keys.split.decode):
        if part.scale is not None:
            for _, message, hint in part.scale.problems():
                mistakes.add(part.scale.place, message, hint)
    traced = isinstance(keys.arrivals, ArrivalKeys) and keys.arrivals.trace is not None
    for key in ("shared", "sessions"):
        if traced and getattr(keys, key) is not None:
            message = f"`{key}` cannot be used with a trace, which has its own prompts"
            mistakes.add(tree.key_place(key), message, "arrivals: {poisson: 4 1/s}, or a trace with `hash_ids`")
    return len(mistakes) == before


def _common_gpu(machine: Machine, names: Sequence[str], place: Place, mistakes: Mistakes) -> Gpu | None:
    try:
        models = [machine.device(name).model for name in names]
    except UnknownName as error:
        mistakes.add(place, error.message, error.hint)
        return None
    for name, model in zip(names, models, strict=True):
        if not isinstance(model, Gpu):
            mistakes.add(place, f"{name} is a {machine.device(name).kind}: expected GPUs, which serve models", "device: gpu*")
            return None
    if not models:
        few = "" if machine.devices_of("gpu") else f": a model is served on GPUs, and {machine.name or 'the machine'} has none"
        mistakes.add(place, f"no device is named{few}", "device: gpu*")
        return None
    first = models[0]
    if any(name != first for name in models):
        mistakes.add(place, "the service has GPUs of several kinds: expected one kind", "a separate job for each kind")
        return None
    return first if isinstance(first, Gpu) else None


def parallel_mistake(model: Model, parallel: SplitKeys) -> tuple[str, str] | None:
    """Return (message, hint) if a model cannot have a parallel plan on any number of GPUs; None if it can."""
    tp, group = parallel.tp, parallel.groups * parallel.tp
    if not isinstance(model, Transformer):
        return ("a convolutional network cannot be split over GPUs", "tp: 1, dp: rest") if parallel.gpus > 1 else None
    if model.heads % tp:
        return f"tp {tp} does not divide {model.heads} heads", f"a divisor of {model.heads}"
    if uneven := dict(uneven_widths(model, tp)):
        return uneven["tp"], "a smaller power of two"
    if (parallel.groups > 1 or parallel.ep > 1) and not any(kind.experts > 1 for kind in model.kinds):
        return "the model has no experts, which `groups` and `ep` need", "dp: rest"
    if group % parallel.ep:
        return f"ep {parallel.ep} does not divide {group} GPUs", f"ep: {group}"
    if parallel.pp > model.layers:
        return f"pp {parallel.pp} is more than the {model.layers} layers", f"pp: {model.layers}"
    return None


def _replicas(
    keys: InferKeys, model: Model, names: Sequence[str], place: Place, mistakes: Mistakes
) -> tuple[tuple[str, ...], ...]:
    """Return the GPUs of each replica; none if the parallel plan is not valid, which is noted in `mistakes`."""
    parallel, gpus = keys.parallel, len(names)
    dp, gpu_count = parallel.dp, parallel.gpus
    if (wrong := parallel_mistake(model, parallel)) is not None:
        mistakes.add(place, *wrong)
    elif dp == "rest" and gpus % gpu_count:
        mistakes.add(
            place,
            f"{gpus} GPUs cannot be divided into replicas of {gpu_count}",
            f"dp: {gpus // gpu_count or 1}, or a tp that divides {gpus}",
        )
    elif dp != "rest" and gpu_count * dp > gpus:
        mistakes.add(place, f"{dp} replicas of {gpu_count} GPUs need {gpu_count * dp} GPUs, got {gpus}", "dp: rest")
    else:
        count = gpus // gpu_count if dp == "rest" else dp
        return tuple(tuple(names[index * gpu_count : (index + 1) * gpu_count]) for index in range(count))
    return ()


def _gpu_memory(
    model: Model,
    keys: InferKeys,
    dtype: str,
    gpu: Gpu,
    copies: Sequence[Sequence[str]],
    server: ServerKeys,
    tree: Tree,
    mistakes: Mistakes,
    more: tuple[float, float] | None = None,
    of_adapters: float = 0.0,
) -> tuple[Footprint, int | None]:
    """Return (memory on each GPU before the first request, tokens that fit in the KV cache; 0 if it does not fit).

    Args:
        model, keys, dtype, gpu, copies, server, tree: the service and the place of its mistakes.
        mistakes: list to which missing memory is added.
        more: bytes of draft and adapter weights on each GPU, and KV-cache bytes of the draft for each token.
        of_adapters: bytes of these weights that are adapters.
    """
    tp, size = keys.parallel.tp, gpu.memory.size
    part = (server.memory.part if server.memory and server.memory.of != "free" else None) or 1.0  # else of free memory
    if isinstance(model, Transformer):
        parallel = keys.parallel
        memory, tokens = cache_room(model, tp, size, dtype, server, pp=parallel.pp, groups=parallel.groups, kept=keys.kv or "")
        if more is not None:
            memory = replace(memory, weights=memory.weights + more[0])
            if tokens is not None:
                token_bytes = serving_memory(model, tp, 1, dtype, parallel.pp, groups=parallel.groups, kept=keys.kv or "").cache
                tokens = max(0, int((tokens * token_bytes - more[0]) // (token_bytes + more[1])))
    else:
        memory = Footprint(0, model.parameters * BYTES[dtype], 0.0, 0.0, 0.0, 0.0)
        tokens = None
    if size is not None and (memory.total > part * size or tokens == 0):
        over = max(memory.total - part * size, 1.0)
        written = tree.get("model")
        called = written.value if written is not None and isinstance(written.value, str) else "the model"
        adapted = f" ({format_quantity(of_adapters, 'B')} of them adapters)" if of_adapters else ""
        holds = f"{format_quantity(memory.weights, 'B')} of weights{adapted}, {format_quantity(memory.buffers, 'B')} of buffers"
        room = f"{percent(part, '.4g')} of {format_quantity(size, 'B')}"
        mistakes.add(
            _place_of(tree, "model"),
            f"{called} does not fit by {format_quantity(over, 'B')} on {copies[0][0]}: {holds}, in {room}",
            "fewer `slots` of `adapters`, or a larger tp"
            if of_adapters > 0.5 * memory.weights
            else "a larger tp, a smaller dtype, or GPUs with more memory",
        )
        return memory, 0
    return memory, tokens


def _draw_requests(keys: InferKeys, longest: int, answers: bool, tree: Tree, mistakes: Mistakes) -> ServiceRequests | None:
    """Return the requests. A constant length above the model's maximum is a mistake; random lengths are truncated."""
    traced = isinstance(keys.arrivals, ArrivalKeys) and keys.arrivals.trace is not None
    prompt, output = min_tokens(keys.prompt), min_tokens(keys.output) if answers else 0
    if not traced and prompt + output > longest:
        drawn = isinstance(keys.prompt, CountDraw) or (answers and isinstance(keys.output, CountDraw))
        lengths = f"{prompt:,} tokens" if not output else f"{prompt:,} + {output:,} tokens"
        key = "prompt" if prompt > 1 or tree.get("prompt") is not None else "output"
        message = f"{'at least ' if drawn else ''}{lengths} exceed the model's `sequence`: expected at most {longest:,}"
        mistakes.add(_place_of(tree, key), message, "shorter requests, or a model with a longer `sequence`")
        return None
    try:
        return draw(keys, longest, answers=answers)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
    except ticks.TooLong as error:
        mistakes.add(_place_of(tree, "arrivals"), f"the last request arrives after {error.seconds:.4g} s, too late", error.hint)
        return None


def _fits(requests: ServiceRequests, tokens: int | None, model: Model, block: int, tree: Tree, mistakes: Mistakes) -> bool:
    """Whether the longest request fits in an empty KV cache."""
    if tokens is None or not isinstance(model, Transformer) or not model.causal or not requests:
        return True
    prompt, output = requests.most
    blocks = tokens // block
    if math.ceil(model.cached(prompt + output) / block) <= blocks:
        return True
    mistakes.add(
        _place_of(tree, "prompt"),
        f"a request of {prompt:,} + {output:,} tokens does not fit into the KV cache of {blocks * block:,} tokens",
        "a larger tp or `memory`, or shorter requests",
    )
    return False
