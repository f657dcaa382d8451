"""Where a user's data is kept (XDG Base Directory Specification)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEFAULT_DATA_DIR: Final = "~/.local/state/steersman"
"""How help names it."""


def default_data_dir() -> Path:
    """`$XDG_STATE_HOME/steersman`, by default `~/.local/state/steersman`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "steersman"
