"""References of objects that lead nowhere: to objects, ports and labels that no document has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.check.documents import Document, mapping, sequence, text
from steersman.check.pods import pod_template

_ALWAYS: Final = frozenset(
    {
        ("ServiceAccount", "default"),
        ("ConfigMap", "kube-root-ca.crt"),
        ("Service", "kubernetes"),
        *(("ClusterRole", each) for each in ("cluster-admin", "admin", "edit", "view")),
    }
)
"""Objects that every cluster has, in whatever namespace."""
_SYSTEM: Final = "system:"
_CLUSTER: Final = frozenset({"ClusterRole", "IngressClass", "StorageClass", "ValidatingAdmissionPolicy", "Namespace"})
"""Kinds without namespaces that are referred to."""


_MOST_COMPARISONS: Final = 2_000_000
"""Pods that are compared with selectors; selectors beyond are not judged."""


class _Reference(Struct, frozen=True):
    """A reference of an object: to an object by its kind and name, from a field."""

    kind: str
    name: Any
    field: str
    namespace: str | None = None
    """Namespace of the object; None for that of the referring one."""


class _Labelled(Struct, frozen=True):
    """A pod, or the pods of a workload: labels, and names and numbers of ports."""

    labels: dict[str, Any]
    ports: frozenset[str]


class _World:
    """Objects, pods and ports of documents, to which others may refer."""

    def __init__(self, documents: Iterable[Document], namespace: str) -> None:
        self._default = namespace
        self._objects: dict[tuple[str, str, str], Document] = {}
        self._pods: dict[tuple[str, str, str], list[_Labelled]] = {}
        """Pods by namespace and each of their labels."""
        self._namespaces: set[str] = set()
        """Namespaces with pods."""
        self._comparisons_left = _MOST_COMPARISONS
        for each in documents:
            self._objects[each.kind, self._place(each.kind, self.namespace_of(each)), each.name] = each
            pod = _pod_of(each)
            if pod is not None:
                namespace = self.namespace_of(each)
                self._namespaces.add(namespace)
                for key, value in pod.labels.items():
                    self._pods.setdefault((namespace, key, value), []).append(pod)

    def namespace_of(self, document: Document) -> str:
        """Return the namespace of an object."""
        return document.namespace or self._default

    @staticmethod
    def _place(kind: str, namespace: str) -> str:
        return "" if kind in _CLUSTER else namespace

    def find(self, kind: str, namespace: str, name: str) -> Document | None:
        """Return an object, None if no document has it."""
        return self._objects.get((kind, self._place(kind, namespace), name))

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Return True if a document or every cluster has an object."""
        known = (kind, name) in _ALWAYS or (kind == "ClusterRole" and name.startswith(_SYSTEM))
        return known or self.find(kind, namespace, name) is not None

    def selected(self, namespace: str, labels: Mapping[str, Any]) -> list[_Labelled] | None:
        """Return the pods of a namespace with labels; None if the documents have no pods in it at all, or if too many
        pods were compared already.
        """
        if namespace not in self._namespaces:
            return None
        near = min((self._pods.get((namespace, key, value), []) for key, value in labels.items()), key=len)
        self._comparisons_left -= len(near)
        if self._comparisons_left < 0:
            return None
        return [each for each in near if labels.items() <= each.labels.items()]


Told = tuple[Document, str, str]
"""A document, the field with a reference, and a message."""


def dangling_references(documents: Sequence[Document], old: Sequence[Document], namespace: str) -> Iterator[Told]:
    """Yield references of `documents` to what neither they nor `old` have. `namespace` is that of objects without one."""
    world = _World((*old, *documents), namespace)
    for document in documents:
        place = world.namespace_of(document)
        for each in _references(document):
            where = place if each.namespace is None else each.namespace
            if text(each.name) and not world.has(each.kind, where, each.name):
                of = "" if each.kind in _CLUSTER or where == place else f" in namespace {where}"
                yield document, each.field, f'{each.kind} "{each.name}"{of} is not among the documents'
        finder = _SELECTIONS.get((document.group, document.kind))
        if finder is not None:
            for field, message in finder(document, world):
                yield document, field, message


def _references(document: Document) -> Iterator[_Reference]:
    found = ("spec", document.plain.get("spec")) if _is_pod(document) else None
    template = pod_template(document)
    if template is not None:
        found = f"{template[0]}.spec", template[1].get("spec")
    if found is not None:
        yield from _of_pod(mapping(found[1]), found[0])
    finder = _FINDERS.get((document.group, document.kind))
    if finder is not None:
        yield from finder(document)


def _is_pod(document: Document) -> bool:
    return document.kind == "Pod" and not document.group


