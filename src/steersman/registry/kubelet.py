"""How this server connects to kubelets: which address and port of a node, and with which TLS.

Follows pkg/kubelet/client (NodeConnectionInfoGetter) and the --kubelet-* flags.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from typing import Final

from steersman.api.core.v1 import Node
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.go.strings import to_lower
from steersman.net.client.verification import judge_as_go

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
KUBELET_PORT: Final = 10250


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConnection:
    """The files are PEM, read anew when they have changed. Without a CA kubelets' certificates are not verified."""

    address_types: tuple[str, ...] = ADDRESS_TYPES
    """In which order the addresses of a node are tried; the first that it has is taken."""
    default_port: int = KUBELET_PORT
    """For a node that tells none."""
    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    _contexts: dict[bool, tuple[tuple[float, ...], ssl.SSLContext]] = field(default_factory=dict, repr=False)

    def host(self, node: Node) -> str:
        """Where the node's kubelet is reached. Raises StatusError 500 if the node has no address."""
        addresses = node.status.addresses
        for type_ in self.address_types:
            for address in addresses:
                if address.type == type_:
                    return address.address
        known = " ".join(f"{{{address.type} {address.address}}}" for address in addresses)
        raise plain_internal(f"no preferred addresses found; known addresses: [{known}]")

    def port(self, node: Node) -> int:
        """Which port the node's kubelet listens on."""
        told = node.status.daemon_endpoints.kubelet_endpoint.port
        return told if told > 0 else self.default_port

    def tls(self, *, verify: bool = True) -> ssl.SSLContext:
        """The TLS for kubelets, with the client certificate. Raises StatusError 500 if a file cannot be used."""
        verify = verify and bool(self.certificate_authority)
        try:
            stamp = tuple(
                os.stat(name).st_mtime
                for name in (self.client_certificate, self.client_key, self.certificate_authority if verify else "")
                if name
            )
            kept = self._contexts.get(verify)
            if kept is None or kept[0] != stamp:
                kept = self._contexts[verify] = stamp, self._load(verify=verify)
        except ssl.SSLError:
            raise plain_internal("tls: the certificates or keys for kubelets cannot be used") from None
        except OSError as error:
            why = to_lower(os.strerror(error.errno or 0))
            raise plain_internal(f"open {error.filename or 'the files for kubelets'}: {why}") from None
        return kept[1]

    def _load(self, *, verify: bool) -> ssl.SSLContext:
        context = unverified_tls()
        if verify:
            context.check_hostname = True
            judge_as_go(context)
            context.load_verify_locations(cafile=self.certificate_authority)
        if self.client_certificate:
            context.load_cert_chain(self.client_certificate, self.client_key)
        return context


def unverified_tls() -> ssl.SSLContext:
    """TLS that takes any certificate, as for pods and services: they are reached by address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
