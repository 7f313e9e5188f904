"""Predictions beside measurements: `hwsim score MACHINE WORKLOAD MEASUREMENTS`.

predictions    the numbers of a run with their intervals and regimes, by name
measurements   measured numbers from tables and traces; logs of benchmarks are read by `hwsim_calibrate.logs`
matching       each measured number with its prediction; runs are simulated once per settings
answer         text, JSON, figure, and the file of scores (`hwsim: scores/1`)

Files of measurements are read by `hwsim_calibrate.logs.measurements`.
"""

from __future__ import annotations

from hwsim.scoring.matching import Measurement, score

__all__ = ["Measurement", "score"]
