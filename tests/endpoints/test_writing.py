"""Rights that writes need."""

from __future__ import annotations

from typing import Any

import pytest

APPLY = "application/apply-patch+yaml"


async def _grant(api: Any, namespace: str, *rules: dict[str, Any]) -> None:
    """Grant alice these rights in the namespace."""
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "given"}
    subjects = [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": "given"}, "roleRef": reference, "subjects": subjects}
    assert (await api.post(f"{root}/roles", {"metadata": {"name": "given"}, "rules": rules})).status == 201
    assert (await api.post(f"{root}/rolebindings", binding)).status == 201


def _rule(resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("creates", "status"), [("services/status", 201), ("services", 403)], ids=["the status", "services alone"]
)
async def test_who_makes_a_service_by_its_status_needs_the_right_to_create_the_status(
    api: Any, namespace: str, method: str, creates: str, status: int
) -> None:
    await _grant(api, namespace, _rule("services/status", "update", "patch"), _rule(creates, "create"))
    alice = api.as_user("alice")
    path = f"/api/v1/namespaces/{namespace}/services/a/status"
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    if method == "PUT":
        answer = await alice.put(path, body)
    else:
        answer = await alice.request("PATCH", f"{path}?fieldManager=me", body, content_type=APPLY)
    assert answer.status == status
    if status == 403:
        assert answer.json()["message"] == (
            'services "a" is forbidden: User "alice" cannot create resource "services/status" in API group "" in the '
            f'namespace "{namespace}"'
        )
