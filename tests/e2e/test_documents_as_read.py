"""Tests of README.md and the guides that need nothing else: their blocks are run in order, from an empty folder."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.reader import Reader
from tests.storage.etcd.process import free_port, program

pytestmark = pytest.mark.slow

INSTALLS = {
    r"make (install|up|test)|\. \.venv|python -m venv|pip install": "these tests run where it is installed",
    r"go test|USE_EXISTING_CLUSTER": "there is no module of Go: tests/e2e/test_envtest.py has",
    r"mvn test": "there is no project of Maven: tests/docs/test_testing_examples.py makes one",
}
Reads = Callable[..., Reader]


@pytest.fixture
def reader(tmp_path: Path, kubectl_binary: str) -> Iterator[Reads]:
    """Return `reader(skipped, ports)`, which makes a reader with an empty folder."""
    made: list[Reader] = []

    def make(skipped: dict[str, str], ports: dict[str, str] | None = None) -> Reader:
        made.append(Reader(tmp_path, kubectl_binary, skipped, ports))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_readme(reader: Reads) -> None:
    reader(INSTALLS).read(Document(ROOT / "README.md"))


def test_the_start_page(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "index.md"))


def test_the_tour(reader: Reads) -> None:
    reader({}, {"6443": str(free_port())}).read(Document(ROOT / "docs" / "tour.md"))


def test_the_guide_of_clusters(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "up.md"))


def test_the_page_about_nodes(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "up-nodes.md"))


def test_the_page_about_containers(reader: Reads) -> None:
    reads = reader({r"kubectl exec -it": "there is no terminal"}, {"8080": str(free_port())})
    reads.read(Document(ROOT / "docs" / "up-containers.md"))


def test_the_page_about_compatibility(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "compatibility.md"))


def test_the_page_about_resources(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "compatibility-resources.md"))


def test_the_page_about_the_scheduler(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "scheduler.md"))


def test_the_page_about_controllers(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "controllers.md"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the guide's commands call")
def test_the_guide_of_webhooks(reader: Reads) -> None:
    """The guide is run on the cluster that the start page starts, with the widgets of the tour."""
    reads = reader({}, {each: str(free_port()) for each in ("8443", "8444")})
    for block in Document(ROOT / "docs" / "tour.md").blocks("yaml"):
        (reads.folder / ("widget.yaml" if "\nkind: Widget\n" in block else "widgets.yaml")).write_text(block)
    reads.play("$ steersman up --detach\nready ...\n$ export KUBECONFIG=~/.local/state/steersman/admin.kubeconfig\n")
    reads.read(Document(ROOT / "docs" / "webhooks.md"))


def test_the_guide_of_performance(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "performance.md"))


def test_the_page_about_versions(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "upgrading.md"))


def test_the_guide_of_security(reader: Reads) -> None:
    """The audit log has the request, and not the Secret; nor has the database."""
    reads = reader({}, {"6443": str(free_port())})
    reads.read(Document(ROOT / "docs" / "security.md"))
    data = reads.folder / "data"
    logged = (reads.folder / "audit.log").read_text()
    assert '"resource":"secrets"' in logged
    assert '"requestObject"' not in logged
    stored = b"".join(each.read_bytes() for each in data.glob("steersman.db*"))
    assert b"k8s:enc:secretbox:v1:key1:" in stored
    assert {each.stat().st_mode & 0o077 for each in (reads.folder / "encryption.yaml", *data.glob("*.key"))} == {0}


def test_the_page_about_encryption(reader: Reads) -> None:
    """Neither the database nor its log has the Secret in clear text."""
    reads = reader({}, {"6443": str(free_port())})
    reads.read(Document(ROOT / "docs" / "encryption.md"))
    stored = b"".join(each.read_bytes() for each in (reads.folder / "data").glob("steersman.db*"))
    assert base64.b64encode(b"secret") not in stored


def test_the_page_about_workers(reader: Reads) -> None:
    reader({}, {"6443": str(free_port())}).read(Document(ROOT / "docs" / "workers.md"))


def test_the_page_about_logs(reader: Reads) -> None:
    reader({}, {"6443": str(free_port())}).read(Document(ROOT / "docs" / "logs.md"))


def test_the_page_about_traces(reader: Reads) -> None:
    reader({}, {"4317": str(free_port()), "6443": str(free_port())}).read(Document(ROOT / "docs" / "trace.md"))


def test_the_page_about_the_data_folder(reader: Reads) -> None:
    """Its table has every file that a server makes."""
    document = Document(ROOT / "docs" / "data-folder.md")
    reads = reader({}, {"6443": str(free_port())})
    reads.read(document)
    named = re.findall(r"`([\w.*-]+)`", " ".join(row[0] for row in document.table("Files")))
    patterns = [f"steersman.db{each}" if each.startswith("-") else each for each in named]
    made = {each.name for each in (reads.folder / "data").iterdir()}
    assert [each for each in sorted(made) if not any(fnmatch(each, pattern) for pattern in patterns)] == []


def test_the_guide_of_envtest(reader: Reads) -> None:
    reader(INSTALLS, {each: str(free_port()) for each in ("2379", "6443")}).read(Document(ROOT / "docs" / "envtest.md"))


def test_the_page_about_java_and_rust(reader: Reads) -> None:
    reader(INSTALLS).read(Document(ROOT / "docs" / "test-java-rust.md"))


def test_the_page_about_ci(reader: Reads) -> None:
    reader(INSTALLS).read(Document(ROOT / "docs" / "test-ci.md"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the guide's commands call")
def test_the_guide_of_etcd(reader: Reads) -> None:
    ports = ("12379", "12380", "16443", "6443", "22379", "22380", "32379", "32380", "2379", "2380")
    reads = reader({}, {each: str(free_port()) for each in ports})
    (reads.folder.parent / "programs" / "etcd").symlink_to(program())
    reads.read(Document(ROOT / "docs" / "etcd.md"))
