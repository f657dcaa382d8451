"""Log levels in addition to Python's own."""

from __future__ import annotations

from typing import Final

NOTICE: Final = 25
"""Level of rare events that every operator should see, such as a reloaded file: logged at any -v, though no fault."""