def _pod_of(document: Document) -> _Labelled | None:
    template = pod_template(document)
    plain = template[1] if template is not None else document.plain if _is_pod(document) else None
    if plain is None:
        return None
    ports = set()
    spec = mapping(plain.get("spec"))
    for container in (*sequence(spec.get("containers")), *sequence(spec.get("initContainers"))):
        for each in sequence(mapping(container).get("ports")):
            ports |= {text(mapping(each).get("name")), str(mapping(each).get("containerPort"))}
    return _Labelled(_hashable(mapping(mapping(plain.get("metadata")).get("labels"))), frozenset(ports - {""}))


def _hashable(labels: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _of_pod(spec: dict[str, Any], path: str) -> Iterator[_Reference]:
    for key in ("serviceAccountName", "serviceAccount"):
        yield _Reference("ServiceAccount", spec.get(key), f"{path}.{key}")
    for number, each in enumerate(sequence(spec.get("imagePullSecrets"))):
        yield _Reference("Secret", mapping(each).get("name"), f"{path}.imagePullSecrets[{number}].name")
    for number, each in enumerate(sequence(spec.get("volumes"))):
        yield from _of_volume(mapping(each), f"{path}.volumes[{number}]")
    for key in ("initContainers", "containers"):
        for number, each in enumerate(sequence(spec.get(key))):
            yield from _of_container(mapping(each), f"{path}.{key}[{number}]")


def _of_volume(volume: dict[str, Any], path: str) -> Iterator[_Reference]:
    yield from _source(volume.get("configMap"), "ConfigMap", "name", f"{path}.configMap")
    yield from _source(volume.get("secret"), "Secret", "secretName", f"{path}.secret")
    yield from _source(
        volume.get("persistentVolumeClaim"), "PersistentVolumeClaim", "claimName", f"{path}.persistentVolumeClaim"
    )
    for number, each in enumerate(sequence(mapping(volume.get("projected")).get("sources"))):
        inner = f"{path}.projected.sources[{number}]"
        yield from _source(mapping(each).get("configMap"), "ConfigMap", "name", f"{inner}.configMap")
        yield from _source(mapping(each).get("secret"), "Secret", "name", f"{inner}.secret")


def _of_container(container: dict[str, Any], path: str) -> Iterator[_Reference]:
    for number, each in enumerate(sequence(container.get("envFrom"))):
        inner = f"{path}.envFrom[{number}]"
        yield from _source(mapping(each).get("configMapRef"), "ConfigMap", "name", f"{inner}.configMapRef")
        yield from _source(mapping(each).get("secretRef"), "Secret", "name", f"{inner}.secretRef")
    for number, each in enumerate(sequence(container.get("env"))):
        value, inner = mapping(mapping(each).get("valueFrom")), f"{path}.env[{number}].valueFrom"
        yield from _source(value.get("configMapKeyRef"), "ConfigMap", "name", f"{inner}.configMapKeyRef")
        yield from _source(value.get("secretKeyRef"), "Secret", "name", f"{inner}.secretKeyRef")


def _source(value: Any, kind: str, key: str, path: str) -> Iterator[_Reference]:
    source = mapping(value)
    if source and source.get("optional") is not True:
        yield _Reference(kind, source.get(key), f"{path}.{key}")


def _spec(document: Document) -> dict[str, Any]:
    return mapping(document.plain.get("spec"))


def _of_claim(document: Document) -> Iterator[_Reference]:
    yield _Reference("StorageClass", _spec(document).get("storageClassName"), "spec.storageClassName")


def _of_stateful_set(document: Document) -> Iterator[_Reference]:
    yield _Reference("Service", _spec(document).get("serviceName"), "spec.serviceName")


def _of_ingress(document: Document) -> Iterator[_Reference]:
    yield _Reference("IngressClass", _spec(document).get("ingressClassName"), "spec.ingressClassName")
    for number, each in enumerate(sequence(_spec(document).get("tls"))):
        yield _Reference("Secret", mapping(each).get("secretName"), f"spec.tls[{number}].secretName")
    for path, backend in _backends(document):
        yield _Reference("Service", mapping(backend.get("service")).get("name"), f"{path}.service.name")


def _backends(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the backends of an Ingress with their paths."""
    spec = _spec(document)
    yield "spec.defaultBackend", mapping(spec.get("defaultBackend"))
    for number, rule in enumerate(sequence(spec.get("rules"))):
        for index, each in enumerate(sequence(mapping(mapping(rule).get("http")).get("paths"))):
            yield f"spec.rules[{number}].http.paths[{index}].backend", mapping(mapping(each).get("backend"))


def _of_autoscaler(document: Document) -> Iterator[_Reference]:
    target = mapping(_spec(document).get("scaleTargetRef"))
    if target.get("kind") in ("Deployment", "StatefulSet", "ReplicaSet"):
        yield _Reference(target["kind"], target.get("name"), "spec.scaleTargetRef.name")


def _of_binding(document: Document) -> Iterator[_Reference]:
    role = mapping(document.plain.get("roleRef"))
    if role.get("kind") in ("Role", "ClusterRole"):
        yield _Reference(role["kind"], role.get("name"), "roleRef.name")
    for number, each in enumerate(sequence(document.plain.get("subjects"))):
        if mapping(each).get("kind") == "ServiceAccount":
            namespace = text(each.get("namespace")) or None
            yield _Reference("ServiceAccount", each.get("name"), f"subjects[{number}].name", namespace)


def _of_webhooks(document: Document) -> Iterator[_Reference]:
    for number, each in enumerate(sequence(document.plain.get("webhooks"))):
        service = mapping(mapping(mapping(each).get("clientConfig")).get("service"))
        field = f"webhooks[{number}].clientConfig.service.name"
        yield _Reference("Service", service.get("name"), field, text(service.get("namespace")))


def _of_definition(document: Document) -> Iterator[_Reference]:
    webhook = mapping(mapping(_spec(document).get("conversion")).get("webhook"))
    service = mapping(mapping(webhook.get("clientConfig")).get("service"))
    field = "spec.conversion.webhook.clientConfig.service.name"
    yield _Reference("Service", service.get("name"), field, text(service.get("namespace")))


def _of_api_service(document: Document) -> Iterator[_Reference]:
    service = mapping(_spec(document).get("service"))
    yield _Reference("Service", service.get("name"), "spec.service.name", text(service.get("namespace")))


def _of_policy_binding(document: Document) -> Iterator[_Reference]:
    kind = document.kind.removesuffix("Binding")
    yield _Reference(kind, _spec(document).get("policyName"), "spec.policyName")


_FINDERS: Final[dict[tuple[str, str], Callable[[Document], Iterator[_Reference]]]] = {
    ("", "PersistentVolumeClaim"): _of_claim,
    ("apps", "StatefulSet"): _of_stateful_set,
    ("networking.k8s.io", "Ingress"): _of_ingress,
    ("autoscaling", "HorizontalPodAutoscaler"): _of_autoscaler,
    ("rbac.authorization.k8s.io", "RoleBinding"): _of_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _of_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _of_webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _of_webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _of_policy_binding,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _of_policy_binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _of_definition,
    ("apiregistration.k8s.io", "APIService"): _of_api_service,
}

Message = tuple[str, str]
"""A field and a message."""


def _selection_of_service(document: Document, world: _World) -> Iterator[Message]:
    """Yield what is wrong with a Service's selector and target ports."""
    selector = _hashable(mapping(_spec(document).get("selector")))
    pods = world.selected(world.namespace_of(document), selector) if selector else None
    if pods is None:
        return
    if not pods:
        yield "spec.selector", f"no pods among the documents have the labels {_shown(selector)}"
        return
    for number, each in enumerate(sequence(_spec(document).get("ports"))):
        target = mapping(each).get("targetPort")
        if isinstance(target, str) and not any(target in pod.ports for pod in pods):
            yield f"spec.ports[{number}].targetPort", f'no container of the pods has a port "{target}"'


def _selection_of_budget(document: Document, world: _World) -> Iterator[Message]:
    labels = _hashable(mapping(mapping(_spec(document).get("selector")).get("matchLabels")))
    pods = world.selected(world.namespace_of(document), labels) if labels else None
    if pods is not None and not pods:
        yield "spec.selector.matchLabels", f"no pods among the documents have the labels {_shown(labels)}"


def _ports_of_ingress(document: Document, world: _World) -> Iterator[Message]:
    for path, backend in _backends(document):
        named = mapping(backend.get("service"))
        service = world.find("Service", world.namespace_of(document), text(named.get("name")))
        port = mapping(named.get("port"))
        if service is None or not port:
            continue
        ports = [mapping(each) for each in sequence(_spec(service).get("ports"))]
        if "name" in port and port["name"] not in [each.get("name") for each in ports]:
            yield f"{path}.service.port.name", f'Service "{service.name}" has no port "{port["name"]}"'
        elif "number" in port and port["number"] not in [each.get("port") for each in ports]:
            yield f"{path}.service.port.number", f'Service "{service.name}" has no port {port["number"]}'


def _shown(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


_SELECTIONS: Final[dict[tuple[str, str], Callable[[Document, _World], Iterator[Message]]]] = {
    ("", "Service"): _selection_of_service,
    ("policy", "PodDisruptionBudget"): _selection_of_budget,
    ("networking.k8s.io", "Ingress"): _ports_of_ingress,
}
