"""`hwsim.estimate`: time and memory of a training step or an inference batch, in closed form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwsim.communication import CannotCollect
from hwsim.devices import CannotCompute
from hwsim.families.training.workload.layout import layout_of
from hwsim.families.training.workload.loader import placed_loader
from hwsim.families.training.workload.schema import TrainKeys
from hwsim.families.training.workload.specification import SAME, is_auto, sizes_of
from hwsim.functions.estimate_cases import ALIASES, Billing, EstimateAnswer, EstimateCase, OptionError, inference, training
from hwsim.functions.files import machine_with
from hwsim.functions.nodes import cluster_with
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models import ParallelPlan, TrainingStep, Transformer, UnequalCluster, WrongPlan
from hwsim.models.framework import framework_of
from hwsim.models.library import load_model, model_of
from hwsim.models.plan import replicas
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, decode_all, find, names, read, resolve, tree_of
from hwsim.spec.memo import FileMemo
from hwsim.spec.paths import apply_set
from hwsim.units import BANDWIDTH, parse_as
from hwsim.workload.number_formats import wider

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying
    from hwsim.models.architectures import Model

_OPTION: Final = re.compile(r"--([a-z][a-z-]*)")  # option names in messages
_FILES: Final = FileMemo()  # files shared by consecutive calls
_TRAINING: Final = ("pp", "dp", "cp", "ep", "microbatch", "global_batch", "sequence", "schedule", "chunks", "uneven", "sharding",
                    "recompute", "optimizer", "sequence_parallel", "plan", "tokens", "top", "failures", "storage")  # fmt: skip
_TRANSFORMER: Final = ("cp", "ep", "sequence", "chunks", "uneven", "sharding", "recompute", "sequence_parallel", "tokens",
                       "failures", "storage")  # fmt: skip
_SIZES: Final = ("tp", "pp", "dp", "cp", "ep", "order")
_INFERENCE: Final = ("batch", "prompt", "output")
DEFAULTS: Final[Mapping[str, Any]] = {
    "framework": None, "tp": 1, "pp": 1, "dp": "rest", "cp": 1, "ep": 1, "microbatch": 1, "global_batch": None, "sequence": None,
    "dtype": None, "schedule": "1f1b", "chunks": 1, "uneven": False, "sharding": "zero-1", "recompute": "none",
    "sequence_parallel": None, "optimizer": "adam", "plan": None, "top": 10, "tokens": None, "failures": None, "storage": None,
    "infer": None, "batch": 1, "prompt": 1024, "output": 128,
}  # fmt: skip


def estimate(
    machine: str | Path | Mapping[str, Any],
    model: str | Path | Mapping[str, Any],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    nodes: int = 1,
    framework: str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | str | None = None,
    cp: int | None = None,
    ep: int | None = None,
    microbatch: int | None = None,
    global_batch: int | None = None,
    sequence: int | None = None,
    dtype: str | None = None,
    schedule: str | None = None,
    chunks: int | None = None,
    uneven: bool | None = None,
    sharding: str | None = None,
    recompute: str | None = None,
    sequence_parallel: bool | None = None,
    optimizer: str | None = None,
    plan: str | None = None,
    top: int | None = None,
    tokens: float | None = None,
    failures: str | None = None,
    storage: float | str | None = None,
    infer: str | None = None,
    batch: int | None = None,
    prompt: int | None = None,
    output: int | None = None,
    paying: Paying | None = None,
) -> EstimateAnswer:
    """Return time and memory of a training step, or of an inference batch, in closed form, without simulation.

    Args:
        machine: path, library name, or content of a file (text or mapping).
        model: model, Hugging Face `config.json`, or workload with `train:`, in the same forms; other arguments override its keys.
        set: paths and values to change in the files.
        nodes: number of machines, their NICs on one non-blocking switch.
        framework: software with its kernels and overlap (default: megatron-core; inference: vllm; other networks: pytorch-ngc).
        tp: tensor-parallel size (default: 1).
        pp: pipeline-parallel size (default: 1).
        dp: data-parallel size (default: "rest", all remaining GPUs).
        cp: context-parallel size (default: 1).
        ep: expert-parallel size (default: 1).
        microbatch: examples per forward pass.
        global_batch: examples per step over all replicas (default: one microbatch per replica).
        sequence: tokens per sequence (default: the model's maximum).
        dtype: number format (default: bf16 if the GPU has it, else fp16; other networks: fp32, in inference fp16); mxfp8 is fp8,
            nvfp4 is fp4.
        schedule: pipeline schedule: "gpipe", "1f1b" or "interleaved".
        chunks: virtual pipeline stages per GPU, for "interleaved".
        uneven: allow stages that differ by one layer.
        sharding: "none", "zero-0" to "zero-3", or "fsdp".
        recompute: activation recomputation: "none", "selective" or "full".
        sequence_parallel: split norms and residuals along the sequence.
        optimizer: "adam" or "sgd".
        plan: "auto" searches the parallel plans over all axes, with the other arguments fixed.
        top: number of plans listed.
        tokens: tokens of the entire training, for its duration.
        failures: failure rates, with `tokens`.
        storage: checkpoint bandwidth, with `failures` (B/s, or text such as "2 TB/s").
        infer: "prefill", "decode" or "forward": estimate inference instead of training.
        batch: inference batch size.
        prompt: prompt tokens.
        output: output tokens.
        paying: prices, payment option and site (`hwsim.Paying`).

    Raises:
        SpecError: the files have mistakes, options exclude each other, or the machine cannot split or compute the model.
        TypeError: `machine` or `model` is of another type.

    >>> found = estimate("dgx-a100", "llama-2-7b", tp=8, global_batch=32, sequence=4096)
    >>> found.fits, found.to_pandas().columns.tolist()
    (True, ['work', 'time_s', 'share'])
    """
    arguments = locals()
    given = {name for name in DEFAULTS if arguments[name] is not None}
    settings = {path: str(value) for path, value in (set or {}).items()}
    options = {name: arguments[name] if name in given else default for name, default in DEFAULTS.items()}
    if isinstance(storage, str):
        options["storage"] = parse_as(storage, BANDWIDTH)
    with _FILES.shared():
        try:
            return compute_estimate(_name_or_text(machine), _name_or_text(model), settings, nodes, options, given, paying)
        except OptionError as error:
            raise OptionError(_OPTION.sub(lambda found: found[1].replace("-", "_"), error.message), error.option) from None


def _name_or_text(source: str | Path | Mapping[str, Any]) -> str:
    if isinstance(source, Mapping):
        return json.dumps(source) + "\n"
    if not isinstance(source, str | Path):
        raise TypeError(f"expected a path, a name, a text or a mapping, got {source!r}")
    return str(source)


def compute_estimate(
    machine: str,
    model: str,
    settings: dict[str, str],
    nodes: int,
    options: dict[str, Any],
    given: set[str],
    paying: Paying | None,
) -> EstimateAnswer:
    """Return the estimate of a set of options.
    Raises:
        SpecError: as of `estimate`; `OptionError` where an option is at fault.
    """
    written: Tree | None = None
    changes = settings
    trained = _training_of(model, settings)
    if trained is not None:
        if options["infer"]:
            raise OptionError(f"{_short(model)} is a training workload, but --infer requires a model")
        train, settings = trained
        written, options, given = _options_of(train, options, given)
    _refuse_foreign(given, options["infer"])
    _refuse_half(given)
    if options["plan"] not in (None, "auto"):
        hint = "; `auto` now searches all axes" if options["plan"] == "every" else ""
        raise OptionError(f"expected auto, got '{options['plan']}'{hint}", "--plan")
    try:
        cluster, title, warnings = cluster_with(machine, settings, nodes)
        if trained is not None:
            _refuse_simulated(trained[0], cluster.gpus, machine_with(machine, settings))
        network = load_model(model) if written is None else model_of(written)
        called, of_transformer = _short(model), isinstance(network, Transformer)
        _refuse_other_models(given, options["infer"], called, of_transformer=of_transformer)
        usual = ("vllm" if options["infer"] else "megatron-core") if of_transformer else "pytorch-ngc"
        software = options["framework"] or usual
        framework = framework_of(network, software, work="serve" if options["infer"] else "train")
        options["dtype"] = ALIASES.get(options["dtype"], options["dtype"]) or _usual_dtype(
            cluster.gpu.flop, options["infer"], of_transformer=of_transformer
        )
        warnings = (*warnings, *wider(cluster.gpu.flop, options["dtype"]))
        billing = None if paying is None else Billing(machine, settings, nodes, paying)
        note = ""
        if options["infer"] is None and options["global_batch"] is None:
            options["global_batch"], note = _least_batch(network, options, cluster.gpus)
        case = EstimateCase(cluster, network, framework, title, called, _short(software), warnings, billing, changes, note)
        if trained is not None and (loader := trained[0].get("loader")) is not None:
            if nodes > 1 or options["plan"] is not None:
                option = "--nodes" if nodes > 1 else "--plan"
                raise OptionError(f"the estimate of a training with `loader` has no {option}; hwsim simulate has", option)
            case = replace(case, loading=partial(_with_loader, trained[0], loader, machine_with(machine, settings)))
        return inference(case, options) if options["infer"] else training(case, options, given)
    except WrongPlan as error:
        raise SpecError([Mistake(None, message) for _, message in error.mistakes]) from error
    except (CannotCompute, UnequalCluster, CannotCollect, NoRoute, UnknownName) as error:
        raise SpecError.of(None, str(error), getattr(error, "hint", None)) from error


def _refuse_simulated(train: Tree, gpus: int, machine: Machine) -> None:
    """Raise SpecError for keys of a training that only a simulation models, on a cluster of `gpus` GPUs."""
    keys = decode_all(train, TrainKeys, Mistakes())
    chosen = gpus if train.get("device") is None else len(machine.select(keys.device))
    if (used := keys.gpus or chosen) != gpus or chosen != gpus:
        place = train.key_place("device" if keys.gpus is None else "gpus")
        message = f"the estimate uses all {gpus:,} GPUs, but the training uses {used:,}"
        raise SpecError.of(place, message, "`hwsim simulate` models a part of the machine")
    for key in ("synchronise", "buckets", *(["threads"] if keys.threads == "one" and gpus > 1 else [])):
        if train.get(key) is not None:
            raise SpecError.of(train.key_place(key), f"the estimate does not model `{key}`", "`hwsim simulate` does")


def _with_loader(train: Tree, tree: Tree, machine: Machine, step: TrainingStep) -> TrainingStep:
    """Return the step with its data loader, which may be slower than the training.

    Raises:
        SpecError: the loader has mistakes.
    """
    plan, mistakes, keys = step.laid.plan, Mistakes(), decode_all(train, TrainKeys, Mistakes()).loader
    sizes = {name: getattr(plan, name) for name in ("tp", "pp", "cp", "ep", "order")}
    layout = layout_of(machine, machine.devices_of("gpu"), dp=step.laid.dp, **sizes)
    groups = [layout.group(0, replica) for replica in range(layout.dp)]
    loader = None if keys is None else placed_loader(keys, tree, plan.global_batch, machine, groups, "loader", mistakes)
    if loader is None:
        raise SpecError(mistakes)
    seconds = max(bound_s for _, bound_s in loader.bounds(step.seconds))
    shares, part = {**step.shares, "data loader": seconds - step.seconds}, step.seconds / seconds
    return replace(step, seconds=seconds, shares=shares, mfu=step.mfu * part, hfu=step.hfu * part)


def _least_batch(network: Model, options: Mapping[str, Any], gpus: int) -> tuple[int, str]:
    """Return the default global batch, one microbatch per replica, and a note on it.

    Raises:
        OptionError: the network is not a transformer, so there is no default batch.
    """
    if not isinstance(network, Transformer):
        raise OptionError("missing `--global-batch` (examples per step over all replicas)")
    split = {name: options[name] for name in ("tp", "pp", "cp", "ep", "dp")}
    examples = replicas(ParallelPlan(global_batch=1, **split), gpus) * options["microbatch"]
    return examples, f"no --global-batch: one microbatch per replica, {examples:,} sequences"


def _refuse_half(given: set[str]) -> None:
    """Raise OptionError for --failures without the options that it requires, and the reverse."""
    if "failures" not in given:
        if "storage" in given:
            raise OptionError("--storage sets the checkpoint bandwidth and requires --failures")
        return
    needed = {"tokens": "the length of the training", "storage": "the checkpoint bandwidth, such as '2 TB/s'"}
    for name, why in needed.items():
        if name not in given:
            raise OptionError(f"--failures requires --{name}, {why}")
    if "plan" in given:
        raise OptionError("--failures cannot be combined with --plan: choose one of its plans")


def _usual_dtype(formats: Mapping[str, float], infer: str | None, *, of_transformer: bool) -> str:
    """Return the default number format, by the same rule as `train:` and `infer:`."""
    if of_transformer:
        return "bf16" if "bf16" in formats else "fp16"
    return "fp16" if infer and "fp16" in formats else "fp32"


def _refuse_foreign(given: set[str], infer: str | None) -> None:
    """Raise OptionError for training options with --infer, and the reverse, because they would have no effect."""
    foreign = _INFERENCE if infer is None else (*_TRAINING, *(("output",) if infer != "decode" else ()),
                                                *(("prompt", "tp") if infer == "forward" else ()))  # fmt: skip
    for name in foreign:
        if name in given:
            option = f"--{name.replace('_', '-')}"
            whose = {"output": "decoding", "prompt": "a prefill", "tp": "transformers"}.get(name, "training")
            raise OptionError(
                f"{option} is an inference option: add --infer prefill, decode or forward" if infer is None else
                f"{option} is an option of {whose}, not of --infer {infer}"
            )  # fmt: skip


def _refuse_other_models(given: set[str], infer: str | None, called: str, *, of_transformer: bool) -> None:
    """Raise OptionError for transformer options with another network, and the reverse."""
    if of_transformer:
        if infer == "forward":
            raise OptionError(f"{called} is a transformer; use `--infer prefill` or `--infer decode`")
        return
    if infer in ("prefill", "decode"):
        raise OptionError(f"{called} is not a language model; use `--infer forward`")
    for name in _TRANSFORMER:
        if name in given:
            raise OptionError(f"--{name.replace('_', '-')} is an option of transformers; {called} is not a transformer")


def _short(name: str) -> str:
    """Return the name of a file without its folder."""
    if "\n" in name:
        return "the given model"
    return Path(name).stem if "/" in name or name.endswith((".yaml", ".yml")) else name


def _training_of(source: str, settings: Mapping[str, str]) -> tuple[Tree, dict[str, str]] | None:
    """Return (the `train:`, settings for the machine) of a workload; None if the source is a model.

    Raises:
        SpecError: the workload has mistakes, or has no `train:`.
    """
    if "\n" in source:
        tree = read(source)
    else:
        named = source in names("workload") and source not in names("model")
        if not named and not source.endswith((".yaml", ".yml")):
            return None
        tree = read(find("workload" if named else "model", source))
    if tree.text("hwsim") != "workload/1":
        return None
    nothing, left = tree_of({"hwsim": "machine/1"}), dict[str, str]()
    for path, value in settings.items():
        if path.startswith("machine."):
            left[path] = value
        else:
            tree = apply_set(nothing, tree, path, value).workload
    mistakes = Mistakes()
    train = resolve(tree, mistakes, kind="workload").get("train")
    mistakes.raise_if_any()
    if tree.get("events") is not None:
        raise SpecError.of(tree.key_place("events"), "the estimate does not model `events`", "`hwsim simulate` does")
    if train is None:
        raise SpecError.of(tree.place, "the workload has no `train:` to estimate", "`hwsim simulate` runs it; or name a model")
    return train, left


def _options_of(train: Tree, options: Mapping[str, Any], given: set[str]) -> tuple[Tree, dict[str, Any], set[str]]:
    """Return (the model, options with the values of the file, names of options that are stated).

    Raises:
        SpecError: the file has mistakes.
    """
    mistakes = Mistakes()
    keys = decode_all(train, TrainKeys, mistakes)
    sizes = sizes_of(keys, mistakes)
    mistakes.raise_if_any()
    filled = dict(options)
    stated = {name: getattr(sizes, name) for name in _SIZES}
    stated |= {name: getattr(keys, name) for name in (*SAME, "sequence_parallel", "dtype", "tokens")}
    if train.get("framework") is not None:
        stated["framework"] = keys.framework
    if is_auto(keys):
        stated["plan"] = "auto"
    filled |= {name: value for name, value in stated.items() if name not in given}
    return keys.model, filled, given | ({key for key, _ in train.items()} & set(stated))
