"""Names of schemas, operations and tags in OpenAPI documents, as k8s.io/apiserver and kube-openapi build them."""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Any, Final

from steersman.api.index import MODULES
from steersman.kinds.kind import Kind
from steersman.machinery.codec.derived_types import schema_name
from steersman.machinery.go.strings import to_upper

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
LIST_META: Final = f"{META}ListMeta"
OBJECT_META: Final = f"{META}ObjectMeta"

_SUFFIX: Final = ".k8s.io"
_LETTERS: Final = f"{ascii_letters}_"


def name_of_kind(kind: Kind[Any], name: str = "") -> str:
    """Return the schema name of a kind, or of another kind of its group version, such as its list."""
    module = MODULES.get((kind.group, kind.version))
    if not kind.brings_openapi and module is not None:
        return schema_name(f"{module}.{name or kind.name}")
    return ".".join([*reversed(kind.group.split(".")), kind.version, name or kind.name])


def tag_of(group: str, version: str) -> str:
    """Return the tag of a group version's operations: "core_v1", "internalApiserver_v1alpha1"."""
    return f"{_identifier(_short(group), capital=False)}_{_identifier(version, capital=False)}"


def titled(group: str, version: str = "") -> str:
    """Return a group version as in operation ids: "CoreV1", "InternalApiserverV1alpha1"."""
    return _identifier(_short(group), capital=True) + _identifier(version, capital=True)


def group_tag(group: str) -> str:
    """Return the tag of a group's discovery operation."""
    return _identifier(_short(group), capital=False)


def _short(group: str) -> str:
    return group.removesuffix(_SUFFIX) or "core"


def _identifier(text: str, *, capital: bool) -> str:
    """Return the letters and digits of a text; a letter after another character is capitalized."""
    found = ""
    for position, char in enumerate(text):
        if char in _LETTERS or (char in digits and position):
            found += to_upper(char) if capital else char
            capital = False
        else:
            capital = True
    return found
