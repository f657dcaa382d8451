"""What a control plane is to be: kube-apiserver's flags as plain data, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from steersman.controlplane.audit_options import DURATIONS as AUDIT_DURATIONS
from steersman.controlplane.audit_options import AuditOptions
from steersman.machinery.suggestions import none_of
from steersman.machinery.values.durations import format_duration


class OptionsError(ValueError):
    """Options that contradict each other or cannot be read; one line for the user."""


@dataclass(slots=True, kw_only=True)
class Options(AuditOptions):
    """Field names are the flags' names. `storage` is "sqlite" or "memory"; times are in seconds.

    Without `listen` there is no socket: requests go to the server's handler, e.g. through `net.in_process`.
    """

    data_dir: Path
    storage: str = "sqlite"
    unsafe_no_fsync: bool = False
    storage_media_type: str = "application/json"
    """How objects of the built-in kinds are stored; what is there already may be of any."""
    workers: int = 1
    """Processes that answer requests; with more than one, another one owns the storage and the port."""
    listen: bool = True
    bind_address: str = "0.0.0.0"
    secure_port: int = 6443
    permit_address_sharing: bool = False
    permit_port_sharing: bool = False
    disable_http2_serving: bool = False
    http2_max_streams_per_connection: int = 0
    advertise_address: str = ""
    endpoint_reconciler_type: str = "lease"
    """How the Service `kubernetes` is kept leading to this server: lease, master-count or none."""
    apiserver_count: int = 1
    """How many servers there are to be, for master-count."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_sni_cert_key: tuple[str, ...] = ()
    tls_min_version: str = "VersionTLS12"
    tls_cipher_suites: tuple[str, ...] = ()
    tls_curve_preferences: tuple[int, ...] = ()
    client_ca_file: str = ""
    token_auth_file: str = ""
    anonymous_auth: bool = True
    anonymous_auth_is_given: bool = False
    """Whether the flag before was given, whatever it says."""
    authentication_config: str = ""
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    oidc_ca_file: str = ""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_signing_algs: tuple[str, ...] = ("RS256",)
    oidc_required_claim: dict[str, str] = field(default_factory=dict)
    authentication_token_webhook_config_file: str = ""
    authentication_token_webhook_version: str = "v1beta1"
    authentication_token_webhook_cache_ttl: float = 120.0
    enable_bootstrap_token_auth: bool = False
    authorization_mode: tuple[str, ...] = ("RBAC",)
    authorization_policy_file: str = ""
    authorization_webhook_config_file: str = ""
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: float = 300.0
    authorization_webhook_cache_unauthorized_ttl: float = 30.0
    authorization_config: str = ""
    """The file of the whole chain, in place of the modes."""
    encryption_provider_config: str = ""
    encryption_provider_config_automatic_reload: bool = False
    service_cluster_ip_range: str = "10.0.0.0/24"
    service_node_port_range: str = "30000-32767"
    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    admission_control_config_file: str = ""
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    enable_priority_and_fairness: bool = True
    request_timeout: float = 60.0
    min_request_timeout: int = 1800
    service_account_issuer: tuple[str, ...] = ("https://kubernetes.default.svc.cluster.local",)
    service_account_signing_key_file: str = ""
    service_account_signing_endpoint: str = ""
    """The socket of the external signer of tokens."""
    service_account_key_file: tuple[str, ...] = ()
    service_account_jwks_uri: str = ""
    service_account_lookup: bool = True
    service_account_max_token_expiration: int = 0
    service_account_extend_token_expiration: bool = True
    api_audiences: tuple[str, ...] = ()
    watch_cache: bool = True
    enable_garbage_collector: bool = True
    delete_collection_workers: int = 1
    """Without effect, as one thread writes."""
    enable_logs_handler: bool = False
    allow_privileged: bool = False
    event_ttl: int = 3600
    goaway_chance: float = 0.0
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security_directives: tuple[str, ...] = ()
    shutdown_delay_duration: float = 0.0
    shutdown_send_retry_after: bool = False
    profiling: bool = True
    contention_profiling: bool = False
    runtime_config: dict[str, str] = field(default_factory=dict)
    feature_gates: dict[str, str] = field(default_factory=dict)
    """Gates that were named, each with its default, see `feature_gates`."""
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    etcd_compaction_interval: float = 300.0
    etcd_servers: tuple[str, ...] = ()
    """URLs of members of one cluster; empty for the storage in the folder."""
    etcd_servers_overrides: tuple[str, ...] = ()
    """GROUP/RESOURCE#URL;URL for each resource that is stored in another cluster."""
    etcd_prefix: str = "/registry"
    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_healthcheck_timeout: float = 2.0
    etcd_readycheck_timeout: float = 2.0
    etcd_count_metric_poll_period: float = 60.0
    etcd_db_metric_poll_interval: float = 30.0
    lease_reuse_duration_seconds: int = 60
    storage_backend: str = ""
    storage_initialization_timeout: float = 60.0
    kubelet_preferred_address_types: tuple[str, ...] = ()
    """Empty for upstream's order."""
    kubelet_client_certificate: str = ""
    kubelet_client_key: str = ""
    kubelet_certificate_authority: str = ""
    kubelet_port: int = 10250
    kubelet_read_only_port: int = 10255
    kubelet_timeout: float = 5.0
    """As upstream, neither this nor the port before is used: streams last, and connecting has limits of its own."""
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ()
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ()
    requestheader_extra_headers_prefix: tuple[str, ...] = ()
    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
    egress_selector_config_file: str = ""
    controllers: tuple[str, ...] = ()
    """Names of kube-controller-manager's controllers to run here, see `controllers`."""
    debug_loop_watchdog: float = 0.0
    verbosity: int = 0
    logging_format: str = "text"

    def __post_init__(self) -> None:
        """Raises OptionsError for a value that is none of the few that an option can have."""
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise OptionsError(f"--{name.replace('_', '-')}: {none_of(value, allowed)}")

    @property
    def lets_anonymous_in(self) -> bool:
        """True if requests without credentials are let in, which AlwaysAllow among the modes rules out."""
        return self.anonymous_auth and "AlwaysAllow" not in self.authorization_mode

    @property
    def audiences(self) -> tuple[str, ...]:
        """What tokens for this server are meant for."""
        return self.api_audiences or self.service_account_issuer

    @property
    def has_oidc_flags(self) -> bool:
        """Whether one of `--oidc-*` says something else than by default."""
        usual = Options(data_dir=self.data_dir)
        names = (each.name for each in fields(self) if each.name.startswith("oidc_"))
        return any(getattr(self, name) != getattr(usual, name) for name in names)

    def as_flags(self) -> dict[str, str]:
        """The options by the names of their flags, as text in pflag's form."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NO_FLAGS}
        values["v"] = values.pop("verbosity")
        if not self.kubelet_preferred_address_types:
            from steersman.registry.kubelet import ADDRESS_TYPES

            values["kubelet_preferred_address_types"] = ADDRESS_TYPES
        for name in _DURATIONS:
            values[name] = format_duration(round(values[name] * 1e9))
        return {name.replace("_", "-"): _shown(value) for name, value in values.items()}


def parse_override(text: str) -> tuple[str, str, tuple[str, ...]]:
    """The group, the resource and the URLs of one of `--etcd-servers-overrides`. Raises ValueError."""
    resource, _, servers = text.partition("#")
    group, _, plural = resource.partition("/")
    urls = tuple(servers.split(";"))
    if text.count("#") != 1 or resource.count("/") != 1 or not all(urls):
        raise ValueError(
            "invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated"
        )
    return group, plural, urls


STORAGE_MEDIA_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
"""What `--storage-media-type` may be."""
LOGGING_FORMATS: Final = ("json", "text")
"""What `--logging-format` may be."""
ENDPOINT_RECONCILERS: Final = ("lease", "master-count", "none")
"""What `--endpoint-reconciler-type` may be."""
STORAGES: Final = ("sqlite", "memory")
"""What `--storage` may be."""
ALLOWED: Final = {
    "storage": STORAGES,
    "storage_media_type": STORAGE_MEDIA_TYPES,
    "endpoint_reconciler_type": ENDPOINT_RECONCILERS,
    "logging_format": LOGGING_FORMATS,
}
"""Options that have one of few values, and these."""
NO_FLAGS: Final = ("listen", "anonymous_auth_is_given")
"""Options that are no flags."""
_DURATIONS: Final = (
    "authentication_token_webhook_cache_ttl",
    "authorization_webhook_cache_authorized_ttl",
    "authorization_webhook_cache_unauthorized_ttl",
    "request_timeout",
    "service_account_max_token_expiration",
    "event_ttl",
    "shutdown_delay_duration",
    "etcd_compaction_interval",
    "etcd_healthcheck_timeout",
    "etcd_readycheck_timeout",
    "etcd_count_metric_poll_period",
    "etcd_db_metric_poll_interval",
    "storage_initialization_timeout",
    "kubelet_timeout",
    "debug_loop_watchdog",
    *AUDIT_DURATIONS,
)
"""Options in seconds whose flags are durations."""


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, dict):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    return str(value)
