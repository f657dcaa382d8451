"""Reviews of large sets of rules: bounded, and evaluated in worker threads."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import pytest

from steersman.api.authorization.v1 import SelfSubjectRulesReview
from steersman.authorization.reviews import rules_review_status
from steersman.kinds.structs import StructKind
from steersman.registry.authorization import selfsubjectrulesreviews

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUP = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which answers were created and encoded."""
    found: list[int] = []
    status, encode = rules_review_status, StructKind.body

    def seen_status(resolved: Any) -> Any:
        found.append(get_ident())
        return status(resolved)

    def seen_encode(kind: StructKind[Any], answer: Any) -> bytes:
        if isinstance(answer, SelfSubjectRulesReview):
            found.append(get_ident())
        return encode(kind, answer)

    monkeypatch.setattr(selfsubjectrulesreviews, "rules_review_status", seen_status)
    monkeypatch.setattr(StructKind, "body", seen_encode)
    return found


async def test_many_bindings_to_a_large_role_are_listed_within_a_bound(api: Any, namespace: str, at: list[int]) -> None:
    rights = f"/apis/{GROUP}/v1/namespaces/{namespace}"
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{number}"]} for number in range(6_500)]
    assert (await api.post(f"{rights}/roles", {"metadata": {"name": "large"}, "rules": rules})).status == 201
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "large"}
    alice = [{"kind": "User", "apiGroup": GROUP, "name": "alice"}]
    for number in range(6):
        binding = {"metadata": {"name": f"b{number}"}, "roleRef": ref, "subjects": alice}
        assert (await api.post(f"{rights}/rolebindings", binding)).status == 201
    alice_s = api.as_user("alice")
    answer = await alice_s.post(REVIEWS, {"spec": {"namespace": namespace}})
    status = answer.json()["status"]
    assert answer.status == 201
    assert len(answer.body) < 4 << 20
    assert status["incomplete"] is True
    assert status["evaluationError"].startswith("rbac authorizer does not list rules of more than 65536 values")
    listed = [rule["resources"][0] for rule in status["resourceRules"]]
    # repeated as often as it is granted, in order, after the rules of all users
    own = listed[listed.index("r0") :]
    assert own == [f"r{number % 6_500}" for number in range(len(own))]
    assert len(own) > 13_000
    assert len(at) == 2
    assert get_ident() not in at
    assert (await alice_s.get(f"/api/v1/namespaces/{namespace}/r6499/x")).status == 404
    assert (await alice_s.get(f"/api/v1/namespaces/{namespace}/r6500/x")).status == 403
