"""Names of kinds on the command line: kinds, plurals, singulars and short names, with or without a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.client.discovery import DiscoveredResource
from steersman.machinery.go.strings import to_lower
from steersman.machinery.suggestions import did_you_mean

_SHORT: Final = {
    "certificatesigningrequests": "csr",
    "configmaps": "cm",
    "cronjobs": "cj",
    "customresourcedefinitions": "crd",
    "daemonsets": "ds",
    "deployments": "deploy",
    "endpoints": "ep",
    "events": "ev",
    "horizontalpodautoscalers": "hpa",
    "ingresses": "ing",
    "ipaddresses": "ip",
    "limitranges": "limits",
    "namespaces": "ns",
    "networkpolicies": "netpol",
    "nodes": "no",
    "persistentvolumeclaims": "pvc",
    "persistentvolumes": "pv",
    "poddisruptionbudgets": "pdb",
    "pods": "po",
    "priorityclasses": "pc",
    "replicasets": "rs",
    "replicationcontrollers": "rc",
    "resourcequotas": "quota",
    "serviceaccounts": "sa",
    "services": "svc",
    "statefulsets": "sts",
    "storageclasses": "sc",
    "volumeattributesclasses": "vac",
}
"""Short names of built-in resources, for dumps, which have no discovery."""


class UnknownKind(ValueError):
    """The error for a name that no served resource has."""


def short_names_of(plural: str) -> tuple[str, ...]:
    """Return the short names of a built-in resource."""
    return (_SHORT[plural],) if plural in _SHORT else ()


def plural_of(kind: str) -> str:
    """Return the usual plural of a kind, as apimachinery guesses it (UnsafeGuessKindToResource)."""
    singular = to_lower(kind)
    if singular == "endpoints":
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"


def find_resource(name: str, served: Iterable[DiscoveredResource]) -> DiscoveredResource:
    """Return the resource of a name such as `deploy`, `Deployment` or `deployments.apps`. Raises UnknownKind.

    If several resources have the name, the first served one is returned, as kubectl does.
    """
    wanted, _, group = to_lower(name).partition(".")
    known: list[str] = []
    for rank in (_plain_names, _short_names):
        for each in served:
            names = rank(each)
            known.extend(names)
            if wanted in names and (not group or _is_group(group, each)):
                return each
    raise UnknownKind(f"the server doesn't have a resource type {name!r}{did_you_mean(wanted, known)}")


def _plain_names(each: DiscoveredResource) -> tuple[str, ...]:
    return each.resource.plural, each.singular, to_lower(each.resource.kind)


def _short_names(each: DiscoveredResource) -> tuple[str, ...]:
    return each.short_names


def _is_group(group: str, each: DiscoveredResource) -> bool:
    resource = each.resource
    return group in (resource.group, f"{resource.version}.{resource.group}")
