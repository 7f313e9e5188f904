"""A pair of files to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MACHINE: Final = """\
hwsim: machine/1
name: my workstation
parts:
  cpu: {kind: cpu, use: d2l-server-cpu}             # `hwsim show d2l-server-cpu` prints it; keys beside `use` override
  gpu: {kind: gpu, use: v100-sxm2-16gb, count: 2}   # gpu0 and gpu1
links:
  - {between: [cpu, gpu*], kind: pcie, gen: 3, lanes: 16}
"""
WORKLOAD: Final = """\
hwsim: workload/1
name: my first workload
let: {steps: 10, batch: 64}                         # hwsim simulate ... --set batch=128
program:
  each: gpu*                                        # one program per GPU; $self is that GPU
  do:
    - repeat:
        times: $steps
        do:
          - copy: {name: load, from: cpu, to: $self, bytes: $batch * 600 kB}
          - compute: {name: train, device: $self, flop: $batch * 12 GFLOP, dtype: fp32, after: load}
    - wait: all
"""
FILES: Final = {"machine.yaml": MACHINE, "workload.yaml": WORKLOAD}


def new(folder: str | Path = ".") -> tuple[Path, ...]:
    """Write machine.yaml and workload.yaml into a folder, which is made if it is not there.

    Raises:
        FileExistsError: one of them is there already; nothing is written.
    """
    from hwsim.views.kit.writing import write

    folder = Path(folder)
    for name in FILES:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} exists already")
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write(folder / name, [text.encode()]) for name, text in FILES.items())
