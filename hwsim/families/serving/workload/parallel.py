"""The parallel plan of a served model."""

from __future__ import annotations

from typing import Literal

from hwsim.records import dataclass
from hwsim.spec import Place, field, place_field


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """Parallel plan of the model on the devices."""

    tp: int = field("GPUs that split every matrix (tensor parallel)", default=1, minimum=1)
    groups: int = field(
        "of `tp` GPUs, each with sequences of its own; all of a copy share the experts (data-parallel attention)", default=1,
        minimum=1,
    )  # fmt: skip
    ep: int = field("GPUs that experts are spread over; what is left of a copy's splits each expert", default=1, minimum=1)
    pp: int = field("stages of a pipeline, each of `tp` x `groups` GPUs; as many batches are under way at once", default=1,
                    minimum=1)  # fmt: skip
    dp: int | Literal["rest"] = field(
        "copies of the model, each with a queue of its own; rest: all GPUs that are left", default="rest"
    )
    place: Place = place_field()

    @property
    def gpus(self) -> int:
        """GPUs of a copy."""
        return self.tp * self.groups * self.pp
