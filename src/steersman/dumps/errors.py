"""The error of dumps."""

from __future__ import annotations


class DumpError(ValueError):
    """The error for a dump that cannot be read; the message names the file."""
