"""Measure a computer, fit a machine file to the measurements, and report the errors of its predictions.

- suites, kernels, snippets: the cases to time: numpy calls, memory, a GPU.
- harness, clocks, flags: timing in shuffled rounds by CPU time, with flags for disturbed cases.
- environment, store: the fingerprint of the machine, and the file of measurements.
- fit, validate, composites: the fitted parameters, and their errors for cases and programs that the fit has not used.
- recording: numpy and PyTorch scripts as workloads, with the measured time of each call.
- logs: logs of other benchmarks as parts or workloads.

The package imports `hwsim`. The simulator does not import this package; it refers to its commands by a string.
"""

from __future__ import annotations
