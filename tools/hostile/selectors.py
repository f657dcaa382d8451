"""Selectors of many terms over many objects: listed, watched, deleted (dry run)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from .case import CROWDED, Case, Message, Request, Target, numbered, repeated

_LARGEST: Final = 900_000
_PATH: Final = f"/api/v1/namespaces/{CROWDED}/configmaps"
_POSTED: Final = (("Content-Type", "application/json"), ("Connection", "close"))

_LABELS: Final[dict[str, Callable[[int], str]]] = {
    "equal": lambda size: ",".join(["app=web"] * (size // 8)),
    "contradicting": lambda size: ",".join(numbered("app=v{i}", size)),
    "not-equal": lambda size: ",".join(numbered("app!=v{i}", size)),
    "absent": lambda size: ",".join(numbered("!k{i}", size)),
    "not-equal-keys": lambda size: ",".join(numbered("k{i}!=v", size)),
    "present-keys": lambda size: ",".join(numbered("k{i}", size)),
    "in": lambda size: f"number in ({','.join(numbered('{i}', size))})",
    "notin": lambda size: f"number notin ({','.join(numbered('v{i}', size))})",
    "many-notin": lambda size: ",".join(numbered("k{i} notin (a,b)", size)),
    "equal-values": lambda size: f"app in ({','.join(['web'] * (size // 4))})",
    "greater": lambda size: ",".join(numbered("number>{i}", size)),
    "spaces": lambda size: "app" + " " * size + "=web",
    "broken": lambda size: ",".join(["app=web"] * (size // 8)) + ",(",
    "parentheses": lambda size: "a in " + "(" * size,
    "long-key": lambda size: "a" * size + "=b",
    "empty": lambda size: "," * size,
}
_FIELDS: Final[dict[str, Callable[[int], str]]] = {
    "equal": lambda size: ",".join(["metadata.namespace=" + CROWDED] * (size // (len(CROWDED) + 20))),
    "not-equal": lambda size: ",".join(numbered("metadata.name!=c{i}", size)),
    "contradicting": lambda size: ",".join(numbered("metadata.name=c{i}", size)),
    "unknown": lambda size: ",".join(numbered("spec.f{i}=a", size)),
    "escapes": lambda size: "metadata.name=" + repeated("\\\\", size),
    "broken": lambda size: repeated("metadata.name!=a,", size) + "a",
    "empty": lambda size: "," * size,
}
_COMMA: Final = '","'
_VALUE: Final = "v{i}"
_REQUIREMENTS: Final[dict[str, Callable[[int], str]]] = {
    "many": lambda size: ",".join(numbered('{"key":"k{i}","operator":"In","values":["a"]}', size)),
    "values": lambda size: f'{{"key":"k","operator":"In","values":["{_COMMA.join(numbered(_VALUE, size))}"]}}',
    "wrong": lambda size: ",".join(numbered('{"key":"!{i}","operator":"In","values":["!"]}', size)),
}
_VERBS: Final = {
    "list": ("GET", ""),
    "list-page": ("GET", "&limit=5"),
    "list-table": ("GET", ""),
    "list-from-cache": ("GET", "&resourceVersion=0"),
    "watch": ("GET", "&watch=1&timeoutSeconds=1"),
    "watch-list": ("GET", "&watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    "delete": ("DELETE", "&dryRun=All"),
}
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


def cases() -> Iterator[Case]:
    """Each form of selector by each verb."""
    for parameter, forms in (("labelSelector", _LABELS), ("fieldSelector", _FIELDS)):
        for label, form in forms.items():
            for verb, (method, more) in _VERBS.items():

                def make(
                    size: int,
                    target: Target,
                    parameter: str = parameter,
                    form: Callable[[int], str] = form,
                    verb: str = verb,
                    method: str = method,
                    more: str = more,
                ) -> Message:
                    selector = quote(form(size), safe=",=!().<>{}")
                    accept = _TABLE if verb == "list-table" else "application/json"
                    headers = (("Accept", accept), ("Connection", "close"))
                    return Request(method, f"{_PATH}?{parameter}={selector}{more}", headers)

                yield Case(f"selectors/{parameter}/{label}/{verb}", make, f"{parameter}/{label}", _LARGEST, crowd=True)
    yield from _in_bodies()


def _in_bodies() -> Iterator[Case]:
    """Selectors in the bodies of reviews of access."""
    for label, form in (("labels", _LABELS["not-equal-keys"]), ("fields", _FIELDS["not-equal"])):

        def make(size: int, target: Target, label: str = label, form: Callable[[int], str] = form) -> Message:
            kind = "labelSelector" if label == "labels" else "fieldSelector"
            attributes = f'{{"verb":"list","resource":"pods","{kind}":{{"rawSelector":"{form(size)}"}}}}'
            body = (
                f'{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",'
                f'"spec":{{"resourceAttributes":{attributes}}}}}'
            )
            path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            return Request("POST", path, _POSTED, body.encode())

        yield Case(f"selectors/raw/{label}", make, "raw")
    for kind in ("labelSelector", "fieldSelector"):
        for shape, requirements in _REQUIREMENTS.items():

            def make_list(
                size: int, target: Target, kind: str = kind, requirements: Callable[[int], str] = requirements
            ) -> Message:
                attributes = f'{{"verb":"list","resource":"pods","{kind}":{{"requirements":[{requirements(size)}]}}}}'
                body = (
                    f'{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",'
                    f'"spec":{{"resourceAttributes":{attributes}}}}}'
                )
                path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
                return Request("POST", path, _POSTED, body.encode())

            yield Case(f"selectors/requirements/{kind}/{shape}", make_list, "requirements")
