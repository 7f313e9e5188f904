"""A script of numpy becomes a workload: what it calls, on what, and how long each call took.

    arrays       arrays that tell what is done with them
    patching     functions that make arrays, and random generators, while a script is recorded
    tape         what was told: calls in their order, and which array each works on
    describing   a call as an op of a workload
    script       running a script, once or several times
    nodes        statements and loops, and other ways to write a loop
    naming       what arrays are called, and which loops keep them from having names
    folding      calls that come again and again as `repeat`
    writing      the workload and, beside it, what was measured
    compare      predicted against measured

numpy is as it was once a recording ends, however it ends.
"""

from __future__ import annotations
