"""No response depends on the version of a library: clients do not get the texts of a library's errors."""

from __future__ import annotations

import ast
import sqlite3
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steersman
from steersman.machinery.codec.json_syntax import error_message
from steersman.net.client.dial import tls_failure
from steersman.storage.sqlite.store import fault_text

assert steersman.__file__ is not None
SOURCES = Path(steersman.__file__).parent
FOREIGN = {
    "msgspec.MsgspecError",
    "msgspec.DecodeError",
    "msgspec.ValidationError",
    "ssl.SSLError",
    "sqlite3.Error",
    "UnsupportedAlgorithm",
    "InvalidSignature",
    "DuplicateExtension",
    "zlib.error",
    "binascii.Error",
    "pyyaml.YAMLError",
    "pyyaml.MarkedYAMLError",
    "pyyaml.reader.ReaderError",
}
TO_OPERATORS = {
    "cli/",
    "explain/",
    "controlplane/",
    "storage/sqlite/file.py",
    "storage/sqlite/store.py",
    "storage/sqlite/snapshot.py",
    "storage/sqlite/salvage.py",
    "storage/moving/",
    "webhooks/kubeconfig.py",
    "authentication/client_certificate.py",
    "authentication/certificate_usage.py",
    "aggregator/remote_discovery.py",
    "aggregator/remote_openapi.py",
    "cluster/configuration.py",
    "cluster/device_configuration.py",
    "cluster/opening/",
    "dumps/",
    "report/",
    "testing/strategies/",
    "library/checked.py",
    "nodes/stages/declaration.py",
    "nodes/kwok/",
    "kinds/stored_form.py",
}
"""Modules whose messages are for operators, at the start or in the log."""


def told(source: str) -> Iterator[str]:
    """Handlers of libraries' errors that make the error's text a part of theirs."""
    if not any(name in source for name in FOREIGN):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ExceptHandler) or node.name is None or node.type is None:
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if not FOREIGN.intersection(map(ast.unparse, kinds)):
            continue
        for each in ast.walk(ast.Module(node.body, [])):
            shown = each.value if isinstance(each, ast.FormattedValue) else None
            if isinstance(each, ast.Call) and ast.unparse(each.func) in ("str", "repr") and each.args:
                shown = each.args[0]
            if isinstance(shown, ast.Name) and shown.id == node.name:
                yield f"except {ast.unparse(node.type)}: {ast.unparse(each)}"


def test_no_library_speaks_to_clients() -> None:
    found = {}
    for file in sorted(SOURCES.rglob("*.py")):
        name = str(file.relative_to(SOURCES))
        if not name.startswith(("api/", *TO_OPERATORS)) and (texts := list(told(file.read_text()))):
            found[name] = texts
    assert found == {}


def test_what_is_found() -> None:
    source = "try: pass\nexcept {}:\n    raise ValueError({})\n"
    assert list(told(source.format("ssl.SSLError as e", "f'a {e}'")))
    assert list(told(source.format("(OSError, sqlite3.Error) as e", "str(e)")))
    assert not list(told(source.format("OwnError as e", "str(e)")))


def test_values_that_are_refused_speak_for_themselves() -> None:
    class Kind(msgspec.Struct):
        a: int

    def refuse(kind: type, value: object) -> object:
        raise ValueError("our words")

    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b'{"a":"b"}', type=Kind)
    assert error_message(caught.value) == "json: cannot unmarshal a value into the object"
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b'"a"', type=complex, dec_hook=refuse)
    assert error_message(caught.value) == "our words"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "remote error: tls: handshake failure"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "remote error: tls: protocol version not supported"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "remote error: tls: certificate required"),
        ("TLSV1_ALERT_UNKNOWN_CA", "remote error: tls: unknown certificate authority"),
        ("DH_KEY_TOO_SMALL", "tls: handshake failure"),
        (None, "tls: handshake failure"),
    ],
)
def test_alerts_of_tls_are_told_as_go_does(reason: Any, text: str) -> None:
    error = ssl.SSLError("a library's words")
    error.reason = reason
    assert tls_failure(error, "h") == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SQLITE_FULL", "the disk or its quota is full (SQLITE_FULL)"),
        ("SQLITE_IOERR_FSYNC", "the disk failed (SQLITE_IOERR_FSYNC)"),
        ("SQLITE_MISUSE", "the database failed (SQLITE_MISUSE)"),
        ("", "the database failed"),
    ],
)
def test_faults_of_the_file_are_told_in_our_words(name: str, text: str) -> None:
    error = sqlite3.OperationalError("a library's words")
    error.sqlite_errorname = name
    assert fault_text(error) == text
