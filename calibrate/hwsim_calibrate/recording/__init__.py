"""Recording of a numpy or PyTorch script as a workload: its calls, their arrays, and the time of each call.

- arrays: arrays whose calls are recorded. operands: their memory, and its last use.
- numpy_patches: the replacement of numpy functions while a script is recorded.
- tape: the sequence of calls with their arrays.
- numpy_calls, lookups, algebra, descriptions: a numpy call as an op. ops: library calls as ops of a workload.
- torch, torch_calls: PyTorch operators.
- script: one or several runs of a script.
- loops, nodes, array_names: repeated calls as loops, and the names of arrays in loops.
- output: the workload, and the file of measured times.
"""

from __future__ import annotations
