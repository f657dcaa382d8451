"""Tests of ServiceAccount: the account of a pod, its token, its secrets."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.service_account import (
    MOUNT_PATH,
    VOLUME_PREFIX,
    AccountSummary,
    ServiceAccount,
    account_of,
)
from steersman.api.core.v1 import ServiceAccount as ServiceAccountObject
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.testing import Client
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, admitted, an_update, make_pod, refusal

ENFORCE = "kubernetes.io/enforce-mountable-secrets"
MIRROR = {"kubernetes.io/config.mirror": "x"}


def account(name: str = "default", **fields: Any) -> AccountSummary:
    return account_of(from_plain(ServiceAccountObject, {"metadata": {"name": name}, **fields}))


def plugin(*accounts: AccountSummary) -> ServiceAccount:
    known = {("ns", each.name): each for each in accounts}
    return ServiceAccount(lambda namespace, name: known.get((namespace, name)), pause=lambda: 0.0)


async def spec_of(spec: dict[str, Any], *accounts: AccountSummary) -> dict[str, Any]:
    record = await admitted(plugin(*accounts), a_write(make_pod(spec)))
    plain: dict[str, Any] = to_plain(record.obj.spec)
    return plain


async def test_a_pod_gets_the_default_account_and_its_token() -> None:
    spec = await spec_of({"initContainers": [CONTAINER | {"name": "i"}]}, account())
    assert spec["serviceAccountName"] == "default"
    (volume,) = spec["volumes"]
    assert volume["name"].startswith(VOLUME_PREFIX)
    assert len(volume["name"]) == len(VOLUME_PREFIX) + 5
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["volumeMounts"] == [mount]


async def test_a_container_that_has_something_there_keeps_it() -> None:
    own = {"name": "mine", "mountPath": MOUNT_PATH}
    spec = await spec_of({"containers": [CONTAINER | {"volumeMounts": [own]}, CONTAINER | {"name": "d"}]}, account())
    assert spec["containers"][0]["volumeMounts"] == [own]
    assert [each["name"] for each in spec["volumes"]] == [spec["containers"][1]["volumeMounts"][0]["name"]]
    spec = await spec_of({"containers": [CONTAINER | {"volumeMounts": [own]}]}, account())
    assert "volumes" not in spec


async def test_a_volume_of_the_right_name_is_taken() -> None:
    spec = await spec_of({"volumes": [{"name": "kube-api-access-own", "emptyDir": {}}]}, account())
    assert [each["name"] for each in spec["volumes"]] == ["kube-api-access-own"]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-own"


@pytest.mark.parametrize(
    ("of_account", "of_pod", "mounted"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
async def test_the_pod_has_the_last_word_on_the_token(
    of_account: bool | None, of_pod: bool | None, mounted: bool
) -> None:
    asked: dict[str, Any] = {} if of_account is None else {"automountServiceAccountToken": of_account}
    spec = await spec_of({} if of_pod is None else {"automountServiceAccountToken": of_pod}, account(**asked))
    assert ("volumes" in spec) is mounted


async def test_pull_secrets_are_the_accounts_unless_the_pod_has_its_own() -> None:
    pull = account(imagePullSecrets=[{"name": "one"}, {"name": "two"}])
    assert (await spec_of({}, pull))["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert (await spec_of({"imagePullSecrets": [{"name": "mine"}]}, pull))["imagePullSecrets"] == [{"name": "mine"}]


async def test_an_account_that_is_not_there_is_refused() -> None:
    error = await refusal(plugin(account()), a_write(make_pod({"serviceAccountName": "other"})))
    assert (error.code, error.message) == (
        403,
        'pods "p" is forbidden: error looking up service account ns/other: serviceaccount "other" not found',
    )


async def test_the_default_account_is_waited_for() -> None:
    asked = []

    def find(namespace: str, name: str) -> AccountSummary | None:
        asked.append((namespace, name))
        return account() if len(asked) > 3 else None

    record = await admitted(ServiceAccount(find, pause=lambda: 0.0), a_write(make_pod()))
    assert record.obj.spec.service_account_name == "default"
    never = ServiceAccount(lambda namespace, name: asked.append((namespace, name)), pause=lambda: 0.0)
    asked.clear()
    error = await refusal(never, a_write(make_pod()))
    assert error.message.endswith('ns/default: serviceaccount "default" not found')
    assert len(asked) == 11


REFERENCES = [
    (
        {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
        'volume with secret.secretName="other"',
        "secret",
    ),
    (
        {"initContainers": [CONTAINER | {"envFrom": [{"secretRef": {"name": "other"}}]}]},
        'init container c with envFrom referencing secret.secretName="other"',
        "secret",
    ),
    (
        {
            "containers": [
                CONTAINER | {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]}
            ]
        },
        'container c with envVar A referencing secret.secretName="other"',
        "secret",
    ),
    ({"imagePullSecrets": [{"name": "other"}]}, 'imagePullSecrets[0].name="other"', "imagePullSecret"),
]


@pytest.mark.parametrize(("spec", "what", "kind"), REFERENCES)
async def test_only_the_secrets_of_a_strict_account_may_be_used(spec: Any, what: Any, kind: Any) -> None:
    strict = from_plain(
        ServiceAccountObject,
        {"metadata": {"name": "default", "annotations": {ENFORCE: "true"}}, "secrets": [{"name": "k"}]},
    )
    error = await refusal(plugin(account_of(strict)), a_write(make_pod(spec)))
    text = f"{what} is not allowed because service account default does not reference that {kind}"
    assert error.message == f'pods "p" is forbidden: {text}'
    strict.metadata.annotations[ENFORCE] = "yes"
    await admitted(plugin(account_of(strict)), a_write(make_pod(spec)))


async def test_a_foreign_secret_in_an_ephemeral_container_is_an_error_as_upstream() -> None:
    strict = from_plain(ServiceAccountObject, {"metadata": {"name": "default", "annotations": {ENFORCE: "1"}}})
    debug = CONTAINER | {"name": "e", "envFrom": [{"secretRef": {"name": "s"}}]}
    new = make_pod({"serviceAccountName": "default", "ephemeralContainers": [debug]})
    update = an_update(new, make_pod({"serviceAccountName": "default"}), subresource="ephemeralcontainers")
    error = await refusal(plugin(account_of(strict)), update)
    assert (error.code, error.message) == (
        500,
        'ephemeral container e with envFrom referencing secret.secretName="s" is not allowed because service account '
        "default does not reference that secret",
    )


async def test_updates_are_let_through_whatever_has_become_of_the_account() -> None:
    pod = make_pod({"serviceAccountName": "gone"})
    await admitted(plugin(), an_update(pod, pod))
    await admitted(plugin(), an_update(pod, pod, subresource="status"))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "cephfs": {"monitors": ["m"], "secretRef": {"name": "s"}}}]},
            "a mirror pod may not reference secrets",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
async def test_mirror_pods_get_nothing_and_may_ask_for_nothing(spec: dict[str, Any], why: str) -> None:
    error = await refusal(plugin(account()), a_write(make_pod(spec, annotations=MIRROR)))
    assert error.message == f'pods "p" is forbidden: {why}'
    record = await admitted(plugin(account()), a_write(make_pod(annotations=MIRROR)))
    assert record.obj == make_pod(annotations=MIRROR)


async def test_over_the_wire_a_pod_waits_for_its_account(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    body = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "robot", "containers": [CONTAINER]}}
    assert (await api.post(pods, body)).status == 403
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert (await api.post(accounts, {"metadata": {"name": "robot"}})).status == 201
    made = (await api.post(pods, body)).json()
    assert made["spec"]["serviceAccount"] == "robot"
    names = {each["name"] for each in made["spec"]["volumes"]}
    assert names == {each["name"] for each in made["spec"]["containers"][0]["volumeMounts"]}
