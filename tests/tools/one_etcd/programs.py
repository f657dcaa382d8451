"""What servers on one etcd need on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tools.one_etcd.servers import KUBERNETES
from tools.stored_values.servers import program


def needed(servers: Sequence[str], *others: str) -> None:
    """Skips the test where there is no etcd, no kube-apiserver if one is asked for, or none of other programs."""
    for name in ("etcd", *(["kube-apiserver"] if KUBERNETES in servers else []), *others):
        try:
            program(name)
        except LookupError as error:
            pytest.skip(str(error))
