"""Kubeconfigs of users: with exec plugins, impersonation and proxies, as kubectl supports them."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import quote
from steersman.machinery.go.urls import redacted_url
from steersman.net.client.proxy_environment import Proxy
from steersman.net.client.tls import HTTP1, HTTP2
from steersman.webhooks.kubeconfig import (
    Endpoint,
    KubeconfigError,
    Selected,
    always_with,
    authority_of,
    client_tls,
    endpoint_of,
    select,
)
from steersman.webhooks.kubeconfig_types import AuthInfo, Cluster, ExecConfig, ExecPlugin

EXEC_GROUP: Final = "client.authentication.k8s.io"
NEVER: Final = "Never"
IF_AVAILABLE: Final = "IfAvailable"
ALWAYS: Final = "Always"
_MODES: Final = frozenset({NEVER, IF_AVAILABLE, ALWAYS})
_VERSIONS: Final = frozenset({f"{EXEC_GROUP}/v1", f"{EXEC_GROUP}/v1beta1"})
_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Name of the cluster's extension that a plugin gets."""
_PROXY_PORTS: Final = {"http": 80, "https": 443}
_TOKEN: Final = frozenset(b"!#$&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
"""Bytes that need no escape in the name of a header field."""


def load_kubeconfigs(paths: Sequence[Path], context: str = "") -> Endpoint:
    """Return the server of a context with its user's credentials; of an item in several files the first counts.

    Without `context` the current context of the first file that has one applies. Raises KubeconfigError.
    """
    found = select(paths, context)
    cluster, user, name = found.cluster, found.user, found.context.user
    _check(user, name)
    endpoint = endpoint_of(found)
    authority, insecure = authority_of(found), cluster.insecure_skip_tls_verify
    more: dict[str, Any] = {"impersonation": tuple(_impersonation(user))}
    if cluster.proxy_url:
        more["proxy"] = _proxy(cluster.proxy_url, authority, insecure=insecure)
    if user.exec is not None:
        more["plugin"] = _plugin(user.exec, name, found, endpoint.url, authority)
        more["tls_with"] = lambda certificate, key: always_with(
            client_tls(authority, certificate, key, insecure=insecure, protocols=HTTP2)
        )
    return msgspec.structs.replace(endpoint, **more)


def _check(user: AuthInfo, name: str) -> None:
    """Raise KubeconfigError for a user that cannot be used."""
    fault = ""
    if user.auth_provider is not None:
        if user.exec is not None:
            fault = f"authProvider cannot be provided in combination with an exec plugin for {name}"
        else:  # removed from client-go but for oidc; a plugin replaces it
            raise KubeconfigError(
                f"no Auth Provider found for name {quote(user.auth_provider.name)}: use an exec plugin"
            )
    elif user.exec is not None:
        fault = _fault_of_plugin(user.exec, name)
    if not fault and (user.as_uid or user.as_groups or user.as_user_extra) and not user.as_:
        fault = f"requesting uid, groups or user-extra for {name} without impersonating a user"
    if fault:
        raise KubeconfigError(f"invalid configuration: {fault}")


def _fault_of_plugin(config: ExecConfig, name: str) -> str:
    missing = f"must be specified for {name} to use exec authentication plugin"
    if not config.command:
        return f"command {missing}"
    if not config.api_version:
        return f"apiVersion {missing}"
    if any(not each.name for each in config.env):
        return f"env variable name {missing}"
    if not config.interactive_mode:
        return "" if config.api_version.endswith("/v1beta1") else f"interactiveMode {missing}"
    if config.interactive_mode not in _MODES:
        return f"invalid interactiveMode for {name}: {quote(config.interactive_mode)}"
    return ""


def _plugin(config: ExecConfig, name: str, found: Selected, server: str, authority: bytes) -> ExecPlugin:
    """Return the plugin of a user. A command with a separator is relative to the folder of its kubeconfig."""
    if config.api_version not in _VERSIONS:
        raise KubeconfigError(f"exec plugin: invalid apiVersion {quote(config.api_version)}")
    command = config.command
    if os.sep in command:
        command = str(found.user_path.absolute().parent / command)
    return ExecPlugin(
        command,
        tuple(config.args),
        tuple((each.name, each.value) for each in config.env),
        config.api_version,
        config.interactive_mode or IF_AVAILABLE,
        config.install_hint,
        _cluster(found.cluster, server, authority) if config.provide_cluster_info else b"",
    )


def _cluster(cluster: Cluster, server: str, authority: bytes) -> bytes:
    """Return the cluster for a plugin in JSON."""
    known: dict[str, Any] = {
        "server": server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    config = next((each.extension for each in cluster.extensions if each.name == _EXTENSION), None)
    if config is not None:
        known["config"] = msgspec.Raw(bytes(config))
    return encode_in_order({key: value for key, value in known.items() if value})


def _impersonation(user: AuthInfo) -> Iterator[tuple[str, str]]:
    """Yield the header fields of client-go's ImpersonatingRoundTripper."""
    if not user.as_:
        return
    yield "impersonate-user", user.as_
    if user.as_uid:
        yield "impersonate-uid", user.as_uid
    for group in user.as_groups:
        yield "impersonate-group", group
    for key, values in user.as_user_extra.items():
        for value in values:
            yield f"impersonate-extra-{_escaped(key)}", value


def _escaped(key: str) -> str:
    """Return a key of extra data as the end of a header field's name."""
    return "".join(chr(each) if each in _TOKEN else f"%{each:02X}" for each in key.encode())


def _proxy(text: str, authority: bytes, *, insecure: bool) -> Proxy:
    """Return the proxy of a cluster. Raises KubeconfigError.

    A proxy over TLS is trusted by the authority of the cluster, as in client-go.
    """
    try:
        url = urlsplit(text)
        port, scheme = url.port, url.scheme
    except ValueError:
        raise KubeconfigError(f"failed to parse proxy-url {quote(redacted_url(text))}") from None
    if scheme == "socks5":
        raise KubeconfigError(f"not supported: the SOCKS proxy {quote(redacted_url(text))}, use an HTTP proxy")
    if scheme not in _PROXY_PORTS:
        raise KubeconfigError(f"unsupported scheme {quote(scheme)}, must be http, https, or socks5")
    if not url.hostname:
        raise KubeconfigError(f"the proxy-url {quote(redacted_url(text))} has no host")
    tls = client_tls(authority, insecure=insecure, protocols=HTTP1) if scheme == "https" else None
    return Proxy(
        url.hostname,
        port or _PROXY_PORTS[scheme],
        tls is not None,
        None if url.username is None else unquote(url.username),
        unquote(url.password or ""),
        tls,
    )
