"""Tables of gnostic's OpenAPI v2 messages (package openapi.v2): the field of each JSON member.

Only the parts that Kubernetes documents use: no headers of responses, examples, file schemas or OAuth.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.openapi.protobuf import (
    Body,
    Field,
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

_REFERENCE: Final = Message({"$ref": string(1), "description": string(2)})
_SCHEMA: Final = Message(extension=31)
_ADDITIONAL_SCHEMA: Final = alone(message(1, _SCHEMA))


def _additional_properties(value: Any) -> bytes:
    """Encode additionalProperties, a oneof: such a field is written even if it is false."""
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    return _ADDITIONAL_SCHEMA(value)


_SCHEMA.define(
    {
        "$ref": string(1),
        "format": string(2),
        "title": string(3),
        "description": string(4),
        "default": message(5, any_value),
        "multipleOf": double(6),
        "maximum": double(7),
        "exclusiveMaximum": boolean(8),
        "minimum": double(9),
        "exclusiveMinimum": boolean(10),
        "maxLength": integer(11),
        "minLength": integer(12),
        "pattern": string(13),
        "maxItems": integer(14),
        "minItems": integer(15),
        "uniqueItems": boolean(16),
        "maxProperties": integer(17),
        "minProperties": integer(18),
        "required": strings(19),
        "enum": messages(20, any_value),
        "additionalProperties": message(21, _additional_properties),
        "type": message(22, alone(strings(1))),
        "items": message(23, alone(message(1, _SCHEMA))),
        "allOf": messages(24, _SCHEMA),
        "properties": message(25, alone(named(1, _SCHEMA))),
        "discriminator": string(26),
        "readOnly": boolean(27),
        "externalDocs": message(29, Message({"description": string(1), "url": string(2)}, extension=3)),
        "example": message(30, any_value),
    }
)


def _value_fields(first: int) -> dict[str, Field]:
    """Return the fields about values that all simple parameters share, numbered from `first`."""
    return {
        "type": string(first),
        "format": string(first + 1),
        "collectionFormat": string(first + 3),
        "default": message(first + 4, any_value),
        "maximum": double(first + 5),
        "exclusiveMaximum": boolean(first + 6),
        "minimum": double(first + 7),
        "exclusiveMinimum": boolean(first + 8),
        "maxLength": integer(first + 9),
        "minLength": integer(first + 10),
        "pattern": string(first + 11),
        "maxItems": integer(first + 12),
        "minItems": integer(first + 13),
        "uniqueItems": boolean(first + 14),
        "enum": messages(first + 15, any_value),
        "multipleOf": double(first + 16),
    }


def _simple_parameter(*, empty_value: bool) -> Message:
    """Return the message of a parameter that is not a body; parameters of a query or form may be empty."""
    head = {"required": boolean(1), "in": string(2), "description": string(3), "name": string(4)}
    if not empty_value:
        return Message({**head, **_value_fields(5)}, extension=22)
    return Message({**head, "allowEmptyValue": boolean(5), **_value_fields(6)}, extension=23)


_BODY_PARAMETER: Final = Message(
    {
        "description": string(1),
        "name": string(2),
        "in": string(3),
        "required": boolean(4),
        "schema": message(5, _SCHEMA),
    },
    extension=6,
)


def _kinds_of_parameter() -> dict[str, Body]:
    """Return the bodies of Parameter messages by `in`.

    A Parameter is a oneof of body parameters (1) and all others (2), which are themselves a oneof.
    """
    kinds = {"body": alone(message(1, _BODY_PARAMETER))}
    for place, number, empty_value in (
        ("header", 1, False),
        ("formData", 2, True),
        ("query", 3, True),
        ("path", 4, False),
    ):
        kinds[place] = alone(message(2, alone(message(number, _simple_parameter(empty_value=empty_value)))))
    return kinds


_PARAMETER_KINDS: Final = _kinds_of_parameter()
_PARAMETER: Final = choice(lambda value: _PARAMETER_KINDS[value["in"]])


def _or_reference(body: Body) -> Body:
    """Return a oneof of a message (1) and a reference to it (2)."""
    own = alone(message(1, body))
    reference = alone(message(2, _REFERENCE))
    return choice(lambda value: reference if "$ref" in value else own)


_PARAMETERS_ITEM: Final = _or_reference(_PARAMETER)
_RESPONSE_BODY: Final = Message(
    {"description": string(1), "schema": message(2, alone(message(1, _SCHEMA)))}, extension=5
)
_RESPONSES: Final = Message(extension=2, other=("", 1, _or_reference(_RESPONSE_BODY)))
_SECURITY_REQUIREMENT: Final = alone(named(1, alone(strings(1))))

_OPERATION: Final = Message(
    {
        "tags": strings(1),
        "summary": string(2),
        "description": string(3),
        "operationId": string(5),
        "produces": strings(6),
        "consumes": strings(7),
        "parameters": messages(8, _PARAMETERS_ITEM),
        "responses": message(9, _RESPONSES),
        "schemes": strings(10),
        "deprecated": boolean(11),
        "security": messages(12, _SECURITY_REQUIREMENT),
    },
    extension=13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": string(1),
        "get": message(2, _OPERATION),
        "put": message(3, _OPERATION),
        "post": message(4, _OPERATION),
        "delete": message(5, _OPERATION),
        "options": message(6, _OPERATION),
        "head": message(7, _OPERATION),
        "patch": message(8, _OPERATION),
        "parameters": messages(9, _PARAMETERS_ITEM),
    },
    extension=10,
)

_SECURITY_KINDS: Final = {
    "basic": alone(message(1, Message({"type": string(1), "description": string(2)}, extension=3))),
    "apiKey": alone(
        message(
            2, Message({"type": string(1), "name": string(2), "in": string(3), "description": string(4)}, extension=5)
        )
    ),
}

DOCUMENT: Final = Message(
    {
        "swagger": string(1),
        "info": message(
            2,
            Message(
                {"title": string(1), "version": string(2), "description": string(3), "termsOfService": string(4)},
                extension=7,
            ),
        ),
        "host": string(3),
        "basePath": string(4),
        "schemes": strings(5),
        "consumes": strings(6),
        "produces": strings(7),
        "paths": message(8, Message(extension=1, other=("/", 2, _PATH_ITEM))),
        "definitions": message(9, alone(named(1, _SCHEMA))),
        "parameters": message(10, alone(named(1, _PARAMETER))),
        "responses": message(11, alone(named(1, _RESPONSE_BODY))),
        "security": messages(12, _SECURITY_REQUIREMENT),
        "securityDefinitions": message(13, alone(named(1, choice(lambda value: _SECURITY_KINDS[value["type"]])))),
    },
    extension=16,
)
"""The message openapi.v2.Document."""
