"""API servers for tests, as envtest provides them for Go: start a server, send requests as several users, stop it.

`Environment` is a server in this process, on the event loop of the test; `Client` sends requests to it without a
socket. `ThreadedEnvironment` is the same for tests that block: it runs on an event loop in a thread of its own, and
listens. The fixtures of `pytest_plugin` provide such environments. `ServerProcess` is `steersman serve` in a process of
its own, which can be killed; `BlockingClient` sends requests to it over TLS. All serve what `steersman serve` serves.
No server imports this package. See docs/testing.md.

Modules are imported on demand, as pytest imports this package at every start where it is installed.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.testing.blocking_client import BlockingClient
    from steersman.testing.client import Answer, Client
    from steersman.testing.clock import Clock
    from steersman.testing.definitions import NotEstablished
    from steersman.testing.environment import Environment
    from steersman.testing.keys import copy_keys as copy_keys
    from steersman.testing.keys import make_keys as make_keys
    from steersman.testing.many import Clusters, ThreadedClusters, clusters, threaded_clusters
    from steersman.testing.pool import Pool as Pool
    from steersman.testing.server_process import WITHOUT_ACCOUNTS, ServerNotReady, ServerProcess
    from steersman.testing.threaded_environment import BlockingClock, ThreadedEnvironment
    from steersman.testing.users import ADMIN, User
    from steersman.testing.waiting import NotReached

__all__ = [
    "ADMIN",
    "WITHOUT_ACCOUNTS",
    "Answer",
    "BlockingClient",
    "BlockingClock",
    "Client",
    "Clock",
    "Clusters",
    "Environment",
    "NotEstablished",
    "NotReached",
    "ServerNotReady",
    "ServerProcess",
    "ThreadedClusters",
    "ThreadedEnvironment",
    "User",
    "clusters",
    "threaded_clusters",
]

_MODULES = {
    "blocking_client": ("BlockingClient",),
    "client": ("Answer", "Client"),
    "clock": ("Clock",),
    "definitions": ("NotEstablished",),
    "environment": ("Environment",),
    "keys": ("copy_keys", "make_keys"),
    "server_process": ("WITHOUT_ACCOUNTS", "ServerNotReady", "ServerProcess"),
    "many": ("Clusters", "ThreadedClusters", "clusters", "threaded_clusters"),
    "pool": ("Pool",),
    "threaded_environment": ("BlockingClock", "ThreadedEnvironment"),
    "users": ("ADMIN", "User"),
    "waiting": ("NotReached",),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first used (PEP 562)."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(imported(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def imported(name: str) -> ModuleType:
    """Import a module quickly and return it.

    pytest recompiles modules of packages with plugins, for more detailed assertions, which takes a second for a
    server's modules; this is bypassed. Garbage collection is off meanwhile, as it would walk all imported objects
    repeatedly.
    """
    finders = sys.meta_path
    sys.meta_path = [each for each in finders if type(each).__module__ != "_pytest.assertion.rewrite"]
    try:
        from steersman.work.no_collections import no_collections

        with no_collections():
            return import_module(name)
    finally:
        sys.meta_path = finders


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
