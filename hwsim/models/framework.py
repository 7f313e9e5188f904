"""Frameworks: kernel fusion, attention kernels, overlap of communication, and host time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, Literal

from hwsim.devices.work import Start
from hwsim.models.architectures import Model, Transformer
from hwsim.models.architectures.slices import Attention
from hwsim.models.server import ServerKeys
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, decode_all, did_you_mean, find, read, resolve
from hwsim.spec.fields import field
from hwsim.units import BYTES, Bytes, Ratio, Seconds

_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})


@dataclass(frozen=True, slots=True)
class Style:
    """How a framework runs the kernels of one op: norm, rotary, activation, residual, embedding, softmax, sampling or top-p."""

    kernels: int = field("number of kernels that run one after another; 0: fused into another kernel", default=1, minimum=0)
    moved: float = field("bytes moved, relative to one fused kernel", default=1.0, exclusive_minimum=0.0)
    flop: float = field("FLOP per element of the result, including conversions and address arithmetic", default=0.0)
    start: Seconds = field("launch latency of each kernel, in addition to the GPU's own", default=0.0)
    walk: Seconds = field("additional time of a kernel per 1024 elements of a row, which one thread block reads", default=0.0)
    sort: Seconds = field("additional time of a kernel per 1024 fp32 numbers that it sorts, on any GPU", default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The constants of a framework for transformers. By default, kernels are fused and collectives fully exposed."""

    kind: ClassVar[str] = "framework"

    attention: Attention = field("attention scores in GPU memory (plain) or on chip (flash)", default="flash")
    kernels: str = field("library of fused attention and experts: a name in the GPU's `attention` and `experts`", default="flash")
    software: str = field("library of the matmul kernels, where the GPU lists it separately (`matmul: {fp8-vllm: ...}`)",
                          default="", example="vllm")  # fmt: skip
    moved: float = field("bytes moved by elementwise kernels, relative to fused kernels", default=1.0, exclusive_minimum=0.0)
    scores: float = field("bytes moved by plain attention, relative to a fused softmax", default=1.0, exclusive_minimum=0.0)
    exposed: float = field("exposed time of tensor-parallel collectives, relative to their time; above 1, with tensor copies",
                           default=1.0, minimum=0.0)  # fmt: skip
    gradients: Ratio = field("exposed share of the collectives of gradients and sharded weights", default=1.0, maximum=1.0)
    gathered: int = field("all-gathers of sharded weights per micro-batch; 2: before forward and backward", default=2, minimum=1)
    gradient: float = field("bytes sent per gradient element; at least 4 with fp32 weights", default=2.0, exclusive_minimum=0.0)
    logits: float = field("bytes of memory per logit, including its gradient", default=8.0, exclusive_minimum=0.0)
    adam: float = field("bytes moved per parameter by the Adam update; SGD moves half", default=30.0, exclusive_minimum=0.0)
    accumulate: float = field("bytes moved per parameter to add a micro-batch's gradients; 0: fused into matmuls", default=0.0)
    flash: float = field("FlashAttention speed, as a multiple of the generation's default", default=1.0, exclusive_minimum=0.0)
    network: float = field("network bandwidth of collectives, relative to other frameworks", default=1.0, exclusive_minimum=0.0)
    bucket: Bytes | None = field("sharded weights (bytes) per all-gather (default: all)", default=None, exclusive_minimum=0.0)
    split: bool = field("each GPU of a tensor-parallel group sends its slice to the next pipeline stage; false: all activations",
                        default=True)  # fmt: skip
    repeated: Ratio = field("share of the matmuls that selective recompute repeats; above 0, it repeats elementwise kernels, "
                            "too", default=0.0, maximum=1.0)  # fmt: skip
    stops: bool = field("recompute skips the last matmul of a layer, which backward does not need", default=False)
    fp8: float = field("speed of fp8 matmuls, relative to matmuls with one scale per tensor", default=1.0, exclusive_minimum=0.0)
    fp4: float = field("speed of fp4 matmuls, relative to those of servers", default=1.0, exclusive_minimum=0.0)
    experts: float = field("speed of the experts' matmuls, relative to others", default=1.0, exclusive_minimum=0.0)
    expert_casts: float | None = field("`casts` of experts (default: `casts`)", default=None, minimum=0.0)
    dispatcher: Literal["alltoall", "flex"] = field("exchange of tokens: one copy per expert (alltoall), or one per node and GPU "
                                                    "(flex: DeepEP, HybridEP)", default="alltoall")  # fmt: skip
    dispatched: Ratio = field("exposed share of the exchange of tokens with experts", default=1.0, maximum=1.0)
    casts: float = field("bytes moved by casts to fp8, relative to separate kernels for maximum, conversion and transposition",
                         default=1.0, minimum=0.0)  # fmt: skip
    all_reduce: str = field(
        "custom all-reduce of tensor-parallel activations: a file in machines/parts/own (default: NCCL)", default=""
    )
    ops: Mapping[str, Style] = field("settings of single ops: norm, rotary, activation, residual, embedding, softmax, sampling, "
                                     "top-p (sampling from a filtered vocabulary; default: as sampling)",
                                     default_factory=dict)  # fmt: skip
    cached: bool = field("activations stay in the L2 cache from one kernel to the next", default=False)
    steady: bool = field("sustained load: the GPU runs for hours at its power limit, with cold caches (training)", default=True)
    starts: Start = field(
        "launch of a kernel: by the previous one in its stream, by a CUDA graph, or by the host, which waits", default="stream"
    )
    launch: Seconds = field("minimum time between two kernel launches, set by the host", default=0.0)
    issue: Seconds = field("host time per kernel and collective of a training, during the GPU's work; a pass of a stage takes "
                           "the longer of both; 0 with CUDA graphs", default=0.0)  # fmt: skip
    step: Seconds = field("time of a step outside kernels", default=0.0)
    server: ServerKeys = field("inference server settings", default=ServerKeys(), example="{budget: 8192, sequences: 1024}")
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)
    called: str = dataclasses.field(default="", init=False, repr=False, compare=False)  # name of its file

    def style(self, name: str) -> Style | None:
        """Return the settings of a kernel's op, or of its backward; by default, top-p is as sampling."""
        op = name.removeprefix("d-")
        return self.ops.get(op, self.ops.get("sampling") if op == "top-p" else None)

    def gradient_bytes(self, dtype: str) -> float:
        """Return the bytes of a gradient of weights stored as `dtype`.

        Gradients of 32-bit weights have at least 4 bytes, because no framework rounds them to 16 bits.
        """
        return max(self.gradient, 4.0) if BYTES[dtype] == 4 else self.gradient


