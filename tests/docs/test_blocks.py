"""Tests that every command block in the documents is run by a test, in its order and from an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steersman.cluster.configuration import Configuration
from tests.docs.markdown_documents import FILES, ROOT, Document
from tests.e2e.reader import Reader, steps

READ = "tests/e2e/test_documents_as_read.py"
PLAYED = {
    "README.md": READ,
    "docs/up.md": READ,
    "docs/up-nodes.md": READ,
    "docs/up-containers.md": READ,
    "docs/controllers.md": READ,
    "docs/annotations.md": READ,
    "docs/scheduler.md": READ,
    "docs/explain.md": READ,
    "docs/compatibility.md": READ,
    "docs/compatibility-resources.md": READ,
    "docs/encryption.md": READ,
    "docs/etcd.md": READ,
    "docs/etcd-failures.md": READ,
    "docs/serve.md": READ,
    "docs/logs.md": READ,
    "docs/workers.md": READ,
    "docs/trace.md": READ,
    "docs/envtest.md": READ,
    "docs/test-ci.md": READ,
    "docs/test-java-rust.md": READ,
    "docs/library.md": "tests/e2e/test_library_tutorial.py",
    "docs/custom-resources.md": READ,
    "docs/webhooks.md": READ,
    "docs/policies.md": READ,
    "docs/aggregation.md": READ,
    "docs/upgrading.md": READ,
    "docs/index.md": READ,
    "docs/performance.md": READ,
    "docs/security.md": READ,
    "docs/data-folder.md": READ,
    "docs/tour.md": READ,
    "docs/history.md": READ,
}
"""Test that runs the commands of each document."""
NOT_PLAYED = {
    "bench/README.md": r"make .*|\. \.venv.*|python .*bench.*|cd bench/load|\./load .*",
}
"""Documents with commands that take minutes or need the reader's programs, with a pattern of all their commands."""


def blocks(path: Path) -> list[str]:
    return Document(path).blocks("console")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_blocks_of_commands_are_typed_by_a_test(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if not blocks(path):
        assert name not in {*PLAYED, *NOT_PLAYED}
    elif name in NOT_PLAYED:
        commands = [step.command for block in blocks(path) for step in steps(block)]
        assert [each for each in commands if not re.fullmatch(NOT_PLAYED[name], each.partition("\n")[0])] == []
    else:
        assert name in PLAYED, f"{name} has commands, and no test types them"
        assert re.search(rf'"{re.escape(path.name)}"', (ROOT / PLAYED[name]).read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_block_begins_with_a_command(path: Path) -> None:
    for block in blocks(path):
        assert list(steps(block))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shells_are_shown_as_consoles(path: Path) -> None:
    """No test would run the commands of a block in another language."""
    text = path.read_text()
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language not in ("console", "text"):
            assert not block.startswith("$ "), block


def test_commands_that_go_on_in_the_next_line_and_documents_are_one_command() -> None:
    block = "$ a \\\n  b\n1\n$ c <<END\nx\n$ y\nEND\n2\n3\n$ d\n"
    assert [(each.command, each.told) for each in steps(block)] == [
        ("a \\\n  b", ["1"]),
        ("c <<END\nx\n$ y\nEND", ["2", "3"]),
        ("d", []),
    ]


def test_a_reader_finds_what_is_not_as_it_is_told(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "/bin/true")
    try:
        reader.play("$ echo a; echo b\na\nb\n$ seq 3\n1\n...\n$ cat <<END\nx\nEND\nx\n")
        reader.play("$ export A=b; mkdir c; cd c\n$ echo $A\nb\n")
        for block, why in (
            ("$ echo a\nb\n", "--- and not\nb"),
            ("$ echo a\n", None),
            ("$ false\n", "false"),
            ("$ cat missing.yaml\n", "No such file"),
        ):
            if why is None:
                reader.play(block)
            else:
                with pytest.raises(AssertionError, match=why):
                    reader.play(block)
    finally:
        reader.close()


def test_the_files_of_clusters_that_are_shown_can_be_read(tmp_path: Path) -> None:
    """Each file is read with the files and folders that it names."""
    read = 0
    for block in Document(ROOT / "docs" / "up-nodes.md").blocks("yaml"):
        if not block.startswith("nodes:"):
            continue
        for name in re.findall(r"[\w/.-]+(?:/|\.yaml)(?=[,\]])", block):
            path = tmp_path / name
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_text("")
        (file := tmp_path / "cluster.yaml").write_text(block)
        assert Configuration.load(file).simulated_nodes()
        read += 1
    assert read >= 3
