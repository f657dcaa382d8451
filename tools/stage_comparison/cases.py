"""Played cases: sets of stages, and pods with the requests about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Plain = dict[str, Any]

_SUFFIX: Final = "stage.kwok.x-k8s.io"
_QUICK: Final = {
    f"{stage}.{_SUFFIX}/{what}": "10ms"
    for stage in (
        "pod-create",
        "pod-ready",
        "pod-complete",
        "pod-delete",
        "pod-init-container-running",
        "pod-init-container-completed",
        "pod-container-running-failed",
        "pod-init-container-running-failed",
    )
    for what in ("delay", "jitter-delay")
}


@dataclass(frozen=True)
class Case:
    """Objects that are made, each in a namespace of the case, then changed."""

    name: str
    objects: tuple[Plain, ...]
    deleted: tuple[str, ...] = ()
    """Pods that are deleted when all is at rest."""
    patches: tuple[tuple[str, Plain], ...] = ()
    """Merge patches of pods, before that."""


@dataclass(frozen=True)
class Set:
    """Stages, by folders of kwok's or as text, and what is played with them."""

    name: str
    folders: tuple[str, ...] = ()
    text: str = ""
    cases: tuple[Case, ...] = ()
    node_labels: Plain = field(default_factory=dict)
    definitions: tuple[Plain, ...] = ()
    """CustomResourceDefinitions that are there from the start."""


def pod(name: str, *, node: int | None = None, **more: Any) -> Plain:
    """A pod; `more` goes into its spec, but for labels, annotations and finalizers."""
    metadata: Plain = {"name": name, "annotations": {**_QUICK, **more.pop("annotations", {})}}
    metadata |= {key: more.pop(key) for key in ("labels", "finalizers") if key in more}
    spec: Plain = {"containers": [{"name": "main", "image": "nginx"}], "terminationGracePeriodSeconds": 1, **more}
    if node is not None:
        spec["nodeName"] = f"node-{node}"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def job(name: str, **more: Any) -> Plain:
    """A Job."""
    template = {
        "metadata": {"annotations": _QUICK},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **more}}


_INIT: Final = [{"name": "first", "image": "busybox"}, {"name": "second", "image": "busybox"}]
_GATES: Final = [{"conditionType": "example.com/gate"}]
_TWO: Final = [{"name": "one", "image": "nginx"}, {"name": "two", "image": "redis"}]


def _failing(what: str, **annotations: str) -> Plain:
    return {
        "labels": {f"{what}.{_SUFFIX}": "true"},
        "annotations": {f"{what}.{_SUFFIX}/{key.replace('_', '-')}": value for key, value in annotations.items()},
    }


_USUAL: Final = (
    Case("plain", (pod("plain"),)),
    Case("two", (pod("two", containers=_TWO),)),
    Case("init", (pod("init", initContainers=_INIT),)),
    Case("sidecar", (pod("sidecar", initContainers=[{**_INIT[0], "restartPolicy": "Always"}]),)),
    Case("host", (pod("host", hostNetwork=True),)),
    Case("gates", (pod("gates", readinessGates=_GATES),)),
    Case("job", (job("job", completions=3, parallelism=2),)),
    Case("deleted", (pod("deleted"), pod("stays")), deleted=("deleted",)),
    Case("finalizer", (pod("held", finalizers=["example.com/hold"]),), deleted=("held",)),
    Case("labelled", (pod("labelled"),), patches=(("labelled", {"metadata": {"labels": {"a": "b"}}}),)),
    Case("elsewhere", (pod("elsewhere", nodeSelector={"none": "such"}),)),
)
_CHAOS: Final = (
    Case("fails", (pod("fails", **_failing("pod-container-running-failed")),)),
    Case(
        "fails-so",
        (
            pod(
                "fails-so",
                containers=_TWO,
                **_failing(
                    "pod-container-running-failed", container_name="two", reason="Reason", message="said", exit_code="7"
                ),
            ),
        ),
    ),
    Case("init-fails", (pod("init-fails", initContainers=_INIT, **_failing("pod-init-container-running-failed")),)),
    Case(
        "init-fails-so",
        (
            pod(
                "init-fails-so",
                initContainers=_INIT,
                **_failing("pod-init-container-running-failed", container_name="second", exit_code="3"),
            ),
        ),
    ),
    Case("never", (pod("never", **_failing("pod-container-running-failed", weight="0")),)),
    Case("no-number", (pod("no-number", **_failing("pod-container-running-failed", weight="")),)),
)

