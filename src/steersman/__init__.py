"""Steersman: the Kubernetes API server in Python, and a library for one's own API servers (docs/library.md).

The library's public names are in `__all__`; everything else in this package is internal. A public name's module is
imported at the first access to the name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.api.meta.v1 import ObjectMeta
    from steersman.library.aggregation import Aggregation, ClusterError
    from steersman.library.client import ObjectsClient
    from steersman.library.declaration import Convertible, PrinterColumn, Scale, resource, version_of
    from steersman.library.definition import definition_of, definition_yaml
    from steersman.library.definition_error import DefinitionError
    from steersman.library.hooks import Objects, Request, admit, after_write, prepare, validate
    from steersman.library.mounting import mount
    from steersman.library.schemas import OpenAPI, Rule
    from steersman.library.server import Server
    from steersman.library.storage import Creater, Deleter, Event, Getter, Lister, Updater, Watcher
    from steersman.machinery.errors.field import (
        FieldError,
        Path,
        duplicate,
        forbidden,
        invalid,
        not_supported,
        required,
    )
    from steersman.machinery.errors.status import StatusError

__version__ = "0.2.0.dev0"

__all__ = [
    "Aggregation",
    "ClusterError",
    "Convertible",
    "Creater",
    "DefinitionError",
    "Deleter",
    "Event",
    "FieldError",
    "Getter",
    "Lister",
    "ObjectMeta",
    "Objects",
    "ObjectsClient",
    "OpenAPI",
    "Path",
    "PrinterColumn",
    "Request",
    "Rule",
    "Scale",
    "Server",
    "StatusError",
    "Updater",
    "Watcher",
    "admit",
    "after_write",
    "definition_of",
    "definition_yaml",
    "duplicate",
    "forbidden",
    "invalid",
    "mount",
    "not_supported",
    "prepare",
    "required",
    "resource",
    "validate",
    "version_of",
]

_MODULES = {
    "api.meta.v1": ("ObjectMeta",),
    "library.aggregation": ("Aggregation", "ClusterError"),
    "library.client": ("ObjectsClient",),
    "library.declaration": ("Convertible", "PrinterColumn", "Scale", "resource", "version_of"),
    "library.definition": ("definition_of", "definition_yaml"),
    "library.definition_error": ("DefinitionError",),
    "library.hooks": ("Objects", "Request", "admit", "after_write", "prepare", "validate"),
    "library.mounting": ("mount",),
    "library.schemas": ("OpenAPI", "Rule"),
    "library.server": ("Server",),
    "library.storage": ("Creater", "Deleter", "Event", "Getter", "Lister", "Updater", "Watcher"),
    "machinery.errors.field": ("FieldError", "Path", "duplicate", "forbidden", "invalid", "not_supported", "required"),
    "machinery.errors.status": ("StatusError",),
}


def __getattr__(name: str) -> Any:
    """Import and return a public name at its first access (PEP 562)."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
