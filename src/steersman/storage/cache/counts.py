"""Counts of a watch cache, as plain numbers that are read when the metrics are scraped."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

READ_WAITS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3)
"""Bucket bounds of the waits of reads, in seconds (k8s.io/apiserver `storage/cacher/metrics`)."""


class Counts:
    """The counts of one cache since its creation."""

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
        """Changes received from storage."""
        self.initializations = 0
        """Loads of the cache."""
        self.undecodable = 0
        """Stored values that could not be decoded."""
        self.lists = self.fetched = self.listed = 0
        """Lists from the cache, the objects they scanned, and the objects they returned."""
        self.stored_lists = self.stored_fetched = 0
        """Ranges read from storage, and the objects in them."""
        self.consistent = self.inconsistent = self.bypassed = 0
        """Reads of the newest state: served by the cache; failed to ask storage; and served by storage, because the
        cache did not become current in time.
        """
        self.read_waits = [0.0] * (len(READ_WAITS) + 2)
        """Reads by the time they waited for a revision, and the sum of the seconds."""

        self.checks = {"success": 0, "failure": 0, "error": 0}
        """Comparisons with storage: equal, different, and failed."""

    def waited(self, seconds: float) -> None:
        """Count a read that waited until the cache had reached a revision."""
        self.read_waits[bisect_left(READ_WAITS, seconds)] += 1
        self.read_waits[-1] += seconds
