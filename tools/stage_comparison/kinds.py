"""Cases of custom resources: stages with CEL, apply, other users, weights and templates."""

from __future__ import annotations

from typing import Any, Final

from tools.stage_comparison.cases import Case, Plain, Set

DEFINITION: Final[Plain] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}

_STAGES: Final = r"""
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: ready}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions:
    - cel: {expression: "self.spec.stage == 'ready' && !has(self.status)"}
    - cel: {expression: "UnixSecond(Now()) > 1.0 && Rand() < 2.0"}
  weightFrom: {cel: {expression: "size(self.spec.items)"}}
  delay:
    durationFrom: {cel: {expression: "duration('30ms')"}}
  steps:
  - event: {type: Normal, reason: Ready, message: it is ready}
  - patch:
      subresource: status
      root: status
      template: |
        phase: Ready
        total: {{ .spec.items | join "+" | Quote }}
        days: {{ duration "90061" }} {{ durationRound "49h" }}
        date: {{ toDate "2006-01-02" "2026-11-29" | date "Jan _2" | quote }}
        path: {{ clean "/a/../b" }} {{ base "/x/y.z" }} {{ ext "y.z" }}
        version: {{ semverCompare ">=1.2, <2" "1.9.1" }}
        name: {{ camelcase "some_name" }} {{ kebabcase "SomeName" }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: less-likely}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions: [{cel: {expression: "self.spec.stage == 'ready' && !has(self.status)"}}]
  weight: 0
  steps: [{delete: true}]
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: applies}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions:
    - {key: '.spec.stage', operator: In, values: [applies]}
    - jq: {key: '.metadata.labels.done', operator: DoesNotExist}
  steps:
  - apply:
      template: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "of-{{ .metadata.name }}", labels: {of: "{{ .metadata.name }}"}}
        data: {items: "{{ len .spec.items }}"}
  - apply:
      type: merge
      template: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: existing}
        data: {merged: "yes"}
  - apply:
      subresource: status
      type: merge
      template: |
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: {{ .metadata.name }}}
        status: {by: apply}
  - patch: {type: json, root: metadata, template: '[{"op": "add", "path": "/labels", "value": {"done": "x"}}]'}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: leaves}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions:
    - {key: '.spec.stage', operator: In, values: [leaves]}
    - {key: '.metadata.finalizers', operator: Exists}
  immediateNextStage: true
  steps:
  - finalizers: {remove: [{value: example.com/a}]}
  - event: {type: Warning, reason: Leaving, message: it goes}
  - delete: true
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: finalizers}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions:
    - {key: '.spec.stage', operator: In, values: [kept]}
    - {key: '.metadata.finalizers', operator: DoesNotExist}
  next:
    finalizers: {add: [{value: example.com/kept}]}
    statusTemplate: '{phase: Kept}'
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: denied}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions: [{key: '.spec.stage', operator: In, values: [denied]}]
  steps:
  - patch:
      subresource: status
      template: '{status: {phase: Denied}}'
      impersonation: {username: nobody}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: config-maps}
spec:
  resourceRef: {apiGroup: v1, kind: ConfigMap}
  selector:
    matchLabels: {stage: plain}
    matchExpressions: [{cel: {expression: "!('seen' in self.data)"}}]
  steps:
  - patch: {root: data, template: '{seen: "{{ .data.text | snakecase }}"}'}
"""


def _widget(name: str, stage: str, **metadata: Any) -> Plain:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"stage": stage, "items": ["a", "b"]},
    }


def _config_map(name: str, **labels: str) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"text": "SomeText"},
    }


KINDS: Final = Set(
    "kinds",
    ("node/fast",),
    text=_STAGES,
    cases=(
        Case("ready", (_widget("one", "ready"), _widget("two", "ready", labels={"a": "b"}))),
        Case("applies", (_config_map("existing"), _widget("one", "applies"))),
        Case("leaves", (_widget("one", "leaves", finalizers=["example.com/a"]), _widget("two", "leaves"))),
        Case("kept", (_widget("one", "kept"),)),
        Case("denied", (_widget("one", "denied"),)),
        Case("config-maps", (_config_map("one", stage="plain"), _config_map("two"))),
    ),
    definitions=(DEFINITION,),
)
