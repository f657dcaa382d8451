"""Queries of every option, on every verb: values that are empty, repeated, joined by commas, of another type, foreign.

Deletes of one object and of a collection come most often, with the options of lists among theirs: what an option says
that is passed over there is lost.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, Final

from .case import NAME, NAMESPACE, SINCE, UID, Case, Step
from .server import Answer

Values = tuple[str, ...]
Options = Mapping[str, Values]

_CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PARTIAL: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"

_FLAGS: Final[Values] = ("", "true", "false", "0", "1", "FALSE", "False", "no", "true,false", "fal\u017fe")
_NUMBERS: Final[Values] = ("", "0", "1", "30", "-1", "x", "1,2", "1.5", " 1", "+1", "9223372036854775808", "0x1")
_TEXTS: Final[Values] = ("", "a", "a,b", "\u00e9", "a b", "x" * 200)
_DRY_RUN: Final[Values] = ("All", "All", "", "all", "All,All", "None", "true")
_VERSIONS: Final[Values] = (SINCE, SINCE, "", "0", "1", "x", "-1", "1,2", "01")
_UIDS: Final[Values] = (UID, UID, "", "00000000-0000-0000-0000-000000000000", "x", f"{UID},{UID}", f" {UID}")

_WRITE: Final[Options] = {
    "dryRun": _DRY_RUN,
    "fieldManager": _TEXTS,
    "fieldValidation": ("", "Strict", "Warn", "Ignore", "strict", "a,b"),
}
_PATCH: Final[Options] = {**_WRITE, "force": _FLAGS}
_GET: Final[Options] = {"resourceVersion": _VERSIONS, "export": _FLAGS, "exact": _FLAGS}
_DELETE: Final[Options] = {
    "dryRun": _DRY_RUN,
    "gracePeriodSeconds": _NUMBERS,
    "orphanDependents": _FLAGS,
    "uid": _UIDS,
    "propagationPolicy": ("", "Background", "Orphan", "Foreground", "background", "Orphan,Background", "nil"),
    "resourceVersion": _VERSIONS,
    "preconditions": ("{}", "uid"),
    "ignoreStoreReadErrorWithClusterBreakingPotential": _FLAGS,
}
_LIST: Final[Options] = {
    "fieldSelector": ("", f"metadata.name={NAME}", "metadata.name=other", "data=x", "metadata.name", "a=b,"),
    "resourceVersion": _VERSIONS,
    "resourceVersionMatch": ("", "Exact", "NotOlderThan", "exact", "Exact,Exact"),
    "limit": _NUMBERS,
    "continue": ("", "x"),
    "timeoutSeconds": ("1", "1", "x", "", "1,2"),
    "watch": ("false", "0", "False"),
    "allowWatchBookmarks": _FLAGS,
    "sendInitialEvents": _FLAGS,
    "shardSelector": ("", "x"),
}
_WATCH: Final[Options] = {
    **{name: _LIST[name] for name in ("fieldSelector", "allowWatchBookmarks", "sendInitialEvents", "limit")},
    "continue": ("", "x"),
    "resourceVersion": (SINCE, SINCE, "", "0", "x", "1,2", "-1", "01"),
    "resourceVersionMatch": ("", "NotOlderThan", "NotOlderThan", "Exact"),
    "watch": ("true", "1", ""),
}
_LOG: Final[Options] = {
    "container": ("", "c", "d", "c,c"),
    "follow": _FLAGS,
    "previous": _FLAGS,
    "timestamps": _FLAGS,
    "sinceSeconds": _NUMBERS,
    "tailLines": _NUMBERS,
    "limitBytes": _NUMBERS,
    "insecureSkipTLSVerifyBackend": _FLAGS,
    "sinceTime": ("", "null", "2026-01-01T00:00:00Z", "x", "2026-01-01"),
    "stream": ("", "All", "Stdout"),
    "dryRun": ("All",),
}
_STREAMS: Final[Options] = {
    "container": ("", "c", "d"),
    "command": ("", "ls", "a,b"),
    "stdin": _FLAGS,
    "stdout": _FLAGS,
    "tty": _FLAGS,
    "dryRun": ("", "All"),
}
_PORTS: Final[Options] = {
    "ports": ("80", "80,81", "", "x", "80,x", "65535", "65536", "080", "-1", ","),
    "dryRun": ("",),
}
_TABLES: Final[Options] = {"includeObject": ("", "None", "Object", "Metadata", "none", "None,Object")}
_FOREIGN: Final[Values] = (
    "pretty=0",
    "timeout=",
    "timeout=20s",
    "Watch=1",
    "dryrun=All",
    "kind=X",
    "%zz=1",
    "a;b=1",
    "=",
)


def cases(random: Random) -> Case:
    """An object is made, something is asked about it with random queries, and it is looked at again."""
    plural = random.choice(("configmaps", "configmaps", "secrets", "pods", "services"))
    collection = f"{_CORE}/{plural}"
    path = f"{collection}/{NAME}"
    steps = [Step("POST", collection, _body(plural))]
    for _ in range(random.randint(1, 4)):
        made = random.choice((*_OF_ALL, *(_OF_PODS if plural == "pods" else ())))(random, collection)
        steps.append(made)
        if made.method == "DELETE":
            steps.append(Step("GET", path))
    cleanup = [Step("DELETE", f"{path}?gracePeriodSeconds=0")]
    return Case(f"queries about {plural}", [*steps, Step("GET", path)], cleanup)


def _body(plural: str) -> dict[str, Any]:
    body: dict[str, Any] = {"metadata": {"name": NAME, "labels": {"case": NAME}}}
    if plural == "pods":
        body["spec"] = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 5}
    elif plural == "services":
        body["spec"] = {"clusterIP": "None"}
    return body


def query(random: Random, options: Options, *always: str, most: int = 3) -> str:
    """A query of some of these options, with one that is none now and then; `always` stands in it in any case."""
    parts = list(always)
    for name in random.sample(list(options), random.randint(1, min(most, len(options)))):
        for _ in range(random.choice((1, 1, 1, 2))):
            value = random.choice(options[name])
            bare = not value and random.random() < 0.3
            parts.append(name if bare else f"{name}={urllib.parse.quote(value, safe='@')}")
    if random.random() < 0.2:
        parts.append(random.choice(_FOREIGN))
    random.shuffle(parts)
    return "&".join(parts)


def _delete_one(random: Random, collection: str) -> Step:
    options = {**_LIST, **_DELETE} if random.random() < 0.3 else _DELETE
    return Step("DELETE", f"{collection}/{NAME}?{query(random, options)}")


def _delete_all(random: Random, collection: str) -> Step:
    both = random.choice(({**_LIST, **_DELETE}, _DELETE, _LIST, {**_WATCH, **_DELETE}))
    return Step("DELETE", f"{collection}?{query(random, both, f'labelSelector=case%3D{NAME}')}")


def _get(random: Random, collection: str) -> Step:
    options, accept = (_GET, "application/json") if random.random() < 0.7 else ({**_GET, **_TABLES}, _TABLE)
    return Step("GET", f"{collection}/{NAME}?{query(random, options)}", accept=accept, seen=_without_descriptions)


def _list(random: Random, collection: str) -> Step:
    options, accept = random.choice(
        ((_LIST, "application/json"), (_LIST, "application/json"), ({**_LIST, **_TABLES}, _TABLE), (_LIST, _PARTIAL))
    )
    path = f"{collection}?{query(random, options, f'labelSelector=case%3D{NAME}')}"
    return Step("GET", path, accept=accept, seen=_without_descriptions)


def _without_descriptions(answer: Answer) -> Answer:
    """A Table without the descriptions of its columns, which are not served here."""
    body = answer.body
    if not isinstance(body, dict) or body.get("kind") != "Table":
        return answer
    columns = [{**each, "description": ""} for each in body["columnDefinitions"] or ()]
    return replace(answer, body={**body, "columnDefinitions": columns})


def _watch(random: Random, collection: str) -> Step:
    always = (f"labelSelector=case%3D{NAME}", "timeoutSeconds=1")
    if random.random() < 0.3:
        old = collection.replace("/api/v1/", "/api/v1/watch/")
        return Step("GET", f"{old}?{query(random, _WATCH, *always)}", seen=_without_bookmarks)
    return Step("GET", f"{collection}?{query(random, _WATCH, *always, 'watch=1')}", seen=_without_bookmarks)


def _without_bookmarks(answer: Answer) -> Answer:
    """The events of a watch without bookmarks that come by the clock; that of the end of the first objects stays."""
    events = answer.body if isinstance(answer.body, list) else [answer.body]
    if not all(isinstance(each, dict) and "type" in each for each in events):
        return answer
    told = [
        each for each in events if each["type"] != "BOOKMARK" or "annotations" in each["object"].get("metadata", {})
    ]
    return replace(answer, body=told)


def _create(random: Random, collection: str) -> Step:
    plural = collection.rpartition("/")[2]
    body = _body(plural)
    body["metadata"]["name"] = f"{NAME}-{random.randrange(1000)}"
    return Step("POST", f"{collection}?{query(random, {**_WRITE, 'dryRun': _DRY_RUN}, 'dryRun=All')}", body)


def _update(random: Random, collection: str) -> Step:
    text = query(random, _PATCH)
    return Step("PUT", f"{collection}/{NAME}?{text}", edit=_labelled(str(random.randrange(9))), about="another label")


def _labelled(value: str) -> Callable[[dict[str, Any]], Any]:
    def edit(found: dict[str, Any]) -> Any:
        if found.get("kind") != "Status":
            found["metadata"].setdefault("labels", {})["more"] = value
        return found

    return edit


def _patch(random: Random, collection: str) -> Step:
    body: dict[str, Any] = {"metadata": {"labels": {"more": str(random.randrange(9))}}}
    media = random.choice((_MERGE, _APPLY))
    if media == _APPLY:
        kind = {"configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod", "services": "Service"}
        body |= {"apiVersion": "v1", "kind": kind[collection.rpartition("/")[2]]}
    return Step("PATCH", f"{collection}/{NAME}?{query(random, _PATCH)}", body, media)


def _log(random: Random, collection: str) -> Step:
    return Step("GET", f"{collection}/{NAME}/log?{query(random, _LOG)}")


def _stream(random: Random, collection: str) -> Step:
    what, options = random.choice((("exec", _STREAMS), ("attach", _STREAMS), ("portforward", _PORTS)))
    return Step(random.choice(("GET", "POST")), f"{collection}/{NAME}/{what}?{query(random, options)}")


def _evict(random: Random, collection: str) -> Step:
    options = {"dryRun": random.choice(([], ["All"])), "preconditions": random.choice(({}, {"uid": "x"}))}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": NAME}, "deleteOptions": options}
    return Step("POST", f"{collection}/{NAME}/eviction?{query(random, _WRITE)}", body)


def _status(random: Random, collection: str) -> Step:
    if random.random() < 0.5:
        return Step("GET", f"{collection}/{NAME}/status?{query(random, _GET)}")
    return Step(
        "PATCH", f"{collection}/{NAME}/status?{query(random, _PATCH)}", {"status": {"phase": "Running"}}, _MERGE
    )


_OF_ALL: Final = (
    _delete_one,
    _delete_one,
    _delete_all,
    _delete_all,
    _get,
    _list,
    _list,
    _watch,
    _create,
    _update,
    _patch,
)
_OF_PODS: Final = (_log, _log, _stream, _stream, _evict, _status)
