"""kube-apiserver on its etcd, whose stored bytes can be read and written, with a KMS plugin beside it.

`python -m tests.storage.encryption.kube_apiserver` records what it stores for every provider in recorded.json.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

RECORDED = Path(__file__).with_name("recorded.json")
TOKEN = "administrator-of-a-test"
NAMESPACE = "default"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "secrets": ("Secret", {"stringData": {"password": "plain-password"}}),
    "configmaps": ("ConfigMap", {"data": {"password": "plain-password"}}),
    "podtemplates": ("PodTemplate", {"template": {"spec": {"containers": [{"name": "main", "image": "image"}]}}}),
    "limitranges": ("LimitRange", {"spec": {"limits": []}}),
    "serviceaccounts": ("ServiceAccount", {}),
}


def configuration(kms_endpoint: str) -> dict[str, Any]:
    """Every provider, each for one resource."""
    of = {
        "secrets": {"aescbc": {"keys": [{"name": "one", "secret": base64.b64encode(b"1" * 32).decode()}]}},
        "configmaps": {"aesgcm": {"keys": [{"name": "two", "secret": base64.b64encode(b"2" * 16).decode()}]}},
        "podtemplates": {"secretbox": {"keys": [{"name": "three", "secret": base64.b64encode(b"3" * 32).decode()}]}},
        "limitranges": {"kms": {"apiVersion": "v2", "name": "plugin", "endpoint": kms_endpoint, "timeout": "3s"}},
        "serviceaccounts": {"identity": {}},
    }
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": [resource], "providers": [provider]} for resource, provider in of.items()],
    }


def find_program(name: str) -> str | None:
    """In the folder that $STEERSMAN_REFERENCE names, or in PATH."""
    for folder in (os.environ.get("STEERSMAN_REFERENCE"), os.environ.get("PATH")):
        if folder and (path := shutil.which(name, path=folder)):
            return path
    return None


class KubeAPIServer:
    """See the module; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self._etcd = f"http://127.0.0.1:{_free_port()}"
        self._url = f"https://127.0.0.1:{_free_port()}"
        self.kms_endpoint = f"unix://{folder}/kms.sock"

    def __enter__(self) -> KubeAPIServer:
        folder = self._folder
        self._start([sys.executable, "-m", "tests.storage.encryption.kms_plugin", str(folder / "kms.sock")])
        peer = f"http://127.0.0.1:{_free_port()}"
        etcd = find_program("etcd")
        apiserver = find_program("kube-apiserver")
        assert etcd is not None
        assert apiserver is not None
        self._start(
            [
                etcd,
                f"--data-dir={folder}/etcd",
                f"--listen-client-urls={self._etcd}",
                f"--listen-peer-urls={peer}",
                f"--advertise-client-urls={self._etcd}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            ]
        )
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (folder / "sa.key").write_bytes(pem)
        (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        (folder / "encryption.yaml").write_text(json.dumps(configuration(self.kms_endpoint)))
        self._start(
            [
                apiserver,
                f"--etcd-servers={self._etcd}",
                f"--secure-port={self._url.rpartition(':')[2]}",
                f"--cert-dir={folder}/certificates",
                f"--token-auth-file={folder}/tokens.csv",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-signing-key-file={folder}/sa.key",
                f"--service-account-key-file={folder}/sa.key",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--storage-media-type=application/json",
                "--disable-admission-plugins=ServiceAccount",
                f"--encryption-provider-config={folder}/encryption.yaml",
            ]
        )
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, command: list[str]) -> None:
        log = self._running.enter_context((self._folder / f"{Path(command[0]).name}.log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._running.callback(process.wait)
        self._running.callback(process.kill)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                self.request("GET", "/readyz")
                self.request("GET", f"/api/v1/namespaces/{NAMESPACE}")
                return
            except (OSError, urllib.error.HTTPError):
                time.sleep(0.1)
        raise TimeoutError((self._folder / "kube-apiserver.log").read_text()[-3000:])

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """The answer. Raises HTTPError."""
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        asked = urllib.request.Request(self._url + path, None if body is None else json.dumps(body).encode())
        asked.method = method
        asked.add_header("Authorization", f"Bearer {TOKEN}")
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked, timeout=20, context=trusting) as answer:
            return bytes(answer.read())

    def create(self, resource: str, name: str) -> None:
        """Makes an object of one of KINDS."""
        kind, content = KINDS[resource]
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}
        self.request("POST", f"/api/v1/namespaces/{NAMESPACE}/{resource}", body)

    def stored(self, key: str) -> bytes:
        """Return the value in etcd."""
        found = self._ask_etcd("range", {"key": _encoded(key)})
        return base64.b64decode(found["kvs"][0]["value"])

    def store(self, key: str, value: bytes) -> None:
        """Puts something into etcd."""
        self._ask_etcd("put", {"key": _encoded(key), "value": base64.b64encode(value).decode()})

    def _ask_etcd(self, what: str, body: Any) -> Any:
        asked = urllib.request.Request(f"{self._etcd}/v3/kv/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.load(answer)


def key_of(resource: str, name: str) -> str:
    """Return the key of an object of the namespace."""
    return f"/registry/{resource}/{NAMESPACE}/{name}"


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _record() -> None:
    with tempfile.TemporaryDirectory() as folder, KubeAPIServer(Path(folder)) as server:
        values = {}
        for resource in KINDS:
            server.create(resource, "recorded")
            key = key_of(resource, "recorded")
            values[key] = base64.b64encode(server.stored(key)).decode()
    RECORDED.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    _record()
