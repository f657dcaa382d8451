"""What an owner adds to the metrics of its workers."""

from __future__ import annotations

from steersman.controlplane.metrics import cpu_seconds, resident_bytes


def own_series() -> str:
    """Its time and memory, under the names by which each worker tells its own: the sums are those of the server."""
    return (
        "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n"
        "# TYPE process_cpu_seconds_total counter\n"
        f"process_cpu_seconds_total {cpu_seconds()!r}\n"
        "# HELP process_resident_memory_bytes Resident memory size in bytes.\n"
        "# TYPE process_resident_memory_bytes gauge\n"
        f"process_resident_memory_bytes {resident_bytes()!r}\n"
    )
