"""Files in YAML that users write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import steersman
from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            b"a: b\nc: [1\nx: {\n",
            "line 3, column 2: did not find expected ',' or ']' while parsing a flow sequence that",
        ),
        (b"a:\n  b: c\n\td: e\n", "line 3, column 1: found a tab"),
        (b"a: 1\n\x00", "line 2: control characters are not allowed"),
        (b"a: 1\nb: \xff", "line 2: the text is not UTF-8"),
        (b"a: 1\nb: 2\na: 3\n", 'line 3: key "a" already set in map'),
        (b"a: 1\n---\nb: {c: 1, c: 2}\n", 'line 3: key "c" already set in map'),
        (b"a: &a [*a]", "anchor 'a' value contains itself"),
        (b"&a a: 1\n---\nb: *a", "unknown anchor 'a'"),
        (b"a: .nan", "unsupported value: NaN"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_an_error_begins_with_the_file_and_the_line(tmp_path: Path, text: bytes, told: str) -> None:
    file = tmp_path / "given.yaml"
    file.write_bytes(text)
    with pytest.raises(YAMLFileError) as raised:
        read_documents(file)
    assert str(raised.value).startswith(f"{file}: {told}")
    assert "unicode string" not in str(raised.value)


def test_a_file_that_is_not_there_is_told_of_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(YAMLFileError, match=r"missing\.yaml: No such file or directory"):
        read_documents(tmp_path / "missing.yaml")


def test_documents_are_what_kubectl_takes_them_for(tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    file.write_bytes(b"day: 2026-01-02\nhour: 12:30:45\nmode: 0644\n---\n---\n{a: yes, 1: 1.0}\n")
    assert read_documents(file) == [
        {"day": "2026-01-02", "hour": "12:30:45", "mode": 420},
        None,
        {"a": True, "1": 1},
    ]


def test_yaml_is_read_by_one_reader() -> None:
    sources = Path(steersman.__file__).parent
    reads = re.compile(r"safe_load|full_load|SafeLoader")
    found = [str(each.relative_to(sources)) for each in sources.rglob("*.py") if reads.search(each.read_text())]
    assert sorted(found) == ["machinery/codec/yaml.py", "machinery/codec/yaml_positions.py"]  # values, and lines
