"""Image references: their tags, from which the default pull policy follows."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

LONGEST_REFERENCE: Final = 1024
"""Bytes; a longer reference is invalid (a name has at most 255, a tag 128, a digest about 140)."""

_LONGEST_NAME: Final = 255
_DOMAIN_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = late_pattern(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER: Final = late_pattern(r"[a-f0-9]{64}")
_DIGEST: Final = late_pattern(r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")


def pull_policy_for(image: str) -> str:
    """Return the default pull policy: "Always" for the tag "latest", which is also the default tag."""
    return _pull_policy(image) if len(image) <= LONGEST_REFERENCE else "IfNotPresent"


@lru_cache(maxsize=4096)
def _pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def image_tag(image: str) -> str:
    """Return the tag of `image`; "latest" if it has neither tag nor digest, "" if it cannot be parsed.

    Follows the grammar of github.com/distribution/reference, with short names ("nginx", "user/app").
    """
    if not image or len(image) > LONGEST_REFERENCE or _IDENTIFIER.fullmatch(image):
        return ""
    domain, rest = _split_domain(image)
    if (path := rest.partition(":")[0]) != to_lower(path):
        return ""
    match = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if match is None or len(match["name"]) > _LONGEST_NAME:
        return ""
    digest = match["digest"]
    if digest and not _DIGEST.fullmatch(digest):
        return ""
    return match["tag"] or ("" if digest else "latest")


def _split_domain(image: str) -> tuple[str, str]:
    """Return registry and path; names without a registry belong to Docker Hub."""
    first, slash, rest = image.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first or first != to_lower(first)):
        domain, path = ("docker.io" if first == "index.docker.io" else first), rest
    else:
        domain, path = "docker.io", image
    if domain == "docker.io" and "/" not in path:
        path = f"library/{path}"
    return domain, path
