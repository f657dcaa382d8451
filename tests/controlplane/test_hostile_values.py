"""For any text, number, date or JSON of a client, the server answers without a traceback."""

from __future__ import annotations

import base64
import copy
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from steersman.machinery.codec.serializer import encode
from tools.differential.case import named
from tools.differential.objects import every_sample

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEEP = 3000

TEXTS = (
    "",
    " ",
    "\0",
    "\x7f",
    "\ufffd",
    "null",
    "{}",
    "[]",
    "[" * DEEP,
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP,
    '{"a":' + "[" * 100_000,
    "9" * 5000,
    "9" * 5000 + "%",
    "-" + "9" * 30,
    "1e999",
    "-1e999",
    "1e-999",
    "NaN",
    "-0",
    "1.5",
    "1." + "0" * 5000,
    "\u0663",
    "\u00b2",
    "%zz",
    "%ff",
    "a/../b",
    "..",
    "/",
    "0000-01-01T00:00:00Z",
    "0000-01-01T00:00:00+23:59",
    "9999-12-31T23:59:60Z",
    "9999-12-31T23:59:59-23:59",
    "999999999h",
    "9" * 400 + "s",
    "::ffff:1.2.3.4%eth0",
    "1.2.3.4/\u0663",
    "* * * * " + "9" * 40,
    "@every " + "9" * 30 + "h",
    "a(" * DEEP,
    "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----",
    "[{]",
    '{"a":1e999}',
    '[{"key":7}]',
    "[[]]",
    "[null]",
    '{"preferAvoidPods":[null]}',
    '{"preferAvoidPods":7}',
    '"\\ud800"',
    "e" * 70,
    "=",
    "a=",
    "a in (" * DEEP,
    "!" * DEEP,
)
"""Values for every place that accepts text."""

TOKENS = (
    '"\\ud800"',
    '"\\ud800\\u0000"',
    "1e999",
    "-1e999",
    "-0",
    "1e-999",
    "NaN",
    "1.5",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "-9223372036854775809",
    "9223372036854775807",
    "null",
    "true",
    "{}",
    "[]",
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    '{"a":1e999}',
    '{"a":' + "9" * 400 + "}",
    "[1e999]",
)
"""Raw JSON for every place in a body."""

MARK = "hostile value"


