"""Bodies: JSON, YAML, protobuf, and what managedFields hold."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import Pod, Service
from steersman.machinery.codec import yaml
from steersman.machinery.codec.json_tree import JSONSyntaxError, parse_tree
from steersman.machinery.codec.protobuf.documents import decode, encode_body
from steersman.machinery.codec.protobuf.tables import NotMarshalableError
from steersman.machinery.codec.serializer import decode_json, encode
from steersman.machinery.codec.strict import DecodeError, decode_object
from steersman.machinery.errors.status import StatusError
from steersman.machinery.managed_fields.fields_v1 import FieldsError, decode_fields, encode_fields
from tools.fuzz.target import Target, same

_ESCAPED: Final = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
"""Characters that are written as escapes, after which the raw text of fieldsV1 differs."""


def json_object(data: bytes) -> str:
    """A pod. Read strictly or not it is the same, and what is written of it is read as it."""
    loose = decode_object(Pod, data, "json", want_strict=False).obj
    same(decode_object(Pod, data, "json", want_strict=True).obj, loose, "a strict and a loose reading")
    written = encode(loose)
    again = decode_json(Pod, written)
    same(encode(again), written, "what is written of what was written")
    if not _ESCAPED.search(data):
        same(again, loose, "what is written of an object")
    return "pod"


def json_document(data: bytes) -> Any:
    """Any document, with and without a schema: what has a tree is read, and what has none is not."""
    try:
        parse_tree(data)
    except JSONSyntaxError:
        tree = False
    else:
        tree = True
    try:
        found = decode_object(dict, data, "json", want_strict=True).obj
    except DecodeError as error:
        return str(error)[:40]
    same(tree, True, "whether there is a tree of a document that was read")
    written = encode(found)
    same(decode_object(dict, written, "json", want_strict=False).obj, found, "what is written of a document")
    return "dict"


def yaml_document(data: bytes) -> str:
    """The JSON of a document, written as YAML again, is the same document."""
    value, _ = yaml.load(data)
    written = yaml.to_json(value)
    again, _ = yaml.load(yaml.from_json(written))
    same(yaml.to_json(again), written, "what is written of a document")
    return type(value).__name__


def _protobuf(cls: type[msgspec.Struct], data: bytes) -> str:
    found = decode(cls, data)
    written = encode_body(found)
    same(decode(cls, written), found, "what is written of an object")
    decode_json(cls, encode(found))
    return cls.__name__


def protobuf(data: bytes) -> str:
    """A Pod or a Service, by the first byte: what is written of it is read as it, and it has a JSON form."""
    return _protobuf(Service if data[:1] == b"s" else Pod, data[1:])


def fields_v1(data: bytes) -> str:
    """Check the field sets of managedFields."""
    fields, _ = decode_fields(data)
    written = bytes(encode_fields(fields))
    same(decode_fields(written)[0], fields, "what is written of fields")
    return "fields"


_JSON_WORDS: Final = (
    b'{"',
    b'":',
    b'","',
    b"null",
    b"true",
    b"1.5",
    b"1E400",
    b'"\\ud800"',
    b'"\\u0000"',
    b'"metadata":{',
    b'"name":',
    b'"spec":{',
    b'"containers":[{',
    b'"ports":[',
    b'"containerPort":',
    b'"protocol":',
    b'"labels":{',
    b'"kind":"Pod"',
    b'"creationTimestamp":"2020-01-01T00:00:00Z"',
    b'"resources":{"limits":{"cpu":"1"}}',
    b'"managedFields":[',
    b'"intOrString"',
    b'"port":"a"',
    b'"Metadata"',
    b'"NAME"',
    b"-0",
    b"1e3",
    b"[[[[",
    b'"data":"AA=="',
    b'"\\u003c"',
)
_YAML_WORDS: Final = (
    b"a: b\n",
    b"- ",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!str ",
    b"!!binary ",
    b"? ",
    b"|\n  ",
    b">-\n  ",
    b"---\n",
    b"...\n",
    b"yes",
    b"0o17",
    b"0x1F",
    b"1_000",
    b".inf",
    b".nan",
    b"2001-01-01",
    b"~",
    b"''",
    b"%YAML 1.1\n",
    b"# c\n",
    b"{a: 1, a: 2}",
    b"!!float 1",
    b"1:20",
    b"\t",
    b"!!merge ",
    b"!<x> ",
    b"null: null\n",
    b"\xe2\x80\xa8",
    b"0b1",
    b"+.5",
    b"=",
)
_PROTOBUF_WORDS: Final = (
    b"\n\3\n\1a",
    b"\x12\x02\n\0",
    b"\x1a\0",
    b"\x0a\x80\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
    b"\x0b\x0c",
    b"\x0d\0\0\0\0",
    b"\x09" + bytes(8),
    b"\x5a\6\n\1a\x12\1b",
    b"\x42\4\x08\1\x10\2",
)
_FIELDS_WORDS: Final = (
    b'"f:a":{',
    b'"k:{\\"name\\":\\"a\\"}":{',
    b'"v:1":{',
    b'"i:0":{',
    b'".":{}',
    b"{}",
    b'"f:"',
    b'"k:{}"',
)

TARGETS: Final = (
    Target("json-object", json_object, (DecodeError, StatusError), _JSON_WORDS),
    Target("json-document", json_document, (DecodeError, StatusError), _JSON_WORDS),
    Target("yaml", yaml_document, (yaml.YAMLError, StatusError), _YAML_WORDS, each=0.05),
    Target("protobuf", protobuf, (DecodeError, StatusError, NotMarshalableError), _PROTOBUF_WORDS),
    Target("fields-v1", fields_v1, (FieldsError,), _FIELDS_WORDS),
)
