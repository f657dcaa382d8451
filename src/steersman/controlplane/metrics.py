"""Metrics of watches, connections and the process, computed at each scrape."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from steersman.controlplane.feature_gates import FEATURE_GATES
from steersman.machinery.metrics import Computed, Labels, Registry
from steersman.server.server import Server
from steersman.server.version import version_info
from steersman.store.store import Store
from steersman.work.offloading import missed_offloads

_BUILD: Final = {
    "major": "major",
    "minor": "minor",
    "git_version": "gitVersion",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "build_date": "buildDate",
    "go_version": "goVersion",
    "compiler": "compiler",
    "platform": "platform",
}
"""Members of the version document by the labels of `kubernetes_build_info`."""


def install_metrics(registry: Registry, stores: Iterable[Store[Any]], server: Server) -> None:
    """Register metrics that are computed at each scrape instead of counted per request."""
    started = time.time()

    def watchers() -> Iterator[tuple[Labels, float]]:
        for store in stores:
            if store.cacher.watchers:
                yield (store.resource.group, store.resource.version, store.kind.name), store.cacher.watchers

    def connections() -> Iterator[tuple[Labels, float]]:
        if server.http is not None:
            statistics = server.http.statistics()
            yield ("http/1.1",), statistics.open_http1
            yield ("h2",), statistics.open_http2

    def handshake_errors() -> Iterator[tuple[Labels, float]]:
        if server.http is not None:
            yield (), server.http.statistics().tls_handshake_errors

    registry.add(
        Computed(
            "counter",
            "apiserver_tls_handshake_errors_total",
            "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
            (),
            handshake_errors,
        ),
        Computed(
            "gauge",
            "apiserver_registered_watchers",
            "[ALPHA] Number of currently registered watchers for a given resource",
            ("group", "version", "kind"),
            watchers,
        ),
        Computed("gauge", "steersman_open_connections", "Open connections by protocol.", ("protocol",), connections),
        Computed(
            "gauge",
            "kubernetes_build_info",
            "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree "
            "state, build date, Go version, and compiler from which Kubernetes was built, and platform on which "
            "it is running.",
            tuple(_BUILD),
            _build_info,
        ),
        Computed(
            "gauge",
            "kubernetes_feature_enabled",
            "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
            ("name", "stage"),
            lambda: (((name, gate.stage), gate.enabled) for name, gate in FEATURE_GATES.items()),
        ),
        Computed(
            "counter",
            "steersman_work_not_offloaded_total",
            "Work that may take long and was done on the event loop, as its caller did not offload it.",
            (),
            lambda: (((), missed_offloads.count),),
        ),
        *process_series(),
        Computed(
            "gauge",
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            (),
            lambda: [((), started)],
        ),
    )


def _build_info() -> list[tuple[Labels, float]]:
    version = version_info()
    return [(tuple(version[member] for member in _BUILD.values()), 1)]


def process_series() -> tuple[Computed, ...]:
    """Return the metrics of this process: time, memory and file descriptors. Some have no value except on Linux."""
    return tuple(
        Computed(kind, name, text, (), partial(_unlabelled, read))
        for kind, name, text, read in (
            ("counter", "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", _cpu_seconds),
            ("gauge", "process_resident_memory_bytes", "Resident memory size in bytes.", _resident_bytes),
            ("gauge", "process_virtual_memory_bytes", "Virtual memory size in bytes.", _virtual_bytes),
            (
                "gauge",
                "process_virtual_memory_max_bytes",
                "Maximum amount of virtual memory available in bytes.",
                partial(_limit, resource.RLIMIT_AS),
            ),
            ("gauge", "process_open_fds", "Number of open file descriptors.", _open_descriptors),
            (
                "gauge",
                "process_max_fds",
                "Maximum number of open file descriptors.",
                partial(_limit, resource.RLIMIT_NOFILE),
            ),
        )
    )


def _unlabelled(read: Callable[[], float | None]) -> tuple[tuple[Labels, float], ...]:
    """Return the single series of a metric in a tuple; () if its value is unknown."""
    value = read()
    return () if value is None else (((), value),)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident_bytes() -> float:
    pages = _pages(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if pages is None else pages


def _virtual_bytes() -> float | None:
    return _pages(0)


def _pages(column: int) -> float | None:
    """Return a size of the process in bytes, by its column of /proc/self/statm; None without such a file."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[column]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _open_descriptors() -> float | None:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # without the descriptor used for listing
    except OSError:
        return None


def _limit(of: int) -> float:
    soft, _ = resource.getrlimit(of)
    return (1 << 64) - 1 if soft == resource.RLIM_INFINITY else soft
