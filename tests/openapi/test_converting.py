"""Documents of v2 as documents of v3."""

from __future__ import annotations

import pytest

from steersman.openapi.converting import as_v3


def test_parts_of_a_document_find_their_places() -> None:
    reference = {"$ref": "#/definitions/Thing"}
    document = {
        "swagger": "2.0",
        "info": {"title": "t"},
        "paths": {
            "/a": {
                "parameters": [{"name": "p", "in": "query", "type": "string", "uniqueItems": True}],
                "post": {
                    "operationId": "o",
                    "consumes": ["application/json"],
                    "produces": ["application/json", "text/x"],
                    "parameters": [{"name": "body", "in": "body", "schema": reference}, {"$ref": "#/parameters/q"}],
                    "responses": {"200": {"description": "OK", "schema": reference}, "401": {"description": "no"}},
                    "x-kubernetes-action": "post",
                    "schemes": ["https"],
                },
            }
        },
        "definitions": {
            "Thing": {
                "type": "object",
                "properties": {
                    "a": {"description": "d", "$ref": "#/definitions/Other"},
                    "b": {"type": "array", "items": reference},
                    "c": {"additionalProperties": reference},
                    "d": {"additionalProperties": True},
                },
            }
        },
    }
    thing = {"$ref": "#/components/schemas/Thing"}
    assert as_v3(document) == {
        "openapi": "3.0.0",
        "info": {"title": "t"},
        "paths": {
            "/a": {
                "parameters": [{"name": "p", "in": "query", "schema": {"type": "string", "uniqueItems": True}}],
                "post": {
                    "operationId": "o",
                    "x-kubernetes-action": "post",
                    "requestBody": {"content": {"application/json": {"schema": thing}}},
                    "parameters": [{"$ref": "#/components/parameters/q"}],
                    "responses": {
                        "200": {
                            "description": "OK",
                            "content": {"application/json": {"schema": thing}, "text/x": {"schema": thing}},
                        },
                        "401": {"description": "no"},
                    },
                },
            }
        },
        "components": {
            "schemas": {
                "Thing": {
                    "type": "object",
                    "properties": {
                        "a": {"description": "d", "allOf": [{"$ref": "#/components/schemas/Other"}]},
                        "b": {"type": "array", "items": thing},
                        "c": {"additionalProperties": thing},
                        "d": {"additionalProperties": True},
                    },
                }
            }
        },
    }


@pytest.mark.parametrize("name", ["paths", "definitions"])
@pytest.mark.parametrize("value", [None, [], 1, {"a": 1}, {"a": {"get": 1, "parameters": [1]}}])
def test_what_is_none_counts_for_nothing(name: str, value: object) -> None:
    assert as_v3({name: value})["openapi"] == "3.0.0"
