"""Tests of the comparison of paths: cases are reproducible by number, and answers and storages are compared."""

from __future__ import annotations

import shlex
import sys
from random import Random
from typing import Any

import pytest

from tests import ROOT
from tools.differential.command import main
from tools.differential.path_comparer import Side, compared
from tools.differential.paths import Request, Served, case, fixture
from tools.differential.server import Answer

PODS = Served("/api/v1", "pods", True, "Pod", ("log", "status"), True)
NAMESPACES = Served("/api/v1", "namespaces", False, "Namespace", ("finalize", "status"), True)
GET = Request("GET", "/api/v1/namespaces/foo/pods", "alice")


def cases(seed: str, count: int) -> list[Request]:
    return [case(Random(f"{seed}/{number}"), [PODS, NAMESPACES]) for number in range(count)]


def test_a_case_is_made_again_by_its_seed() -> None:
    assert cases("1", 50) == cases("1", 50)
    assert cases("1", 50) != cases("2", 50)


def test_every_case_can_be_sent() -> None:
    for request in cases("3", 2000):
        assert request.target.startswith("/")
        assert request.target.isascii()
        assert not set(request.target) & set(' "<>\\^`{|}')
        assert (request.body is None) == (request.method not in ("POST", "PUT", "PATCH"))


def test_the_cases_have_all_sorts_of_paths() -> None:
    targets = [request.target for request in cases("4", 3000)]
    for part in ("/watch/", "/proxy/", "namespaces/foo/namespaces/", "//", "%2F", "%25", "/../", "/status", "/%7B"):
        assert any(part in target for target in targets), part


def test_no_object_is_made_that_changes_what_becomes_of_requests() -> None:
    webhooks = Served(
        "/apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        False,
        "ValidatingWebhookConfiguration",
        (),
        True,
    )
    assert fixture(webhooks, "a")["metadata"]["name"] == "NO NAME"
    assert fixture(PODS, "a")["spec"]


def status(code: int, message: str) -> Answer:
    return Answer(code, {"kind": "Status", "message": message, "code": code})


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        (status(404, "x"), status(404, "x"), []),
        (status(404, "x"), status(404, "y"), ["body.message: a 'x', b 'y'"]),
        (Answer(404, "404 page not found\n"), Answer(404, "404 page not found\n"), []),
        (Answer(200, {"kind": "PodList", "items": []}), Answer(200, {"kind": "PodList", "items": []}), []),
        (
            Answer(200, {"kind": "PodList", "items": []}),
            Answer(200, {"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}),
            ["items[0]: only b has '/a'"],
        ),
        (Answer(0, "closed"), Answer(200, {}), []),
        (status(201, "x"), status(501, "x"), ["body.code: a 201, b 501", "code: a 201, b 501"]),
    ],
)
def test_codes_statuses_and_what_is_listed_must_be_alike(a: Answer, b: Answer, lines: list[str]) -> None:
    assert compared(GET, a, b) == lines


def test_what_is_known_to_differ_is_named_narrowly() -> None:
    webhook = Request("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "admin")
    assert compared(webhook, status(422, "x"), status(501, "y"))  # every kind can be created
    nameless = "/api/v1/namespaces/foo/pods//status"
    refused = status(400, "name must be provided")
    selecting = Request("GET", f"{nameless}?fieldSelector=metadata.name=a", "admin")
    assert compared(selecting, status(200, "x"), refused) == []
    assert compared(Request("GET", nameless, "admin"), status(200, "x"), refused)


class FakeClient:
    """Client that answers lists with the given objects."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def another(self) -> FakeClient:
        return self

    def ask(self, method: str, path: str, body: Any = None, headers: Any = None) -> Answer:
        return Answer(200, {"metadata": {"resourceVersion": str(len(self.items))}, "items": self.items})


def test_what_has_become_of_objects_is_told_by_each() -> None:
    client = FakeClient()
    side = Side(client)  # type: ignore[arg-type]
    meta = {"name": "a", "namespace": "foo", "uid": "1", "resourceVersion": "1"}
    key = ("/api/v1/pods", "foo", "a")
    seen = []
    for items in (
        [meta],
        [{**meta, "resourceVersion": "2"}],
        [{**meta, "uid": "2"}],
        [{**meta, "uid": "2", "deletionTimestamp": "x"}],
        [],
    ):
        client.items = [{"metadata": each} for each in items]
        seen.append(side.look([PODS]))
    assert seen == [{key: each} for each in ("made", "changed", "made again", "going", "gone")]


@pytest.mark.slow
def test_a_server_is_like_itself_by_every_path(capsys: pytest.CaptureFixture[str]) -> None:
    serve = shlex.join([sys.executable, str(ROOT / "bench" / "serve"), "--allow-privileged"])
    assert main(["--a", serve, "--b", serve, "--cases", "400", "--kinds", "paths"]) == 0
    assert " 0 differ," in capsys.readouterr().out
