"""kube-apiserver's flags: those supported here, and the names of the others so that they are never ignored.

Values are read as Go's pflag reads them: `--flag=value` or `--flag value`, booleans also as a bare `--flag`, and the
one shorthand, `-v 3`, also as `-v=3` and `-v3`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from steersman.controlplane.controllers import check_controllers
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import url_error
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import is_digits


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: the option it sets, how its text is read, and whether giving it again adds to it."""

    option: str
    read: Callable[[str], Any]
    help: str
    repeats: bool = False
    boolean: bool = False


def _boolean(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _seconds(text: str) -> float:
    try:
        nanoseconds = parse_duration(text)
    except DurationError as error:
        raise ValueError(str(error)) from None
    if nanoseconds < 0:
        raise ValueError(f"{text} is negative")
    return nanoseconds / 1e9


def _whole_seconds(text: str) -> int:
    return int(_seconds(text))


def _token_expiration(text: str) -> int:
    seconds = _seconds(text)
    if seconds and not 3600 <= seconds <= 1 << 32:
        raise ValueError("must be between 1 hour and 2^32 seconds")
    return int(seconds)


def _number(text: str) -> int:
    if not is_digits(text.removeprefix("-")):
        raise ValueError(f"{text!r} is no whole number")
    value = int(text)
    if value < 0:
        raise ValueError(f"{value} is negative")
    return value


def _chance(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 0.02:
        raise ValueError("must be between 0 and 0.02")
    return value


def _port(text: str) -> int:
    value = _number(text)
    if value > 65535:
        raise ValueError(f"{value} is no port")
    return value


def _names(text: str) -> tuple[str, ...]:
    return tuple(trim_space(each) for each in text.split(",") if trim_space(each))


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _address(text: str) -> str:
    return str(ip_address(text))


def _file(text: str) -> str:
    """The path of a file that can be read."""
    try:
        with open(text, "rb"):
            return text
    except OSError as error:
        raise ValueError(f"{text}: {error.strerror}") from None


def _folder(text: str) -> Path:
    """A folder that need not be there yet; an empty name would be the one the server is started in."""
    if not text:
        raise ValueError("the name of a folder is needed")
    return Path(text)


def _one_file(text: str) -> tuple[str, ...]:
    return (_file(text),)


def _patterns(text: str) -> tuple[str, ...]:
    patterns = _names(text)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return patterns


def _issuer(text: str) -> tuple[str, ...]:
    if not text:
        raise ValueError("should not be an empty string")
    error = url_error(text) if ":" in text else None
    if error is not None:
        raise ValueError(f"{text!r} contained a ':' but was not a valid URL: {error}")
    return (text,)


def _storage(text: str) -> str:
    if text not in ("sqlite", "memory"):
        raise ValueError(f"{text!r} is neither sqlite nor memory")
    return text


def _modes(text: str) -> tuple[str, ...]:
    modes = _names(text)
    for mode in modes:
        if mode in ("Node", "ABAC", "Webhook"):
            raise ValueError(f"the mode {mode} is not supported yet")
        if mode not in ("RBAC", "AlwaysAllow", "AlwaysDeny"):
            raise ValueError(f"unknown mode {mode!r}")
    if not modes:
        raise ValueError("modes must be given, each once")
    return modes


def _header_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if not all(map(trim_space, names)):
        raise ValueError("empty value")
    return names


def _plugins(text: str) -> tuple[str, ...]:
    return _names(text)


def _controllers(text: str) -> tuple[str, ...]:
    names = _names(text)
    check_controllers(names)
    return names


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for each in text.split(","):
        key, _, value = each.partition("=")
        if trim_space(key):
            pairs[trim_space(key)] = trim_space(value)
    return pairs


FLAGS: Final[dict[str, Flag]] = {
    "data-dir": Flag("data_dir", _folder, "folder of the data, keys and kubeconfig"),
    "storage": Flag("storage", _storage, "sqlite (in the folder) or memory (gone at the end)"),
    "unsafe-no-fsync": Flag("unsafe_no_fsync", _boolean, "let a power cut take the last writes", boolean=True),
    "bind-address": Flag("bind_address", _address, "address to listen on"),
    "secure-port": Flag("secure_port", _port, "port to listen on, 0 for a free one"),
    "advertise-address": Flag("advertise_address", _address, "address by which others reach this server"),
    "tls-cert-file": Flag("tls_cert_file", _file, "serving certificate, PEM"),
    "tls-private-key-file": Flag("tls_private_key_file", _file, "key of --tls-cert-file"),
    "tls-sni-cert-key": Flag("tls_sni_cert_key", _one, "CERT,KEY[:NAME,...] for server names", repeats=True),
    "tls-min-version": Flag("tls_min_version", str, "VersionTLS12 or VersionTLS13"),
    "tls-cipher-suites": Flag("tls_cipher_suites", _names, "suites of TLS 1.2, by upstream's or OpenSSL's names", True),
    "client-ca-file": Flag("client_ca_file", _file, "CA of client certificates, PEM"),
    "requestheader-client-ca-file": Flag(
        "requestheader_client_ca_file", _file, "CA of proxies whose headers say who sends a request, PEM"
    ),
    "requestheader-allowed-names": Flag(
        "requestheader_allowed_names", _header_names, "common names of these proxies, none for any", repeats=True
    ),
    "requestheader-username-headers": Flag(
        "requestheader_username_headers", _header_names, "headers of user names", repeats=True
    ),
    "requestheader-uid-headers": Flag("requestheader_uid_headers", _header_names, "headers of users' uids", True),
    "requestheader-group-headers": Flag("requestheader_group_headers", _header_names, "headers of groups", True),
    "requestheader-extra-headers-prefix": Flag(
        "requestheader_extra_headers_prefix", _header_names, "how headers of extra fields begin", repeats=True
    ),
    "proxy-client-cert-file": Flag("proxy_client_cert_file", _file, "shown to aggregated servers, PEM"),
    "proxy-client-key-file": Flag("proxy_client_key_file", _file, "key of --proxy-client-cert-file"),
    "enable-aggregator-routing": Flag(
        "enable_aggregator_routing", _boolean, "reach aggregated servers and webhooks at endpoints only", boolean=True
    ),
    "aggregator-reject-forwarding-redirect": Flag(
        "aggregator_reject_forwarding_redirect", _boolean, "answer 502 for redirects of aggregated servers",
        boolean=True,
    ),
    "token-auth-file": Flag("token_auth_file", _file, "CSV of token,user,uid,\"groups\""),
    "anonymous-auth": Flag("anonymous_auth", _boolean, "let requests without credentials in", boolean=True),
    "authorization-mode": Flag("authorization_mode", _modes, "RBAC, AlwaysAllow, AlwaysDeny, in order", True),
    "service-cluster-ip-range": Flag("service_cluster_ip_range", str, "CIDR of service addresses"),
    "service-node-port-range": Flag("service_node_port_range", str, "FIRST-LAST node port"),
    "enable-admission-plugins": Flag("enable_admission_plugins", _plugins, "plugins beside the default ones", True),
    "disable-admission-plugins": Flag("disable_admission_plugins", _plugins, "default plugins to leave out", True),
    "admission-control-config-file": Flag("admission_control_config_file", str, "what plugins are configured with"),
    "max-requests-inflight": Flag("max_requests_inflight", _number, "read-only requests at a time"),
    "max-mutating-requests-inflight": Flag("max_mutating_requests_inflight", _number, "writing requests at a time"),
    "request-timeout": Flag("request_timeout", _seconds, "longest time of a request, e.g. 1m0s"),
    "min-request-timeout": Flag("min_request_timeout", _number, "shortest default time of a watch, seconds"),
    "service-account-issuer": Flag("service_account_issuer", _issuer, "issuer of service account tokens", repeats=True),
    "service-account-signing-key-file": Flag("service_account_signing_key_file", _file, "key that signs tokens"),
    "service-account-key-file": Flag("service_account_key_file", _one_file, "keys that verify tokens", repeats=True),
    "service-account-jwks-uri": Flag("service_account_jwks_uri", str, "address of the keys in OpenID discovery"),
    "service-account-max-token-expiration": Flag(
        "service_account_max_token_expiration", _token_expiration, "longest life of a requested token, 0s for any"
    ),
    "service-account-extend-token-expiration": Flag(
        "service_account_extend_token_expiration", _boolean, "let tokens in pods live for a year", boolean=True
    ),
    "api-audiences": Flag("api_audiences", _names, "audiences of tokens for this server", True),
    "allow-privileged": Flag("allow_privileged", _boolean, "allow privileged containers", boolean=True),
    "event-ttl": Flag("event_ttl", _whole_seconds, "how long events are kept"),
    "goaway-chance": Flag("goaway_chance", _chance, "chance that a request ends its HTTP/2 connection"),
    "cors-allowed-origins": Flag("cors_allowed_origins", _patterns, "regular expressions of allowed origins", True),
    "strict-transport-security-directives": Flag(
        "strict_transport_security_directives", _names, "HSTS directives", repeats=True
    ),
    "shutdown-delay-duration": Flag("shutdown_delay_duration", _seconds, "time between not ready and not serving"),
    "shutdown-send-retry-after": Flag("shutdown_send_retry_after", _boolean, "429 while draining", boolean=True),
    "profiling": Flag("profiling", _boolean, "serve /debug/pprof", boolean=True),
    "runtime-config": Flag("runtime_config", _pairs, "group versions to serve, e.g. api/all=true", True),
    "default-not-ready-toleration-seconds": Flag("default_not_ready_toleration_seconds", _number, "of new pods"),
    "default-unreachable-toleration-seconds": Flag("default_unreachable_toleration_seconds", _number, "of new pods"),
    "etcd-compaction-interval": Flag("etcd_compaction_interval", _seconds, "time between compactions, 0 for never"),
    "kubelet-preferred-address-types": Flag(
        "kubelet_preferred_address_types", _names, "types of node addresses, in order of preference", repeats=True
    ),
    "kubelet-client-certificate": Flag("kubelet_client_certificate", _file, "shown to kubelets, PEM"),
    "kubelet-client-key": Flag("kubelet_client_key", _file, "key of --kubelet-client-certificate"),
    "kubelet-certificate-authority": Flag("kubelet_certificate_authority", _file, "CA of kubelets, PEM"),
    "kubelet-port": Flag("kubelet_port", _port, "of nodes that tell none"),
    "kubelet-read-only-port": Flag("kubelet_read_only_port", _port, "has no effect"),
    "kubelet-timeout": Flag("kubelet_timeout", _seconds, "has no effect"),
    "controllers": Flag("controllers", _controllers, "kube-controller-manager's to run here: * for all", repeats=True),
    "debug-loop-watchdog": Flag("debug_loop_watchdog", _seconds, "log what holds the event loop longer, 0s for never"),
    "v": Flag("verbosity", _number, "log level, 3 logs every request"),
}  # fmt: skip


def parse(arguments: list[str], data_dir: Path) -> Options:
    """Options from a command line. Raises OptionsError: every flag is known, or the start ends here."""
    values: dict[str, Any] = {"data_dir": data_dir}
    for name, value, _ in arguments_by_flag(arguments):
        flag = _lookup(name)
        try:
            read = flag.read(value)
        except ValueError as error:
            raise OptionsError(f"--{name}: {error}") from None
        before = values.get(flag.option) if flag.repeats else None
        if before is not None:
            read = before | read if isinstance(read, dict) else before + read
        values[flag.option] = read
    options = Options(**values)
    check(options)
    return options


def arguments_by_flag(arguments: list[str], more_booleans: Container[str] = ()) -> Iterator[tuple[str, str, list[str]]]:
    """Of each flag its name, with `-` for `_`, its value, and the arguments it was given by. Raises OptionsError.

    `more_booleans` are names of flags beside those here that may be given without a value.
    """
    waiting = iter(arguments)
    for text in waiting:
        if not text.startswith("-") or text in ("-", "--"):
            raise OptionsError(f"unexpected argument {text!r}")
        name, given, value = _split(text)
        name = name.replace("_", "-")
        used = [text]
        if not given:
            flag = FLAGS.get(name)
            if name in more_booleans or (flag is not None and flag.boolean):
                value = "true"
            elif (following := next(waiting, None)) is not None:
                used.append(value := following)
            else:
                _lookup(name)
                raise OptionsError(f"--{name} needs a value")
        yield name, value, used


def _split(text: str) -> tuple[str, str, str]:
    """The name of the flag, something if a value comes with it, and that value. Raises OptionsError."""
    if not text.startswith("--"):
        if text[1] != "v":
            raise OptionsError(f"unknown shorthand flag: {text[1]!r} in {text}")
        return "v", text[2:], text[2:].removeprefix("=")
    if text[2] in "-=":
        raise OptionsError(f"bad flag syntax: {text}")
    return text[2:].partition("=")


def _lookup(name: str) -> Flag:
    flag = FLAGS.get(name)
    if flag is not None:
        return flag
    from steersman.cli.known_flags import KNOWN

    if name in KNOWN:
        raise OptionsError(f"not supported yet: --{name}")
    near = get_close_matches(name, [*FLAGS, *KNOWN], 1)
    hint = f", did you mean --{near[0]}?" if near else ""
    raise OptionsError(f"unknown flag: --{name}{hint}")


def check(options: Options) -> None:
    """What no single flag can tell. Raises OptionsError."""
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise OptionsError("--tls-cert-file and --tls-private-key-file go together")
    if len(set(options.authorization_mode)) != len(options.authorization_mode):
        raise OptionsError("--authorization-mode: modes must be given, each once")
    if bool(options.kubelet_client_certificate) != bool(options.kubelet_client_key):
        raise OptionsError("--kubelet-client-certificate and --kubelet-client-key go together")
    from steersman.cli.known_flags import ADMISSION_PLUGINS
    from steersman.controlplane.admission import NOTHING_TO_ADMIT, PLUGINS
    from steersman.controlplane.runtime_config import RuntimeConfig

    for name in (*options.enable_admission_plugins, *options.disable_admission_plugins):
        if name not in ADMISSION_PLUGINS:
            raise OptionsError(f"unknown admission plugin {name!r}")
    both = sorted({*options.enable_admission_plugins} & {*options.disable_admission_plugins})
    if both:
        raise OptionsError(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    there = {*NOTHING_TO_ADMIT, *(each.name for each in PLUGINS)}
    for name in options.enable_admission_plugins:
        if name not in there:
            raise OptionsError(f"not supported yet: --enable-admission-plugins={name}")
    RuntimeConfig(options.runtime_config)
