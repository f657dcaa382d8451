"""Tests of the audiences of tokens that kubelets request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from steersman.admission_plugins.node_restriction.tokens import Audiences, forbidden_in_token_request
from steersman.api.authentication.v1 import BoundObjectReference
from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import CSIDriver
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.codec.serializer import from_plain
from tests.admission_plugins.pods_and_namespaces import a_write, make_pod


class StoredObjects:
    """Objects by namespace and name."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects

    async def get_cached(self, namespace: str, name: str) -> Any:
        return self.objects.get(name)


class AudienceAuthorizer:
    """An authorizer that allows one audience, and records its requests."""

    def __init__(self, audience: str = "", error: str = "") -> None:
        self.audience = audience
        self.error = error
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Verdict:
        self.asked.append(attributes)
        if attributes.action.resource == self.audience:
            return Verdict(Decision.ALLOW)
        return Verdict(Decision.NO_OPINION, error=self.error)


CLAIM = from_plain(PersistentVolumeClaim, {"metadata": {"name": "c"}, "spec": {"volumeName": "pv"}})
VOLUMES = {
    "pv": from_plain(PersistentVolume, {"spec": {"csi": {"driver": "d", "volumeHandle": "h"}}}),
    "old": from_plain(PersistentVolume, {"spec": {"azureDisk": {"diskName": "a", "diskURI": "b"}}}),
}
DRIVER = from_plain(CSIDriver, {"spec": {"tokenRequests": [{"audience": "for-driver"}]}})


async def refusal_text(volumes: list[dict[str, Any]], *audiences: str, rights: AudienceAuthorizer | None = None) -> str:
    named = [{"name": "v", **each} for each in volumes]
    claims: Any = StoredObjects(c=CLAIM, gone=from_plain(PersistentVolumeClaim, {"spec": {"volumeName": "none"}}))
    drivers: Any = StoredObjects(**{"d": DRIVER, "disk.csi.azure.com": DRIVER})
    stored_objects: Any = StoredObjects(**VOLUMES)
    judge = Audiences(rights or AudienceAuthorizer(), claims, stored_objects, drivers)
    account: Any = SimpleNamespace(metadata=SimpleNamespace(name="sa", namespace="ns"))
    record = a_write(account, resource="serviceaccounts", subresource="token")
    return await judge.forbidden(audiences, make_pod({"volumes": named}), record)


PROJECTED = {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}


@pytest.mark.parametrize(
    ("volume", "audience"),
    [
        (PROJECTED, "vault"),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, ""),
        ({"csi": {"driver": "d"}}, "for-driver"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "for-driver"),
        ({"azureDisk": {"diskName": "a", "diskURI": "b"}}, "for-driver"),
    ],
)
async def test_what_volumes_of_the_pod_name(volume: Any, audience: str) -> None:
    assert await refusal_text([volume], audience) == ""
    assert "not found in pod spec volume" in await refusal_text([volume], "another")


async def test_what_rights_allow() -> None:
    rights = AudienceAuthorizer("another")
    assert await refusal_text([PROJECTED], "another", rights=rights) == ""
    action = rights.asked[0].action
    assert (action.verb, action.version, action.resource) == ("request-serviceaccounts-token-audience", "v1", "another")
    assert (action.namespace, action.name) == ("ns", "sa")


async def test_no_more_than_one() -> None:
    assert await refusal_text([PROJECTED], "vault", "other") == "node may only request 0 or 1 audiences"


async def test_what_is_missing_is_told() -> None:
    refused = await refusal_text([{"persistentVolumeClaim": {"claimName": "nosuch"}}], "a")
    assert refused == 'error validating audience "a": persistentvolumeclaim "nosuch" not found'
    refused = await refusal_text([{"persistentVolumeClaim": {"claimName": "gone"}}, {"csi": {"driver": "x"}}], "a")
    assert refused == (
        'error validating audience "a": [persistentvolume "none" not found, csidriver.storage.k8s.io "x" not found]'
    )


async def test_an_authorizer_that_fails_allows_nothing() -> None:
    refused = await refusal_text([], "a", rights=AudienceAuthorizer(error="down"))
    assert refused == (
        'audience "a" not found in pod spec volume, error authorizing alice to request tokens for this audience: down'
    )


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (None, "node requested token not bound to a pod"),
        (BoundObjectReference(api_version="v1", kind="Secret", name="s", uid="u"), "not bound to a pod"),
        (BoundObjectReference(api_version="v1", kind="Pod", name="p"), "a pod binding without a uid"),
        (BoundObjectReference(api_version="v1", kind="Pod", name="p", uid="u"), ""),
    ],
)
def test_a_token_is_a_pods(reference: BoundObjectReference | None, why: str) -> None:
    found = forbidden_in_token_request(reference)
    assert why in found
    assert bool(found) is bool(why)
