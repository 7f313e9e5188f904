"""The plan of a service: its replicas, their memory for the KV cache, and its requests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hwsim.devices import Gpu
from hwsim.devices.gpu_cases import serving_case
from hwsim.families.serving.workload.adapters import Adapters
from hwsim.families.serving.workload.autoscaler import Scale
from hwsim.families.serving.workload.offload import Offload
from hwsim.families.serving.workload.requests import ServiceRequests
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.speculation import Speculation
from hwsim.graph.opgraph import ServiceMemory
from hwsim.models.architectures import Model, Transformer
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import experts_by
from hwsim.models.memory import Footprint
from hwsim.origins import CASES, Case
from hwsim.records import dataclass
from hwsim.spec import Warning
from hwsim.units import BYTES
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.draws import Constant
from hwsim.workload.load.keys import CountDraw, TimeDraw

Lives: TypeAlias = Sequence[tuple[int, int, int | None]]


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A service that is ready to be simulated.

    Args:
        name: name of the job; "" if the workload is one service.
        start: time at which the service begins (fs).
        keys: keys of the `infer:`.
        model, software: model and framework.
        gpu: kind of all GPUs.
        dtype: number format of weights and activations.
        copies: GPUs of each replica of the model.
        settings: settings of the server of a replica.
        tokens: capacity of a replica's KV cache in tokens; None: unlimited, or no cache.
        token_bytes: bytes of a token in the KV cache, on each GPU.
        memory: memory on each GPU with an empty cache.
        requests: requests of the service.
        speculation: speculative decoding; None without it.
        prompts: plan of prefill in disaggregated serving; None without `split:`.
        adapters, offload, scale: LoRA adapters, tiers below GPU memory and autoscaling; None without them.
        is_spread: groups that share experts exchange their tokens over NICs.
    """

    name: str
    start: int
    keys: InferKeys
    model: Model
    software: Framework | Software
    gpu: Gpu
    dtype: str
    copies: tuple[tuple[str, ...], ...]
    settings: Settings
    tokens: int | None
    token_bytes: float
    memory: Footprint
    requests: ServiceRequests
    speculation: Speculation | None = None
    prompts: ServicePlan | None = None
    adapters: Adapters | None = None
    offload: Offload | None = None
    scale: Scale | None = None
    is_spread: bool = False

    @property
    def parts(self) -> tuple[ServicePlan, ...]:
        """Prefill of disaggregated serving, if there is one, and the service itself."""
        return (self,) if self.prompts is None else (self.prompts, self)

    def holds(self, lives: Lives | None = None, of_prompts: Lives | None = None) -> Iterator[ServiceMemory]:
        """Yield the memory of the service on each GPU, including the entire KV cache.

        Args:
            lives: (replica, start, end) in fs of each replica that is on, end None for the end of the run; default: all replicas
                from the start of the service.
            of_prompts: the same for replicas of prefill.
        """
        if self.prompts is not None:
            yield from self.prompts.holds(of_prompts)
        cache = self.token_bytes * (self.tokens or 0)
        for copy, since, until in [(copy, self.start, None) for copy in range(len(self.copies))] if lives is None else lives:
            for device in self.copies[copy]:
                for value, size in (("weights", self.memory.weights), ("KV cache", cache), ("buffers", self.memory.buffers)):
                    if size > 0:
                        yield ServiceMemory(device, value, self.name or "service", math.ceil(size), since, until)

    @property
    def kind(self) -> str:
        """Kind of the model in the table of errors: "dense" or "experts"; "" for a model that writes no tokens."""
        if not (isinstance(self.model, Transformer) and self.answers):
            return ""
        return "experts" if any(layer.experts > 1 for layer in self.model.kinds) else "dense"

    @property
    def case(self) -> Case:
        """Case of the kernels on this GPU, which sets the width of their interval.

        Speculation was not measured. The error of two pipeline stages is a few per cent, that of more stages up to 62 %, because
        real batches are less even than simulated ones. Servers that send tokens over NICs to the GPUs of their experts were two
        to three times as fast.
        """
        if self.speculation is not None or self.is_unlike:
            return "outside"
        call = ""
        if isinstance(self.model, Transformer) and isinstance(self.software, Framework):
            call = experts_by(self.model, self.gpu, self.dtype, self.software.kernels)
        case = serving_case(self.gpu, self.dtype, call)
        return max(case, "generation", key=CASES.index) if self.stages > 1 else case

    @property
    def is_unlike(self) -> bool:
        """Whether the plan is outside all measurements: more than two stages, or groups that exchange tokens over NICs."""
        return self.stages > 2 or self.is_spread

    @property
    def cache_format(self) -> str:
        """Number format of the KV cache if it is narrower than 16 bits; "" otherwise."""
        kept = self.keys.kv or (self.model.kept(self.dtype) if isinstance(self.model, Transformer) else self.dtype)
        return kept if self.tokens is not None and BYTES[kept] < BYTES["bf16"] else ""

    @property
    def answers(self) -> bool:
        """Whether the model writes tokens; an encoder or a convolutional network needs one pass."""
        return isinstance(self.model, Transformer) and self.model.causal

    @property
    def stages(self) -> int:
        """Number of pipeline stages of a replica, and of its batches in flight; each batch has its own part of the KV cache."""
        return self.keys.parallel.pp

    @property
    def batches(self) -> tuple[tuple[str, ...], ...]:
        """GPUs of each batch in flight: each replica once for every stage."""
        return tuple(copy for copy in self.copies for _ in range(self.stages))

    @property
    def blocks(self) -> int | None:
        """Number of KV-cache blocks for each batch; None: unlimited."""
        return None if self.tokens is None else self.tokens // self.stages // self.settings.block

    @property
    def held(self) -> tuple[tuple[float, int], ...]:
        """(share of a token's bytes, maximum tokens kept of a sequence) of each kind of layer; empty: all tokens are kept."""
        bounded = isinstance(self.model, Transformer) and self.model.cache == "window"
        return self.model.caching if bounded and isinstance(self.model, Transformer) else ()

    @property
    def _in_step(self) -> bool:
        """Whether all clients issue equal requests at the same instants."""
        keys = self.keys
        if not isinstance(keys.arrivals, ArrivalKeys) or (keys.arrivals.clients or 0) < 2 or keys.sessions is not None:
            return False
        if not isinstance(keys.arrivals.beginning, Constant):
            return False
        values = (keys.prompt, keys.output, keys.arrivals.think)
        return keys.shared is None and not any(isinstance(value, CountDraw | TimeDraw) for value in values)

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warnings about a valid plan that is probably not intended."""
        whose = f"{self.name}: " if self.name else ""
        if self.is_spread or (self.prompts is not None and self.prompts.is_spread):
            message = "every GPU gathers all tokens of all groups over NICs, so the result may be too slow: a server that sends"
            faster = "tokens only to the GPUs of their experts, and overlaps this (DeepEP), was 2 to 3 times as fast"
            return (Warning("no-expert-dispatch", f"{whose}{message} {faster}"),)
        if self._in_step:
            message = "all clients begin together, with equal think times and requests, so they queue in step for the whole run"
            return (Warning("synchronized-clients", f"{whose}{message}; `ramp: 10 s` starts them at random within that time"),)
        if not self.requests.cut or not isinstance(self.model, Transformer):
            return ()
        cut, count = self.requests.cut, len(self.requests)
        message = f"{cut} of {count} requests were truncated to {self.model.sequence:,} tokens, the model's `sequence`"
        return (Warning("requests-truncated", f"{whose}{message}"),)
