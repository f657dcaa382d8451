"""Parts that all others need: threads and metrics, the check of flags, routes to other servers."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.audit.policy import Rules
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.addresses import check_port, public_address, service_ranges
from steersman.controlplane.admission import admission_configuration
from steersman.controlplane.audit_options import is_audited
from steersman.controlplane.controllers import check_own
from steersman.controlplane.flag_files import check_kubelet_files, check_proxy_client, check_serving_files
from steersman.controlplane.option_ties import check_families
from steersman.controlplane.options import Options, OptionsError
from steersman.endpoints.filters.observation import Observe
from steersman.machinery.metrics import Registry
from steersman.net.client.egress import USUAL, Egress
from steersman.server.config import new_executor
from steersman.work.parts import Part, offered
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.controlplane.workers.worker import Worker
    from steersman.faults.fault_set import FaultSet
    from steersman.net.client.transport import Nearby
    from steersman.server.loop_watchdog import LoopWatchdog

_CONTENTION: Final = 0.005
"""Seconds above which blocking the event loop counts as contention."""


class Embedding(Struct, frozen=True):
    """Settings of a control plane by the process in which it runs.

    `nearby` returns the ways to nodes, pods and services whose addresses are not on the network. `kubelets` returns
    this server's own ways to kubelets, which trust nobody else. `observe` is called after every request. `faults`
    happen to requests. `worker` is this process's role if it is one of several processes of a server.
    """

    nearby: Nearby | None = None
    kubelets: Nearby | None = None
    observe: Observe | None = None
    faults: FaultSet | None = None
    worker: Worker | None = None
    owns_process: bool = False
    """True if the process belongs to the control plane alone, which may then have child processes."""


class Common(Part):
    """Worker threads, metrics, and the table of kinds."""

    threads: WorkerThreads
    registry: Registry = offered()
    executor: Executor = offered()
    mapper: RESTMapper = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        ending.callback(self.threads.close)
        self.executor = new_executor()
        ending.callback(self.executor.shutdown, wait=False, cancel_futures=True)
        self.registry, self.mapper = Registry(), RESTMapper()


class LoopWatch(Part):
    """The watchdog of the event loop, if a flag enables it. `Paths` starts it, as the start may block the event
    loop.
    """

    options: Options
    common: Common
    watchdog: LoopWatchdog | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        options, registry = self.options, self.common.registry
        profiled, told = options.profiling and options.contention_profiling, options.debug_loop_watchdog
        if not (profiled or told):
            return
        from steersman.server.loop_watchdog import LoopWatchdog  # which most servers never need

        if profiled:
            self.watchdog = LoopWatchdog(min(told or _CONTENTION, _CONTENTION), registry, told or math.inf)
        else:
            self.watchdog = LoopWatchdog(told, registry)
        ending.callback(self.watchdog.stop)


class ValidatedFlags(Part):
    """Validated flags and the files that they name. Raises OptionsError.

    Validation comes before all writes, so that a refused start leaves nothing behind.
    """

    options: Options
    embedding: Embedding
    service_ranges: tuple[IPv4Network | IPv6Network, ...] = offered()
    host: str = offered()
    """Address by which other hosts reach this one."""
    audit_rules: Rules | None = None
    exports_traces: tuple[str, int] | None = None
    """Endpoint of the collector of traces, "" for the usual one, and samples per million; None without export."""

    async def start(self, ending: AsyncExitStack) -> None:
        options = self.options
        try:
            check_own(options.controllers)
        except ValueError as error:
            raise OptionsError(f"--controllers: {error}") from None
        check_kubelet_files(options)
        check_proxy_client(options)
        if self.embedding.worker is None:
            check_port(options)
        self.service_ranges = service_ranges(options)
        self.host = public_address(options)
        check_families(options, self.service_ranges, self.host)
        if options.tracing_config_file:
            from steersman.controlplane.tracing_configuration import tracing_configuration

            found = tracing_configuration(options.tracing_config_file)
            self.exports_traces = found.endpoint or "", found.sampling_rate_per_million or 0
        if is_audited(options):
            from steersman.controlplane.auditing import audit_rules  # which most servers never need

            self.audit_rules = audit_rules(options)
        admission_configuration(options)
        check_serving_files(options)


class OutgoingRoutes(Part):
    """Routes of requests to other servers (--egress-selector-config-file)."""

    options: Options
    common: Common
    egress: Egress = USUAL

    async def start(self, ending: AsyncExitStack) -> None:
        if self.options.egress_selector_config_file:
            from steersman.controlplane import egress_selector  # which most servers never need

            file = self.options.egress_selector_config_file
            self.egress = egress_selector.egress_of(file, self.common.registry)
