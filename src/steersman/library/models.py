"""Users' classes: their fields, and conversion of instances from and to plain data.

A class is a `msgspec.Struct`, a dataclass or a pydantic model. pydantic need not be installed.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

import msgspec

from steersman.library.user_code import kept_running
from steersman.machinery.codec.serializer import encode
from steersman.machinery.sorted_maps import presorted

Plain = dict[str, Any]

NO_DEFAULT: Final = object()

_METADATA: Final = "metadata"
_UNFIT: Final = "the object does not fit its class"


class ModelError(ValueError):
    """Raised for plain data that does not fit a class; the text says where and why.

    `found` has the errors by field, if the class distinguishes them.
    """

    def __init__(self, text: str, found: Sequence[Unfit] = ()) -> None:
        super().__init__(text)
        self.found = found


@dataclass(frozen=True, slots=True)
class Unfit:
    """The error of one field: its location from the root, as names and indices, and its value."""

    location: tuple[str | int, ...]
    value: Any
    detail: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class.

    `name` is that of its JSON, `type` its annotation with all of `Annotated`. `markers` are constraints that the class
    keeps elsewhere. `default` is plain data, NO_DEFAULT if there is none.
    """

    name: str
    type: Any
    is_required: bool
    default: Any
    description: str = ""
    markers: tuple[object, ...] = ()


def member_names(model: type[Any]) -> frozenset[str]:
    """Return the JSON names of a class's fields."""
    return frozenset(each.name for each in fields_of(model))


def is_model(kind: object) -> bool:
    """Return True for a class with fields."""
    return isinstance(kind, type) and (_is_struct(kind) or dataclasses.is_dataclass(kind) or _is_pydantic(kind))


def description_of(model: type) -> str:
    """Return a class's own docstring, "" for the generated signature of a dataclass without one."""
    text = model.__dict__.get("__doc__") or ""
    if dataclasses.is_dataclass(model) and text.startswith(f"{model.__name__}("):
        return ""
    return inspect.cleandoc(text)


def fields_of(model: type[Any]) -> Iterator[Field]:
    """Return the fields of a class in order.

    Raises TypeError for a class without fields, NameError for an annotation with an undefined name.
    """
    if _is_struct(model):
        return _struct_fields(model)
    if dataclasses.is_dataclass(model):
        return _dataclass_fields(model)
    if _is_pydantic(model):
        return _pydantic_fields(model)
    raise TypeError(f"{model.__name__} is no msgspec.Struct, dataclass or pydantic model")


def instance_of(model: type[Any], plain: Mapping[str, Any]) -> Any:
    """Return an instance of a class for plain data. Raises ModelError."""
    with kept_running(model.__name__):
        return _instance_of(model, plain)


def _instance_of(model: type[Any], plain: Mapping[str, Any]) -> Any:
    if _is_pydantic(model):
        try:
            return model.model_validate(plain)
        except ValueError as error:  # the base of pydantic's ValidationError
            raise ModelError(str(error), _unfit(error)) from None
    try:
        if _METADATA in plain:  # through JSON, as ObjectMeta keeps raw parts
            return msgspec.json.decode(encode(plain), type=model)
        return msgspec.convert(plain, model)
    except msgspec.ValidationError as error:
        own = error.__cause__  # the class's own error; the schema has found all others
        raise ModelError(_UNFIT if own is None else str(own)) from None


def plain_of(instance: Any) -> Plain:
    """Return an instance as JSON data, without None values and with sorted sets."""
    with kept_running(type(instance).__name__):
        return _plain_of(instance)


def _plain_of(instance: Any) -> Plain:
    if _is_pydantic(type(instance)):
        dumped: Plain = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
        _sort_sets(dumped, instance.model_dump(by_alias=True, exclude_none=True))
        return dumped
    if hasattr(instance, _METADATA):
        whole: Plain = _without_none(msgspec.json.decode(encode(instance)))
        return whole
    found: Plain = _without_none(msgspec.to_builtins(presorted(instance), str_keys=True, order="deterministic"))
    return found


def _sort_sets(dumped: Any, given: Any) -> None:
    """Sort the lists that pydantic has made of the sets in `given`, whose order differs in each process."""
    if isinstance(dumped, list):
        if isinstance(given, AbstractSet):
            dumped.sort(key=lambda each: msgspec.json.encode(presorted(each), order="sorted"))
        elif isinstance(given, Sequence):
            for each, own in zip(dumped, given, strict=False):
                _sort_sets(each, own)
    elif isinstance(dumped, dict) and isinstance(given, Mapping):
        for name, each in dumped.items():
            _sort_sets(each, given.get(name))


def _unfit(error: Any) -> Sequence[Unfit]:
    """Return the errors of a pydantic ValidationError by field."""
    if not hasattr(error, "errors"):
        return ()
    return [
        Unfit(each["loc"], each["input"], each["msg"].removeprefix("Value error, "))
        for each in error.errors(include_url=False, include_context=False)
    ]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value


def _is_struct(model: type) -> bool:
    return issubclass(model, msgspec.Struct)


def _is_pydantic(model: type) -> bool:
    return hasattr(model, "model_fields") and hasattr(model, "model_validate")


def _struct_fields(model: type[msgspec.Struct]) -> Iterator[Field]:
    for each in msgspec.structs.fields(model):
        default = NO_DEFAULT
        if each.default is not msgspec.NODEFAULT:
            default = each.default
        elif each.default_factory is not msgspec.NODEFAULT:
            default = each.default_factory()
        yield Field(each.encode_name, each.type, each.required, _plain_default(default))


def _dataclass_fields(model: type[Any]) -> Iterator[Field]:
    hints = get_type_hints(model, include_extras=True)
    for each in dataclasses.fields(model):
        default: Any = NO_DEFAULT
        if each.default is not dataclasses.MISSING:
            default = each.default
        elif each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        yield Field(each.name, hints[each.name], default is NO_DEFAULT, _plain_default(default))


def _pydantic_fields(model: Any) -> Iterator[Field]:
    for name, each in model.model_fields.items():
        default: Any = NO_DEFAULT
        if not each.is_required():
            default = each.get_default(call_default_factory=True)
        yield Field(
            each.serialization_alias or each.alias or name,
            each.annotation,
            each.is_required(),
            _plain_default(default),
            each.description or "",
            tuple(each.metadata),
        )


def _plain_default(default: Any) -> Any:
    """Return a default as plain data; None becomes NO_DEFAULT."""
    if default is NO_DEFAULT or default is None or default is msgspec.UNSET:
        return NO_DEFAULT
    if is_model(type(default)):
        return plain_of(default)
    return msgspec.to_builtins(presorted(default), str_keys=True, order="deterministic")
