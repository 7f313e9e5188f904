"""Where the compiled loops of hwsim are; hwsim loads them itself (`hwsim.engine.core`)."""

from __future__ import annotations

import sys
from pathlib import Path

LIBRARY = Path(__file__).with_name("hwsim_core.dll" if sys.platform == "win32" else "hwsim_core.so")
