"""Two servers on one etcd; one has lost its watch, while its other calls are answered.

It then reads needed objects from etcd. Its own writes are only acknowledged once the watch is back, so the tests use
dry runs and refusals.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.controllers.tokens.account_tokens import legacy_claims
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.rest.context import loopback
from steersman.storage.cache.cacher import Cacher
from steersman.storage.etcd import EtcdStorage
from steersman.storage.wrapping import WrappingStorage
from steersman.store import watching
from steersman.testing.client import Client
from tests.storage.etcd.process import EtcdProcess

pytestmark = pytest.mark.slow

ADMIN = UserInfo("admin", groups=("system:masters",))
_PATIENCE = 0.2
"""Seconds to wait for a cache, instead of three."""


def etcd_of(plane: ControlPlane) -> EtcdStorage:
    storage: Any = plane.storage
    while isinstance(storage, WrappingStorage):
        storage = storage._inner
    assert isinstance(storage, EtcdStorage)
    return storage


class Servers:
    def __init__(self, told: ControlPlane, untold: ControlPlane) -> None:
        self.planes = told, untold
        self.told, self.untold = (Client(each, {"admin": each.token_of(ADMIN)}, "admin") for each in self.planes)

    async def make(self, path: str, name: str, **rest: Any) -> Any:
        """Create an object through the other server."""
        answer = await self.told.post(path, {"metadata": {"name": name}, **rest})
        assert answer.status == 201, answer.json()
        return answer.json()

    async def back(self) -> None:
        """Wait until the watch is back."""
        storage = etcd_of(self.planes[1])
        storage.watch_loop.start(storage.revision)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.stop()


@pytest.fixture
async def servers(etcd: EtcdProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    planes = []
    for number in (1, 2):
        options = Options(
            data_dir=tmp_path / "both",
            listen=False,
            etcd_servers=(etcd.url,),
            allow_privileged=True,
            advertise_address=f"192.0.2.{number}",
        )
        planes.append(ControlPlane(options))
        await planes[-1].start()
    defaults = Cacher.wait_fresh.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeout", _PATIENCE)
    made = Servers(*planes)
    await etcd_of(planes[1]).watch_loop.stop()
    yield made
    await made.back()
    for plane in reversed(planes):
        await plane.stop()


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_what_a_pod_needs_is_found(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces", "new")
    await servers.make("/api/v1/namespaces/new/serviceaccounts", "robot")
    await servers.make("/apis/node.k8s.io/v1/runtimeclasses", "kata", handler="k", overhead={"podFixed": {"cpu": "1"}})
    wanted = pod(serviceAccountName="robot", runtimeClassName="kata")
    answer = await servers.untold.post("/api/v1/namespaces/new/pods?dryRun=All", wanted)
    assert answer.status == 201, answer.json()
    assert answer.json()["spec"]["overhead"] == {"cpu": "1"}
    missing = await servers.untold.post("/api/v1/namespaces/none/pods?dryRun=All", wanted)
    assert (missing.status, missing.json()["message"]) == (404, 'namespaces "none" not found')


async def test_quotas_and_limit_ranges_count(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    await servers.make("/api/v1/namespaces/default/limitranges", "small", spec={"limits": limits})
    large = pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}])
    for _ in range(2):  # what was found counts the second time, too
        answer = await servers.untold.post("/api/v1/namespaces/default/pods", large)
        assert (answer.status, answer.json()["reason"]) == (403, "Forbidden"), answer.json()
        assert "maximum cpu usage per Container is 1" in answer.json()["message"]
    quota = await servers.make("/api/v1/namespaces/default/resourcequotas", "no", spec={"hard": {"configmaps": "0"}})
    quota["status"] = {"hard": {"configmaps": "0"}, "used": {"configmaps": "0"}}
    assert (await servers.told.put("/api/v1/namespaces/default/resourcequotas/no/status", quota)).status == 200
    refused = await asyncio.gather(
        *(
            servers.untold.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"c{number}"}})
            for number in range(3)
        )
    )
    assert [answer.status for answer in refused] == [403] * 3, [answer.json() for answer in refused]
    assert all("exceeded quota: no" in answer.json()["message"] for answer in refused)


async def test_a_namespace_without_quotas_is_looked_into_once(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    ranged = EtcdStorage.range

    async def count(storage: EtcdStorage, prefix: str, **more: Any) -> Any:
        looks.append(prefix)
        return await ranged(storage, prefix, **more)

    await servers.make("/api/v1/namespaces/default/configmaps", "untold")
    monkeypatch.setattr(EtcdStorage, "range", count)
    for number in range(2):
        path = "/api/v1/namespaces/default/configmaps?dryRun=All"
        assert (await servers.untold.post(path, {"metadata": {"name": f"c{number}"}})).status == 201
    assert looks == ["/registry/resourcequotas/default/"]


async def test_tokens_are_judged_by_what_is_stored(servers: Servers) -> None:
    told = servers.planes[0]
    await servers.make("/api/v1/namespaces", "new")
    await servers.make("/api/v1/namespaces/new/serviceaccounts", "robot")
    path = "/api/v1/namespaces/new/serviceaccounts/robot/token"
    bound = (await servers.told.post(path, {"spec": {}})).json()["status"]["token"]
    ctx = loopback("new", "robot")
    account = await told.objects("", "serviceaccounts").get(ctx, "robot")
    kind = "kubernetes.io/service-account-token"
    metadata = {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    answer = await servers.told.post("/api/v1/namespaces/new/secrets", {"metadata": metadata, "type": kind})
    assert answer.status == 201, answer.json()
    secret = await told.objects("", "secrets").get(ctx, "kept")
    assert told.sign_token is not None
    legacy = told.sign_token(legacy_claims(account, secret))
    filled = await servers.told.patch("/api/v1/namespaces/new/secrets/kept", {"stringData": {"token": legacy}})
    assert filled.status == 200
    for token in (bound, legacy):
        review = await servers.untold.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
        status = review.json()["status"]
        assert status.get("authenticated") is True, status
        assert status["user"]["username"] == "system:serviceaccount:new:robot"
    other = told.sign_token({**legacy_claims(account, secret), "kubernetes.io/serviceaccount/secret.name": "gone"})
    review = await servers.untold.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": other}})
    assert "Token has been invalidated" in review.json()["status"]["error"]


async def test_labels_of_a_new_namespace_select_it(servers: Servers) -> None:
    """For CONNECT too, for which nothing else reads the namespace."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "CONNECT"],
        "resources": ["configmaps", "services/proxy"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kept": "yes"}}},
        "validations": [{"expression": "false", "message": "it is kept"}],
    }
    await servers.back()
    await servers.make(f"{group}/validatingadmissionpolicies", "keep", spec=spec)
    binding = {"policyName": "keep", "validationActions": ["Deny"]}
    await servers.make(f"{group}/validatingadmissionpolicybindings", "keep", spec=binding)
    config_maps = "/api/v1/namespaces/{}/configmaps?dryRun=All"
    await servers.make("/api/v1/namespaces", "seen")
    await (
        servers.planes[1]
        .objects("admissionregistration.k8s.io", "validatingadmissionpolicybindings")
        .wait_until_current()
    )
    await etcd_of(servers.planes[1]).watch_loop.stop()
    answer = await servers.told.post("/api/v1/namespaces", {"metadata": {"name": "kept", "labels": {"kept": "yes"}}})
    assert answer.status == 201
    await servers.make("/api/v1/namespaces", "open")
    statuses = [
        (await servers.untold.post(config_maps.format(name), {"metadata": {"name": "c"}})).status
        for name in ("kept", "open", "seen")
    ]
    assert statuses == [422, 201, 201]
    answer = await servers.untold.get("/api/v1/namespaces/kept/services/none/proxy/")
    assert (answer.status, "it is kept" in answer.json()["message"]) == (422, True), answer.json()


