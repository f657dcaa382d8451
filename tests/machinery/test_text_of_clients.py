"""Python's notions of digits, letters and spaces are Unicode's, but those for text from clients must be ASCII.

The sources parse text with the functions of `net.ascii` and `machinery.go.strings` and with patterns that set re.ASCII.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import steersman
from steersman.machinery.errors.go_numbers import parse_float
from steersman.machinery.go.strings import is_letter, split_space, to_lower, to_upper, trim_space

assert steersman.__file__ is not None
SOURCES = Path(steersman.__file__).parent
HELPERS = {"net/ascii.py", "machinery/go/strings.py"}
KINDS_OF_CHARACTERS = {"isdigit", "isdecimal", "isnumeric", "isalnum", "isalpha", "isspace", "isupper", "islower"}
OF_ANY_SPACE_OR_CASE = {
    "strip",
    "lstrip",
    "rstrip",
    "split",
    "rsplit",
    "splitlines",
    "lower",
    "upper",
    "casefold",
    "title",
    "swapcase",
}
UNICODE_IN_PATTERN = re.compile(r"\\[dDwWsSbB]|re\.I\b|IGNORECASE|\(\?[aLmsux]*i")
ALLOWED = {
    "admission_plugins/pod_node_selector.py": {"parts[0].strip()", "parts[1].strip()"},
    "aggregator/backend.py": {"name.isalnum()", "value.isalnum()"},
    "aggregator/remote_openapi.py": {"sha512(digest).hexdigest().upper()"},
    "authentication/service_account_keys.py": {"rest.strip()"},
    "authorization/impersonation.py": {"key.lower()"},
    "library/declaration.py": {"own_kind.lower()"},
    "library/server.py": {"str(error).split()"},
    "nodes/needs.py": {"each.kind.lower()"},
    "cli/envtest/claim.py": {"head.decode('latin-1').lower()", "read_own(path).strip()"},
    "cli/envtest/etcd.py": {"port.isdecimal()", "text.split()", "name.lower()", "value.strip()"},
    "cli/merged_context.py": {"str(error).split()"},
    "cli/program.py": {
        "(parameter.name or '').upper()",
        "_words_of(error).split()",
        "text.split()",
        "text[1:2].islower()",
        "text[:1].lower()",
        "re.compile('(\\\\S+) is not in the range x>=(\\\\d+)\\\\.')",
        "re.compile('Got unexpected extra arguments? \\\\((\\\\S*)[ )]')",
    },
    "cli/up/process_file.py": {"file.read(20).strip()"},
    "cli/up/trouble.py": {"text[:_LONGEST].split()"},
    "controlplane/metrics.py": {"Path('/proc/self/statm').read_text().split()"},
    "controlplane/feature_gates.py": {"text.split()"},
    "controlplane/option_ties.py": {"header.lower()"},
    "endpoints/bodies.py": {"data.lower()"},  # bytes, of which Python changes ASCII only
    "endpoints/discovery.py": {"hashlib.sha512(document).hexdigest().upper()"},
    "cel/grammar.py": {"text.split()"},
    "cel/library/strings.py": {"each.lower()", "each.upper()"},
    "machinery/codec/configuration.py": {"data.lstrip()"},
    "machinery/go/printable.py": {"PRINTABLE.split()"},
    "machinery/suggestions.py": {"each.casefold()", "name.casefold()"},
    "machinery/json_path/parser.py": {"char.isdecimal()"},
    "net/http1/head.py": {"raw.lower()"},
    "net/client/http1.py": {"code.isdigit()"},
    "net/client/http2/answer.py": {"status.isdigit()"},
    "net/spdy.py": {"_WORDS.split()"},
    "controlplane/flag_files.py": {"data.strip()"},
    "registry/apps/controllerrevisions.py": {"bytes(revision.data).lstrip()"},
    "server/debug_paths.py": {"data.isdigit()"},
    "openapi/sources.py": {"digest.hexdigest().upper()"},
    "storage/sqlite/file.py": {
        "(sql or '').split()",
        "os.pread(descriptor, 20, 0).decode('ascii', 'replace').strip()",
    },
    "storage/sqlite/log.py": {"numbers.split()"},
    "store/listing.py": {"text.isdigit()"},
    "store/store.py": {"text.isdigit()"},
}
"""By file: what reads bytes, or text of the server's own, or asks for ASCII beside it; or asks what Go asks too."""


