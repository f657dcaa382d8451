"""By which ways requests to other servers leave, by the network that these are in (apiserver `egressselector`)."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from steersman.net.upgrade import UpgradedConnection

Dial = Callable[[str, int, ssl.SSLContext | None, str], Awaitable[UpgradedConnection]]
"""(host, port, TLS, server name) -> a connection to the host, with TLS if there is a context. Raises DialError."""


class Egress(Struct, frozen=True):
    """How each kind of traffic leaves; None for as usual. Nothing here is stored behind a network, so that there is no
    use for a third one, which upstream calls etcd."""

    cluster: Dial | None = None
    """To nodes, pods and Services, and to servers behind these."""
    control_plane: Dial | None = None
    """To webhooks by URL and others that flags name."""
    is_given: bool = False
    """Whether somebody has said so."""


USUAL: Final = Egress()
"""As nobody has said anything else."""
