"""Tables of gnostic's OpenAPI v3 messages (package openapi.v3): the field of each JSON member.

Only the parts that Kubernetes documents use: no callbacks, links, examples, servers or OAuth.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.openapi.protobuf import (
    Body,
    Message,
    alone,
    any_value,
    boolean,
    choice,
    double,
    integer,
    message,
    messages,
    named,
    string,
    strings,
)

_REFERENCE: Final = Message({"$ref": string(1), "summary": string(2), "description": string(3)})


def _or_reference(body: Body) -> Body:
    """Return a oneof of a message (1) and a reference to it (2)."""
    own = alone(message(1, body))
    reference = alone(message(2, _REFERENCE))
    return choice(lambda value: reference if isinstance(value.get("$ref"), str) else own)


_SCHEMA: Final = Message(extension=36)
_SCHEMA_OR_REFERENCE: Final = _or_reference(_SCHEMA)

# Fields of a oneof are written even if they are false, 0 or "".
_ONE_DOUBLE: Final = (b"\x09", double(1)[1])
_ADDITIONAL_SCHEMA: Final = alone(message(1, _SCHEMA_OR_REFERENCE))


def _additional_properties(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    return _ADDITIONAL_SCHEMA(value)


def _default(value: Any) -> bytes:
    """Encode a DefaultType: a number, a boolean or a string; b"" for other values such as {}."""
    match value:
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int() | float():
            tag, encode = _ONE_DOUBLE
            return encode(value) or tag + bytes(8)
        case str():
            return string(3)[1](value) or b"\x1a\x00"
    return b""


_SCHEMA.define(
    {
        "nullable": boolean(1),
        "readOnly": boolean(3),
        "writeOnly": boolean(4),
        "externalDocs": message(6, Message({"description": string(1), "url": string(2)}, extension=3)),
        "example": message(7, any_value),
        "deprecated": boolean(8),
        "title": string(9),
        "multipleOf": double(10),
        "maximum": double(11),
        "exclusiveMaximum": boolean(12),
        "minimum": double(13),
        "exclusiveMinimum": boolean(14),
        "maxLength": integer(15),
        "minLength": integer(16),
        "pattern": string(17),
        "maxItems": integer(18),
        "minItems": integer(19),
        "uniqueItems": boolean(20),
        "maxProperties": integer(21),
        "minProperties": integer(22),
        "required": strings(23),
        "enum": messages(24, any_value),
        "type": string(25),
        "allOf": messages(26, _SCHEMA_OR_REFERENCE),
        "oneOf": messages(27, _SCHEMA_OR_REFERENCE),
        "anyOf": messages(28, _SCHEMA_OR_REFERENCE),
        "not": message(29, _SCHEMA),
        "items": message(30, alone(message(1, _SCHEMA_OR_REFERENCE))),
        "properties": message(31, alone(named(1, _SCHEMA_OR_REFERENCE))),
        "additionalProperties": message(32, _additional_properties),
        "default": message(33, _default),
        "description": string(34),
        "format": string(35),
    }
)

_MEDIA_TYPE: Final = Message(
    {"schema": message(1, _SCHEMA_OR_REFERENCE), "example": message(2, any_value)}, extension=5
)
_MEDIA_TYPES: Final = alone(named(1, _MEDIA_TYPE))

_PARAMETER: Final = Message(
    {
        "name": string(1),
        "in": string(2),
        "description": string(3),
        "required": boolean(4),
        "deprecated": boolean(5),
        "allowEmptyValue": boolean(6),
        "style": string(7),
        "explode": boolean(8),
        "allowReserved": boolean(9),
        "schema": message(10, _SCHEMA_OR_REFERENCE),
        "example": message(11, any_value),
        "content": message(13, _MEDIA_TYPES),
    },
    extension=14,
)
_PARAMETERS: Final = _or_reference(_PARAMETER)

_REQUEST_BODY: Final = _or_reference(
    Message({"description": string(1), "content": message(2, _MEDIA_TYPES), "required": boolean(3)}, extension=4)
)
_RESPONSE: Final = _or_reference(Message({"description": string(1), "content": message(3, _MEDIA_TYPES)}, extension=5))
_SECURITY_REQUIREMENT: Final = alone(named(1, alone(strings(1))))

_OPERATION: Final = Message(
    {
        "tags": strings(1),
        "summary": string(2),
        "description": string(3),
        "operationId": string(5),
        "parameters": messages(6, _PARAMETERS),
        "requestBody": message(7, _REQUEST_BODY),
        "responses": message(8, Message({"default": message(1, _RESPONSE)}, extension=3, other=("", 2, _RESPONSE))),
        "deprecated": boolean(10),
        "security": messages(11, _SECURITY_REQUIREMENT),
    },
    extension=13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": string(1),
        "summary": string(2),
        "description": string(3),
        "get": message(4, _OPERATION),
        "put": message(5, _OPERATION),
        "post": message(6, _OPERATION),
        "delete": message(7, _OPERATION),
        "options": message(8, _OPERATION),
        "head": message(9, _OPERATION),
        "patch": message(10, _OPERATION),
        "trace": message(11, _OPERATION),
        "parameters": messages(13, _PARAMETERS),
    },
    extension=14,
)

_SECURITY_SCHEME: Final = _or_reference(
    Message(
        {
            "type": string(1),
            "description": string(2),
            "name": string(3),
            "in": string(4),
            "scheme": string(5),
            "bearerFormat": string(6),
            "openIdConnectUrl": string(8),
        },
        extension=9,
    )
)

_COMPONENTS: Final = Message(
    {
        "schemas": message(1, alone(named(1, _SCHEMA_OR_REFERENCE))),
        "responses": message(2, alone(named(1, _RESPONSE))),
        "parameters": message(3, alone(named(1, _PARAMETERS))),
        "requestBodies": message(5, alone(named(1, _REQUEST_BODY))),
        "securitySchemes": message(7, alone(named(1, _SECURITY_SCHEME))),
    },
    extension=10,
)

_INFO: Final = Message(
    {
        "title": string(1),
        "description": string(2),
        "termsOfService": string(3),
        "version": string(6),
        "summary": string(8),
    },
    extension=7,
)

DOCUMENT: Final = Message(
    {
        "openapi": string(1),
        "info": message(2, _INFO),
        "paths": message(4, Message(extension=2, other=("/", 1, _PATH_ITEM))),
        "components": message(5, _COMPONENTS),
        "security": messages(6, _SECURITY_REQUIREMENT),
    },
    extension=9,
)
"""The message openapi.v3.Document."""
