"""Levels of the log beside Python's own."""

from __future__ import annotations

from typing import Final

NOTICE: Final = 25
"""Rare events that every operator is to see, such as a reloaded file: logged at any -v, though nothing is wrong."""
