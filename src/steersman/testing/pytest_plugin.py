"""Fixtures for pytest.

- `steersman`: a server for one test.
- `steersman_controllers`, `steersman_cluster`: the same with controllers, or also with a scheduler and nodes.
- `steersman_clock`: moves the server's time.
- `steersman_session`: a server that all tests share.

All servers are ThreadedEnvironments, so that tests may block or not. The report of a failed test has the last requests
and events. pytest imports this module at every start where Steersman is installed, so it imports everything else on
demand. It also declares the mark `steersman(...)` and the setting `steersman_crds` of pytest's configuration.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.testing import BlockingClock, Pool, ThreadedClusters, ThreadedEnvironment

_MARK = (
    "steersman(crds=[...], users=[...], controllers=False, nodes=0, clock=False, fresh=False, clusters=[...], **flags): "
    "files and folders of CustomResourceDefinitions for the server of this test, its users, what works on it, whether "
    "it is to be one that no other test had, the names of several, and flags of `steersman serve`"
)
_CRDS = "files and folders of CustomResourceDefinitions that every server of the fixtures has"
_REPORT = (
    "print a report on the requests to all servers at the end, of clients with this text in their user agent (of all "
    "clients for -)"
)
_FOLDER = "STEERSMAN_REPORT"
_STRESS = "STEERSMAN_STRESS_FOLDER"
_SERVERS = ("steersman", "steersman_controllers", "steersman_cluster", "steersman_session")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings and the option."""
    parser.addini("steersman_crds", _CRDS, type="paths", default=[])
    parser.addini("steersman_report", _REPORT, default="")
    parser.getgroup("steersman").addoption(
        "--steersman-report", nargs="?", const="-", default="", metavar="USER_AGENT", help=_REPORT
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and let servers record their requests if a report is wanted.

    In a run of `steersman stress` servers take part in its search.
    """
    config.addinivalue_line("markers", _MARK)
    if _STRESS in os.environ:
        config.pluginmanager.import_plugin("steersman.stress.pytest_plugin")
    if _report_of(config) and _FOLDER not in os.environ:
        os.environ[_FOLDER] = mkdtemp(prefix="steersman-report-")  # workers of pytest-xdist inherit it
        config.add_cleanup(_remove_requests)


def _report_of(config: pytest.Config) -> str:
    """Return the part of the user agents that the report is about, "-" for all, "" if no report is wanted."""
    return config.getoption("--steersman-report") or str(config.getini("steersman_report"))


def _remove_requests() -> None:
    shutil.rmtree(os.environ.pop(_FOLDER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the report on the requests of all servers."""
    wanted = _report_of(config)
    folder = os.environ.get(_FOLDER, "")
    if not wanted or not os.path.isdir(folder) or not os.listdir(folder):
        return
    user_agent = () if wanted == "-" else ("--user-agent", wanted)
    command = (sys.executable, "-m", "steersman.cli", "report", "--read", folder, *user_agent)
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    terminalreporter.section("requests to steersman's servers")
    terminalreporter.write_line(found.stdout)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last requests and events of the servers to the report of a failed test."""
    report = yield
    if report.failed:
        given: dict[str, Any] = getattr(item, "funcargs", {})
        for name in _SERVERS:
            environment: ThreadedEnvironment | None = given.get(name)
            if environment is not None and environment.thread is not None:
                report.sections.append((name, environment.run(environment.environment.report())))
        for name, each in given.get("steersman_clusters", {}).items():
            report.sections.append((f"steersman_clusters {name}", each.run(each.environment.report())))
    return report


@pytest.fixture(scope="session")
def _steersman_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Servers that tests use one after the other."""
    from steersman.testing import Pool

    pool = Pool(lambda: tmp_path_factory.mktemp("steersman"))
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def steersman_session(_steersman_pool: Pool, pytestconfig: pytest.Config) -> Iterator[ThreadedEnvironment]:
    """A server that all tests share; each test should use a namespace, or names, of its own."""
    with _steersman_pool.new(pytestconfig.getini("steersman_crds")) as environment:
        yield environment


@pytest.fixture
def steersman(_steersman_pool: Pool, request: pytest.FixtureRequest) -> Iterator[ThreadedEnvironment]:
    """A server of the test's own, which is empty."""
    with _server(_steersman_pool, request, {}) as environment:
        yield environment


@pytest.fixture
def steersman_controllers(_steersman_pool: Pool, request: pytest.FixtureRequest) -> Iterator[ThreadedEnvironment]:
    """A server of the test's own, with the controllers of kube-controller-manager."""
    with _server(_steersman_pool, request, {"controllers": True}) as environment:
        yield environment


@pytest.fixture
def steersman_cluster(_steersman_pool: Pool, request: pytest.FixtureRequest) -> Iterator[ThreadedEnvironment]:
    """A cluster of the test's own: a server with controllers, a scheduler and one simulated node, or as many as the
    mark says.
    """
    with _server(_steersman_pool, request, {"controllers": True, "nodes": 1}) as environment:
        yield environment


@pytest.fixture
def steersman_clusters(_steersman_pool: Pool, request: pytest.FixtureRequest) -> Iterator[ThreadedClusters]:
    """Servers of the test's own by name, "one" and "two" unless the mark names them with `clusters=[...]`."""
    from steersman.testing import ThreadedClusters

    crds, arguments = _arguments(request, {})
    names = arguments.pop("clusters", ("one", "two"))
    with ExitStack() as ending:
        found = {
            name: ending.enter_context(_taken(_steersman_pool, f"cluster {name}", crds, arguments)) for name in names
        }
        yield ThreadedClusters(found)


@pytest.fixture
def steersman_clock(request: pytest.FixtureRequest) -> BlockingClock:
    """Clock that moves the time of the test's server, of all its clients, and of this process."""
    for name in ("steersman_cluster", "steersman_controllers", "steersman"):
        if name in request.fixturenames:
            environment: ThreadedEnvironment = request.getfixturevalue(name)
            return environment.clock
    raise pytest.UsageError("steersman_clock moves the time of a server: ask for one of the fixtures of servers too")


def _arguments(request: pytest.FixtureRequest, defaults: dict[str, Any]) -> tuple[list[Path], dict[str, Any]]:
    """Return the definitions and the arguments of the marks of a test, the nearest mark first."""
    arguments: dict[str, Any] = {}
    for mark in request.node.iter_markers("steersman"):
        if mark.args:
            raise pytest.UsageError(
                f"@pytest.mark.steersman takes arguments by their names alone, not {mark.args[0]!r}"
            )
        arguments = {**mark.kwargs, **arguments}
    arguments = {**defaults, **arguments}
    if "steersman_clock" in request.fixturenames:
        arguments["clock"] = True
    crds = [*request.config.getini("steersman_crds"), *(request.config.rootpath / e for e in arguments.pop("crds", ()))]
    return crds, arguments


@contextmanager
def _server(pool: Pool, request: pytest.FixtureRequest, defaults: dict[str, Any]) -> Iterator[ThreadedEnvironment]:
    crds, arguments = _arguments(request, defaults)
    arguments.pop("clusters", None)
    with _taken(pool, "", crds, arguments) as environment:
        yield environment


@contextmanager
def _taken(pool: Pool, role: str, crds: list[Path], arguments: dict[str, Any]) -> Iterator[ThreadedEnvironment]:
    """Yield a server that another test had before, or with `fresh` one that no other test has."""
    options = {name: value for name, value in arguments.items() if name != "fresh"}
    if arguments.get("fresh"):
        with pool.new(crds, **options) as environment:
            yield environment
    else:
        with pool.borrowed(crds, role=role, **options) as environment:
            yield environment
