"""ControllerRevisions, whose data is compared as it was sent."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    "data", ['{"a": "b"}', '{"b":1e30,"a":"x"}', '{"a": "<>&"}', '{"a":"\\u003c"}', '{"a":"é\u2028"}']
)
async def test_the_data_may_be_sent_again_as_it_was(api: Any, namespace: str, data: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    body = '{"metadata":{"name":"a"},"revision":%d,"data":' + data + "}"
    assert (await api.post(path, (body % 1).encode())).status == 201
    answer = await api.put(f"{path}/a", (body % 2).encode())
    assert (answer.status, answer.json()["revision"]) == (200, 2)
    other = '{"metadata":{"name":"a"},"revision":3,"data":{"a":"other"}}'
    answer = await api.put(f"{path}/a", other.encode())
    assert answer.status == 422
    assert answer.json()["message"].endswith('data: Invalid value: {"a":"other"}: field is immutable')
