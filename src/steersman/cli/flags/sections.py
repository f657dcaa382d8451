"""The flags, by section, in the order in which help shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from steersman.authorization.steps import MODES
from steersman.cli.flags.known import ADMISSION_PLUGINS
from steersman.cli.flags.readers import (
    OneOf,
    Only,
    address,
    backend,
    bind_address,
    boolean,
    chance,
    claim,
    controllers,
    decimal,
    file,
    folder,
    header_names,
    initialization,
    integer,
    integers,
    issuer,
    logging_format,
    media_type,
    modes,
    names,
    number,
    one,
    one_file,
    overrides,
    pairs,
    patterns,
    plugins,
    port,
    positive,
    reconciler,
    review_version,
    seconds,
    storage,
    token_expiration,
    whole_seconds,
)
from steersman.controlplane.controllers import CONTROLLERS
from steersman.controlplane.feature_gates import feature_gates
from steersman.controlplane.options import ENDPOINT_RECONCILERS, LOGGING_FORMATS, STORAGE_MEDIA_TYPES
from steersman.controlplane.tls_parameters import SUITE_NAMES


class Flag(Struct, frozen=True):
    """A flag: the option it sets, how its text is read, and whether giving it again adds to it.

    `values` are what a shell offers.
    """

    option: str
    read: Callable[[str], Any]
    help: str
    repeats: bool = False
    boolean: bool = False
    values: tuple[str, ...] = ()


def _audit_flags(plugin: str) -> dict[str, Flag]:
    """Those that both backends of the audit have."""
    option = f"audit_{plugin}_"
    modes = ("batch", "blocking", "blocking-strict")
    flags = {
        "mode": Flag(f"{option}mode", OneOf(*modes), "batch, blocking or blocking-strict", values=modes),
        "batch-buffer-size": Flag(f"{option}batch_buffer_size", integer, "events that may wait, in batch mode"),
        "batch-max-size": Flag(f"{option}batch_max_size", integer, "events of a batch"),
        "batch-max-wait": Flag(f"{option}batch_max_wait", seconds, "longest wait for a batch that is not full"),
        "batch-throttle-enable": Flag(f"{option}batch_throttle_enable", boolean, "bound the batches", boolean=True),
        "batch-throttle-qps": Flag(f"{option}batch_throttle_qps", decimal, "batches a second on average"),
        "batch-throttle-burst": Flag(f"{option}batch_throttle_burst", integer, "batches at once after a rest"),
        "truncate-enabled": Flag(
            f"{option}truncate_enabled", boolean, "leave objects out of long events", boolean=True
        ),
        "truncate-max-batch-size": Flag(f"{option}truncate_max_batch_size", integer, "bytes of a batch"),
        "truncate-max-event-size": Flag(f"{option}truncate_max_event_size", integer, "bytes of an event"),
        "version": Flag(f"{option}version", str, "version of events: audit.k8s.io/v1", values=("audit.k8s.io/v1",)),
    }
    return {f"audit-{plugin}-{name}": flag for name, flag in flags.items()}


_PLUGINS: Final = tuple(sorted(ADMISSION_PLUGINS))

SECTIONS: Final[dict[str, dict[str, Flag]]] = {
    "Generic": {
        "data-dir": Flag("data_dir", folder, "folder of the data, keys and kubeconfig"),
        "storage": Flag("storage", storage, "sqlite or memory, gone at the end", values=("sqlite", "memory")),
        "workers": Flag("workers", positive, "processes that answer requests"),
        "unsafe-no-fsync": Flag("unsafe_no_fsync", boolean, "let a power cut take the last writes", boolean=True),
        "storage-media-type": Flag(
            "storage_media_type",
            media_type,
            "how built-in kinds are stored: JSON, YAML or protobuf",
            values=STORAGE_MEDIA_TYPES,
        ),
        "advertise-address": Flag("advertise_address", address, "address by which others reach this server"),
        "endpoint-reconciler-type": Flag(
            "endpoint_reconciler_type",
            reconciler,
            "how the service kubernetes is kept leading to all servers",
            values=ENDPOINT_RECONCILERS,
        ),
        "apiserver-count": Flag("apiserver_count", positive, "servers there are to be, for master-count"),
        "request-timeout": Flag("request_timeout", seconds, "longest time of a request, e.g. 1m0s"),
        "min-request-timeout": Flag("min_request_timeout", number, "shortest default time of a watch, seconds"),
        "max-requests-inflight": Flag("max_requests_inflight", number, "read-only requests at a time"),
        "max-mutating-requests-inflight": Flag("max_mutating_requests_inflight", number, "writing requests at a time"),
        "enable-priority-and-fairness": Flag(
            "enable_priority_and_fairness", boolean, "share both by priority and fairness", boolean=True
        ),
        "goaway-chance": Flag("goaway_chance", chance, "chance that a request ends its HTTP/2 connection"),
        "cors-allowed-origins": Flag("cors_allowed_origins", patterns, "regular expressions of allowed origins", True),
        "strict-transport-security-directives": Flag(
            "strict_transport_security_directives", names, "HSTS directives", repeats=True
        ),
        "shutdown-delay-duration": Flag("shutdown_delay_duration", seconds, "time between not ready and not serving"),
        "shutdown-send-retry-after": Flag("shutdown_send_retry_after", boolean, "429 while draining", boolean=True),
        "egress-selector-config-file": Flag(
            "egress_selector_config_file", str, "EgressSelectorConfiguration: through which proxies others are asked"
        ),
        "etcd-servers": Flag("etcd_servers", names, "http(s)://HOST:PORT,... of an etcd cluster to store in", True),
        "etcd-servers-overrides": Flag(
            "etcd_servers_overrides", overrides, "GROUP/RESOURCE#URL;URL,... of resources in other clusters", True
        ),
        "etcd-prefix": Flag("etcd_prefix", str, "what all keys in etcd begin with"),
        "etcd-cafile": Flag("etcd_cafile", file, "whom members of etcd have their certificates of, PEM"),
        "etcd-certfile": Flag("etcd_certfile", file, "certificate shown to etcd, PEM"),
        "etcd-keyfile": Flag("etcd_keyfile", file, "key of --etcd-certfile"),
        "etcd-healthcheck-timeout": Flag("etcd_healthcheck_timeout", seconds, "time etcd has for /healthz and /livez"),
        "etcd-readycheck-timeout": Flag("etcd_readycheck_timeout", seconds, "time etcd has for /readyz"),
        "etcd-compaction-interval": Flag("etcd_compaction_interval", seconds, "time between compactions, 0 for never"),
        "etcd-count-metric-poll-period": Flag(
            "etcd_count_metric_poll_period", seconds, "0 for no metrics of how many objects are stored"
        ),
        "etcd-db-metric-poll-interval": Flag(
            "etcd_db_metric_poll_interval", seconds, "time between questions how large the storage is, 0 for never"
        ),
        "lease-reuse-duration-seconds": Flag(
            "lease_reuse_duration_seconds", integer, "how long a lease of etcd is given to further objects"
        ),
        "storage-backend": Flag("storage_backend", backend, "etcd3", values=("etcd3",)),
        "storage-initialization-timeout": Flag(
            "storage_initialization_timeout", initialization, "time that filling the caches may take at the start"
        ),
        "encryption-provider-config": Flag(
            "encryption_provider_config",
            file,
            "EncryptionConfiguration: how values are encrypted where they are stored",
        ),
        "encryption-provider-config-automatic-reload": Flag(
            "encryption_provider_config_automatic_reload", boolean, "reread that file when it changes", boolean=True
        ),
    },
    "Secure serving": {
        "bind-address": Flag("bind_address", bind_address, "address to listen on; 0.0.0.0 or :: for all"),
        "secure-port": Flag("secure_port", port, "port to listen on, 0 for a free one"),
        "tls-cert-file": Flag("tls_cert_file", file, "serving certificate, PEM"),
        "tls-private-key-file": Flag("tls_private_key_file", file, "key of --tls-cert-file"),
        "tls-sni-cert-key": Flag("tls_sni_cert_key", one, "CERT,KEY[:NAME,...] for server names", repeats=True),
        "tls-min-version": Flag(
            "tls_min_version", str, "VersionTLS12 or VersionTLS13", values=("VersionTLS12", "VersionTLS13")
        ),
        "tls-cipher-suites": Flag(
            "tls_cipher_suites", names, "cipher suites, by their names at IANA", True, values=SUITE_NAMES
        ),
        "tls-curve-preferences": Flag(
            "tls_curve_preferences", integers, "key exchanges, by Go's numbers (CurveID), in any order", True
        ),
        "disable-http2-serving": Flag("disable_http2_serving", boolean, "speak HTTP/1.1 only", boolean=True),
        "http2-max-streams-per-connection": Flag(
            "http2_max_streams_per_connection", integer, "requests at a time on a connection of HTTP/2, 0 for 100"
        ),
        "permit-address-sharing": Flag("permit_address_sharing", boolean, "bind with SO_REUSEADDR", boolean=True),
        "permit-port-sharing": Flag(
            "permit_port_sharing", boolean, "bind with SO_REUSEPORT: others may listen there too", boolean=True
        ),
    },
    "Authentication": {
        "anonymous-auth": Flag("anonymous_auth", boolean, "let requests without credentials in", boolean=True),
        "authentication-config": Flag(
            "authentication_config", file, "AuthenticationConfiguration: issuers of JWTs, anonymous requests"
        ),
        "authentication-token-webhook-config-file": Flag(
            "authentication_token_webhook_config_file", file, "kubeconfig of the webhook that knows tokens"
        ),
        "authentication-token-webhook-version": Flag(
            "authentication_token_webhook_version",
            OneOf("v1", "v1beta1"),
            "version of its TokenReviews",
            values=("v1", "v1beta1"),
        ),
        "authentication-token-webhook-cache-ttl": Flag(
            "authentication_token_webhook_cache_ttl", seconds, "how long its answers are good"
        ),
        "client-ca-file": Flag("client_ca_file", file, "CA of client certificates, PEM"),
        "enable-bootstrap-token-auth": Flag(
            "enable_bootstrap_token_auth", boolean, "know tokens of secrets for nodes that join", boolean=True
        ),
        "oidc-issuer-url": Flag("oidc_issuer_url", str, "OpenID issuer whose tokens are known"),
        "oidc-client-id": Flag("oidc_client_id", str, "audience of its tokens"),
        "oidc-ca-file": Flag("oidc_ca_file", file, "CA of the issuer, PEM"),
        "oidc-username-claim": Flag("oidc_username_claim", str, "claim that is the user name"),
        "oidc-username-prefix": Flag("oidc_username_prefix", str, "what is put before it, - for nothing"),
        "oidc-groups-claim": Flag("oidc_groups_claim", str, "claim that is the groups"),
        "oidc-groups-prefix": Flag("oidc_groups_prefix", str, "what is put before each"),
        "oidc-signing-algs": Flag("oidc_signing_algs", names, "algorithms of signatures", True),
        "oidc-required-claim": Flag("oidc_required_claim", claim, "CLAIM=VALUE that tokens must have", True),
        "token-auth-file": Flag("token_auth_file", file, 'CSV of token,user,uid,"groups"'),
        "requestheader-client-ca-file": Flag(
            "requestheader_client_ca_file", file, "CA of proxies whose headers say who sends a request, PEM"
        ),
        "requestheader-allowed-names": Flag(
            "requestheader_allowed_names", header_names, "common names of these proxies, none for any", repeats=True
        ),
        "requestheader-username-headers": Flag(
            "requestheader_username_headers", header_names, "headers of user names", repeats=True
        ),
        "requestheader-uid-headers": Flag("requestheader_uid_headers", header_names, "headers of users' uids", True),
        "requestheader-group-headers": Flag("requestheader_group_headers", header_names, "headers of groups", True),
        "requestheader-extra-headers-prefix": Flag(
            "requestheader_extra_headers_prefix", header_names, "how headers of extra fields begin", repeats=True
        ),
        "service-account-issuer": Flag(
            "service_account_issuer", issuer, "issuer of service account tokens", repeats=True
        ),
        "service-account-signing-key-file": Flag("service_account_signing_key_file", file, "key that signs tokens"),
        "service-account-signing-endpoint": Flag(
            "service_account_signing_endpoint", str, "socket of a signer of tokens, in place of keys"
        ),
        "service-account-key-file": Flag("service_account_key_file", one_file, "keys that verify tokens", repeats=True),
        "service-account-jwks-uri": Flag("service_account_jwks_uri", str, "address of the keys in OpenID discovery"),
        "service-account-lookup": Flag(
            "service_account_lookup", boolean, "know tokens of secrets only while these are there", boolean=True
        ),
        "service-account-max-token-expiration": Flag(
            "service_account_max_token_expiration", token_expiration, "longest life of a requested token, 0s for any"
        ),
        "service-account-extend-token-expiration": Flag(
            "service_account_extend_token_expiration", boolean, "let tokens in pods live for a year", boolean=True
        ),
        "api-audiences": Flag("api_audiences", names, "audiences of tokens for this server", True),
    },
    "Authorization": {
        "authorization-mode": Flag(
            "authorization_mode",
            modes,
            "Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny, in order",
            True,
            values=("RBAC", "Node,RBAC", *MODES),
        ),
        "authorization-policy-file": Flag("authorization_policy_file", file, "policies of ABAC, one a line"),
        "authorization-webhook-config-file": Flag(
            "authorization_webhook_config_file", file, "kubeconfig of the webhook that judges requests"
        ),
        "authorization-webhook-version": Flag(
            "authorization_webhook_version", review_version, "of the reviews sent to it", values=("v1", "v1beta1")
        ),
        "authorization-webhook-cache-authorized-ttl": Flag(
            "authorization_webhook_cache_authorized_ttl", seconds, "how long it is not asked again what it allowed"
        ),
        "authorization-webhook-cache-unauthorized-ttl": Flag(
            "authorization_webhook_cache_unauthorized_ttl", seconds, "the same of what it did not allow"
        ),
        "authorization-config": Flag(
            "authorization_config", file, "AuthorizationConfiguration, in place of the modes; reread when it changes"
        ),
    },
    "API enablement": {
        "runtime-config": Flag(
            "runtime_config",
            pairs,
            "group versions to serve, e.g. api/all=true",
            True,
            values=("api/all=true", "api/all=false", "api/alpha=true", "api/beta=true"),
        ),
        "feature-gates": Flag("feature_gates", feature_gates, "gates with the values that they have by default", True),
    },
    "Admission": {
        "enable-admission-plugins": Flag(
            "enable_admission_plugins", plugins, "plugins beside the default ones", True, values=_PLUGINS
        ),
        "disable-admission-plugins": Flag(
            "disable_admission_plugins", plugins, "default plugins to leave out", True, values=_PLUGINS
        ),
        "admission-control-config-file": Flag("admission_control_config_file", str, "what plugins are configured with"),
    },
    "Auditing": {
        "audit-policy-file": Flag("audit_policy_file", str, "what is recorded of which requests, a Policy"),
        "audit-log-path": Flag("audit_log_path", str, "file of events, - for the standard output"),
        "audit-log-maxage": Flag("audit_log_maxage", integer, "days that old files are kept, 0 for ever"),
        "audit-log-maxbackup": Flag("audit_log_maxbackup", integer, "old files that are kept, 0 for all"),
        "audit-log-maxsize": Flag("audit_log_maxsize", integer, "MiB of a file, 0 for any"),
        "audit-log-format": Flag(
            "audit_log_format", OneOf("json", "legacy"), "json or legacy, lines of text", values=("json", "legacy")
        ),
        "audit-log-compress": Flag("audit_log_compress", boolean, "compress old files", boolean=True),
        **_audit_flags("log"),
        "audit-webhook-config-file": Flag("audit_webhook_config_file", str, "kubeconfig of who is sent events"),
        "audit-webhook-initial-backoff": Flag("audit_webhook_initial_backoff", seconds, "wait before a second attempt"),
        "audit-webhook-batch-initial-backoff": Flag(
            "audit_webhook_batch_initial_backoff", seconds, "old name of --audit-webhook-initial-backoff"
        ),
        **_audit_flags("webhook"),
    },
    "Objects": {
        "watch-cache": Flag("watch_cache", Only(True), "true only: reads are answered from caches", boolean=True),
        "enable-garbage-collector": Flag(
            "enable_garbage_collector", Only(True), "true only: finalizers of deletions are set", boolean=True
        ),
        "delete-collection-workers": Flag("delete_collection_workers", number, "has no effect"),
        "allow-privileged": Flag("allow_privileged", boolean, "allow privileged containers", boolean=True),
        "default-not-ready-toleration-seconds": Flag(
            "default_not_ready_toleration_seconds", number, "how long new pods stay on nodes that are not ready"
        ),
        "default-unreachable-toleration-seconds": Flag(
            "default_unreachable_toleration_seconds", number, "how long new pods stay on nodes that cannot be reached"
        ),
        "event-ttl": Flag("event_ttl", whole_seconds, "how long events are kept"),
        "service-cluster-ip-range": Flag("service_cluster_ip_range", str, "CIDR of service addresses"),
        "service-node-port-range": Flag("service_node_port_range", str, "FIRST-LAST port of services on nodes"),
    },
    "Kubelets": {
        "kubelet-preferred-address-types": Flag(
            "kubelet_preferred_address_types", names, "types of node addresses, in order of preference", repeats=True
        ),
        "kubelet-client-certificate": Flag("kubelet_client_certificate", file, "shown to kubelets, PEM"),
        "kubelet-client-key": Flag("kubelet_client_key", file, "key of --kubelet-client-certificate"),
        "kubelet-certificate-authority": Flag("kubelet_certificate_authority", file, "CA of kubelets, PEM"),
        "kubelet-port": Flag("kubelet_port", port, "port of kubelets whose nodes tell none"),
        "kubelet-read-only-port": Flag("kubelet_read_only_port", port, "has no effect"),
        "kubelet-timeout": Flag("kubelet_timeout", seconds, "has no effect"),
    },
    "Aggregated servers": {
        "proxy-client-cert-file": Flag("proxy_client_cert_file", file, "shown to aggregated servers, PEM"),
        "proxy-client-key-file": Flag("proxy_client_key_file", file, "key of --proxy-client-cert-file"),
        "enable-aggregator-routing": Flag(
            "enable_aggregator_routing",
            boolean,
            "reach aggregated servers and webhooks at endpoints only",
            boolean=True,
        ),
        "aggregator-reject-forwarding-redirect": Flag(
            "aggregator_reject_forwarding_redirect",
            boolean,
            "answer 502 for redirects of aggregated servers",
            boolean=True,
        ),
    },
    "Controllers": {
        "controllers": Flag(
            "controllers",
            controllers,
            "controllers of kube-controller-manager to run in the server: * for all, -NAME for all but one",
            repeats=True,
            values=("*", *CONTROLLERS),
        ),
    },
    "Logs and debugging": {
        "v": Flag(
            "verbosity",
            number,
            "log level: 0 failures, 2 what is unusual, 3 requests, 6 all",
            values=("0", "2", "3", "6"),
        ),
        "logging-format": Flag("logging_format", logging_format, "form of the log's lines", values=LOGGING_FORMATS),
        "enable-logs-handler": Flag("enable_logs_handler", Only(False), "false only: no /logs", boolean=True),
        "profiling": Flag("profiling", boolean, "serve /debug/pprof", boolean=True),
        "contention-profiling": Flag(
            "contention_profiling", boolean, "serve what holds the event loop at /debug/pprof/block", boolean=True
        ),
        "debug-loop-watchdog": Flag(
            "debug_loop_watchdog", seconds, "log what holds the event loop longer, 0s for never"
        ),
    },
}

FLAGS: Final[dict[str, Flag]] = {name: flag for section in SECTIONS.values() for name, flag in section.items()}
