"""A server of two resources with storage in memory, built as a program that embeds the library builds it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from steersman.api.core.v1 import ConfigMap
from steersman.api.scheduling.v1 import PriorityClass
from steersman.authentication.interface import AuthenticationError, Credentials
from steersman.authentication.user import ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.endpoints.request import Request
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.net.in_process import ClientResponse, InProcessClient
from steersman.net.message import Response
from steersman.rest.bound import bind
from steersman.rest.resource import AGE, Column, Resource
from steersman.server.config import Config
from steersman.server.discovery import Discovery
from steersman.server.server import Server
from steersman.storage.memory import MemoryStorage
from steersman.store.converting_store import ConvertingStore
from steersman.store.store import Store

NOTES = Resource(
    kind=built_in(ConfigMap),
    plural="configmaps",
    short_names=("cm",),
    name_validator=name_is_dns_subdomain,
    columns=(Column("Data", lambda note: len(note.data), type="string"), AGE),
    selectable_fields={"data.color": lambda note: note.data.get("color", "")},
)
CLASSES = Resource(
    kind=built_in(PriorityClass),
    plural="priorityclasses",
    namespaced=False,
    name_validator=name_is_dns_subdomain,
    verbs=("create", "delete", "get", "list"),
    returns_deleted_object=True,
)

USERS = {
    "root": UserInfo("root", groups=("system:masters",)),
    "alice": UserInfo("alice"),
    "mallory": UserInfo("mallory"),
    "unsure": UserInfo("unsure"),
}


class Tokens:
    """Authenticates a bearer token as the user of that name; some answers take an iteration of the event loop."""

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        token = credentials.bearer_token
        if token is None:
            return UserInfo(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,)) if credentials.path != "/private" else None
        if token == "slow":
            return self._later()
        if token not in USERS:
            raise AuthenticationError("no such user")
        return USERS[token]

    async def _later(self) -> UserInfo | None:
        return USERS["alice"]


class Rights:
    """Denies everything to Mallory, and has no opinion about some users."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        self.asked.append(attributes)
        name = attributes.user.name
        if name == "unsure":
            return self._unknown()
        return Verdict(Decision.NO_OPINION if name == "mallory" else Decision.ALLOW, "not her")

    async def _unknown(self) -> Verdict:
        return Verdict(Decision.NO_OPINION, "", "the database is away")


class Answer:
    """A complete response."""

    def __init__(self, response: ClientResponse, body: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class SmallServer:
    """The server and a client of it. Handlers in `paths` are reached like any other path."""

    def __init__(self, resources: Iterable[Resource[Any]] = (NOTES, CLASSES), **options: Any) -> None:
        self.rights = Rights()
        self.config = Config(authenticator=Tokens(), authorizer=self.rights, **options).complete()
        self.server = Server(self.config)
        self.storage = MemoryStorage(compaction_interval=0, lease_interval=0)
        self._bound = tuple(map(bind, resources))
        self.stores: dict[str, Store[Any]] = {
            each.resource.plural: (Store if each.resource.conversion is None else ConvertingStore)(each, self.storage)
            for each in self._bound
        }

    async def start(self, paths: dict[str, Callable[[Request], Awaitable[Response]]] | None = None) -> None:
        for store in self.stores.values():
            await store.start()
        for each in self._bound:
            self.server.catalogue.put(each, self.stores[each.resource.plural])
        for path, handler in (paths or {}).items():
            self.server.add_path(path, handler)
        Discovery(self.server).install()
        self.server.prepare_run()
        await self.server.run_post_start_hooks()
        self.client = InProcessClient(self.server.handler)

    async def stop(self) -> None:
        await self.server.stop()
        for store in self.stores.values():
            await store.stop()
        await self.storage.close()
        self.config.executor.shutdown()

    async def open(
        self, method: str, target: str, body: Any = None, *, user: str = "", **headers: str
    ) -> ClientResponse:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            fields["authorization"] = f"Bearer {user}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await self.client.request(method, target, list(fields.items()), data)

    async def ask(self, method: str, target: str, body: Any = None, **more: str) -> Answer:
        response = await self.open(method, target, body, **more)
        return Answer(response, await response.read())

    async def get(self, target: str, **more: str) -> Answer:
        return await self.ask("GET", target, **more)

    async def note(self, name: str, namespace: str = "ns", **data: str) -> Any:
        """Create a config map."""
        body = {"metadata": {"name": name}, "data": data}
        answer = await self.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
        assert answer.status == 201, answer.text
        return answer.json()


class Watch:
    """A watch whose events are read one at a time."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self._pieces = aiter(response)

    async def next(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await anext(self._pieces))
        return event

    async def told(self) -> str:
        """Return the next event as `TYPE name`."""
        event = await self.next()
        return f"{event['type']} {event['object']['metadata'].get('name', '')}".rstrip()

    async def over(self) -> bool:
        """Return True if there are no more events."""
        return await anext(self._pieces, None) is None
