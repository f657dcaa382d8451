"""Large access reviews are read in worker threads."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from steersman.api.authorization.v1 import LocalSubjectAccessReview, SelfSubjectAccessReview, SubjectAccessReview
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.registry.authorization import (
    localsubjectaccessreviews,
    selfsubjectaccessreviews,
    subjectaccessreviews,
)
from steersman.registry.authorization.review import require_valid
from steersman.rest.context import Context

KINDS = [
    (subjectaccessreviews, SubjectAccessReview, {"user": "u"}),
    (localsubjectaccessreviews, LocalSubjectAccessReview, {"user": "u"}),
    (selfsubjectaccessreviews, SelfSubjectAccessReview, {}),
]


class RecordingAuthorizer:
    def authorize(self, attributes: Attributes) -> Verdict:
        assert threading.current_thread() is threading.main_thread()
        return Verdict(Decision.ALLOW, attributes.action.verb)


@pytest.mark.usefixtures("large_request")
@pytest.mark.parametrize(("module", "kind", "who"), KINDS)
async def test_what_is_wrong_with_a_large_review_is_found_beside_the_loop(
    module: Any, kind: Any, who: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def valid(errors: Any) -> None:
        threads.append(threading.current_thread())
        require_valid(errors)

    monkeypatch.setattr(module, "require_valid", valid)
    requirements = [{"key": f"k{number}", "operator": "In", "values": ["!"]} for number in range(200)]
    asked = {"verb": "list", "namespace": "n", "labelSelector": {"requirements": requirements}}
    review = msgspec.convert({"spec": {**who, "resourceAttributes": asked}}, kind)
    context = Context(UserInfo("u"), Action(namespace="n"))
    with pytest.raises(StatusError) as refused:
        await module.create(SimpleNamespace(authorizer=RecordingAuthorizer()), context, review)
    assert refused.value.code == 422
    assert threading.main_thread() not in threads
    del asked["labelSelector"]
    review = msgspec.convert({"spec": {**who, "resourceAttributes": asked}}, kind)
    answer = await module.create(SimpleNamespace(authorizer=RecordingAuthorizer()), context, review)
    assert (answer.status.allowed, answer.status.reason) == (True, "list")
    assert len(threads) == 2
    assert threading.main_thread() not in threads
