"""The settings of a server: defaults of its framework for its GPUs, overridden by the keys of an `infer:`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hwsim import ticks
from hwsim.models.server import (
    PLAIN,
    Admission,
    CacheMemory,
    FirstTokenWorkers,
    Graphs,
    OutputReservation,
    PrefillOrder,
    ServerKeys,
    graph_sizes,
)
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.workload.schema import InferKeys

ANY: Final = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a replica's server; meanings as in `hwsim.models.server.ServerKeys`, times in fs.

    Args:
        verified: tokens of each sequence in an iteration: 1 and the draft tokens.
        promise: (first share, least share, iterations between them, maximum output tokens counted) of `admit: ratio`.
        groups: number of groups of GPUs (data-parallel attention).
        late: tiers below the GPUs store blocks when the GPUs evict them; otherwise when they are computed.
        graphs: batch sizes with a CUDA graph, in ascending order.
        mixed: iterations with prefill also use CUDA graphs.
    """

    prompts: PrefillOrder = "beside"
    chunked: bool = True
    budget: int = 2048
    sequences: int = 256
    verified: int = 1
    admit: Admission = "prompt"
    promise: tuple[float, float, int, int] = (1.0, 1.0, 1, ANY)
    spare: float = 0.0
    ahead: int = 0
    look: int = 1
    groups: int = 1
    gather: int = 0
    first: FirstTokenWorkers = "prompts"
    padded: bool = False
    block: int = 16
    prefixes: bool = False
    late: bool = False
    graphs: tuple[int, ...] = ()
    exact: bool = False
    mixed: bool = True
    eager: int = 0
    kernel: int = 0
    step: int = 0
    each: int = 0
    api: int = 0
    out: int = 0


def server_of(framework: ServerKeys, infer: InferKeys, size: float | None, generation: str | None) -> ServerKeys:
    """Return all server keys: from `infer:`, else from the framework for GPUs of this size, else of a plain server."""
    return infer.server.over(_keys_outside_server(infer)).over(framework.over(PLAIN).on(size, generation))


def _keys_outside_server(infer: InferKeys) -> ServerKeys:
    """Return the server keys set by `batch`, `memory` and `batching`."""
    keys = ServerKeys(sequences=infer.batch)
    if infer.memory is not None:
        keys = replace(keys, memory=CacheMemory(part=infer.memory))
    if infer.batching == "static":
        none = Graphs(sizes=())
        return replace(
            keys, prompts="alone", chunked=False, budget=ANY, padded=True, admit="answer", ahead=0, look=1, graphs=none
        )
    return keys


def settings_of(
    keys: ServerKeys, *, answers: bool = True, windowed: bool = False, verified: int = 1, groups: int = 1
) -> Settings:
    """Return the settings of a server.

    Args:
        keys: server keys.
        answers: the model writes tokens; otherwise each batch takes one pass.
        windowed: the cache keeps only the last tokens (sliding window), so requests cannot share prefixes.
        verified: tokens of each sequence in an iteration.
        groups: groups of GPUs in a replica, each with the server's token budget and sequences (data-parallel attention).
    """
    keys = keys.over(PLAIN)
    if not answers:
        keys = replace(keys, prompts="alone", chunked=False, padded=True, graphs=Graphs(), prefixes=False)
    graphs, host, promise = keys.graphs or Graphs(), keys.host, keys.ratio or OutputReservation()
    assert host is not None
    budget, sequences = keys.budget or 1, keys.sequences or 1
    if keys.prompts == "beside":
        sequences = max(1, min(sequences, budget // verified))
    return Settings(
        prompts=keys.prompts or "beside",
        chunked=bool(keys.chunked),
        budget=budget * groups,
        sequences=sequences * groups,
        verified=verified,
        admit=keys.admit or "prompt",
        promise=(promise.first or 0.0, promise.least or 0.0, promise.steps or 1, promise.most or ANY),
        spare=keys.spare or 0.0,
        ahead=keys.ahead or 0,
        look=keys.look or 1,
        groups=groups,
        gather=(keys.gather or 0) if groups > 1 else 0,
        first=keys.first or "prompts",
        padded=bool(keys.padded),
        block=keys.block or 1,
        prefixes=bool(keys.prefixes) and not windowed,
        graphs=graph_sizes(graphs, sequences),
        exact=not graphs.pad,
        mixed=bool(graphs.mixed),
        eager=ticks.femtoseconds(graphs.eager or 0.0),
        kernel=ticks.femtoseconds(graphs.kernel or 0.0),
        step=ticks.femtoseconds(host.step or 0.0),
        each=ticks.femtoseconds((host.each or 0.0) / groups),
        api=ticks.femtoseconds(host.api or 0.0),
        out=ticks.femtoseconds(host.out or 0.0),
    )
