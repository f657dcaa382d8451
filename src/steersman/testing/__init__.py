"""API servers for tests, as envtest gives them to programs in Go: start one, ask it as several users, end it.

`Environment` is a server in this process; `Client` asks it without a socket, on the same event loop. `ServerProcess` is
`steersman serve` in a process of its own, which can be killed; `BlockingClient` asks it over TLS. Both serve what
`steersman serve` serves. Nothing here needs a test framework, and no server imports it. See docs/testing.md.
"""

from steersman.testing.client import Answer, Client
from steersman.testing.environment import ADMIN, Environment, User
from steersman.testing.server_process import WITHOUT_ACCOUNTS, BlockingClient, ServerNotReady, ServerProcess

__all__ = [
    "ADMIN",
    "WITHOUT_ACCOUNTS",
    "Answer",
    "BlockingClient",
    "Client",
    "Environment",
    "ServerNotReady",
    "ServerProcess",
    "User",
]
