"""Normal form of objects and events: without uids, versions, times and random parts of names, which always differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from tools.controllers.opaque import readable

Plain = dict[str, Any]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SUFFIX: Final = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")


def normal(found: dict[str, list[Plain]], namespace: str) -> Plain:
    """Objects by kind, sorted by what they say, and how often each event was told."""
    names: dict[str, str] = {namespace: "NAMESPACE"}
    for kind, objects in found.items():
        for obj in objects:
            metadata = obj["metadata"]
            generated = metadata.get("generateName", "")
            rest = metadata["name"].removeprefix(generated)
            if generated and _SUFFIX.fullmatch(rest) and kind in ("Pod", "ResourceClaim"):
                names[metadata["name"]] = f"{generated}*"
            if kind == "EndpointSlice":
                names[metadata["name"]] = f"{metadata['labels']['kubernetes.io/service-name']}-*"
    out: Plain = {}
    for kind, objects in found.items():
        if kind == "Event":
            continue
        texts = sorted(json.dumps(_in_order(kind, _object(each, names)), sort_keys=True) for each in objects)
        out[kind] = [json.loads(text) for text in texts]
    out["Event"] = _events(found.get("Event", []), names)
    return {kind: each for kind, each in out.items() if each}


def _object(obj: Plain, names: dict[str, str]) -> Plain:
    metadata = dict(obj["metadata"])
    for each in ("uid", "resourceVersion"):
        metadata.pop(each, None)
    managers = [{**each, "time": None} for each in metadata.get("managedFields") or ()]
    metadata["managedFields"] = sorted(managers, key=lambda each: json.dumps(each, sort_keys=True))
    out = _plain({**readable(obj), "metadata": metadata}, names)
    assert isinstance(out, dict)
    return out


def _in_order(kind: str, obj: Plain) -> Plain:
    """Without what is drawn by lot: the address of a Service, the order of endpoints, and which slice is kept."""
    if kind == "Service" and obj["spec"].get("clusterIP") not in (None, "", "None"):
        obj["spec"].update(clusterIP="ADDRESS", clusterIPs=["ADDRESS"])
    if kind == "EndpointSlice":
        obj["endpoints"] = sorted(obj["endpoints"] or (), key=_text_of)
        obj["metadata"].pop("generation", None)
    if kind == "Endpoints":
        obj["subsets"] = sorted(obj.get("subsets") or (), key=_text_of)
    return obj


def _text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _plain(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        if "resourceClaimName" in value:  # of a claim that may be gone
            value = {**value, "resourceClaimName": _GENERATED.sub(r"\1*", value["resourceClaimName"])}
        return {_text(key, names): _plain(each, names) for key, each in value.items() if key != "resourceVersion"}
    if isinstance(value, list):
        return [_plain(each, names) for each in value]
    return _text(value, names) if isinstance(value, str) else value


def _text(text: str, names: dict[str, str]) -> str:
    found = names.get(text)
    if found is not None:
        return found
    return _UID.sub("UID", _TIME.sub("TIME", text))


_GENERATED: Final = re.compile(r"\b([a-z0-9.-]+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")


_REPEATED: Final = (
    "ExternalProvisioning",
    "ExternalExpanding",
    "FailedAttachVolume",
    "FailedBinding",
    "FailedResourceClaimCreation",
    "ProvisioningFailed",
    "VolumeMismatch",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
)
"""Events that are told as often as something is looked at."""


def _events(events: list[Plain], names: dict[str, str]) -> list[Plain]:
    counted: Counter[str] = Counter()
    for each in events:
        about = each["involvedObject"]
        told = {
            "about": f"{about['kind']} {names.get(about['name'], about['name'])} {about.get('apiVersion')}",
            "type": each["type"],
            "reason": each["reason"],
            "message": _message(each["message"], names),
            "source": each["source"].get("component"),
            "reporting": each.get("reportingComponent"),
        }
        counted[json.dumps(told, sort_keys=True)] += each.get("count") or 1
    told_of = [{**json.loads(text), "count": count} for text, count in sorted(counted.items())]
    return [{**each, "count": 0} if each["reason"] in _REPEATED else each for each in told_of]


def _message(text: str, names: dict[str, str]) -> str:
    if "pod" in text.lower():
        text = _GENERATED.sub(r"\1*", text)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return _UID.sub("UID", _TIME.sub("TIME", text))