async def test_an_eviction_goes_by_the_budgets_there_are(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    made = await servers.told.post("/api/v1/namespaces/default/pods", pod(terminationGracePeriodSeconds=0))
    assert made.status == 201, made.json()
    running = {**made.json(), "status": {"phase": "Running"}}
    path = "/api/v1/namespaces/default/pods/p"
    assert (await servers.told.put(f"{path}/status", running)).status == 200
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    allowed = await servers.untold.post(f"{path}/eviction?dryRun=All", eviction)
    assert allowed.status == 201, allowed.json()
    await servers.make("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "all", spec={"selector": {}})
    refused = await servers.untold.post(f"{path}/eviction?dryRun=All", eviction)
    assert refused.status == 429, refused.json()
    assert "disruption budget" in refused.json()["message"]


async def test_a_watch_of_an_old_path_begins_and_is_told_later(servers: Servers) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await servers.make(path, "later")
    async with asyncio.timeout(60):
        stream = await servers.untold.open("GET", "/api/v1/watch/namespaces/default/configmaps/later")
        assert stream.status == 200
        refused = await servers.untold.get(f"{path}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        assert refused.status == 200
        document = json.loads(refused.body)
        assert (document["type"], document["object"]["code"]) == ("ERROR", 504)
        await servers.back()
        first = await anext(aiter(stream))
    assert json.loads(first)["object"]["metadata"]["name"] == "later"


async def test_a_watch_of_an_old_path_begins_while_etcd_says_nothing(
    servers: Servers, etcd: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FRESH_TIMEOUT", _PATIENCE)
    path = "/api/v1/namespaces/default/configmaps"
    await servers.make(path, "later")
    etcd.pause()
    try:
        async with asyncio.timeout(30):
            refused = await servers.told.get(f"{path}?watch=1")  # as one that asks for initial events
            assert refused.status == 429, refused.json()
            stream = await servers.told.open("GET", "/api/v1/watch/namespaces/default/configmaps")
            assert stream.status == 200
            assert json.loads(await anext(aiter(stream)))["object"]["metadata"]["name"] == "later"
            await stream.aclose()
    finally:
        etcd.go_on()
