"""Tests of README.md and the guides that need nothing else: their blocks are run in order, from an empty folder."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.autoscalers import programs
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.autoscalers import find_autoscaler
from tests.e2e.reader import Reader
from tests.storage.etcd.process import free_port, program

pytestmark = pytest.mark.slow

INSTALLS = {
    r"make (install|up|test)|\. \.venv|python -m venv|pip install": "these tests run where it is installed",
    r"go test|USE_EXISTING_CLUSTER": "there is no module of Go: tests/e2e/test_envtest.py has",
    r"mvn test": "there is no project of Maven: tests/docs/test_testing_examples.py makes one",
}
Reads = Callable[..., Reader]


class Nginx(NamedTuple):
    """nginx of this machine, with the configuration `nginx.conf` of the working folder."""

    command: str
    head: str
    """First line of its configuration."""

    @classmethod
    def find(cls) -> Nginx:
        """Return the nginx of this machine. Skips the test if there is none, or none with the module `stream`."""
        path = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
        if path is None:
            pytest.skip("there is no nginx, which the rest of the page needs")
        built = subprocess.run([path, "-V"], capture_output=True, text=True, check=True).stderr
        head = ""
        if "--with-stream=dynamic" in built:
            folder = re.search(r"--modules-path=(\S+)", built)
            module = Path(folder[1] if folder else "modules") / "ngx_stream_module.so"
            if not module.exists():
                pytest.skip(f"there is no {module}, which the rest of the page needs")
            head = f"load_module {module};\n"
        return cls(f"{path} -p $PWD -c $PWD/nginx.conf -e error.log", head)


OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the commands call")


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


def test_the_page_about_autoscalers(reader: Reads) -> None:
    """The part about cluster-autoscaler is read where its program is there: nothing builds it from a Go module."""
    built = {r"GOBIN=|mv kwok|git clone|\(cd autoscaler/": "the programs are built once, for all tests"}
    autoscaler, karpenter = None, find_autoscaler("karpenter")
    try:
        autoscaler = programs.program("cluster-autoscaler")
    except programs.NoProgram as reason:
        built[r".*(batch|group|autoscaler|POD_NAMESPACE)"] = str(reason)
    reads = reader(built)
    for each in filter(None, (karpenter, autoscaler)):
        (reads.folder / each.name).symlink_to(each)
    (modules := reads.folder / "go" / "pkg").mkdir(parents=True)
    (modules / "mod").symlink_to(programs.karpenter_module().parents[1])
    reads.read(Document(ROOT / "docs" / "autoscalers.md"))


def test_the_page_about_real_clusters(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "real-clusters.md"))


def test_the_page_about_annotations(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "annotations.md"))


@OPENSSL
def test_the_page_about_operating_a_server(reader: Reads) -> None:
    """The page is read, and the server that it leaves running is asked through nginx, if there is one."""
    document = Document(ROOT / "docs" / "serve.md")
    ports = {each: str(free_port()) for each in ("6443", "443")}
    reads = reader(INSTALLS, ports)
    reads.read(document)
    logged = (reads.folder / "audit.log").read_text()
    assert '"username":"jane"' in logged
    assert "/readyz" not in logged
    nginx = Nginx.find()
    reads.play("$ cp clients.crt api.crt; cp clients.key api.key\n")  # any certificate for nginx itself
    address = f"https://127.0.0.1:{ports['443']}"
    files = "--client-certificate=jane.crt --client-key=jane.key"
    shown = "-o jsonpath={{.status.userInfo.username}}"
    asks = f"kubectl --kubeconfig=/dev/null --server={address} {{}} {files} auth whoami {shown}"
    trusts = ("--certificate-authority=data/ca.crt", "--insecure-skip-tls-verify")
    for block, trust in zip(document.blocks("nginx"), trusts, strict=True):
        text = re.sub(r"\b(6443|443)\b", lambda found: ports[found[0]], block.replace("10.0.0.5", "127.0.0.1"))
        (reads.folder / "nginx.conf").write_text(f"{nginx.head}pid nginx.pid;\nevents {{}}\n{text}")
        reads.play(f"$ {nginx.command}\n$ {asks.format(trust)}\njane\n$ {nginx.command} -s quit\n")


def test_the_page_about_compatibility(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "compatibility.md"))


def test_the_page_about_resources(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "compatibility-resources.md"))


def test_the_page_about_the_scheduler(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "scheduler.md"))


def test_the_guide_of_history(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "history.md"))


def test_the_guide_of_the_page(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "inspect.md"))


def test_the_page_about_controllers(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "controllers.md"))


def test_the_page_about_explanations(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "explain.md"))


def test_the_page_about_explanations_of_pods(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "explain-pods.md"))


@OPENSSL
def test_the_page_about_custom_resources(reader: Reads) -> None:
    reader({}, {"8445": str(free_port())}).read(Document(ROOT / "docs" / "custom-resources.md"))


@OPENSSL
def test_the_page_about_webhooks(reader: Reads) -> None:
    reader({}, {"8443": str(free_port())}).read(Document(ROOT / "docs" / "webhooks.md"))


def test_the_page_about_policies(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "policies.md"))


@OPENSSL
def test_the_page_about_aggregated_servers(reader: Reads) -> None:
    reader({}, {"8444": str(free_port())}).read(Document(ROOT / "docs" / "aggregation.md"))


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


def test_the_page_about_reports(reader: Reads) -> None:
    reader(INSTALLS).read(Document(ROOT / "docs" / "report.md"))


def test_the_page_about_faults(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "faults.md"))


def test_the_page_about_stress(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "stress.md"))


def test_the_page_about_checks(reader: Reads) -> None:
    reader({}).read(Document(ROOT / "docs" / "check.md"))


@OPENSSL
def test_the_guide_of_etcd(reader: Reads) -> None:
    ports = ("12379", "12380", "16443", "16444", "6443", "22379", "22380", "32379", "32380", "2379", "2380")
    reads = reader({}, {each: str(free_port()) for each in ports})
    for name in ("etcd", "etcdctl", "etcdutl"):
        (reads.folder.parent / "programs" / name).symlink_to(program(name))
    reads.read(Document(ROOT / "docs" / "etcd.md"))
    reads.play("$ export KUBECONFIG=server/admin.kubeconfig\n")
    reads.read(Document(ROOT / "docs" / "etcd-failures.md"))