_LIKELY = re.compile(rf"\.({'|'.join(KINDS_OF_CHARACTERS)})\(|\.({'|'.join(OF_ANY_SPACE_OR_CASE)})\(\s*\)|\bre\.\w+\(")
"""Text that may have such a call, as parsing all of it takes long."""


def unicode_readings(source: str) -> Iterator[str]:
    if not _LIKELY.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        if name in KINDS_OF_CHARACTERS or (name in OF_ANY_SPACE_OR_CASE and not node.args and not node.keywords):
            yield ast.unparse(node)
        elif isinstance(of, ast.Name) and of.id == "re" and "re.ASCII" not in (text := ast.unparse(node)):
            pattern = ast.unparse(node.args[0]) if node.args else ""
            if not pattern.startswith(("b'", 'b"')) and UNICODE_IN_PATTERN.search(eval_free(text)):
                yield text


def eval_free(text: str) -> str:
    """A call as it would be written with raw strings."""
    return text.replace("\\\\", "\\")


def test_text_is_not_read_as_unicode() -> None:
    found = {}
    for file in sorted(SOURCES.rglob("*.py")):
        name = str(file.relative_to(SOURCES))
        # the programs of a simulated shell have the words of Unix, not of Go
        if name.startswith(("api/", "testing/", "nodes/shell/")) or name in HELPERS:
            continue
        others = sorted(set(unicode_readings(file.read_text())) - ALLOWED.get(name, set()))
        if others:
            found[name] = others
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "text.isdigit()",
        "text.strip()",
        "text.lower()",
        r"re.compile(r'\d')",
        "re.compile('a', re.IGNORECASE)",
        "re.match('(?i)a', text)",
    ],
)
def test_what_is_found(source: str) -> None:
    assert list(unicode_readings(source)) == [ast.unparse(ast.parse(source))]
    assert list(unicode_readings("text.strip(' '); re.compile('\\\\d', re.ASCII); re.compile(b'\\\\d')")) == []


def test_space_and_case_are_those_of_go() -> None:
    assert trim_space("\u00a0\x85 \x1c a\u2003\t\u200b\u3000") == "\x1c a\u2003\t\u200b"
    assert split_space("a\u00a0b\x1cc\u2003d\x0be") == ["a", "b\x1cc", "d", "e"]
    assert to_lower("\u212a\u0130\u03a3\u0391\u03a3\u00df") == "ki\u03c3\u03b1\u03c3\u00df"
    assert to_upper("\u00df\u017fa") == "\u00dfSA"
    assert is_letter("\u00e4")
    assert not is_letter("1")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        ("1_0", 10.0),
        ("0x1p-2", 0.25),
        ("0x_1p1", 2.0),
        ("1.", 1.0),
        ("+.5", 0.5),
        ("1e5", 1e5),
        ("-1", -1.0),
        ("inf", float("inf")),
        ("+Infinity", float("inf")),
        ("1e400", float("inf")),
        ("1e-999", 0.0),
        ("1_23.50_0_0e+1_2", 1.235e14),
        ("0x_1_2.3_4_5p+1_2", 74565.0),
        ("0xA_b.cP1", 343.5),
        ("0x.8p1", 1.0),
        ("-0x1p99999999999", -math.inf),
        ("0x1p1024", math.inf),
        ("0x1p-9999", 0.0),
    ],
)
def test_floats_are_those_of_go(text: str, number: float) -> None:
    assert parse_float(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " 1",
        "1 ",
        "\u0663",
        ".",
        "0.5e",
        "0b1",
        "1__0",
        "_1",
        "1_",
        "+nan",
        "0x1",
        "\u00b2",
        "1_e1",
        "1_.5",
        "1._5",
        "1e_1",
        "1e1_",
        "0x_p1",
        "0x.p1",
        "0x1_p1",
        "0x1.p_1",
        "0x1__2p1",
        "0x1._2p1",
        "0_x1p1",
        "+-0x1p1",
        "0x" + "a" * 2000,
        "0x" + "a_" * 1000 + "ap",
        "1_" * 1000 + "e",
    ],
)
def test_what_is_no_float_to_go(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_float(text)
    assert math.isnan(parse_float("nan"))