def load_framework(name: str, relative_to: Path | None = None, place: Place | None = None) -> Framework:
    """Return the framework with this name in the library, or of a file; `place` is that of the name, for messages.

    Raises:
        SpecError: the file does not exist or contains mistakes.
    """
    mistakes = Mistakes()
    tree = resolve(read(find("framework", name, relative_to, place)), mistakes, kind="framework")
    framework = decode_all(tree, Framework, mistakes, ignore=_ENTRY, sourced=True)
    object.__setattr__(framework, "called", Path(name).stem if Path(name).suffix == ".yaml" else name)
    return framework


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """The constants of a framework that trains a CNN or MLP: missing fusion and host time.

    Args:
        moved: bytes moved by norms, activations and similar layers, relative to one kernel per layer; fusion reduces it.
        dispatch: host time per kernel (s); the GPU waits if it exceeds the kernel time.
        casting: dispatch time in 16 bits relative to 32 bits, if the framework converts numbers in separate kernels.
        number: host time per input number (s) to prepare and copy it, while the GPU works on earlier inputs.
        step: time of a step that overlaps neither host nor GPU work (s): input copies, reading the loss.
        waits: the same time for an inference batch (s).
        gradient: bytes sent per gradient element.
        array: host time per gradient array that is exchanged (s): filling buckets, checking norms and scales.
        eager: eager mode, as in notebooks; the step has the uncertainty of eager steps.
    """

    moved: float = 1.0
    dispatch: float = 0.0
    casting: float = 1.0
    number: float = 0.0
    step: float = 0.0
    waits: float = 0.0
    gradient: float = 4.0
    array: float = 0.0
    eager: bool = False

    @property
    def kernels(self) -> Framework:
        """Settings of the kernels. They were fitted together with the libraries' convolutions, so nothing else slows them."""
        return Framework(moved=self.moved, steady=False)

    def issuing(self, dtype: str, kernels: int, numbers: int) -> float:
        """Return the host time (s) while the GPU computes: issuing each kernel, or preparing each number of the inputs."""
        casting = self.casting if BYTES[dtype] < 4 else 1.0
        return max(self.dispatch * casting * kernels, self.number * numbers)


