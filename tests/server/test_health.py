"""/healthz, /livez and /readyz: checks, parameters and texts, during start hooks and shutdown too."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from steersman.admission.interface import Chain
from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.union import UnionAuthenticator
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.controlplane.control_plane import ControlPlane
from steersman.net.in_process import InProcessClient
from steersman.server.basic_paths import install_basic_paths
from steersman.server.config import Config
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.sqlite.log import Log
from steersman.testing import Client


@pytest.fixture
def server() -> Server:
    """A generic server without resources, not prepared to run yet."""
    config = Config(
        authenticator=UnionAuthenticator([], AnonymousAuthenticator()),
        authorizer=AlwaysAllowAuthorizer(),
        admission=Chain(()),
    )
    return Server(config.complete())


@pytest.fixture
def get(server: Server) -> Callable[..., Awaitable[tuple[int, str]]]:
    """Return `get(path)`, which awaits status and text."""

    async def ask(target: str) -> tuple[int, str]:
        response = await InProcessClient(server.handler).request("GET", target)
        return response.status, (await response.read()).decode()

    return ask


def _run(server: Server) -> None:
    server.prepare_run()
    install_basic_paths(server)
    server.lifecycle.serving = True


async def test_all_is_well(server: Server, get: Callable[..., Awaitable[tuple[int, str]]]) -> None:
    _run(server)
    assert await get("/livez") == (200, "ok")
    assert await get("/livez?verbose") == (200, "[+]ping ok\n[+]log ok\nlivez check passed\n")


async def test_one_check_alone_is_asked_by_its_path(
    server: Server, get: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    _run(server)
    assert await get("/healthz/ping") == (200, "ok")
    status, _ = await get("/healthz/nothing")
    assert status == 404


async def test_a_failing_check_fails_the_whole_and_keeps_its_reason_from_the_client(
    server: Server, get: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    server.add_checks(HealthCheck("disk", lambda: "the disk is on fire"))
    _run(server)
    for path in ("healthz", "livez", "readyz"):
        status, text = await get(f"/{path}")
        assert status == 500
        assert "[-]disk failed: reason withheld\n" in text
        assert text.endswith(f"{path} check failed\n")
        assert "fire" not in text
    assert await get("/livez/disk") == (500, "internal server error: the disk is on fire\n")


async def test_checks_can_be_left_out_by_name(server: Server, get: Callable[..., Awaitable[tuple[int, str]]]) -> None:
    server.add_checks(HealthCheck("disk", lambda: "broken"))
    _run(server)
    assert await get("/livez?exclude=disk") == (200, "ok")
    status, text = await get("/livez?exclude=disk&verbose")
    assert (status, "[+]disk excluded: ok\n" in text) == (200, True)
    _, text = await get("/livez?exclude=disk&exclude=unheard-of&verbose")
    assert 'warn: some health checks cannot be excluded: no matches for "unheard-of"\n' in text


async def test_a_check_of_readiness_alone_does_not_fail_the_others(
    server: Server, get: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    server.add_checks(HealthCheck("informer-sync", lambda: "not synced"), only_ready=True)
    _run(server)
    assert (await get("/livez"))[0] == 200
    assert (await get("/readyz"))[0] == 500


async def test_a_server_is_ready_once_its_start_hooks_are_done(
    server: Server, get: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    gate = asyncio.Event()

    async def pass_gate() -> None:
        await gate.wait()

    server.add_post_start_hook("slow", pass_gate)
    _run(server)
    running = asyncio.create_task(server.run_post_start_hooks())
    status, text = await get("/readyz?verbose")
    assert (status, "[-]poststarthook/slow failed: reason withheld\n" in text) == (500, True)
    gate.set()
    await running
    status, text = await get("/readyz?verbose")
    assert (status, "[+]poststarthook/slow ok\n" in text) == (200, True)


async def test_a_start_hook_that_fails_fails_the_start(server: Server) -> None:
    async def fail() -> None:
        raise OSError("no way")

    server.add_post_start_hook("fails", fail)
    _run(server)
    with pytest.raises(ExceptionGroup) as caught:
        await server.run_post_start_hooks()
    assert caught.group_contains(OSError, match="no way")


async def test_checks_are_reported_in_the_order_of_kube_apiserver(server: Server) -> None:
    async def nothing() -> None: ...

    for name in ("own-hook", "bootstrap-controller", "rbac/bootstrap-roles"):
        server.add_post_start_hook(name, nothing)
    server.add_checks(HealthCheck("own", lambda: None), HealthCheck("etcd", lambda: None))
    ordered = [
        "ping",
        "log",
        "etcd",
        "own",
        "poststarthook/rbac/bootstrap-roles",
        "poststarthook/bootstrap-controller",
        "poststarthook/own-hook",
    ]
    assert [name async for name, _ in server.livez.results()] == ordered
    assert [name async for name, _ in server.readyz.results()] == ordered


async def test_names_of_checks_and_hooks_are_taken_once(server: Server) -> None:
    server.add_checks(HealthCheck("disk", lambda: None))
    with pytest.raises(ValueError, match="exists already"):
        server.add_checks(HealthCheck("disk", lambda: None))

    async def nothing() -> None: ...

    server.add_post_start_hook("hook", nothing)
    with pytest.raises(ValueError, match="exists already"):
        server.add_post_start_hook("hook", nothing)


async def test_the_control_planes_readiness_names_storage_caches_hooks_and_shutdown(api: Client) -> None:
    text = (await api.get("/readyz?verbose")).body.decode()
    for name in (
        "ping",
        "log",
        "etcd",
        "etcd-readiness",
        "informer-sync",
        "poststarthook/rbac/bootstrap-roles",
        "poststarthook/start-apiserver-admission-initializer",
        "poststarthook/storage-readiness",
        "poststarthook/start-system-namespaces-controller",
        "shutdown",
    ):
        assert f"[+]{name} ok\n" in text
    assert "[+]shutdown ok\n" not in (await api.get("/livez?verbose")).body.decode()


async def test_a_control_plane_whose_disk_takes_no_writes_is_not_well(
    start_control_plane: Callable[..., Awaitable[ControlPlane]],
    client_of: Callable[..., Client],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane = await start_control_plane(data_dir=tmp_path, storage="sqlite")
    client = client_of(plane)
    assert (await client.get("/livez")).status == (await client.get("/readyz")).status == 200

    def fail(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Log, "append_new", fail)
        body = {"metadata": {"name": "a"}}
        assert (await client.post("/api/v1/namespaces/default/configmaps", body)).status == 500
    for path, checks in {"/livez": ("etcd",), "/readyz": ("etcd", "etcd-readiness")}.items():
        answer = await client.get(path)
        assert answer.status == 500
        assert [f"[-]{name} failed: reason withheld" in answer.body.decode() for name in checks] == [True] * len(checks)


async def test_nobody_may_ask_for_health_by_default_but_nothing_else(api: Client) -> None:
    nobody = api.as_user("")
    assert (await nobody.get("/livez")).status == 200
    assert (await nobody.get("/readyz")).status == 200
    assert (await nobody.get("/metrics")).status == 403


async def test_of_many_checks_to_leave_out_a_bounded_number_is_read(
    server: Server, get: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    server.add_checks(HealthCheck("disk", lambda: "broken"))
    _run(server)
    status, text = await get(f"/livez?verbose&exclude=disk,{','.join(map(str, range(20_000)))}")
    assert status == 200
    assert text.count('", "') < 1000
