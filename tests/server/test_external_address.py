"""The external address of a server."""

from __future__ import annotations

from typing import Any

from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.server.config import Config
from steersman.server.server import ExternalAddress, Server


def server_at(**options: Any) -> Server:
    return Server(
        Config(authenticator=AnonymousAuthenticator(), authorizer=AlwaysAllowAuthorizer(), **options).complete()
    )


async def test_a_free_port_is_told_once_it_is_taken() -> None:
    server = server_at(bind_address="127.0.0.1", port=0, external_host="192.0.2.1")
    assert server.external_address == ExternalAddress("192.0.2.1", 0)
    server.prepare_run()
    _, port = await server.start()
    assert str(server.external_address) == f"192.0.2.1:{port}"
    await server.stop()
    server.config.executor.shutdown()


def test_without_a_name_it_is_where_the_server_binds() -> None:
    assert server_at(bind_address="192.0.2.7", port=6443).external_address == ExternalAddress("192.0.2.7", 6443)
