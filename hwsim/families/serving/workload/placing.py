"""An `infer:` placed on a machine: copies on its GPUs, room for keys and values, and what cannot be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim import ticks
from hwsim.devices import Gpu
from hwsim.families.serving.workload.adapters import adapters_of, loaded
from hwsim.families.serving.workload.offload import offload_of
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families.serving.workload.requests import Requests, draw, least
from hwsim.families.serving.workload.scaling import always, scale_of
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.serving.workload.settings import server_of, settings_of
from hwsim.families.serving.workload.speculating import speculation_of
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
ANYTHING: Final = 10**9  # tokens: a network that reads none has no longest sequence


def plan_service(tree: Tree, machine: Machine, mistakes: Mistakes, *, name: str = "", start: float = 0.0) -> ServicePlan | None:
    """The service that an `infer:` writes; None once its mistakes are noted."""
    read_keys = _known(tree, mistakes)
    if read_keys is None:
        return None
    keys, model, software = read_keys
    if keys.split is None:
        return _planned(tree, tree, machine, mistakes, keys, model, software, name, start)
    split, written = keys.split, tree.get("split") or tree
    if keys.scale is not None:
        message = "each part of a split has copies of its own, which are started and stopped by its own load"
        mistakes.add(keys.scale.place, message, "split: {prefill: {..., scale: {...}}, decode: {..., scale: {...}}}")
        return None
    if keys.offload is not None:
        mistakes.add(
            keys.offload.place, "tiers below the GPUs are not modelled for prompts that are read apart", "leave them out"
        )
        return None
    if keys.adapters is not None and keys.adapters.slots is not None:
        message = "adapters that are loaded on demand are not modelled for prompts that are read apart"
        mistakes.add(keys.adapters.place, message, "leave out `slots`: all adapters are on the GPUs")
        return None
    plans = []
    for part, at in ((split.prefill, written.get("prefill") or tree), (split.decode, written.get("decode") or tree)):
        of_part = replace(
            keys, device=part.device, parallel=part.parallel, server=part.server.over(keys.server), scale=part.scale
        )
        of_part = replace(of_part, speculate=None) if part is split.prefill else of_part
        plans.append(_planned(tree, at, machine, mistakes, of_part, model, software, name, start))
    prompts, answers = plans
    if prompts is None or answers is None:
        return None
    if not answers.answers or answers.settings.padded:
        mistakes.add(written.place, "only answers of continuous batches are written apart from their prompts", "leave it out")
        return None
    ends = [{gpu for copy in each.copies for gpu in copy} for each in (prompts, answers)]
    if both := sorted(ends[0] & ends[1]):
        mistakes.add(written.place, f"{both[0]} reads prompts and writes answers", "GPUs of its own for each part")
        return None
    if prompts.dtype != answers.dtype:
        mistakes.add(written.place, f"keys and values are {prompts.dtype} here and {answers.dtype} there", "dtype: fp16")
        return None
    try:
        machine.route(prompts.copies[0][0], answers.copies[0][0])
    except NoRoute as error:
        mistakes.add(written.place, f"keys and values cannot pass: {error}", "GPUs that are connected")
        return None
    if prompts.scale is not None or answers.scale is not None:  # a part that says nothing has all of its copies always
        prompts, answers = (replace(each, scale=each.scale or always(len(each.copies))) for each in (prompts, answers))
    return replace(answers, prompts=prompts)


def _planned(
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
    """A service on the GPUs of its keys; at: where `device` and `parallel` are written."""
    try:
        names = machine.devices_of("gpu") if at.get("device") is None else machine.select(keys.device)
    except UnknownName as error:
        mistakes.add(_place(at, "device"), error.message, error.hint)
        return None
    gpu = _gpu(machine, names, _place(at, "device"), mistakes)
    copies = _copies(keys, model, names, _place(at, "parallel"), mistakes)
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
    before = len(mistakes)
    guesses = None
    if keys.speculate is not None and answers and isinstance(model, Transformer):
        guesses = speculation_of(keys.speculate, model, keys.seed, mistakes)
    adapters = None
    if keys.adapters is not None and isinstance(model, Transformer) and answers and isinstance(software, Framework):
        adapters = adapters_of(keys.adapters, model, keys.parallel.tp, dtype, keys.seed, mistakes)
        if adapters is not None and adapters.slots is not None:
            adapters = loaded(adapters, machine, copies, keys.adapters.place, mistakes)
            if keys.batching == "static":
                message = "adapters are loaded on demand by continuous batches"
                mistakes.add(keys.adapters.place, message, "leave out `slots`: all adapters are on the GPUs")
    elif keys.adapters is not None:
        mistakes.add(_place(tree, "adapters"), "only a model that writes tokens has adapters here", "leave them out")
    if len(mistakes) > before:
        return None
    more, of_adapters = None if guesses is None else guesses.memory(keys, dtype), 0.0
    if adapters is not None:
        weights, cache = more or (0.0, 0.0)
        more = weights + adapters.size / keys.parallel.pp, cache
        of_adapters = adapters.size / keys.parallel.pp
    memory, tokens = _memory(model, keys, dtype, gpu, copies, server, tree, mistakes, more, of_adapters)
    if tokens == 0:
        return None
    windowed = isinstance(model, Transformer) and model.cache == "window"
    verified = 1 if guesses is None else 1 + guesses.tokens
    settings = settings_of(server, answers=answers, windowed=windowed, groups=keys.parallel.groups, verified=verified)
    stages = keys.parallel.pp
    if stages > 1:  # each has the server's work for a batch; requests in service are of all batches
        sequences = max(1, settings.sequences // stages)
        settings = replace(settings, step=stages * settings.step, each=stages * settings.each, sequences=sequences)
    drawn = _drawn(keys, _longest(model), answers, tree, mistakes)
    if drawn is None or not _room(drawn, None if tokens is None else tokens // stages, model, settings.block, tree, mistakes):
        return None
    token_bytes = 0.0
    if isinstance(model, Transformer) and answers:
        parallel = keys.parallel
        token_bytes = serving_memory(model, parallel.tp, 1, dtype, parallel.pp, groups=parallel.groups, kept=keys.kv or "").cache
    offload = None
    if keys.offload is not None:
        if not settings.prefixes or settings.padded:
            mistakes.add(
                keys.offload.place, "nothing is kept of prompts: its server has no `prefixes`", "server: {prefixes: true}"
            )
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
        is_spread=keys.parallel.groups > 1 and _over_nics(machine, copies[0]),
    )


def _over_nics(machine: Machine, gpus: Sequence[str]) -> bool:
    """Whether the way from the first GPU to the last leads over NICs."""
    try:
        ends = [link.target for link in machine.route(gpus[0], gpus[-1])]
    except NoRoute:
        return False
    return any(machine.device(end).kind == "nic" for end in ends)


def check_service(tree: Tree, mistakes: Mistakes) -> None:
    """Note every mistake of an `infer:` that needs no machine to be seen."""
    read_keys = _known(tree, mistakes)
    if read_keys is not None:
        keys, model, _ = read_keys
        _drawn(keys, _longest(model), isinstance(model, Transformer) and model.causal, tree, mistakes)


def _known(tree: Tree, mistakes: Mistakes) -> tuple[InferKeys, Model, Framework | Software] | None:
    """Keys, model and framework of a file, before a machine is known; None once mistakes are noted."""
    keys = decode(tree, InferKeys, mistakes)
    if keys is None or not _sound(keys, tree, mistakes):
        return None
    model, place = written_model(keys.model, mistakes), _place(tree, "framework")
    if model is None:
        return None
    usual = USUAL if isinstance(model, Transformer) else USUAL_NETWORK
    try:
        return keys, model, framework_of(model, keys.framework or usual, place.folder, place)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def _longest(model: Model) -> int:
    """Largest number of tokens of a prompt and its answer."""
    return model.sequence if isinstance(model, Transformer) else ANYTHING


def _place(tree: Tree, key: str) -> Place:
    found = tree.get(key)
    return tree.place if found is None else found.place


def _sound(keys: InferKeys, tree: Tree, mistakes: Mistakes) -> bool:
    """Whether the keys agree with each other; mistakes are noted."""
    before = len(mistakes)
    if keys.speculate is not None and keys.batching == "static":
        message = "a static batch writes a token of each answer at a time: `speculate` is of continuous batching"
        mistakes.add(tree.key_place("speculate"), message, "batching: continuous")
    slots = None if keys.adapters is None else keys.adapters.slots
    for plan in (keys, *(() if keys.split is None else (keys.split.prefill, keys.split.decode))):
        for key, value in (("scale", plan.scale), ("offload", keys.offload), ("adapters", slots)):
            if plan.parallel.pp > 1 and value is not None:
                message = f"stages of a pipeline are not modelled with `{key}`"
                mistakes.add(plan.parallel.place, message, "pp: 1, and a larger tp")
    parts = ("arrivals", "prompt", "output", "shared", "sessions", "router", "speculate", "scale")
    for key, value in ((key, getattr(keys, key)) for key in parts):
        if value is None or isinstance(value, int | str):
            continue
        written = tree.get(key)
        for inner, message, hint in value.problems():
            mistakes.add(written.key_place(inner) if written is not None and inner else _place(tree, key), message, hint)
    for part in () if keys.split is None else (keys.split.prefill, keys.split.decode):
        if part.scale is not None:
            for _, message, hint in part.scale.problems():
                mistakes.add(part.scale.place, message, hint)
    traced = isinstance(keys.arrivals, ArrivalKeys) and keys.arrivals.trace is not None
    for key in ("shared", "sessions"):
        if traced and getattr(keys, key) is not None:
            message = f"a trace has its own prompts: `{key}` is of prompts that are drawn"
            mistakes.add(tree.key_place(key), message, "arrivals: {poisson: 4 1/s}, or a trace with `hash_ids`")
    return len(mistakes) == before


def _gpu(machine: Machine, names: Sequence[str], place: Place, mistakes: Mistakes) -> Gpu | None:
    try:
        models = [machine.device(each).model for each in names]
    except UnknownName as error:
        mistakes.add(place, error.message, error.hint)
        return None
    for name, model in zip(names, models, strict=True):
        if not isinstance(model, Gpu):
            mistakes.add(place, f"{name} is a {machine.device(name).kind}; models are served on GPUs", "device: gpu*")
            return None
    if not models:
        few = "" if machine.devices_of("gpu") else f": a model is served on GPUs, and {machine.name or 'the machine'} has none"
        mistakes.add(place, f"no device is named{few}", "device: gpu*")
        return None
    first = models[0]
    if any(each != first for each in models):
        mistakes.add(
            place, "the GPUs of a service are all of one kind", "name those of one kind, and the others in a job of their own"
        )
        return None
    return first if isinstance(first, Gpu) else None


def _copies(keys: InferKeys, model: Model, names: Sequence[str], place: Place, mistakes: Mistakes) -> tuple[tuple[str, ...], ...]:
    """The GPUs of each copy; none once what is wrong is noted."""
    parallel, gpus = keys.parallel, len(names)
    tp, dp, many = parallel.tp, parallel.dp, parallel.gpus
    sparse = isinstance(model, Transformer) and any(kind.experts > 1 for kind in model.kinds)
    if isinstance(model, Transformer) and model.heads % tp:
        mistakes.add(place, f"tp {tp} does not divide {model.heads} heads", f"a divisor of {model.heads}")
    elif isinstance(model, Transformer) and (uneven := dict(uneven_widths(model, tp))):
        mistakes.add(place, uneven["tp"], "a smaller power of two")
    elif not isinstance(model, Transformer) and many > 1:
        mistakes.add(place, "a network of convolutions is not split over GPUs here", "tp: 1, and dp: rest for copies")
    elif not sparse and (parallel.groups > 1 or parallel.ep > 1):
        mistakes.add(place, "the model has no experts to share", "dp: copies of the whole model")
    elif parallel.groups * tp % parallel.ep:
        mistakes.add(
            place, f"experts are spread over {parallel.ep} of {parallel.groups * tp} GPUs", f"ep: {parallel.groups * tp}"
        )
    elif isinstance(model, Transformer) and parallel.pp > model.layers:
        mistakes.add(place, f"{parallel.pp} stages of {model.layers} layers", "fewer stages")
    elif dp == "rest" and gpus % many:
        mistakes.add(
            place,
            f"{gpus} GPUs do not make groups of {many}",
            f"tp a divisor of {gpus}, or say how many copies: dp: {gpus // many or 1}",
        )
    elif dp != "rest" and many * dp > gpus:
        mistakes.add(place, f"tp {many} x dp {dp} = {many * dp} GPUs, but there are {gpus}", "fewer copies, or dp: rest")
    else:
        count = gpus // many if dp == "rest" else dp
        return tuple(tuple(names[index * many : (index + 1) * many]) for index in range(count))
    return ()


def _memory(
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
    """Bytes on each GPU before the first request, and tokens of context that fit next to them (0: none).

    more: bytes of other weights on each GPU, and bytes that a token leaves in addition to its keys and values.
    of_adapters: bytes of these weights that are adapters.
    """
    tp, size = keys.parallel.tp, gpu.memory.size
    part = (server.memory.part if server.memory and server.memory.of != "free" else None) or 1.0  # or of what weights leave
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
            _place(tree, "model"),
            f"{called} does not fit by {format_quantity(over, 'B')} on {copies[0][0]}: {holds}, in {room}",
            "fewer `slots` of `adapters`, or a larger tp"
            if of_adapters > 0.5 * memory.weights
            else "a larger tp, a smaller dtype, or GPUs with more memory",
        )
        return memory, 0
    return memory, tokens


def _drawn(keys: InferKeys, longest: int, answers: bool, tree: Tree, mistakes: Mistakes) -> Requests | None:
    """The requests; a number that is written down and too large is a mistake, what is drawn is cut."""
    traced = isinstance(keys.arrivals, ArrivalKeys) and keys.arrivals.trace is not None
    prompt, output = least(keys.prompt), least(keys.output) if answers else 0
    if not traced and prompt + output > longest:
        drawn = isinstance(keys.prompt, CountDraw) or (answers and isinstance(keys.output, CountDraw))
        lengths = f"{prompt:,} tokens" if not output else f"{prompt:,} + {output:,} tokens"
        key = "prompt" if prompt > 1 or tree.get("prompt") is not None else "output"
        message = f"{lengths}{', the least that is drawn,' if drawn else ''} are more than the {longest:,} that the model reads"
        mistakes.add(_place(tree, key), message, "its `sequence`: shorter requests, or another model")
        return None
    try:
        return draw(keys, longest, answers=answers)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
    except ticks.TooLong as error:
        mistakes.add(_place(tree, "arrivals"), f"the last request comes after {error.seconds:.4g} s, too late", error.hint)
        return None


def _room(requests: Requests, tokens: int | None, model: Model, block: int, tree: Tree, mistakes: Mistakes) -> bool:
    """Whether the longest request fits into the KV cache alone."""
    if tokens is None or not isinstance(model, Transformer) or not model.causal or not requests:
        return True
    prompt, output = requests.most
    blocks = tokens // block
    if math.ceil(model.cached(prompt + output) / block) <= blocks:
        return True
    mistakes.add(
        _place(tree, "prompt"),
        f"a request of {prompt:,} + {output:,} tokens does not fit into the KV cache of {blocks * block:,}",
        "a larger tp or `memory`, or shorter requests",
    )
    return False