OWN: Final = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: begin}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: begin}
    matchExpressions:
    - jq: {key: '.metadata.finalizers // [] | length', operator: In, values: ["0"]}
    - {key: '.spec.containers[0].image | startswith("nginx")', operator: In, values: ["true"]}
    - {key: '.status.conditions[]? | select(.type == "Mine")', operator: DoesNotExist}
  weight: 1
  delay: {durationMilliseconds: 20, jitterDurationMilliseconds: 10}
  next:
    event: {type: Warning, reason: Begun, message: it has begun}
    finalizers: {add: [{value: example.com/a}, {value: example.com/b}]}
    patches:
    - root: metadata
      type: merge
      template: |
        annotations:
          text: {{ printf "%s/%s has %d containers" .metadata.namespace .metadata.name (len .spec.containers) | Quote }}
          list: {{ range $i, $c := .spec.containers }}{{ if $i }},{{ end }}{{ $c.name | upper }}{{ end }}
          default: {{ .metadata.none | default "nothing" | quote }}
          json: {{ (index .spec.containers 0).resources | toJson | b64enc }}
          number: {{ add .spec.terminationGracePeriodSeconds 41 | Quote }}
          quoted: {{ .spec.terminationGracePeriodSeconds | Quote }} # a comment
          missing: {{ .metadata.none | Quote }}
          truth: {{ Quote .spec.enableServiceLinks }}
          {{- with .metadata.labels }}
          labels: {{ keys . | sortAlpha | join "+" }}
          {{- end }}
    - root: status
      subresource: status
      type: strategic
      template: |
        {{ $now := Now -}}
        conditions:
        - {type: Mine, status: "True", lastTransitionTime: {{ $now | Quote }}, message: "<&> é"}
        phase: {{ if eq .metadata.name "runs" }}Running{{ else }}Pending{{ end }}
        message: |-
          {{- YAML .metadata.labels 1 }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: second}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: begin}
    matchAnnotations: {number: "42"}
    matchExpressions:
    - {key: '.metadata.labels.done', operator: DoesNotExist}
    - {key: '.metadata.finalizers[]', operator: In, values: [example.com/b]}
    - {key: '.status.conditions[]? | select(.type == "Mine")', operator: Exists}
  weight: 7
  steps:
  - patch:
      type: json
      root: metadata
      template: |
        - op: add
          path: /labels/done
          value: "yes"
  - event: {type: Normal, reason: Stepped, message: by steps}
  - finalizers: {remove: [{value: example.com/a}]}
  - patch:
      subresource: status
      template: |
        status: {reason: Stepped, podIP: {{ PodIPWith .spec.nodeName false "" .metadata.name .metadata.namespace }}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: ends}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: begin}
    matchExpressions: [{key: '.metadata.deletionTimestamp', operator: Exists}]
  weight: 5
  weightFrom: {expressionFrom: '.metadata.annotations.weight'}
  delay:
    durationMilliseconds: 0
    jitterDurationFrom: {jq: {expression: '.metadata.annotations["until"]'}}
  next:
    finalizers: {empty: true}
    delete: true
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: never-by-weight}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: begin}
    matchExpressions: [{key: '.metadata.finalizers', operator: DoesNotExist}]
  weight: 0
  next: {delete: true}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: broken}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector: {matchLabels: {stage: broken}}
  next:
    event: {type: Normal, reason: Tried, message: once}
    statusTemplate: 'phase: {{ index .spec.containers 7 }}'
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: refused}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: refused}
    matchExpressions: [{key: ".metadata.annotations.x", operator: NotIn, values: ["1"]}]
  next:
    event: {type: Normal, reason: Tried, message: once}
    patches: [{type: json, template: '[{"op": "remove", "path": "/metadata/none"}]'}]
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: nobody}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  next: {delete: true}
"""
_LABELLED: Final[tuple[Case, ...]] = (
    Case("runs", (pod("runs", node=0, labels={"stage": "begin", "x": "y"}),)),
    Case("two", (pod("two", node=1, containers=_TWO, labels={"stage": "begin"}),)),
    Case("other-image", (pod("other-image", containers=_TWO[1:], labels={"stage": "other"}),)),
    Case("ends", (pod("ends", node=0, labels={"stage": "begin"}),), deleted=("ends",)),
    Case("broken", (pod("broken", labels={"stage": "broken"}),)),
    Case("refused", (pod("refused", labels={"stage": "refused"}),)),
    Case("nobody", (pod("nobody"),)),
)

SETS: Final = (
    Set("fast", ("pod/fast", "node/fast", "node/heartbeat-with-lease"), cases=_USUAL),
    Set("general", ("pod/general", "pod/chaos", "node/fast", "node/chaos"), cases=(*_USUAL, *_CHAOS)),
    Set(
        "not-ready",
        ("pod/fast", "node/fast", "node/heartbeat", "node/chaos"),
        node_labels={f"node-not-ready.{_SUFFIX}": "true"},
    ),
    Set("own", ("node/fast",), text=OWN, cases=_LABELLED),
)
