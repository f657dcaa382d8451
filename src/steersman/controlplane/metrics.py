"""The series of watches, connections and the process, read when they are scraped."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from steersman.machinery.metrics import Computed, Labels, Registry
from steersman.server.server import Server
from steersman.server.version import GIT_VERSION, MAJOR, MINOR
from steersman.store.store import Store


def install_metrics(registry: Registry, stores: Iterable[Store[Any]], server: Server) -> None:
    """Registers what is not counted on the path of a request."""
    started = time.time()

    def watchers() -> Iterator[tuple[Labels, float]]:
        for store in stores:
            if store.cacher.watchers:
                yield (store.resource.group, store.resource.version, store.kind.name), store.cacher.watchers

    def connections() -> Iterator[tuple[Labels, float]]:
        if server.http is not None:
            found = server.http.statistics()
            yield ("http/1.1",), found.open_http1
            yield ("h2",), found.open_http2

    def handshake_errors() -> Iterator[tuple[Labels, float]]:
        if server.http is not None:
            yield (), server.http.statistics().tls_handshake_errors

    registry.add(
        Computed("counter", "apiserver_tls_handshake_errors_total",
                 "[ALPHA] Number of requests dropped with 'TLS handshake error from' error", (), handshake_errors),
        Computed("gauge", "apiserver_registered_watchers",
                 "[ALPHA] Number of currently registered watchers for a given resource",
                 ("group", "version", "kind"), watchers),
        Computed("gauge", "steersman_open_connections", "Open connections by protocol.", ("protocol",), connections),
        Computed("gauge", "kubernetes_build_info",
                 "[BETA] A metric with a constant '1' value labeled by major, minor, git version.",
                 ("git_version", "major", "minor"), lambda: [((GIT_VERSION, MAJOR, MINOR), 1)]),
        Computed("counter", "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", (),
                 lambda: [((), cpu_seconds())]),
        Computed("gauge", "process_resident_memory_bytes", "Resident memory size in bytes.", (),
                 lambda: [((), resident_bytes())]),
        Computed("gauge", "process_start_time_seconds",
                 "Start time of the process since unix epoch in seconds.", (), lambda: [((), started)]),
    )  # fmt: skip


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
