"""The parts of a library's server, put together: what its own resources need of a control plane, and no more.

Beside them it serves namespaces, and the resources by which rights are granted and asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steersman.admission.interface import Chain
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.bearer_token import BearerTokenAuthenticator
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import TokenAuthenticator
from steersman.authentication.token_file import StaticTokens, TokenFileError
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authorization.bootstrap_policy import BootstrapPolicy, load_bootstrap_policy
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.addresses import advertised_address, listen, reachable_address
from steersman.controlplane.authorizers import Judges, judges
from steersman.controlplane.data_folder import certificate_files, make_data_folder, open_storage
from steersman.controlplane.given_files import serving_tls
from steersman.controlplane.initial_objects import ensure, reconcile_policy
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.rbac_feed import feed
from steersman.controlplane.stores import Stores
from steersman.library.custom import check_definition, resource_of_declaration
from steersman.library.declaration import Declaration
from steersman.library.namespaces import NamespaceDeletion
from steersman.machinery.errors.status import forbidden
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work import nesting
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import write_whole
from steersman.net.message import Handler
from steersman.net.tls import ServerTLS
from steersman.openapi.first_use import OpenAPIOnFirstUse
from steersman.registry.authentication.group import AUTHENTICATION
from steersman.registry.authorization.group import AUTHORIZATION
from steersman.registry.core.namespaces import NAMESPACES
from steersman.registry.rbac.group import RBAC
from steersman.registry.services import Services
from steersman.rest.bound import bind
from steersman.rest.objects import Reading
from steersman.rest.resource import Resource
from steersman.server.basic_paths import install_basic_paths
from steersman.server.certificates import admin_kubeconfig
from steersman.server.config import Config, new_executor
from steersman.server.discovery import Discovery
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.interface import Storage

_BUILT_IN: Final[tuple[Resource[Any, Services], ...]] = (
    NAMESPACES, *AUTHENTICATION.resources, *AUTHORIZATION.resources, *RBAC.resources
)  # fmt: skip
_NAMESPACE: Final = "default"
_ROLES: Final = frozenset({
    "admin", "cluster-admin", "edit", "view", "system:basic-user", "system:discovery", "system:public-info-viewer",
})  # fmt: skip
"""The roles of every cluster that are not of Kubernetes' own components."""
_Serves = Callable[[str, str, str], bool]
"""(group, version, plural) -> whether it is served."""
_PHASE: Final[Reading[str]] = Reading(lambda namespace: namespace.status.phase, "status.phase")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that has started, and where it is reached."""

    server: Server
    bind_address: str

    @property
    def url(self) -> str:
        """For clients on this host."""
        return f"https://{reachable_address(self.bind_address)}:{self.server.external_address.port}"

    @property
    def handler(self) -> Handler:
        """The whole server as a handler of HTTP requests."""
        return self.server.handler


async def start_server(
    settings: dict[str, Any], declarations: Sequence[Declaration], kubeconfig: Path, running: AsyncExitStack
) -> RunningServer:  # fmt: skip
    """Serves declared resources. `settings` are fields of Options; the administrator's `kubeconfig` is written if it
    listens. `running` ends what runs. Raises what Server.start of the library does."""
    nesting.make_room()
    options = Options(**settings)
    make_data_folder(options)
    storage = await open_storage(options)
    running.push_async_callback(storage.close)
    files = certificate_files(options, advertised_address(options.bind_address))
    server = await Parts(options, storage, declarations, running).made(serving_tls(options, files))
    started = RunningServer(server, options.bind_address)
    if options.listen:
        await listen(server, options)
    await server.run_post_start_hooks()
    if options.listen:
        write_whole(kubeconfig, admin_kubeconfig(started.url, files))
    return started


class Parts:
    """Makes one part after the other. `running` ends those that run, the last of them first."""

    def __init__(
        self, options: Options, storage: Storage, declarations: Sequence[Declaration], running: AsyncExitStack
    ) -> None:  # fmt: skip
        self._options = options
        self._storage = storage
        self._declarations = declarations
        self._running = running
        self._lane = SlowLane()
        self._stores = Stores(storage, self._lane)

    async def made(self, tls: ServerTLS) -> Server:
        """The server, which does not listen yet. Raises OptionsError, DefinitionError."""
        options, running, lane, stores = self._options, self._running, self._lane, self._stores
        executor, registry, mapper = new_executor(), Registry(), RESTMapper()
        running.callback(lane.close)
        running.callback(executor.shutdown, wait=False, cancel_futures=True)
        running.push_async_callback(stores.stop)
        for each in self._declarations:
            check_definition(each)
        tokens = _tokens(options)
        rights = judges(options, lane)
        services = _services(options, stores, rights, tokens, lane)
        resources: list[tuple[Resource[Any, Services], _Serves]] = [(each, _serves_v1) for each in _BUILT_IN]
        resources += [(resource_of_declaration(each, lane), each.serves) for each in self._declarations]
        bound = [(bind(each, services), serves) for each, serves in resources]
        served = [(each, stores.add(each), serves) for each, serves in bound]
        await stores.start()
        feed(rights.roles, stores.store, lane)
        namespaces = stores.objects("", "namespaces")
        admission = Chain((NamespaceLifecycle(lambda name: namespaces.known("", name, _PHASE)),))
        running.callback(admission.close)
        deletion = NamespaceDeletion(stores)
        running.push_async_callback(deletion.stop)
        config = Config(
            authenticator=UnionAuthenticator(
                [ClientCertificateAuthenticator(), BearerTokenAuthenticator(tokens, options.audiences)],
                AnonymousAuthenticator() if options.anonymous_auth else None,
            ),
            authorizer=rights.authorizer, admission=admission, bind_address=options.bind_address,
            port=options.secure_port, tls=tls, mapper=mapper, registry=registry, executor=executor, slow_lane=lane,
            profiling=False,
        )  # fmt: skip
        server = Server(config.complete())
        for resource, implementation, serves in served:
            server.catalogue.put(resource, implementation, serves=serves)
        running.push_async_callback(server.stop)
        server.add_checks(HealthCheck("storage", lambda: self._storage.refusal or None))
        server.add_post_start_hook("rbac/bootstrap-roles", self._roles)
        server.add_post_start_hook("default-namespace", self._namespace)
        server.add_post_start_hook("namespace-deletion", _soon(deletion.start))
        server.prepare_run()
        Discovery(server).install()
        OpenAPIOnFirstUse(server).install()
        install_basic_paths(server)
        return server

    async def _roles(self) -> None:
        await reconcile_policy(self._stores.objects, _policy())

    async def _namespace(self) -> None:
        await ensure(self._stores.objects("", "namespaces"), Namespace(metadata=ObjectMeta(name=_NAMESPACE)))


def _soon(begin: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def hook() -> None:
        begin()

    return hook


def _serves_v1(group: str, version: str, plural: str) -> bool:
    return version == "v1"


def _policy() -> BootstrapPolicy:
    policy = load_bootstrap_policy()
    return BootstrapPolicy(
        cluster_roles=tuple(each for each in policy.cluster_roles if each.metadata.name in _ROLES),
        cluster_role_bindings=tuple(
            each for each in policy.cluster_role_bindings if each.metadata.name in _ROLES
        ),
        roles=(),
        role_bindings=(),
    )  # fmt: skip


def _tokens(options: Options) -> TokenAuthenticator:
    if not options.token_auth_file:
        return UnionTokenAuthenticator([])
    try:
        return UnionTokenAuthenticator([StaticTokens.load(options.token_auth_file, options.audiences)])
    except TokenFileError as error:
        raise OptionsError(f"token_auth_file: {error}") from None


def _services(
    options: Options, stores: Stores, rights: Judges, tokens: TokenAuthenticator, lane: SlowLane
) -> Services:  # fmt: skip
    return Services(
        objects=stores.objects, authorizer=rights.authorizer, rule_resolver=rights.rule_resolver, roles=rights.roles,
        service_cluster_ip_ranges=(), service_node_ports=range(0), allow_privileged=False,
        service_account_issuer=options.service_account_issuer[0], api_audiences=options.audiences,
        sign_token=_no_tokens, event_ttl=options.event_ttl, authenticate_token=tokens.authenticate_token,
        slow_lane=lane,
    )  # fmt: skip


def _no_tokens(claims: dict[str, Any]) -> str:
    raise forbidden(GroupResource("", "serviceaccounts"), "", "this server has no service accounts")
