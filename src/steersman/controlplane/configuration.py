"""What the flags make of the parts of a control plane: the configuration that each is given."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any, Final

from steersman.admission.interface import Chain
from steersman.admission_plugins.declaration import Surroundings
from steersman.admission_plugins.metrics import ConditionMetrics, PolicyMetrics, WebhookMetrics
from steersman.aggregator.config import AggregatorConfig
from steersman.audit.trail import Auditor
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.addresses import service_node_ports
from steersman.controlplane.admission import admission_chain
from steersman.controlplane.authenticators import proxy_headers
from steersman.controlplane.authorizers import Judges
from steersman.controlplane.given_files import serving_tls
from steersman.controlplane.options import Options
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.controlplane.runtime_config import RuntimeConfig
from steersman.controlplane.stores import Stores
from steersman.controlplane.token_keys import TokenKeys
from steersman.machinery.metrics import Registry
from steersman.net.client.egress import USUAL, Egress
from steersman.net.client.own_server import ThisServer
from steersman.net.limits import Limits
from steersman.registry.core.services.locating import locate_service
from steersman.registry.kubelet import ADDRESS_TYPES, KubeletConnection, ProxyConnection
from steersman.registry.printing.internal_form import internal_diff
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.certificates import CertificateFiles
from steersman.server.config import Config, new_executor
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.net.client.transport import Nearby
    from steersman.server.loop_watchdog import LoopWatchdog


_CONTENTION: Final = 0.005
"""Seconds for which the loop is held that count as contention."""
_MOST_STREAMS: Final = (1 << 31) - 1
"""Beyond it there are no more numbers of streams."""


@dataclass(frozen=True, slots=True)
class Common:
    """What all parts of a control plane share."""

    registry: Registry = field(default_factory=Registry)
    executor: Executor = field(default_factory=new_executor)
    threads: WorkerThreads = field(default_factory=WorkerThreads)
    mapper: RESTMapper = field(default_factory=RESTMapper)


def loop_watchdog(options: Options, common: Common) -> LoopWatchdog | None:
    """What tells of the times for which the loop is held, if a flag asks for that."""
    profiled, told = options.profiling and options.contention_profiling, options.debug_loop_watchdog
    if not (profiled or told):
        return None
    from steersman.server.loop_watchdog import LoopWatchdog  # which most servers never need

    if not profiled:
        return LoopWatchdog(told, common.registry)
    return LoopWatchdog(min(told or _CONTENTION, _CONTENTION), common.registry, told or math.inf)


def egress_of(options: Options, common: Common) -> Egress:
    """By which ways requests to other servers leave. Raises OptionsError."""
    if not options.egress_selector_config_file:
        return USUAL
    from steersman.controlplane import egress_selector  # which most servers never need

    return egress_selector.egress_of(options.egress_selector_config_file, common.registry)


def services_of(
    options: Options,
    ranges: tuple[IPv4Network | IPv6Network, ...],
    common: Common,
    stores: Stores,
    rights: Judges,
    keys: TokenKeys,
    tokens: TokenAuthenticator,
    itself: ThisServer,
    nearby: Nearby | None,
    kubelets: Nearby | None,
    egress: Egress,
) -> Services:
    """What resources are given of the server that they are part of."""
    return Services(
        objects=stores.objects,
        storage_of=stores.storage_of,
        authorizer=rights.authorizer,
        roles=rights.roles,
        rule_resolver=rights.rule_resolver,
        service_cluster_ip_ranges=ranges,
        service_node_ports=service_node_ports(options),
        allow_privileged=options.allow_privileged,
        service_account_issuer=options.service_account_issuer[0],
        api_audiences=options.audiences,
        sign_token=keys.sign,
        max_token_expiration=keys.max_token_expiration,
        extend_token_expiration=options.service_account_extend_token_expiration,
        max_extended_token_expiration=keys.max_extended_token_expiration,
        event_ttl=options.event_ttl,
        authenticate_token=tokens.authenticate_token,
        kubelet=KubeletConnection(
            address_types=options.kubelet_preferred_address_types or ADDRESS_TYPES,
            default_port=options.kubelet_port,
            client_certificate=options.kubelet_client_certificate,
            client_key=options.kubelet_client_key,
            certificate_authority=options.kubelet_certificate_authority,
            nearby=kubelets,
            leave=egress.cluster,
        ),
        proxied=ProxyConnection(nearby, egress.cluster),
        egress=egress,
        enable_aggregator_routing=options.enable_aggregator_routing,
        itself=itself,
        resource_of=common.mapper.plural_of,
    )


def built_in_resources(runtime: RuntimeConfig) -> tuple[Resource[Any, Services], ...]:
    """The built-in resources in the versions that are served, and all stable ones."""
    if not runtime.beyond_default:
        return (*AGGREGATOR, *KUBE_API, *API_EXTENSIONS)
    from steersman.controlplane import on_request  # which most servers never need

    return (*AGGREGATOR, *on_request.kube_api(runtime.serves), *API_EXTENSIONS)


def admission_of(options: Options, common: Common, stores: Stores, rights: Judges, services: Services) -> Chain:
    """The chain of admission plugins. Raises OptionsError."""
    server = Surroundings(
        authorizer=rights.authorizer,
        objects=stores.objects,
        mapper=common.mapper,
        locate_service=partial(locate_service, services),
        itself=services.itself,
        egress=services.egress,
        registry=common.registry,
        webhook_metrics=WebhookMetrics(common.registry),
        policy_metrics=PolicyMetrics(common.registry),
        condition_metrics=ConditionMetrics(common.registry),
        difference=internal_diff,
        not_ready_toleration=options.default_not_ready_toleration_seconds,
        unreachable_toleration=options.default_unreachable_toleration_seconds,
    )
    return admission_chain(options, server)


def server_config(
    options: Options,
    common: Common,
    host: str,
    files: CertificateFiles,
    judge: Authenticator,
    rights: Judges,
    admission: Chain,
    auditor: Auditor | None,
) -> Config:
    """How the server serves, and who judges its requests."""
    return Config(
        auditor=auditor,
        authenticator=judge,
        proxy_headers=proxy_headers(options),
        authorizer=rights.authorizer,
        admission=admission,
        bind_address=options.bind_address,
        port=options.secure_port,
        shares_port=options.permit_port_sharing,
        external_host=host,
        limits=_limits(options),
        tls=serving_tls(options, files),
        request_timeout=options.request_timeout,
        min_request_timeout=options.min_request_timeout,
        max_requests_in_flight=options.max_requests_inflight,
        max_mutating_requests_in_flight=options.max_mutating_requests_inflight,
        goaway_chance=options.goaway_chance,
        cors_allowed_origins=options.cors_allowed_origins,
        strict_transport_security=",".join(options.strict_transport_security_directives),
        shutdown_send_retry_after=options.shutdown_send_retry_after,
        shutdown_delay=options.shutdown_delay_duration,
        log_requests=options.verbosity >= 3,
        profiling=options.profiling,
        mapper=common.mapper,
        registry=common.registry,
        executor=common.executor,
        threads=common.threads,
    )


def _limits(options: Options) -> Limits:
    streams = options.http2_max_streams_per_connection
    return Limits(max_streams=min(streams, _MOST_STREAMS)) if streams > 0 else Limits()


def aggregation_of(options: Options, egress: Egress) -> AggregatorConfig:
    """How requests are handed on to servers behind this one."""
    return AggregatorConfig(
        proxy_client_cert_file=options.proxy_client_cert_file,
        proxy_client_key_file=options.proxy_client_key_file,
        enable_aggregator_routing=options.enable_aggregator_routing,
        aggregator_reject_forwarding_redirect=options.aggregator_reject_forwarding_redirect,
        leave=egress.cluster,
    )
