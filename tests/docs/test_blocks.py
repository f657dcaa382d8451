"""Tests that every command block in the documents is run by a test, in its order and from an empty folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

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
    "docs/autoscalers.md": READ,
    "docs/real-clusters.md": READ,
    "docs/controllers.md": READ,
    "docs/annotations.md": READ,
    "docs/scheduler.md": READ,
    "docs/explain.md": READ,
    "docs/explain-pods.md": READ,
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
    "docs/check.md": READ,
    "docs/faults.md": READ,
    "docs/report.md": READ,
    "docs/stress.md": READ,
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
    "docs/inspect.md": READ,
}
"""Test that runs the commands of each document."""
TESTED = {
    ("README.md", "python"): "tests/docs/test_testing_examples.py",
    ("README.md", "sh"): "tests/deploy/test_distribution.py",
    ("bench/README.md", "json"): "tests/bench/test_side_by_side.py",
    ("docs/aggregation.md", "yaml"): "tests/docs/test_objects.py",
    ("docs/check.md", "yaml"): "tests/docs/test_check_examples.py",
    ("docs/envtest.md", "go"): "tests/docs/test_testing_examples.py",
    ("docs/envtest.md", "makefile"): "tests/docs/test_testing_examples.py",
    ("docs/install.md", "sh"): "tests/deploy/test_distribution.py",
    ("docs/library.md", "python"): "tests/docs/test_library_examples.py",
    ("docs/faults.md", "yaml"): "tests/docs/test_fault_examples.py",
    ("docs/library.md", "yaml"): "tests/e2e/test_library_tutorial.py",
    ("docs/many-clusters.md", "python"): "tests/docs/test_testing_examples.py",
    ("docs/report.md", "python"): "tests/docs/test_testing_examples.py",
    ("docs/serve.md", "ini"): "tests/deploy/test_files.py",
    ("docs/serve.md", "nginx"): READ,
    ("docs/serve.md", "yaml"): "tests/docs/test_serve.py",
    ("docs/strategies.md", "python"): "tests/docs/test_testing_examples.py",
    ("docs/strategies.md", "yaml"): "tests/docs/test_testing_examples.py",
    ("docs/test-ci.md", "yaml"): "tests/docs/test_ci_examples.py",
    ("docs/test-java-rust.md", "java"): "tests/docs/test_testing_examples.py",
    ("docs/testing.md", "python"): "tests/docs/test_testing_examples.py",
    ("docs/testing.md", "sh"): "tests/deploy/test_distribution.py",
    ("docs/testing.md", "yaml"): "tests/docs/test_testing_examples.py",
    ("docs/trace.md", "yaml"): "tests/docs/test_objects.py",
    ("docs/up-nodes.md", "yaml"): "tests/docs/test_blocks.py",
    ("docs/webhooks.md", "yaml"): "tests/docs/test_objects.py",
}
"""Test that runs the blocks of a language, or gives them to the reader that they are for."""
NOT_RUN = {
    ("CONTRIBUTING.md", "sh"): "it clones the repository from its host",
    ("docs/test-ci.md", "python"): "it needs a container engine",
    ("docs/test-ci.md", "java"): "it needs a container engine",
}
"""Blocks that no test runs, with the reason."""
OUTPUT = ("", "text")
"""Languages of blocks that are output or drawings."""
MOST_NOT_RUN = 0.03
"""Largest share of all blocks that no test runs."""


class Block(NamedTuple):
    """Code block of a document."""

    document: str
    language: str
    text: str


def every_block() -> list[Block]:
    """Return all blocks of all documents but those of output."""
    return [
        Block(path.relative_to(ROOT).as_posix(), language, text)
        for path in FILES
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
        if language not in OUTPUT
    ]


def is_run(block: Block) -> bool:
    """Return True if a test runs the block, or types a command with the file that the block is.

    A file begins with a comment with its name, or the text before names it.
    """
    if block.language == "console":
        return block.document in PLAYED
    if block[:2] in TESTED:
        return True
    document = Document(ROOT / block.document)
    before = document.text.partition(block.text)[0]
    name = re.match(r"# ([\w./-]+\.\w+)", block.text) or re.search(r"`([\w-]+\.\w+)`[^`]*:\n*```\w+\n\Z", before)
    typed = "\n".join(step.command for each in document.blocks("console") for step in steps(each))
    return block.document in PLAYED and name is not None and re.search(rf"\b{re.escape(name[1])}\b", typed) is not None


def test_every_block_is_run_but_a_few_that_are_named() -> None:
    every = every_block()
    assert {each[:2] for each in every if not is_run(each)} == set(NOT_RUN)
    assert sum(not is_run(each) for each in every) < MOST_NOT_RUN * len(every)


def test_blocks_that_are_not_run_can_be_parsed() -> None:
    for block in every_block():
        if block.language == "python":
            compile(block.text, block.document, "exec")
        elif block.language in ("sh", "console"):
            commands = block.text if block.language == "sh" else "\n".join(each.command for each in steps(block.text))
            subprocess.run(["bash", "-n"], input=commands, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("document_and_language", TESTED, ids="-".join)
def test_tests_of_blocks_read_their_document(document_and_language: tuple[str, str]) -> None:
    document, language = document_and_language
    assert any(each[:2] == document_and_language for each in every_block())
    text = (ROOT / TESTED[document_and_language]).read_text()
    assert Path(document).name in text
    assert f'"{language}"' in text


def test_no_block_is_indented() -> None:
    """No test would see it."""
    assert [path.name for path in FILES if re.search(r"^ +```", path.read_text(), re.MULTILINE)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_blocks_of_output_have_no_commands(path: Path) -> None:
    for language in OUTPUT:
        for block in Document(path).blocks(language):
            assert not re.search(r"^(kubectl|steersman|python|etcd\w*|openssl|make|pip|sh|go) ", block, re.MULTILINE)


def blocks(path: Path) -> list[str]:
    return Document(path).blocks("console")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_blocks_of_commands_are_typed_by_a_test(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if not blocks(path):
        assert name not in PLAYED
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_commands_can_be_pasted_by_any_user(path: Path) -> None:
    """A command names a folder of its reader by `~` or `$PWD`; only output has the folder of a certain user."""
    assert [each.command for block in blocks(path) for each in steps(block) if "/home/" in each.command] == []


_SERVER = re.compile(r"(steersman serve|\S*kube-apiserver)\b.* &$", re.DOTALL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_readers_see_when_a_server_in_the_background_is_ready(path: Path) -> None:
    """The line of a server that is ready follows its command: whoever pastes the next command earlier gets an error."""
    for block in blocks(path):
        for step in steps(block):
            if _SERVER.match(step.command):
                assert any(line.startswith("ready") for line in step.told), step.command


_ENDLESS = re.compile(
    r"steersman (serve|up|inspect|controllers|scheduler|trace)\b(?!.* (--detach|--help|--recent|\$))"
    r"|kubectl (port-forward|proxy|logs -f|get .*(-w|--watch))\b"
)
"""Commands that run until they are interrupted."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_readers_are_told_to_interrupt_a_command_that_does_not_end(path: Path) -> None:
    endless = [
        step.command
        for block in blocks(path)
        for step in steps(block)
        if _ENDLESS.match(step.command) and not step.command.endswith("&")
    ]
    if endless:
        assert re.search(r"Ctrl-C", Document(path).prose), endless


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