# **Source**: fitted to published throughput, half of the rows: see `calibrate/published/cnn_training.py` and `cnn_inference.py`;
# a `step` of 2 ms, and `dispatch` of frameworks without measured small batches, are guesses.
SOFTWARE: Final[Mapping[str, Software]] = {
    "none": Software(),  # kernel time only
    "tensorflow-1": Software(dispatch=10e-6, step=28e-3, array=35e-6),
    "pytorch-1": Software(dispatch=30e-6, step=30e-3),
    "pytorch-ngc": Software(moved=1.07, dispatch=50e-6, casting=1.27, step=2e-3, waits=1.2e-3, array=60e-6),
    "mxnet-ngc": Software(moved=0.59, dispatch=10e-6, step=2e-3, waits=1.2e-3, array=10e-6),
    "tensorflow-ngc": Software(moved=1.31, dispatch=24e-6, number=2e-9, step=2e-3, waits=1.4e-3, array=30e-6),
    # Python issues every op, 42 us each, as in the book's loop of additions (d2l 13.2); other constants are unknown.
    "mxnet-eager": Software(dispatch=42e-6, array=42e-6, eager=True),
    # The book's notebooks: `moved` and the Keras step are fitted to cells that `calibrate/published/cnn_d2l.py` does not score.
    "pytorch-eager": Software(moved=1.6, dispatch=50e-6, step=2e-3, array=60e-6, eager=True),
    "tensorflow-keras": Software(moved=1.2, dispatch=24e-6, number=2e-9, step=3e-3, array=30e-6, eager=True),
    "tensorflow-xla": Software(moved=0.83, dispatch=22e-6, number=1.75e-9, step=2e-3, waits=2.6e-3, array=30e-6),
}


def framework_of(
    model: Model,
    name: str,
    relative_to: Path | None = None,
    place: Place | None = None,
    *,
    work: Literal["", "train", "serve"] = "",
) -> Framework | Software:
    """Return the framework for a model: a library file for a transformer, an entry of `SOFTWARE` for a CNN or MLP.

    Args:
        relative_to: folder of relative paths.
        place: place of the name, for error messages.
        work: what the framework does; "": any work.

    Raises:
        SpecError: the framework does not exist or does other work, or its file contains mistakes.
    """
    if isinstance(model, Transformer):
        framework = load_framework(name, relative_to, place)
        serves, trains = framework.server != ServerKeys(), not framework.sources.keys().isdisjoint(("gradient", "gradients"))
        if work == "train" and serves:
            raise SpecError.of(place, f"'{name}' serves models: expected a framework that trains them", "megatron-core")
        if work == "serve" and trains and not serves:
            raise SpecError.of(place, f"'{name}' trains models: expected a framework that serves them", "vllm")
        return framework
    if name not in SOFTWARE:
        hint = did_you_mean(name, SOFTWARE) or f"one of {', '.join(SOFTWARE)}"
        raise SpecError.of(place, f"unknown framework '{name}' for a CNN or MLP", hint)
    return SOFTWARE[name]
