"""Connections of this server to kubelets: address, port and TLS.

Follows pkg/kubelet/client (NodeConnectionInfoGetter) and the --kubelet-* flags.
"""

from __future__ import annotations

import logging
import os
import ssl
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.go.strings import to_lower
from steersman.net.client.tls import HTTP2, Protocols, client_context
from steersman.work.followed_files import FollowedFiles

if TYPE_CHECKING:  # a server without nodes and pods never connects to a kubelet
    from steersman.net.client.egress import Dial
    from steersman.net.client.transport import Nearby, Transport, Way

logger = logging.getLogger(__name__)

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
KUBELET_PORT: Final = 10250


class KubeletConnection(Struct, frozen=True, kw_only=True):
    """Settings of connections to kubelets. The files are PEM and are read again when they change.

    Without a certificate authority the certificates of kubelets are not verified.
    """

    address_types: tuple[str, ...] = ADDRESS_TYPES
    """The address types of a node in order of preference; the first type that the node has is used."""
    default_port: int = KUBELET_PORT
    """The port for a node that reports none."""
    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    nearby: Nearby | None = None
    """Resolves kubelets that are in this process and not on the network."""
    leave: Dial | None = None
    """Dials connections to all other kubelets; None for a direct connection."""
    _contexts: dict[tuple[bool, Protocols], FollowedFiles[ssl.SSLContext]] = field(default_factory=dict)
    _transports: dict[bool, Transport] = field(default_factory=dict)

    def host(self, node: Node) -> str:
        """Return the host at which the node's kubelet is reached. Raises StatusError 500 if the node has no address."""
        addresses = node.status.addresses
        for type_ in self.address_types:
            for address in addresses:
                if address.type == type_:
                    return address.address
        known = " ".join(f"{{{address.type} {address.address}}}" for address in addresses)
        raise plain_internal(f"no preferred addresses found; known addresses: [{known}]")

    def port(self, node: Node) -> int:
        """Return the port on which the node's kubelet listens."""
        reported = node.status.daemon_endpoints.kubelet_endpoint.port
        return reported if reported > 0 else self.default_port

    def transport(self, *, verify: bool = True) -> Transport:
        """Return the transport for requests to kubelets. Raises StatusError 500 if a file cannot be used."""
        from steersman.net.client.transport import Transport

        verify = verify and bool(self.certificate_authority)
        self._tls(verify, HTTP2)
        if verify not in self._transports:
            self._transports[verify] = Transport(
                partial(self._tls, verify), protocols=HTTP2, nearby=self.nearby, leave=self.leave
            )
        return self._transports[verify]

    def close(self) -> None:
        """Close the idle connections."""
        for each in self._transports.values():
            each.close()

    def _tls(self, verify: bool, protocols: Protocols) -> ssl.SSLContext:
        try:
            contexts = self._contexts.get((verify, protocols))
            if contexts is None:
                names = self.client_certificate, self.client_key, self.certificate_authority if verify else ""
                contexts = self._contexts[verify, protocols] = FollowedFiles(
                    [each for each in names if each], partial(self._load, protocols, verify=verify), _refused
                )
            return contexts.current()
        except ssl.SSLError:
            raise plain_internal("tls: the certificates or keys for kubelets cannot be used") from None
        except OSError as error:
            why = to_lower(os.strerror(error.errno or 0))
            raise plain_internal(f"open {error.filename or 'the files for kubelets'}: {why}") from None

    def _load(self, protocols: Protocols, *, verify: bool) -> ssl.SSLContext:
        context = client_context(protocols, insecure=not verify)
        if verify:
            context.load_verify_locations(cafile=self.certificate_authority)
        if self.client_certificate:
            context.load_cert_chain(self.client_certificate, self.client_key)
        return context


def _refused(error: Exception) -> None:
    logger.error("the files for kubelets cannot be used, the previous files stay in use: %s", error)


@cache
def _any_server(protocols: Protocols) -> ssl.SSLContext:
    return client_context(protocols, insecure=True)


class ProxyConnection:
    """Connections to pods, services and other ports of nodes.

    No client certificate is sent, and any server certificate is accepted, as the targets are reached by IP address.
    """

    def __init__(self, nearby: Nearby | None = None, leave: Dial | None = None) -> None:
        """Create the settings; for both arguments see KubeletConnection."""
        self._nearby = nearby
        self._leave = leave
        self._transport: Transport | None = None

    def transport(self) -> Transport:
        """Return the transport for requests to these targets."""
        from steersman.net.client.transport import Transport

        if self._transport is None:
            self._transport = Transport(_any_server, protocols=HTTP2, nearby=self._nearby, leave=self._leave)
        return self._transport

    def way(self, host: str, port: int) -> Way | None:
        """Return the route to an address that is not on the network; None for an address that is."""
        from steersman.net.client.transport import Address

        return None if self._nearby is None else self._nearby(Address(host, port))

    def close(self) -> None:
        """Close the idle connections."""
        if self._transport is not None:
            self._transport.close()
