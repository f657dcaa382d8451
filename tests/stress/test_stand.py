"""Server of runs: its first state, and leases of an operator that was killed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from steersman.stress.masking import Masker
from steersman.stress.run import OPERATOR, OperatorRunner, Settings, Stand
from steersman.stress.tap import Tap

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/namespaces/default/configmaps"
LEADER = "control-plane.alpha.kubernetes.io/leader"


async def test_a_run_begins_with_the_manifests_and_nothing_else(tmp_path: Path) -> None:
    manifests = tmp_path / "objects.yaml"
    manifests.write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: before, namespace: shop}}\n---\n"
        "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"
    )
    async with Stand(Settings(manifests=(manifests,))) as stand:
        client = stand.environment.client(OPERATOR.name)
        assert (await client.post(MAPS, {"metadata": {"name": "a"}})).status == 201
        assert [str(each) for each in stand.state(Masker())] == ["ConfigMap default/a"]
        await stand.reset()
        assert stand.state(Masker()) == {}
        client = stand.environment.client(OPERATOR.name)
        assert (await client.get(f"{MAPS}/a")).status == 404
        assert (await client.get(MAPS.replace("default", "shop") + "/before")).status == 200


async def test_leases_of_the_operator_are_released_and_no_others() -> None:
    async with Stand(Settings()) as stand:
        tap = Tap(is_subject=lambda met: met.user == OPERATOR.name)
        stand.environment.fault_set.interceptor = tap
        operator, other = stand.environment.client(OPERATOR.name), stand.environment.client("test")

        async def hold(client: Any, name: str) -> None:
            lease = {"metadata": {"name": name}, "spec": {"holderIdentity": "me"}}
            assert (await client.post(LEASES, lease)).status == 201

        await hold(operator, "mine")
        await hold(other, "yours")
        lock = {"metadata": {"name": "lock", "annotations": {LEADER: '{"holderIdentity":"me","leaderTransitions":1}'}}}
        assert (await operator.post(MAPS, lock)).status == 201
        await stand.release(tap)
        holders = {each: (await other.get(f"{LEASES}/{each}")).json()["spec"] for each in ("mine", "yours")}
        assert holders == {"mine": {"holderIdentity": ""}, "yours": {"holderIdentity": "me"}}
        annotations = (await other.get(f"{MAPS}/lock")).json()["metadata"]["annotations"]
        assert json.loads(annotations[LEADER]) == {"holderIdentity": "", "leaderTransitions": 1}


async def test_a_leader_that_renews_its_lock_keeps_no_run_from_rest() -> None:
    operator = f"exec {sys.executable} -m tests.stress.leading_operator"
    async with Stand(Settings(operator, "true", settle=1.0, patience=5.0)) as stand:
        run = await OperatorRunner(stand).run([], None)
    assert run.failure == "", run.output
    assert run.seen == []
    assert run.state == {}
