"""What a watch cache counts, as plain numbers that are read when the metrics are scraped."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

READ_WAITS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3)
"""Seconds up to which waits of reads are told apart (k8s.io/apiserver `storage/cacher/metrics`)."""


class Counts:
    """Of one cache, since it was made."""

    __slots__ = (
        "bypassed",
        "checks",
        "consistent",
        "events",
        "fetched",
        "inconsistent",
        "initializations",
        "listed",
        "lists",
        "read_waits",
        "stored_fetched",
        "stored_lists",
        "undecodable",
    )

    def __init__(self) -> None:
        self.events = 0
        """Changes that storage has told it."""
        self.initializations = 0
        """How often it was filled."""
        self.undecodable = 0
        """How often a stored value was met that is no object."""
        self.lists = self.fetched = self.listed = 0
        """Lists out of the cache, the objects they looked at, and those they gave."""
        self.stored_lists = self.stored_fetched = 0
        """Ranges read from storage, and the objects in them."""
        self.consistent = self.inconsistent = self.bypassed = 0
        """Reads that asked for the newest there is, and had it; that could not even ask; and that went to storage, as
        the cache did not have it in time."""
        self.read_waits = [0.0] * (len(READ_WAITS) + 2)
        """Reads by how long they waited for a revision, and the sum of the seconds."""

        self.checks = {"success": 0, "failure": 0, "error": 0}
        """Comparisons with what is stored: as it is there, otherwise, and those that could not be made."""

    def waited(self, seconds: float) -> None:
        """Counts a read that waited until the cache was fresh."""
        self.read_waits[bisect_left(READ_WAITS, seconds)] += 1
        self.read_waits[-1] += seconds
