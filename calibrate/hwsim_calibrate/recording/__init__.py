"""A script of numpy becomes a workload: its calls, their arrays, and the time of each call.

- arrays: arrays whose calls are recorded; operands: their memory, and when it was last used.
- patching: numpy's functions while a script is recorded; restored however the recording ends.
- tape: the calls in order, and the arrays of each.
- describing, finding, algebra: a call of numpy in the words of an op; building: what they share; ops: the op of a workload.
- script: running a script, once or several times.
- folding, naming, nodes: calls that repeat as loops, and the names of arrays in them.
- writing: the workload, and the measured times next to it.
"""

from __future__ import annotations
