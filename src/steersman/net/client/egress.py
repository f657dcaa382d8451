"""Routes of outgoing requests by the network of their destination (apiserver `egressselector`)."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from steersman.net.upgrade import UpgradedConnection

Dial = Callable[[str, int, ssl.SSLContext | None, str], Awaitable[UpgradedConnection]]
"""(host, port, TLS, server name) -> a connection to the host, with TLS if a context is given. Raises DialError."""


class Egress(Struct, frozen=True):
    """The dialer for each kind of traffic; None for the usual one.

    Upstream's third kind, etcd, is not needed, as no storage is behind a network here.
    """

    cluster: Dial | None = None
    """Dialer to nodes, pods and Services, and to servers behind these."""
    control_plane: Dial | None = None
    """Dialer to webhooks by URL and to other servers that flags name."""
    is_given: bool = False
    """True if an egress configuration was given."""


USUAL: Final = Egress()
"""Egress without a configuration."""
