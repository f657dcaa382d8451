"""Fixtures with whole servers: in this process, without a socket, in milliseconds; or as a process of their own."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from msgspec.structs import replace

from steersman.authentication import service_account_keys
from steersman.controlplane.control_plane import ControlPlane
from steersman.machinery.large_work import nesting
from steersman.machinery.values import times
from steersman.rest.capabilities import Change, Updated
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.store.store import Store
from steersman.testing import WITHOUT_ACCOUNTS, Client, Environment, ServerProcess, User, throw_away_keys
from steersman.testing.keys import SERVICE_ACCOUNTS, make_keys
from steersman.work.offloading import Account, bound, missed_offloads
from steersman.work.threads import WorkerThreads
from tests import durations, failures, first_states, hanging, longer, memoised
from tests.example_counts import BY_DEFAULT, IN_CI

nesting.raise_recursion_limit()  # as a server does at its start
# Generating examples takes longer on a busy machine.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=BY_DEFAULT)
# CI keeps nothing between runs, and its output is all there is to repeat a failure by.
settings.register_profile("ci", settings.get_profile("suite"), max_examples=IN_CI, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "suite")

_MUCH = 1_000_000
"""New objects after which the garbage collector runs."""

_SIGNING_KEYS = 2
"""RSA keys that a process of tests generates, so that two servers beside each other have different ones."""

_SHARED = {"api", "shared_environment", "shared_cluster"}
"""Fixtures with servers that several tests share, on the event loop of the session."""

STATES: Final = pytest.StashKey[first_states.FirstStates]()
"""The first states with which servers in memory begin."""

USERS = (User("admin", ("system:masters",), "admin-token"), User("alice", ("dev",), "alice-token"))
"""The administrator, and a user without rights."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `tools.run_tests` and CI."""
    own = parser.getgroup("the project's own tests")
    own.addoption("--record-durations", metavar="FOLDER", type=Path, help="write there how long each file took")
    own.addoption("--short", action="store_true", help="leave out the tests of .ci/longer-tests.txt")
    own.addoption("--watch-updates", action="store_true", help="fail updates that change the stored object in place")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register plugins that report hanging tests, failures and durations."""
    gc.disable()  # until tests run: almost all that is made before stays
    seconds = float(config.getini("faulthandler_timeout"))
    # before the process ends
    config.pluginmanager.register(hanging.Watch(seconds * 0.85, descriptor=2))
    exits = bool(config.getini("faulthandler_exit_on_timeout"))
    config.pluginmanager.register(hanging.LastResort(seconds, descriptor=2, exits=exits))
    config.pluginmanager.unregister(name="faulthandler")  # LastResort does its work
    config.pluginmanager.register(failures.Teller(config))
    if config.option.record_durations:
        config.pluginmanager.register(durations.Recorder(config.option.record_durations))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out longer tests if wanted. Run tests of shared servers on the event loop of these servers."""
    if config.option.short:
        config.hook.pytest_deselected(items=longer.leave_out(items, longer.read()))
    for item in items:
        if not _SHARED.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def pytest_collection_finish() -> None:
    """Exclude the objects shared by all tests from garbage collection, and make collections rare."""
    gc.freeze()
    gc.set_threshold(_MUCH, 10, 10)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Run all tests with the changes of the project that they need."""
    with ExitStack() as changes:
        for change in (code_on_the_loop_fails, signing_keys_are_used_again):
            changes.enter_context(change())
        changes.enter_context(first_states.used(session.config.stash.setdefault(STATES, first_states.FirstStates())))
        if session.config.getoption("--watch-updates"):
            changes.enter_context(stored_objects_stay_as_they_are())
        return (yield)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Fail a test in which a memoised function kept a key over its bound, and undo the test's changes of the clock.

    It is a fixture, as those of modules keep their changes of the clock; and one instead of two, as each costs time.
    """
    memoised.faults.clear()
    moved = times.unix_now() - time.time()
    yield
    times.advance(moved - (times.unix_now() - time.time()))
    assert memoised.faults == []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """After a file of tests, exclude what its tests have loaded and kept from garbage collection."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            _freeze_what_is_left()


def _freeze_what_is_left() -> None:
    if gc.get_count()[0] > _MUCH // 2 or any(gc.get_count()[1:]):
        gc.collect()  # what is frozen as garbage would stay: whole servers
        gc.freeze()


@contextmanager
def stored_objects_stay_as_they_are() -> Iterator[None]:
    """Fail every update whose `make` changes the given object: validation would compare the new object with itself.

    The check encodes the stored object twice in every update, so that only one run of CI enables it.
    """
    update = Store.update

    @wraps(update)
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


@pytest.fixture(scope="session")
def hook_files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """Return the CA and certificate of webhooks, for 127.0.0.1 and for the Service `hook` in `default`."""
    return ensure_certificates(tmp_path_factory.mktemp("hook"), ["127.0.0.1", "hook.default.svc"])


@pytest.fixture(scope="session")
def keys_folder() -> Iterator[Path]:
    """Yield the data folder of all control planes in memory, so that their keys are generated only once."""
    with throw_away_keys.temporary_folder(small=True) as folder:
        yield Path(folder)


def _environment(folder: Path, **options: Any) -> Environment:
    return Environment(**{"users": USERS, "folder": folder, "disable_admission_plugins": (), **options})


@pytest.fixture
def large_request() -> Iterator[Account]:
    """Bind the account of a request with a large body, so that its work runs in worker threads."""
    threads = WorkerThreads()
    with bound(Account(threads, "large", keeps_size=True)) as account:
        account.mark_large()
        yield account
    threads.close()


@contextmanager
def code_on_the_loop_fails() -> Iterator[None]:
    """Fail a test that runs possibly long work on the event loop outside of `offload`."""

    def report() -> None:
        raise AssertionError("code that may take long runs on the event loop")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(missed_offloads, "report", report)
        yield


@contextmanager
def signing_keys_are_used_again() -> Iterator[None]:
    """Give the folders of servers in this process a few RSA keys by turns: each takes 0.1 s to generate."""
    make = service_account_keys.make_signing_key
    made: list[bytes] = []

    def make_or_take() -> bytes:
        made.append(make() if len(made) < _SIGNING_KEYS else made.pop(0))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service_account_keys, "make_signing_key", make_or_take)
        yield


@pytest.fixture
def from_nothing(pytestconfig: pytest.Config) -> Iterator[None]:
    """Make the servers of a test create all objects of a start themselves."""
    states = pytestconfig.stash[STATES]
    states.are_used = False
    yield
    states.are_used = True


StartControlPlane = Callable[..., Awaitable[ControlPlane]]


@pytest_asyncio.fixture
async def start_control_plane(keys_folder: Path) -> AsyncIterator[StartControlPlane]:
    """Yield `start_control_plane(**options)`, which starts a control plane in memory and stops it after the test."""
    started: list[Environment] = []

    async def start(**options: Any) -> ControlPlane:
        folder = options.pop("data_dir", keys_folder)
        if folder != keys_folder and not (folder / SERVICE_ACCOUNTS).exists():
            folder.mkdir(0o700, exist_ok=True)
            make_keys(folder)
        environment = _environment(folder, **options)
        started.append(environment)
        await environment.start()
        return environment.plane

    yield start
    for environment in started:
        await environment.stop()


@pytest.fixture
def client_of() -> Callable[..., Client]:
    """Return `client_of(plane, user)`, which makes a client of a control plane, by default for the administrator."""
    tokens: dict[str | User, str] = {user.name: user.token for user in USERS}
    return lambda plane, user="admin": Client(plane, tokens, user)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(keys_folder: Path) -> AsyncIterator[Client]:
    """Yield a client of the server that all tests share: a test creates objects in `namespace` or with unique names."""
    async with _environment(keys_folder) as environment:
        yield environment.client()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api_with_everything(keys_folder: Path) -> AsyncIterator[Client]:
    """Yield a client of another shared server, which serves all versions."""
    async with _environment(keys_folder, runtime_config={"api/all": "true"}) as environment:
        yield environment.client()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def _first_environment(request: pytest.FixtureRequest, keys_folder: Path) -> AsyncIterator[Environment]:
    """Yield the environment of `shared_environment`, with the options of the module's or folder's `server_options`."""
    async with Environment(**{"folder": keys_folder, **request.getfixturevalue("server_options")}) as environment:
        yield environment


@pytest.fixture(scope="session")
def server_options() -> dict[str, Any]:
    """Return the arguments of the environment that tests share: none, so that it has the defaults."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def shared_environment(_first_environment: Environment) -> AsyncIterator[Environment]:
    """Yield an environment in its initial state, which the tests of a module use one after the other.

    Counters of metrics, and the revision of storage, go on.
    """
    first = _first_environment.snapshot()
    yield _first_environment
    await _first_environment.renew(first)


_NUMBERS = count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(api: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Yield a fresh namespace of the shared server, and of `api_with_everything` if the test uses it."""
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
    """Yield `make_server(*flags)`, which makes a server process on `folder` (tmp_path/"data"), killed after the test."""
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
    """Yield a server process shared by the tests of a module. If the process does not end cleanly, the last test fails."""
    process = ServerProcess(tmp_path_factory.mktemp("server") / "data", WITHOUT_ACCOUNTS)
    process.start()
    yield process
    if process.running:
        assert process.stop() == 0, process.errors.read_text()
