"""The declaration of a resource: `@resource` on its class, `@version_of` on its other versions.

Arguments have the names of apiextensions.k8s.io/v1, as a declaration becomes a CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from steersman.library.definition_error import DefinitionError
from steersman.library.hooks import HookSet, hooks_of, own_hooks
from steersman.library.models import is_model, member_names
from steersman.library.schemas import Rule
from steersman.library.storage import verbs_of_storage

C = TypeVar("C", bound=type)

_ATTRIBUTE: Final = "__steersman_resource__"
_VOWELS: Final = "aeiou"


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get` after NAME.

    `type` is integer, number, string, boolean or date. Columns with priority 1 are shown by `-o wide`.
    """

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


AGE: Final = PrinterColumn("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths of the scale subresource, which `kubectl scale` and autoscalers use."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str = ""


class Convertible(Protocol):
    """A version other than the stored one that converts its objects to and from the stored version."""

    def convert_to(self) -> Any:
        """Return this object as an instance of the stored version's class."""
        ...

    @classmethod
    def convert_from(cls, hub: Any) -> Any:
        """Return an instance of the stored version's class as an instance of this class."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The declaration of one version."""

    name: str
    model: type[Any]
    printer_columns: tuple[PrinterColumn, ...] = ()
    scale: Scale | None = None
    rules: tuple[Rule, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The declaration of a resource. `others` are the versions that are not stored, which `@version_of` adds."""

    group: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    stored: Version
    hooks: HookSet
    storage: object = None
    """The custom storage of its objects (library.storage), None for the server's storage."""
    others: list[Version] = field(default_factory=list)

    @property
    def versions(self) -> tuple[Version, ...]:
        """All versions, the stored version first."""
        return (self.stored, *self.others)

    def serves(self, group: str, version: str, plural: str) -> bool:
        """Return True if the resource is served in this version."""
        return any(each.name == version and each.served for each in self.versions)


def resource(
    api_version: str,
    *,
    kind: str = "",
    plural: str = "",
    singular: str = "",
    namespaced: bool = True,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    printer_columns: Sequence[PrinterColumn] = (),
    scale: Scale | None = None,
    rules: Sequence[Rule] = (),
    selectable_fields: Sequence[str] = (),
    deprecated: bool = False,
    deprecation_warning: str = "",
    storage: object = None,
) -> Callable[[C], C]:
    """Declare a class as a resource: `@resource("wardle.example.com/v1alpha1")`.

    The class is a `msgspec.Struct`, a dataclass or a pydantic model. Its fields are the members of objects; `spec` and
    `status` are classes of their own. A field `status` makes a status subresource. `kind` defaults to the name of the
    class, and `plural` to the English plural of `kind`. Without `namespaced` the resource is cluster-scoped. `rules`
    apply to the whole object. `selectable_fields` are paths for field selectors, such as `.spec.color`. Clients of a
    `deprecated` version get `deprecation_warning`, or a default warning. Objects are stored in this version. With a
    custom `storage` (library.storage) the class must have a field `metadata`.

    Raises DefinitionError for an apiVersion without a group, an unsuitable class or storage, and arguments or hooks of
    another form.
    """
    group, name = _parted(api_version)

    def declare(model: C) -> C:
        _check(model)
        _check_facts(
            model,
            printer_columns=(PrinterColumn, printer_columns),
            rules=(Rule, rules),
            scale=(Scale, scale),
            selectable_fields=(str, selectable_fields),
            short_names=(str, short_names),
            categories=(str, categories),
        )
        own_kind = kind or model.__name__
        if storage is not None and "get" in verbs_of_storage(storage) and "metadata" not in member_names(model):
            raise DefinitionError(f"{model.__name__} has no field `metadata`, which its custom storage needs")
        version = Version(
            name=name,
            model=model,
            printer_columns=tuple(printer_columns),
            scale=scale,
            rules=tuple(rules),
            selectable_fields=tuple(selectable_fields),
            deprecated=deprecated,
            deprecation_warning=deprecation_warning,
        )
        declaration = Declaration(
            group=group,
            kind=own_kind,
            plural=plural or plural_of(own_kind.lower()),
            singular=singular or own_kind.lower(),
            short_names=tuple(short_names),
            categories=tuple(categories),
            namespaced=namespaced,
            stored=version,
            hooks=hooks_of(model),
            storage=storage,
        )
        setattr(model, _ATTRIBUTE, declaration)
        return model

    return declare


def version_of(
    hub: type[Any],
    name: str,
    *,
    printer_columns: Sequence[PrinterColumn] = (),
    scale: Scale | None = None,
    rules: Sequence[Rule] = (),
    selectable_fields: Sequence[str] = (),
    served: bool = True,
    deprecated: bool = False,
    deprecation_warning: str = "",
) -> Callable[[C], C]:
    """Declare a class as another version of the resource `hub`: `@version_of(Flunder, "v1beta1")`.

    The class has the methods of `Convertible`. Without them, fields are copied as far as both classes have them. Raises
    DefinitionError for a class that cannot be such a version.
    """
    declaration = declaration_of(hub)

    def declare(model: C) -> C:
        _check(model)
        _check_facts(
            model,
            printer_columns=(PrinterColumn, printer_columns),
            rules=(Rule, rules),
            scale=(Scale, scale),
            selectable_fields=(str, selectable_fields),
        )
        if own := own_hooks(model, hub):
            raise DefinitionError(
                f"{model.__name__}.{own[0]}: hooks are methods of {hub.__name__}, which is the version that is stored; "
                f"they are called whatever version a request is in"
            )
        if declaration.storage is not None:
            raise DefinitionError(f"{declaration.kind} has a custom storage, which supports only one version")
        if any(each.name == name for each in declaration.versions):
            raise DefinitionError(f"{declaration.kind} has a version {name} already")
        if hasattr(model, "convert_to") != hasattr(model, "convert_from"):
            raise DefinitionError(f"{model.__name__} has one of convert_to and convert_from, and needs both")
        declaration.others.append(
            Version(
                name=name,
                model=model,
                printer_columns=tuple(printer_columns),
                scale=scale,
                rules=tuple(rules),
                selectable_fields=tuple(selectable_fields),
                served=served,
                deprecated=deprecated,
                deprecation_warning=deprecation_warning,
            )
        )
        return model

    return declare


def declaration_of(model: type[Any]) -> Declaration:
    """Return the declaration of a class. Raises DefinitionError if it has none."""
    found = vars(model).get(_ATTRIBUTE) if isinstance(model, type) else None
    if not isinstance(found, Declaration):
        shown = model.__name__ if isinstance(model, type) else f"{model!r} is no class, and"
        raise DefinitionError(f"{shown} is not declared with @resource")
    return found


def plural_of(singular: str) -> str:
    """Return the English plural of a lowercase name by the regular rules: policies, ingresses, keys."""
    if singular.endswith("y") and singular[-2:-1] not in _VOWELS:
        return f"{singular[:-1]}ies"
    if singular.endswith(("s", "x", "z", "ch", "sh")):
        return f"{singular}es"
    return f"{singular}s"


def _parted(api_version: object) -> tuple[str, str]:
    if not isinstance(api_version, str):
        name = getattr(api_version, "__name__", api_version)
        raise DefinitionError(f'{name}: @resource takes an apiVersion: @resource("wardle.example.com/v1alpha1")')
    group, slash, version = api_version.partition("/")
    if not (group and slash and version) or "/" in version:
        raise DefinitionError(f"{api_version!r} is no GROUP/VERSION such as wardle.example.com/v1alpha1")
    return group, version


def _check_facts(model: type[Any], **facts: tuple[type[Any], object]) -> None:
    """Raise DefinitionError for an argument that is not of its type, or not a sequence of it."""
    for name, (kind, given) in facts.items():
        if kind is Scale:
            if given is not None and not isinstance(given, Scale):
                raise DefinitionError(f"{model.__name__}: {name} is a Scale, not {given!r}")
            continue
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise DefinitionError(f"{model.__name__}: {name} is a list of {kind.__name__}, not {given!r}")
        for each in given:
            if not isinstance(each, kind):
                raise DefinitionError(f"{model.__name__}: {name} has {each!r}, which is no {kind.__name__}")


def _check(model: type[Any]) -> None:
    if not is_model(model):
        name = getattr(model, "__name__", model)
        raise DefinitionError(f"{name} is no msgspec.Struct, dataclass or pydantic model: @resource comes first")
