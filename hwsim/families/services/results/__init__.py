"""Services under load: notes taken while they are played, and what the notes come to. Memory does not grow with the requests."""

from __future__ import annotations