@contextmanager
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if an exception was logged meanwhile."""
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        yield
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def answered(answer: Any, what: Any) -> None:
    """Check that an error of the server is described by a Status; only the outermost filter writes plain text."""
    assert answer.status < 500 or answer.body[:1] == b"{", (what, answer.status, answer.body[:200])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every member and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def with_mark(body: dict[str, Any], path: tuple[Any, ...]) -> str:
    """Return the body as JSON with a placeholder at the path."""
    body = copy.deepcopy(body)
    inner: Any = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = MARK
    return json.dumps(body)


SYSTEM_FIELDS: dict[str, Any] = {
    "annotations": {"a": "b"},
    "labels": {"a": "b"},
    "finalizers": ["a/b"],
    "generateName": "g-",
    "generation": 1,
    "creationTimestamp": "2020-01-01T00:00:00Z",
    "deletionTimestamp": "2020-01-01T00:00:00Z",
    "selfLink": "a",
    "uid": "u",
    "deletionGracePeriodSeconds": 1,
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}],
    "managedFields": [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2020-01-01T00:00:00Z",
            "subresource": "status",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {'k:{"a":1}': {}, "v:1": {}, "i:1": {}}},
        }
    ],
}


async def spoil_bodies(api: Any, namespace: str, *, stride: int) -> int:
    """Create every kind with hostile values at every place (dry run); of the values every `stride`-th, in rotation."""
    values = [*TOKENS, *map(json.dumps, TEXTS)]
    sent = turn = 0
    for number, sample in enumerate(every_sample()):
        body = named(copy.deepcopy(sample.body), f"sample-{number}", namespace)
        if not number:
            body["metadata"].update(SYSTEM_FIELDS)
        collection = named(sample.collection, f"sample-{number}", namespace)
        for path in places(body):
            text = with_mark(body, path)
            for value in values[turn % stride :: stride]:
                data = text.replace(f'"{MARK}"', value).encode()
                answer = await api.post(f"{collection}?dryRun=All", data, content_type="application/json")
                answered(answer, (collection, path, value[:60]))
                sent += 1
            turn += 1
    return sent


async def test_nothing_in_a_body_makes_the_server_fail(
    api_with_everything: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with no_traceback(caplog):
        assert await spoil_bodies(api_with_everything, namespace, stride=3 * (len(TEXTS) + len(TOKENS))) > 600


@pytest.mark.slow
async def test_nothing_in_a_body_makes_the_server_fail_more_thoroughly(
    api_with_everything: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with no_traceback(caplog):
        assert await spoil_bodies(api_with_everything, namespace, stride=12) > 8_000


POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
HPA: dict[str, Any] = {
    "spec": {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "D", "name": "d"}}
}
ANNOTATIONS: tuple[Any, ...] = (
    ("/api/v1/namespaces/{}/pods", POD, "scheduler.alpha.kubernetes.io/tolerations"),
    ("/api/v1/namespaces/{}/pods", POD, "controller.kubernetes.io/pod-deletion-cost"),
    ("/api/v1/namespaces/{}/pods", POD, "container.seccomp.security.alpha.kubernetes.io/c"),
    ("/api/v1/namespaces/{}/pods", POD, "container.apparmor.security.beta.kubernetes.io/c"),
    ("/api/v1/namespaces/{}/pods", POD, "kubernetes.io/config.mirror"),
    ("/api/v1/namespaces/{}/pods", POD, "kubectl.kubernetes.io/last-applied-configuration"),
    ("/api/v1/nodes", {}, "scheduler.alpha.kubernetes.io/taints"),
    ("/api/v1/nodes", {}, "scheduler.alpha.kubernetes.io/preferAvoidPods"),
    ("/api/v1/namespaces", {}, "scheduler.alpha.kubernetes.io/defaultTolerations"),
    ("/api/v1/namespaces/{}/endpoints", {}, "endpoints.kubernetes.io/last-change-trigger-time"),
    ("/apis/autoscaling/v1/namespaces/{}/horizontalpodautoscalers", HPA, "autoscaling.alpha.kubernetes.io/metrics"),
    ("/apis/autoscaling/v1/namespaces/{}/horizontalpodautoscalers", HPA, "autoscaling.alpha.kubernetes.io/behavior"),
    ("/apis/autoscaling/v1/namespaces/{}/horizontalpodautoscalers", HPA, "autoscaling.alpha.kubernetes.io/conditions"),
    (
        "/apis/autoscaling/v1/namespaces/{}/horizontalpodautoscalers",
        HPA,
        "autoscaling.alpha.kubernetes.io/current-metrics",
    ),
)


@pytest.mark.parametrize(("collection", "body", "annotation"), ANNOTATIONS)
async def test_no_annotation_makes_the_server_fail(
    api: Any, namespace: str, collection: str, body: dict[str, Any], annotation: str, caplog: pytest.LogCaptureFixture
) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    with no_traceback(caplog):
        for text in TEXTS:
            made = {**body, "metadata": {"name": "a", "annotations": {annotation: text}}}
            answer = await api.post(f"{collection.format(namespace)}?dryRun=All", made)
            answered(answer, text[:60])
            assert answer.status in (201, 422), (text[:60], answer.body[:300])


PARAMETERS = (
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "timeout",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "pretty",
    "includeObject",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "shardSelector",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
)
"""Without watch, as any value but `0` and `false` starts a watch."""
LOG_PARAMETERS = ("container", "follow", "limitBytes", "sinceSeconds", "sinceTime", "stream", "tailLines", "timestamps")


@pytest.mark.slow
async def test_no_query_makes_the_server_fail(api: Any, namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    base = f"/api/v1/namespaces/{namespace}/configmaps"
    with no_traceback(caplog):
        for name in PARAMETERS:
            for text in TEXTS:
                value = quote(text[:20_000], safe="")
                for method, target in (
                    ("GET", f"{base}?{name}={value}"),
                    ("GET", f"{base}?limit=1&{name}={value}&watch=0"),
                    ("POST", f"{base}?dryRun=All&{name}={value}"),
                    ("DELETE", f"{base}?dryRun=All&{name}={value}"),
                ):
                    body = {"metadata": {"generateName": "a"}} if method == "POST" else None
                    answered(await api.request(method, target, body), (method, name, text[:60]))
        for name in LOG_PARAMETERS:
            for text in TEXTS:
                value = quote(text[:20_000], safe="")
                answered(await api.get(f"/api/v1/namespaces/{namespace}/pods/p/log?{name}={value}"), (name, text[:60]))


async def test_no_continue_token_makes_the_server_fail(
    api: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with no_traceback(caplog):
        for text in (*TEXTS, *TOKENS):
            for inner in (
                text,
                f'{{"v":{text}}}',
                f'{{"v":"meta.k8s.io/v1","rv":{text},"start":"a"}}',
                f'{{"v":"meta.k8s.io/v1","rv":1,"start":{text}}}',
            ):
                token = base64.urlsafe_b64encode(inner[:6000].encode()).rstrip(b"=").decode()
                answer = await api.get(f"/api/v1/namespaces/{namespace}/configmaps?continue={token}")
                assert answer.status in (200, 400, 410, 504), (inner[:60], answer.body[:200])


async def test_no_name_in_a_path_makes_the_server_fail(api: Any, caplog: pytest.LogCaptureFixture) -> None:
    with no_traceback(caplog):
        for text in TEXTS:
            value = quote(text[:20_000], safe="")
            for path in (
                f"/api/v1/namespaces/{value}",
                f"/api/v1/namespaces/{value}/pods/{value}",
                f"/api/{value}",
                f"/apis/{value}/v1",
                f"/apis/apps/{value}/deployments",
                f"/api/v1/namespaces/default/services/{value}/proxy",
                f"/api/v1/nodes/{value}/proxy/{value}",
                f"/openapi/v3/{value}",
                f"/debug/pprof/profile?seconds={value}.",
                f"/apis/apps/v1/namespaces/default/deployments/{value}/scale",
                f"/{value}",
            ):
                answered(await api.get(path), path[:80])


async def test_no_header_makes_the_server_fail(api: Any, caplog: pytest.LogCaptureFixture) -> None:
    names = (
        "impersonate-user",
        "impersonate-group",
        "impersonate-uid",
        "impersonate-extra-a",
        "accept",
        "content-type",
        "accept-encoding",
        "authorization",
        "if-none-match",
        "user-agent",
        "traceparent",
        "audit-id",
        "origin",
        "sec-websocket-protocol",
        "x-forwarded-for",
    )
    with no_traceback(caplog):
        for name in names:
            for text in TEXTS:
                if any(char in text for char in "\0\r\n"):
                    continue
                for value in {text[:8000], quote(text[:8000]), text.encode().decode("latin-1")[:8000]}:
                    if value.isascii() or value.encode("utf-8", "replace"):
                        answer = await api.open(
                            "GET", "/api/v1/namespaces/default", None, **{name.replace("-", "_"): value}
                        )
                        await answer.read()
                        assert answer.status < 500, (name, value[:60])


async def test_nothing_put_to_the_verbosity_makes_the_server_fail(api: Any, caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger().level
    try:
        with no_traceback(caplog):
            for text in (*TEXTS, *TOKENS, "1" * 100):
                answer = await api.put("/debug/flags/v", text.encode())
                assert answer.status == 400, text[:60]
            assert (await api.put("/debug/flags/v", b"\xff\x00")).body == (
                b'strconv.ParseUint: parsing "\\xff\\x00": invalid syntax\n'
            )
            assert (await api.put("/debug/flags/v", b"4294967296")).body == (
                b'strconv.ParseUint: parsing "4294967296": value out of range\n'
            )
            assert (await api.put("/debug/flags/v", b"2147483648")).body == (
                b"failed set klog.logging.verbosity 2147483648: "
                b'strconv.ParseInt: parsing "2147483648": value out of range\n'
            )
            assert (await api.put("/debug/flags/v", b"a" * (4 << 20))).status == 413
            assert (await api.put("/debug/flags/v", b"00000")).body == (
                b"successfully set klog.logging.verbosity to 00000\n"
            )
    finally:
        logging.getLogger().setLevel(before)


PATCHES = {
    "application/merge-patch+json": '{{"metadata":{{"annotations":{0}}},"data":{{"a":{0}}}}}',
    "application/strategic-merge-patch+json": '{{"metadata":{0},"$patch":{0},"data":{{"$retainKeys":{0}}}}}',
    "application/json-patch+json": '[{{"op":"add","path":"/data/a","value":{0}}},{{"op":"test","path":{0}}}]',
    "application/apply-patch+yaml": '{{"apiVersion":"v1","kind":"ConfigMap","data":{{"a":{0}}},"x":{0}}}',
}


@pytest.mark.parametrize("media", PATCHES)
async def test_no_patch_makes_the_server_fail(
    api: Any, namespace: str, media: str, caplog: pytest.LogCaptureFixture
) -> None:
    target = f"/api/v1/namespaces/{namespace}/configmaps/patched"
    await api.post(target.rpartition("/")[0], {"metadata": {"name": "patched"}, "data": {"a": "b"}})
    with no_traceback(caplog):
        for value in (*TOKENS, *map(json.dumps, TEXTS)):
            data = PATCHES[media].format(value).encode()
            for query in ("?fieldManager=m&force=true", "?fieldManager=m&fieldValidation=Strict&dryRun=All"):
                answered(await api.request("PATCH", target + query, data, content_type=media), value[:60])
        for text in TEXTS:
            answered(
                await api.request("PATCH", f"{target}?fieldManager=m", text.encode(), content_type=media), text[:60]
            )


@pytest.mark.parametrize(
    "media", ["application/yaml", "application/vnd.kubernetes.protobuf", "application/json", "text/x"]
)
async def test_no_bytes_make_the_server_fail(
    api: Any, namespace: str, media: str, caplog: pytest.LogCaptureFixture
) -> None:
    envelope = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12"
    bodies = [text.encode() for text in (*TEXTS, *TOKENS)]
    bodies += [b"k8s\0" + body[:2000] for body in bodies]
    bodies += [
        envelope + bytes([len(tail)]) + tail
        for tail in (b"\xff" * 20, b"\x0a\x7f", b"\x08\x01", b"\x0b", b"\n\x03\n\x01\xff")
    ]
    bodies += [envelope + b"\xff" * count for count in range(1, 12)]
    bodies += [f"metadata:\n  name: {text[:3000]}\n".encode() for text in TEXTS] + [
        b"&a [*a]",
        b"a: &a [*a,*a]",
        b"? [a]",
    ]
    with no_traceback(caplog):
        for body in bodies:
            for target in ("configmaps?dryRun=All", "serviceaccounts/default/token?dryRun=All", "pods/p/eviction"):
                path = f"/api/v1/namespaces/{namespace}/{target}"
                answered(await api.post(path, body, content_type=media), body[:60])
            path = f"/api/v1/namespaces/{namespace}/configmaps/none"
            answered(await api.request("DELETE", path, body, content_type=media), body[:60])


async def test_no_options_of_a_delete_make_the_server_fail(
    api: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post(f"/api/v1/namespaces/{namespace}/pods", {**POD, "metadata": {"name": "p"}})
    options = {
        "gracePeriodSeconds": 1,
        "preconditions": {"uid": "u", "resourceVersion": "1"},
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
        "orphanDependents": True,
    }
    with no_traceback(caplog):
        for path in places(options):
            for value in (*TOKENS, *map(json.dumps, TEXTS), "9223372036854775807", "-9223372036854775808"):
                data = with_mark(options, path).replace(f'"{MARK}"', value).encode()
                target = f"/api/v1/namespaces/{namespace}/pods/p"
                answered(await api.request("DELETE", target, data, content_type="application/json"), value[:60])
        for seconds in (2**31, 2**53, 2**63 - 1, -(2**63)):
            body = encode({"gracePeriodSeconds": seconds, "dryRun": ["All"]})
            answered(await api.request("DELETE", target, body, content_type="application/json"), seconds)
