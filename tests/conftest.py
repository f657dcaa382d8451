"""Whole servers for tests: in this process, without a socket, in milliseconds; or as a process of their own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from server_process import WITHOUT_ACCOUNTS, ServerProcess  # noqa: E402

from steersman.controlplane.control_plane import ControlPlane  # noqa: E402
from steersman.controlplane.options import Options  # noqa: E402
from steersman.machinery.large_work import nesting  # noqa: E402
from steersman.net.in_process import ClientResponse, InProcessClient  # noqa: E402
from steersman.net.message import Headers  # noqa: E402
from steersman.rest.capabilities import Change, Updated  # noqa: E402
from steersman.store.store import Store  # noqa: E402

nesting.make_room()  # as a server does at its start
# How long examples take to make says how busy the machine is.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=100)
settings.load_profile("thorough" if os.environ.get("CI") else "suite")

TOKENS = 'admin-token,admin,admin,"system:masters"\nalice-token,alice,alice,"dev"\n'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the shared server run on the loop that it runs on."""
    for item in items:
        if "api" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(autouse=True, scope="session")
def _what_is_stored_stays_as_it_is() -> Iterator[None]:
    """Fails every update whose `make` changes the object it is given: rules for changes would compare new with new."""
    update = Store.update

    async def watched(self: Store[Any], ctx: Any, name: str, change: Change) -> Updated:
        async def make_and_look(old: Any) -> Any:
            before = None if old is None else self.kind.body(old)
            new = await change.make(old)
            assert before is None or self.kind.body(old) == before, "the stored object was changed"
            return new

        return await update(self, ctx, name, replace(change, make=make_and_look))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "update", watched)
        yield


@dataclass(frozen=True)
class Answer:
    """A response, read to its end."""

    status: int
    headers: Headers
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """A client of a control plane in this process; by default the administrator, `alice` without rights, or nobody."""

    def __init__(self, plane: ControlPlane, user: str = "admin") -> None:
        assert plane.server is not None
        self.plane = plane
        self._client = InProcessClient(plane.server.handler)
        self._headers = [("accept", "application/json")]
        if user:
            self._headers.append(("authorization", f"Bearer {user}-token"))

    def as_user(self, user: str) -> Api:
        """The same server for another user; "" is nobody."""
        return Api(self.plane, user)

    async def open(self, method: str, target: str, body: Any = None, **headers: str) -> ClientResponse:
        """A response to be read in pieces, or left. A body that is not bytes is sent as JSON."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = [pair for pair in self._headers if pair[0] not in given]
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given.setdefault("content-type", "application/json")
        return await self._client.request(method, target, [*fields, *given.items()], body or b"")

    async def raw(self, method: str, target: str, body: Any, **headers: str) -> Answer:
        """The same with a body as it is: bytes, or an async iterator of them."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self._client.request(method, target, [*self._headers, *given.items()], body)
        return Answer(response.status, response.headers, await response.read())

    async def request(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """The whole answer."""
        response = await self.open(method, target, body, **headers)
        return Answer(response.status, response.headers, await response.read())

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.request("GET", target, **headers)

    async def post(self, target: str, body: Any, **headers: str) -> Answer:
        return await self.request("POST", target, body, **headers)

    async def put(self, target: str, body: Any, **headers: str) -> Answer:
        return await self.request("PUT", target, body, **headers)

    async def delete(self, target: str, body: Any = None, **headers: str) -> Answer:
        return await self.request("DELETE", target, body, **headers)


@pytest.fixture(scope="session")
def keys_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of all control planes in memory: keys are made in it once, and the users are in tokens.csv."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "tokens.csv").write_text(TOKENS)
    return folder


def _options(folder: Path, **options: Any) -> Options:
    defaults = {"storage": "memory", "listen": False, "token_auth_file": str(folder / "tokens.csv")}
    return Options(**{"data_dir": folder, **defaults, **options})


StartControlPlane = Callable[..., Awaitable[ControlPlane]]


@pytest_asyncio.fixture
async def start_control_plane(keys_folder: Path) -> AsyncIterator[StartControlPlane]:
    """`await start_control_plane(**options)` starts one of the test's own, in memory; it stops after the test."""
    started: list[ControlPlane] = []

    async def start(**options: Any) -> ControlPlane:
        plane = ControlPlane(_options(keys_folder, **options))
        started.append(plane)
        await plane.start()
        return plane

    yield start
    for plane in started:
        await plane.stop()


@pytest.fixture
def client_of() -> Callable[..., Api]:
    """`client_of(plane)` is a client of that control plane."""
    return Api


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(keys_folder: Path) -> AsyncIterator[Api]:
    """A client of the one server that tests share: a test makes things in `namespace`, or by names of its own."""
    plane = ControlPlane(_options(keys_folder))
    await plane.start()
    yield Api(plane)
    await plane.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api_with_everything(keys_folder: Path) -> AsyncIterator[Api]:
    """A client of another shared server, which serves every version there is."""
    plane = ControlPlane(_options(keys_folder, runtime_config={"api/all": "true"}))
    await plane.start()
    yield Api(plane)
    await plane.stop()


_NUMBERS = count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(api: Api, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A fresh namespace of the shared server, and of `api_with_everything` where a test uses that."""
    name = f"test-{next(_NUMBERS)}"
    servers = [api]
    if "api_with_everything" in request.fixturenames:
        servers.append(request.getfixturevalue("api_with_everything"))
    for each in servers:
        answer = await each.post("/api/v1/namespaces", {"metadata": {"name": name}})
        assert answer.status == 201, answer.body
    yield name
    for each in servers:
        await each.delete(f"/api/v1/namespaces/{name}")


ServerFactory = Callable[..., ServerProcess]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[ServerFactory]:
    """`make_server(*flags)` prepares a server process on `folder` (tmp_path/"data"); killed after the test."""
    made: list[ServerProcess] = []

    def make(*flags: str, folder: Path | None = None) -> ServerProcess:
        server = ServerProcess(folder or tmp_path / "data", *flags)
        made.append(server)
        return server

    yield make
    for server in made:
        server.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server process that the tests of a module share; its end is orderly, or the last test fails."""
    process = ServerProcess(tmp_path_factory.mktemp("server") / "data", WITHOUT_ACCOUNTS)
    process.start()
    yield process
    if process.running:
        assert process.stop() == 0, process.errors.read_text()
