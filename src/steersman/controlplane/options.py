"""Options of a control plane: kube-apiserver's flags as plain data, each with its default, parser and help."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from steersman.authorization.steps import MODES
from steersman.controlplane import flag_readers as read
from steersman.controlplane.audit_options import AuditOptions
from steersman.controlplane.controllers import CONTROLLERS as OWN_CONTROLLERS
from steersman.controlplane.feature_gates import feature_gates as read_feature_gates
from steersman.controlplane.flag_readers import DURATIONS, OneOf
from steersman.controlplane.flags import (
    ADMISSION,
    AGGREGATION,
    AUTHENTICATION,
    AUTHORIZATION,
    CONTROLLERS,
    DEBUGGING,
    ENABLEMENT,
    GENERIC,
    KUBELETS,
    OBJECTS,
    REQUIRED,
    SERVING,
    Flag,
    sections_of,
)
from steersman.machinery.suggestions import not_allowed_message
from steersman.machinery.values.durations import format_duration
from steersman.storage.retention import Retention


class OptionsError(ValueError):
    """Contradictory or malformed options; the text is one line for the user."""


@dataclass(slots=True, kw_only=True, repr=False, match_args=False)  # each method costs time of a start
class Options(AuditOptions):
    """Options of a server. Field names are the flags' names; times are in seconds.

    `storage` is "sqlite" or "memory". Without `listen` there is no socket: requests go to the server's handler, for
    example through `net.in_process`.
    """

    listen: bool = True
    data_dir: Path = GENERIC(REQUIRED, read.folder, "folder for data, keys, kubeconfig", is_own=True)
    storage: str = GENERIC("sqlite", OneOf("sqlite", "memory"), "sqlite, or memory, which is not kept", is_own=True)
    workers: int = GENERIC(1, read.positive, "number of worker processes", is_own=True)
    """Number of worker processes; if it is more than one, an additional process owns the storage and the port."""
    unsafe_no_fsync: bool = GENERIC(
        False, read.boolean, "do not fsync: a power failure may lose the last writes", is_own=True
    )
    storage_media_type: str = GENERIC(
        "application/json",
        OneOf("application/json", "application/vnd.kubernetes.protobuf", "application/yaml"),
        "media type for storing built-in kinds",
    )
    """Media type for writing objects of the built-in kinds; stored objects of the other types remain readable."""
    advertise_address: str = GENERIC("", read.address, "address under which others reach this server")
    endpoint_reconciler_type: str = GENERIC(
        "lease", OneOf("lease", "master-count", "none"), "how servers register as endpoints of the service kubernetes"
    )
    apiserver_count: int = GENERIC(1, read.positive, "number of servers, for master-count")
    request_timeout: float = GENERIC(60.0, read.seconds, "timeout of a request, e.g. 1m0s")
    min_request_timeout: int = GENERIC(1800, read.number, "minimum default duration of a watch in seconds")
    max_requests_inflight: int = GENERIC(400, read.number, "limit of concurrent read-only requests")
    max_mutating_requests_inflight: int = GENERIC(200, read.number, "limit of concurrent mutating requests")
    enable_priority_and_fairness: bool = GENERIC(True, read.boolean, "share both limits by priority and fairness")
    goaway_chance: float = GENERIC(0.0, read.chance, "probability that a request closes its HTTP/2 connection")
    cors_allowed_origins: tuple[str, ...] = GENERIC((), read.patterns, "regular expressions for allowed origins")
    strict_transport_security_directives: tuple[str, ...] = GENERIC((), read.names, "HSTS directives")
    shutdown_delay_duration: float = GENERIC(
        0.0, read.seconds, "time between the failure of /readyz and the end of service"
    )
    shutdown_send_retry_after: bool = GENERIC(False, read.boolean, "answer 429 while draining")
    egress_selector_config_file: str = GENERIC("", str, "EgressSelectorConfiguration: proxies for outgoing connections")
    tracing_config_file: str = GENERIC("", read.file, "TracingConfiguration: export of traces by OTLP")
    etcd_servers: tuple[str, ...] = GENERIC((), read.names, "http(s)://HOST:PORT,... of an etcd cluster for storage")
    """URLs of the members of one cluster; empty for storage in the data folder."""
    etcd_servers_overrides: tuple[str, ...] = GENERIC(
        (), read.overrides, "GROUP/RESOURCE#URL;URL,... for resources in other etcd clusters"
    )
    etcd_prefix: str = GENERIC("/registry", str, "prefix of all keys in etcd")
    etcd_cafile: str = GENERIC("", read.file, "CA certificates of etcd, PEM")
    etcd_certfile: str = GENERIC("", read.file, "client certificate for etcd, PEM")
    etcd_keyfile: str = GENERIC("", read.file, "key of --etcd-certfile")
    etcd_healthcheck_timeout: float = GENERIC(2.0, read.seconds, "timeout of the etcd check in /healthz and /livez")
    etcd_readycheck_timeout: float = GENERIC(2.0, read.seconds, "timeout of the etcd check in /readyz")
    etcd_compaction_interval: float = GENERIC(300.0, read.seconds, "time between compactions, 0 for never")
    history: Retention = GENERIC(
        Retention(),
        Retention.parse,
        "size and age of kept history, or none",
        is_own=True,
    )
    """Bounds of history, which is kept with the origin of each write; only for storage in the data folder."""
    etcd_count_metric_poll_period: float = GENERIC(
        60.0, read.seconds, "0 disables metrics of the number of stored objects"
    )
    etcd_db_metric_poll_interval: float = GENERIC(
        30.0, read.seconds, "interval of measuring the storage's size, 0 for never"
    )
    lease_reuse_duration_seconds: int = GENERIC(
        60, read.integer, "seconds in which a lease of etcd is used for further objects"
    )
    storage_backend: str = GENERIC("", read.backend, "etcd3", values=("etcd3",))
    storage_initialization_timeout: float = GENERIC(
        60.0, read.initialization, "timeout of filling the caches at the start"
    )
    encryption_provider_config: str = GENERIC("", read.file, "EncryptionConfiguration: encryption of stored values")
    encryption_provider_config_automatic_reload: bool = GENERIC(False, read.boolean, "reload that file when it changes")
    bind_address: str = SERVING("0.0.0.0", read.bind_address, "address to listen on, 0.0.0.0 for all")
    secure_port: int = SERVING(6443, read.port, "port to listen on, 0 for a free one")
    tls_cert_file: str = SERVING("", read.file, "serving certificate, PEM")
    tls_private_key_file: str = SERVING("", read.file, "key of --tls-cert-file")
    tls_sni_cert_key: tuple[str, ...] = SERVING((), read.one, "CERT,KEY[:NAME,...] for server names")
    tls_min_version: str = SERVING(
        "VersionTLS12", str, "VersionTLS12 or VersionTLS13", values=("VersionTLS12", "VersionTLS13")
    )
    tls_cipher_suites: tuple[str, ...] = SERVING((), read.cipher_suites, "cipher suites by IANA name")
    tls_curve_preferences: tuple[int, ...] = SERVING(
        (), read.integers, "key exchanges as numbers of Go's CurveID, in any order"
    )
    disable_http2_serving: bool = SERVING(False, read.boolean, "serve HTTP/1.1 only")
    http2_max_streams_per_connection: int = SERVING(
        0, read.integer, "limit of concurrent requests per HTTP/2 connection, 0 for 100"
    )
    permit_address_sharing: bool = SERVING(False, read.boolean, "bind with SO_REUSEADDR")
    permit_port_sharing: bool = SERVING(
        False, read.boolean, "bind with SO_REUSEPORT, so that other processes can listen too"
    )
    anonymous_auth: bool = AUTHENTICATION(True, read.boolean, "accept requests without credentials")
    anonymous_auth_is_given: bool = False
    """True if `--anonymous-auth` was given with any value."""
    authentication_config: str = AUTHENTICATION(
        "", read.file, "AuthenticationConfiguration: JWT issuers, anonymous requests"
    )
    authentication_token_webhook_config_file: str = AUTHENTICATION(
        "", read.file, "kubeconfig of the webhook that authenticates tokens"
    )
    authentication_token_webhook_version: str = AUTHENTICATION(
        "v1beta1", OneOf("v1", "v1beta1", may_be_empty=True), "version of TokenReviews for the webhook"
    )
    authentication_token_webhook_cache_ttl: float = AUTHENTICATION(
        120.0, read.seconds, "time for which its answers are cached"
    )
    client_ca_file: str = AUTHENTICATION("", read.file, "CA of client certificates, PEM")
    enable_bootstrap_token_auth: bool = AUTHENTICATION(
        False, read.boolean, "accept tokens in secrets, for nodes that join"
    )
    oidc_issuer_url: str = AUTHENTICATION("", str, "OpenID issuer whose tokens are accepted")
    oidc_client_id: str = AUTHENTICATION("", str, "audience of the issuer's tokens")
    oidc_ca_file: str = AUTHENTICATION("", read.file, "CA of the issuer, PEM")
    oidc_username_claim: str = AUTHENTICATION("sub", str, "claim with the user name")
    oidc_username_prefix: str = AUTHENTICATION("", str, "prefix of user names, - for none")
    oidc_groups_claim: str = AUTHENTICATION("", str, "claim with the groups")
    oidc_groups_prefix: str = AUTHENTICATION("", str, "prefix of groups")
    oidc_signing_algs: tuple[str, ...] = AUTHENTICATION(("RS256",), read.names, "accepted signature algorithms")
    oidc_required_claim: dict[str, str] = AUTHENTICATION({}, read.claim, "required CLAIM=VALUE in tokens")
    token_auth_file: str = AUTHENTICATION("", read.file, 'CSV file of token,user,uid,"groups"')
    requestheader_client_ca_file: str = AUTHENTICATION("", read.file, "CA of proxies that set the user in headers, PEM")
    requestheader_allowed_names: tuple[str, ...] = AUTHENTICATION(
        (), read.header_names, "common names of these proxies, empty for any"
    )
    requestheader_username_headers: tuple[str, ...] = AUTHENTICATION(
        (), read.header_names, "headers with the user name"
    )
    requestheader_uid_headers: tuple[str, ...] = AUTHENTICATION((), read.header_names, "headers with the uid")
    requestheader_group_headers: tuple[str, ...] = AUTHENTICATION((), read.header_names, "headers with groups")
    requestheader_extra_headers_prefix: tuple[str, ...] = AUTHENTICATION(
        (), read.header_names, "prefixes of headers with extra fields"
    )
    service_account_issuer: tuple[str, ...] = AUTHENTICATION(
        ("https://kubernetes.default.svc.cluster.local",), read.issuer, "issuer of service account tokens"
    )
    service_account_signing_key_file: str = AUTHENTICATION("", read.file, "key that signs tokens")
    service_account_signing_endpoint: str = AUTHENTICATION(
        "", str, "socket of an external token signer, in place of keys"
    )
    service_account_key_file: tuple[str, ...] = AUTHENTICATION((), read.one_file, "keys that verify tokens")
    service_account_jwks_uri: str = AUTHENTICATION("", str, "address of the keys in OpenID discovery")
    service_account_lookup: bool = AUTHENTICATION(
        True, read.boolean, "accept tokens of secrets only while the secret exists"
    )
    service_account_max_token_expiration: int = AUTHENTICATION(
        0, read.token_expiration, "maximum lifetime of requested tokens, 0s for no limit"
    )
    service_account_extend_token_expiration: bool = AUTHENTICATION(
        True, read.boolean, "extend the lifetime of tokens in pods to a year"
    )
    api_audiences: tuple[str, ...] = AUTHENTICATION((), read.names, "audiences of tokens for this server")
    authorization_mode: tuple[str, ...] = AUTHORIZATION(
        ("RBAC",),
        read.modes,
        "Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny, in order",
        values=("RBAC", "Node,RBAC", *MODES),
    )
    authorization_policy_file: str = AUTHORIZATION("", read.file, "ABAC policies, one per line")
    authorization_webhook_config_file: str = AUTHORIZATION(
        "", read.file, "kubeconfig of the webhook that authorizes requests"
    )
    authorization_webhook_version: str = AUTHORIZATION(
        "v1beta1", read.review_version, "version of SubjectAccessReviews for the webhook", values=("v1", "v1beta1")
    )
    authorization_webhook_cache_authorized_ttl: float = AUTHORIZATION(
        300.0, read.seconds, "time for which allowed requests are cached"
    )
    authorization_webhook_cache_unauthorized_ttl: float = AUTHORIZATION(
        30.0, read.seconds, "time for which other requests are cached"
    )
    authorization_config: str = AUTHORIZATION(
        "", read.file, "AuthorizationConfiguration, in place of the modes; reloaded when it changes"
    )
    runtime_config: dict[str, str] = ENABLEMENT(
        {},
        read.pairs,
        "group versions to serve, e.g. api/all=true",
        values=("api/all=true", "api/all=false", "api/alpha=true", "api/beta=true"),
    )
    feature_gates: dict[str, str] = ENABLEMENT({}, read_feature_gates, "gates, with their default values only")
    enable_admission_plugins: tuple[str, ...] = ADMISSION((), read.plugins, "plugins in addition to the default ones")
    disable_admission_plugins: tuple[str, ...] = ADMISSION((), read.plugins, "default plugins to disable")
    admission_control_config_file: str = ADMISSION("", str, "configuration file of plugins")
    watch_cache: bool = OBJECTS(True, read.Only(True), "true only: reads are answered from caches")
    enable_garbage_collector: bool = OBJECTS(True, read.Only(True), "true only: deletions set finalizers")
    delete_collection_workers: int = OBJECTS(1, read.number, "has no effect")
    """Without effect, as a single thread writes."""
    allow_privileged: bool = OBJECTS(False, read.boolean, "allow privileged containers")
    default_not_ready_toleration_seconds: int = OBJECTS(
        300, read.integer, "seconds that new pods stay on nodes that are not ready"
    )
    default_unreachable_toleration_seconds: int = OBJECTS(
        300, read.integer, "seconds that new pods stay on unreachable nodes"
    )
    event_ttl: int = OBJECTS(3600, read.whole_seconds, "lifetime of events")
    service_cluster_ip_range: str = OBJECTS("10.0.0.0/24", str, "CIDR of service addresses")
    service_node_port_range: str = OBJECTS("30000-32767", str, "FIRST-LAST node port of services")
    kubelet_preferred_address_types: tuple[str, ...] = KUBELETS(
        (), read.names, "types of node addresses, in order of preference"
    )
    """Empty for upstream's order."""
    kubelet_client_certificate: str = KUBELETS("", read.file, "client certificate for kubelets, PEM")
    kubelet_client_key: str = KUBELETS("", read.file, "key of --kubelet-client-certificate")
    kubelet_certificate_authority: str = KUBELETS("", read.file, "CA of kubelets, PEM")
    kubelet_port: int = KUBELETS(10250, read.port, "port of kubelets whose nodes have none")
    kubelet_read_only_port: int = KUBELETS(10255, read.port, "has no effect")
    kubelet_timeout: float = KUBELETS(5.0, read.seconds, "has no effect")
    """Unused, as is `kubelet_read_only_port`, also upstream: streams have no time limit, and connecting has its own."""
    proxy_client_cert_file: str = AGGREGATION("", read.file, "client certificate for aggregated servers, PEM")
    proxy_client_key_file: str = AGGREGATION("", read.file, "key of --proxy-client-cert-file")
    enable_aggregator_routing: bool = AGGREGATION(
        False, read.boolean, "connect to aggregated servers and webhooks by endpoints only"
    )
    aggregator_reject_forwarding_redirect: bool = AGGREGATION(
        True, read.boolean, "answer 502 if an aggregated server redirects"
    )
    controllers: tuple[str, ...] = CONTROLLERS(
        (),
        read.controllers,
        "controllers of kube-controller-manager to run in the server: * for all, -NAME to disable one",
        values=("*", *OWN_CONTROLLERS),
        is_own=True,
    )
    verbosity: int = DEBUGGING(
        0,
        read.number,
        "log level: 0 warnings, 2 info, 3 requests, 6 all",
        values=("0", "2", "3", "6"),
        name="v",
    )
    logging_format: str = DEBUGGING("text", OneOf("json", "text", told=read.unsupported_format), "format of log lines")
    enable_logs_handler: bool = DEBUGGING(False, read.Only(False), "false only: no /logs")
    profiling: bool = DEBUGGING(True, read.boolean, "serve /debug/pprof")
    contention_profiling: bool = DEBUGGING(
        False, read.boolean, "serve a profile of event loop stalls at /debug/pprof/block"
    )
    debug_loop_watchdog: float = DEBUGGING(
        0.0, read.seconds, "log stalls of the event loop longer than this, 0s for never", is_own=True
    )
    faults: bool = DEBUGGING(
        False, read.boolean, "serve Faults: errors, delays and lost answers on demand", is_own=True
    )
    """True if users may make Fault objects."""

    def __post_init__(self) -> None:
        """Raises OptionsError for an unknown value of an option with a fixed set of values."""
        for name, flag in FLAGS.items():
            allowed, value = flag.read, getattr(self, flag.option)
            if isinstance(allowed, OneOf) and not allowed.may_be_empty and value not in allowed.values:
                raise OptionsError(f"--{name}: {not_allowed_message(value, allowed.values)}")

    @property
    def lets_anonymous_in(self) -> bool:
        """True if requests without credentials are accepted. The mode AlwaysAllow excludes them."""
        return self.anonymous_auth and "AlwaysAllow" not in self.authorization_mode

    @property
    def audiences(self) -> tuple[str, ...]:
        """Audiences of tokens for this server."""
        return self.api_audiences or self.service_account_issuer

    @property
    def has_oidc_flags(self) -> bool:
        """True if one of `--oidc-*` differs from its default."""
        usual = Options(data_dir=self.data_dir)
        names = (each.name for each in fields(self) if each.name.startswith("oidc_"))
        return any(getattr(self, name) != getattr(usual, name) for name in names)

    def as_flags(self) -> dict[str, str]:
        """Return the options by the names of their flags, as text in pflag's form."""
        values = {name: getattr(self, flag.option) for name, flag in FLAGS.items()}
        if not self.kubelet_preferred_address_types:
            from steersman.registry.kubelet import ADDRESS_TYPES

            values["kubelet-preferred-address-types"] = ADDRESS_TYPES
        return {name: _shown(value, FLAGS[name]) for name, value in values.items()}


SECTIONS: Final = sections_of(Options)
"""Flags by section and name, in the order of help."""
FLAGS: Final[dict[str, Flag]] = {name: flag for section in SECTIONS.values() for name, flag in section.items()}


def _shown(value: object, flag: Flag) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if flag.read in DURATIONS and isinstance(value, int | float):
        return format_duration(round(value * 1e9))
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, dict):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    return str(value)
