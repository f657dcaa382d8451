"""Programs that servers on one etcd need on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tools.one_etcd.servers import KUBERNETES
from tools.stored_values.servers import program


def needed(servers: Sequence[str], *others: str) -> None:
    """Skip the test if etcd, kube-apiserver (if `servers` has it), or one of the other programs is missing."""
    for name in ("etcd", *(["kube-apiserver"] if KUBERNETES in servers else []), *others):
        try:
            program(name)
        except LookupError as error:
            pytest.skip(str(error))
