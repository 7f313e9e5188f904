"""Warnings: what was accepted and is probably not meant, or cannot be built. Each has a code that a script can test.

A run goes on with its warnings. A question without an answer is a mistake (`hwsim.spec.mistakes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec.mistakes import Place, one_line

CODES: Final = {
    "accesses-in-the-mean": "accesses of a service to a hard disk take their mean: its percentiles are too short",
    "class-guessed": "a part does not say its class; what it leaves out was filled in from one that its name or peaks tell",
    "clients-in-step": "all clients of a model begin together and do the same: they stay in step, a crowd that no drawn load has",
    "collectives-apart": "several programs issue the same collective among the same devices: each of them moves all bytes",
    "disk-overfull": "more bytes are written to a disk than it holds; it never becomes full here",
    "faster-apart": "ops on a disk take less time than one op of all their bytes, as each finds caches and credits as new",
    "idle-workers": "a stage of a pipeline has more workers than `ahead` ever lets work",
    "lone-barrier": "only one program names a barrier, so it waits for nobody else",
    "name-ends-in-digit": "a part with a `count` has a name that ends in a digit: gpu1 becomes gpu10, gpu11, ...",
    "never-asked": "no request comes to a service: it has no `arrivals` and nothing asks it, or the run ends before the first",
    "no-effect": "a key is given that changes nothing on this machine, or next to the other keys",
    "not-calibrated": "more than 5 % of the time of the ops is by formulas, on a machine whose calls were measured",
    "not-folded": "identical ranks were to be simulated once, and all of them were simulated",
    "not-measured": "keys of a library call are given for a device whose calls were not measured; plain traffic is used",
    "nothing-makes-it": "a value is read that no op makes, and its name is nearly the name of one that is made",
    "overloaded": "more requests come to a service than it answers: those there grow as long as the run goes on",
    "part-of-a-day": "a run ends before its day, its trace or the ramp of its clients does: what it says is of that part alone",
    "power-over-budget": "the parts of a machine draw more power than its `supply` gives",
    "requests-cut": "prompts or answers were cut to the tokens that the model reads",
    "runtime-replaced": "`--set workload.runtime.use` chose another runtime; numbers that the file sets for its own are left out",
    "services-stuck": "services wait for each other: some of their requests are never answered",
    "set-in-both": "`--set let.NAME` changed a parameter of the machine and of the workload",
    "slower-than-slot": "a card has an older PCI Express than the link it is on, which runs as fast as the card",
    "stall-loses-nothing": "a part is down in a run with checkpoints: it stalls and goes on, and no work is lost",
    "still-filling": "a service still filled when its last request came: with more requests its times are longer",
    "timeout-too-short": "a `timeout` is shorter than what the service takes alone in the mean",
    "tokens-gathered": "groups that share experts gather all tokens over NICs, as servers without a dispatch to experts do",
    "unlike-provenance": "parts are compared of which some were measured, and others are filled in from their class",
    "wider-format": "the GPU has no such number format: products are timed in the next wider one, which a framework may refuse",
    "working-set-too-large": "a working set is larger than the memory that holds it; nothing is swapped here",
}  # code -> what it says; docs/warnings.md has the same table
EXCEEDS: Final = frozenset({"disk-overfull", "overloaded", "power-over-budget", "services-stuck", "working-set-too-large"})
"""Codes of runs that use more of something than the machine has: such a machine cannot do what was simulated."""


@dataclass(frozen=True, slots=True)
class Warning:
    """A statement that is accepted but probably not meant.

    Args:
        code: one of `CODES`.
        text: what was found, in one line.
        place: where it stands; None if it stands in no single place of a file.

    >>> print(Warning("power-over-budget", "its parts draw up to 2.8 kW, but its supply gives 2 kW"))
    power-over-budget: its parts draw up to 2.8 kW, but its supply gives 2 kW
    """

    code: str
    text: str
    place: Place | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"there is no warning '{self.code}'")
        object.__setattr__(self, "text", one_line(self.text))

    @property
    def exceeds(self) -> bool:
        """Whether the machine has less of something than the run uses."""
        return self.code in EXCEEDS

    @property
    def message(self) -> str:
        """The text after its place."""
        return f"{self.place}: {self.text}" if self.place is not None and self.place.file else self.text

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        """The warning for JSON: code, text, place ("file:line:column" or null)."""
        return {"code": self.code, "text": self.text, "place": str(self.place) if self.place and self.place.file else None}


def different(*groups: Iterable[Warning]) -> tuple[Warning, ...]:
    """All warnings of the groups in their order, each once."""
    return tuple(dict.fromkeys(each for group in groups for each in group))
