"""A real computer becomes a machine file: measure it, fit the parameters, say how far predictions are off.

- suites, kernels: the cases that are timed: numpy, memory, a GPU.
- harness, clocks, flags: timing in shuffled rounds, by CPU time, with flags for disturbances.
- environment, store: the fingerprint of the machine, and the file of measurements.
- fit, validate: the parameters, and their error on cases that the fit never saw.
- recording, compare: a script of numpy as a workload, and its measured times against predictions.

It imports `hwsim`; the simulator does not import it, and names its commands by a string.
"""

from __future__ import annotations
