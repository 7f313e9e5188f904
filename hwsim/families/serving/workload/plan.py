"""A service that is ready to be simulated: its replicas, their memory for keys and values, and its requests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hwsim.devices import Gpu
from hwsim.devices.gpu_doubts import of_served
from hwsim.families.serving.workload.adapters import Adapters
from hwsim.families.serving.workload.offload import Offload
from hwsim.families.serving.workload.requests import Requests
from hwsim.families.serving.workload.scaling import Scale
from hwsim.families.serving.workload.schema import InferKeys
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.speculating import Speculation
from hwsim.graph.opgraph import Held
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
    """A service, ready to be simulated.

    Args:
        name: name of its job, "" if the workload is nothing else; start: fs.
        copies: the GPUs of each replica of the model; settings: how each of them serves.
        tokens: tokens of context that the KV cache of a replica holds; None: any number, or there is no cache.
        token_bytes: bytes that a token leaves there, on each GPU; memory: bytes on each GPU with an empty cache.
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
    requests: Requests
    speculation: Speculation | None = None
    prompts: ServicePlan | None = None
    adapters: Adapters | None = None
    offload: Offload | None = None
    scale: Scale | None = None
    is_spread: bool = False

    @property
    def parts(self) -> tuple[ServicePlan, ...]:
        """The part that reads prompts apart, if there is one, and the service itself."""
        return (self,) if self.prompts is None else (self.prompts, self)

    def holds(self, lives: Lives | None = None, of_prompts: Lives | None = None) -> Iterator[Held]:
        """Memory that it takes of its GPUs, the whole cache included.

        Args:
            lives: (copy, from when on, until when) in fs, the last one None for the end of the run; default: all copies, from its
                start on. of_prompts: of copies that read prompts apart.
        """
        if self.prompts is not None:
            yield from self.prompts.holds(of_prompts)
        cache = self.token_bytes * (self.tokens or 0)
        for copy, since, until in [(copy, self.start, None) for copy in range(len(self.copies))] if lives is None else lives:
            for device in self.copies[copy]:
                for value, size in (("weights", self.memory.weights), ("KV cache", cache), ("buffers", self.memory.buffers)):
                    if size > 0:
                        yield Held(device, value, self.name or "service", math.ceil(size), since, until)

    @property
    def kind(self) -> str:
        """The kind of its model, as errors of served runs know it; "" of one that writes no tokens."""
        if not (isinstance(self.model, Transformer) and self.answers):
            return ""
        return "experts" if any(layer.experts > 1 for layer in self.model.kinds) else "dense"

    @property
    def case(self) -> Case:
        """The case of its kernels on its GPU, which says how well they are known.

        Speculation was never measured. Two stages miss by a few per cent, more stages by up to 62 %: their batches are less even
        than they are here. Servers that send tokens over NICs to the GPUs of their experts were two to three times as fast.
        """
        if self.speculation is not None or self.is_unlike:
            return "outside"
        call = ""
        if isinstance(self.model, Transformer) and isinstance(self.software, Framework):
            call = experts_by(self.model, self.gpu, self.dtype, self.software.kernels)
        case = of_served(self.gpu, self.dtype, call)
        return max(case, "generation", key=CASES.index) if self.stages > 1 else case

    @property
    def is_unlike(self) -> bool:
        """Whether nothing that was measured has as many stages, or groups that exchange tokens over NICs."""
        return self.stages > 2 or self.is_spread

    @property
    def cache_format(self) -> str:
        """Format of its keys and values where it is narrower than 16 bits; "" else."""
        kept = self.keys.kv or (self.model.kept(self.dtype) if isinstance(self.model, Transformer) else self.dtype)
        return kept if self.tokens is not None and BYTES[kept] < BYTES["bf16"] else ""

    @property
    def answers(self) -> bool:
        """Whether it writes tokens; an encoder or a network of convolutions has answered once it has read."""
        return isinstance(self.model, Transformer) and self.model.causal

    @property
    def stages(self) -> int:
        """Stages of each replica: it works on as many batches at once, each with its own part of the KV cache."""
        return self.keys.parallel.pp

    @property
    def batches(self) -> tuple[tuple[str, ...], ...]:
        """The GPUs of each batch that is worked on at once."""
        return tuple(copy for copy in self.copies for _ in range(self.stages))

    @property
    def blocks(self) -> int | None:
        """Blocks of the KV cache for each batch."""
        return None if self.tokens is None else self.tokens // self.stages // self.settings.block

    @property
    def held(self) -> tuple[tuple[float, int], ...]:
        """(part of a token's bytes, most tokens of a sequence that are kept) of each kind of layer; empty: all tokens."""
        bounded = isinstance(self.model, Transformer) and self.model.cache == "window"
        return self.model.caching if bounded and isinstance(self.model, Transformer) else ()

    @property
    def _in_step(self) -> bool:
        """Whether all of its clients do the same at the same time."""
        keys = self.keys
        if not isinstance(keys.arrivals, ArrivalKeys) or (keys.arrivals.clients or 0) < 2 or keys.sessions is not None:
            return False
        if not isinstance(keys.arrivals.beginning, Constant):
            return False
        drawn = (keys.prompt, keys.output, keys.arrivals.think)
        return keys.shared is None and not any(isinstance(each, CountDraw | TimeDraw) for each in drawn)

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warnings of a plan that is right but probably not meant."""
        whose = f"{self.name}: " if self.name else ""
        if self.is_spread or (self.prompts is not None and self.prompts.is_spread):
            message = (
                "groups gather all tokens on every GPU, over NICs; a server that sends tokens to the GPUs of their experts alone"
            )
            return (Warning("tokens-gathered", f"{whose}{message} (DeepEP), and overlaps it, was 2 to 3 times as fast"),)
        if self._in_step:
            message = "clients begin together, think alike and ask alike: they stay in step and wait for each other, for ever"
            return (Warning("clients-in-step", f"{whose}{message}; ramp: 10 s lets them begin at random within that time"),)
        if not self.requests.cut or not isinstance(self.model, Transformer):
            return ()
        cut, count = self.requests.cut, len(self.requests)
        message = f"{cut} of {count} requests were cut to the {self.model.sequence:,} tokens that the model reads"
        return (Warning("requests-cut", f"{whose}{message}"),)
