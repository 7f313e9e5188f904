"""The commands `hwsim calibrate` and `hwsim record`."""

from __future__ import annotations
