"""The fixtures `steersman` and `steersman_session`, in projects that use them and in those that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(folder: Path, test: str, *arguments: str) -> str:
    """What pytest writes about one file of tests; all of them must pass."""
    (folder / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--strict-markers", "-p", "no:cacheprovider", "-p", "no:asyncio", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_each_test_has_a_server_of_its_own_and_all_share_another(tmp_path: Path) -> None:
    run(tmp_path, '''
import pytest
MAPS = "/api/v1/namespaces/default/configmaps"

@pytest.mark.parametrize("number", range(3))
def test_own(number, steersman, steersman_session):
    assert steersman.url != steersman_session.url
    for server, before in ((steersman, 0), (steersman_session, number)):
        with server.client() as client:
            assert len(client.json("GET", MAPS)[1]["items"]) == before
            assert client.json("POST", MAPS, {"metadata": {"name": f"a{number}"}})[0] == 201
    assert steersman.kubeconfig() != steersman_session.kubeconfig()
''')  # fmt: skip


def test_a_mark_gives_users_and_flags(tmp_path: Path) -> None:
    run(tmp_path, '''
import pytest
from steersman.testing import ADMIN, User

pytestmark = pytest.mark.steersman(users=[ADMIN, User("bob")], max_requests_inflight=7)

@pytest.mark.steersman(users=[ADMIN, User("alice")])
def test_the_nearest_counts(steersman):
    assert list(steersman.environment.users) == ["admin", "alice"]
    assert steersman.environment.plane.options.max_requests_inflight == 7

def test_that_of_the_module(steersman):
    assert list(steersman.environment.users) == ["admin", "bob"]
''')  # fmt: skip


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: PLURAL, singular: a-KIND, kind: KIND, listKind: KINDList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


def test_definitions_of_the_setting_and_the_mark_are_established(tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    for path, plural, kind in (
        (tmp_path / "crds" / "a.yaml", "boats", "Boat"),
        (tmp_path / "cars.yaml", "cars", "Car"),
    ):
        path.write_text(CRD.replace("PLURAL", plural).replace("a-KIND", kind.lower()).replace("KIND", kind))
    (tmp_path / "pytest.ini").write_text("[pytest]\nsteersman_crds = crds\n")
    run(tmp_path, '''
import pytest

def statuses(server):
    with server.client() as client:
        return [client.request("GET", f"/apis/example.com/v1/{plural}")[0] for plural in ("boats", "cars")]

@pytest.mark.steersman(crds=["cars.yaml"])
def test_both(steersman, steersman_session):
    assert statuses(steersman) == [200, 200]
    assert statuses(steersman_session) == [200, 404]
''')  # fmt: skip


def test_nothing_is_imported_before_a_fixture_is_asked_for(tmp_path: Path) -> None:
    run(tmp_path, '''
import sys

def test_nothing_is_here():
    found = {name for name in sys.modules if name.partition(".")[0] in ("steersman", "uvloop", "msgspec", "yaml")}
    assert found <= {"steersman", "steersman.testing", "steersman.testing.pytest_plugin"}
    assert "steersman.testing.pytest_plugin" in sys.modules
''')  # fmt: skip


def test_the_servers_modules_are_not_compiled_anew_by_pytest(tmp_path: Path) -> None:
    """pytest does so with packages that have plugins; of a server's, that takes longer than its start."""
    run(tmp_path, '''
import sys

def test_loaders(steersman):
    by_pytest = [name for name, module in sys.modules.items()
                 if name.startswith("steersman.") and "_pytest" in type(module.__loader__).__module__]
    assert set(by_pytest) <= {"steersman.testing", "steersman.testing.pytest_plugin"}
''')  # fmt: skip


@pytest.mark.parametrize(("option", "told"), [("--fixtures", "steersman_session"), ("--markers", "steersman(crds=")])
def test_pytest_tells_of_them(option: str, told: str, tmp_path: Path) -> None:
    assert told in run(tmp_path, "", option)
