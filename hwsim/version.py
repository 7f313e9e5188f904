"""The version of hwsim, in a module of its own so that every package can import it."""

from __future__ import annotations

__version__ = "0.2.0"
