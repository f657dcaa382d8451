"""Metrics that an owner adds to those of its workers."""

from __future__ import annotations

from steersman.controlplane.metrics import process_series


def own_series() -> str:
    """Return the owner's time, memory and file descriptors under the names that workers use, for the sums of the
    server.
    """
    return "".join(f"{line}\n" for series in process_series() for line in series.expose())
