"""What every process that answers begins with: all that a run needs, imported and run once. Importing this module does it."""

from __future__ import annotations

from hwsim.explore.doors import Desk

Desk(()).tried()
