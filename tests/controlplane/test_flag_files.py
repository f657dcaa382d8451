"""Files in flags: errors name the flag, the file and the fault."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from steersman.authentication.service_account_keys import ServiceAccountKeys
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.flag_files import (
    check_kubelet_files,
    service_account_keys,
    serving_tls,
    sni_cert_key,
)
from steersman.controlplane.options import Options, OptionsError
from steersman.server.certificates import CertificateFiles, ensure_certificates


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """Valid files, and invalid ones beside them: junk, empty, damaged and encrypted."""
    files = ensure_certificates(tmp_path_factory.mktemp("given"))
    folder = files.folder
    (folder / "junk").write_text("not a certificate\n")
    (folder / "empty").write_text("")
    lines = files.ca.read_text().splitlines()
    (folder / "cut.crt").write_text("\n".join([*lines[:3], lines[-1], ""]))
    (folder / "cut.key").write_text(
        "\n".join([*files.server_key.read_text().splitlines()[:2], "-----END PRIVATE KEY-----\n"])
    )
    key = load_pem_private_key(files.server_key.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (folder / "locked.key").write_bytes(locked)
    curve = ec.generate_private_key(ec.SECP256K1())
    (folder / "curve.key").write_bytes(
        curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    )
    return files


def options(files: CertificateFiles, **given: object) -> Options:
    """Return options whose texts name files of the folder; a tuple holds one name."""
    folder = files.folder
    paths: dict[str, Any] = {
        name: tuple(str(folder / each) for each in value) if isinstance(value, tuple) else str(folder / str(value))
        for name, value in given.items()
    }
    return Options(data_dir=folder, **paths)


CERT_FAULTS = [
    ("junk", "{0}/junk holds no certificate in PEM form"),
    ("empty", "{0}/empty is empty"),
    ("apiserver.key", "{0}/apiserver.key holds no certificate in PEM form"),
    ("cut.crt", "{0}/cut.crt holds a certificate that is damaged"),
    ("none", "{0}/none: No such file or directory"),
]
KEY_FAULTS = [
    ("junk", "{0}/junk holds no private key in PEM form"),
    ("empty", "{0}/empty is empty"),
    ("cut.key", "{0}/cut.key holds a key that is damaged, or of a kind that is not known"),
    ("locked.key", "{0}/locked.key holds a key that is locked with a password"),
    ("admin.key", "{0}/admin.key is not the key of {0}/apiserver.crt"),
    ("none", "{0}/none: No such file or directory"),
]


@pytest.mark.parametrize(("name", "told"), CERT_FAULTS)
def test_a_file_without_an_authority_is_told(made: CertificateFiles, name: str, told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        serving_tls(options(made, client_ca_file=name), made)
    assert str(caught.value) == "--client-ca-file: " + told.format(made.folder)
    with pytest.raises(OptionsError) as caught:
        check_kubelet_files(options(made, kubelet_certificate_authority=name))
    assert str(caught.value) == "--kubelet-certificate-authority: " + told.format(made.folder)


@pytest.mark.parametrize(("name", "told"), CERT_FAULTS)
def test_a_file_without_a_certificate_is_told(made: CertificateFiles, name: str, told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        serving_tls(options(made, tls_cert_file=name, tls_private_key_file="apiserver.key"), made)
    assert str(caught.value) == "--tls-cert-file: " + told.format(made.folder)
    with pytest.raises(OptionsError) as caught:
        check_kubelet_files(options(made, kubelet_client_certificate=name, kubelet_client_key="apiserver.key"))
    assert str(caught.value) == "--kubelet-client-certificate: " + told.format(made.folder)


@pytest.mark.parametrize(("name", "told"), KEY_FAULTS)
def test_a_file_without_the_key_is_told(made: CertificateFiles, name: str, told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        serving_tls(options(made, tls_cert_file="apiserver.crt", tls_private_key_file=name), made)
    assert str(caught.value) == "--tls-private-key-file: " + told.format(made.folder)
    with pytest.raises(OptionsError) as caught:
        check_kubelet_files(options(made, kubelet_client_certificate="apiserver.crt", kubelet_client_key=name))
    assert str(caught.value) == "--kubelet-client-key: " + told.format(made.folder)


def test_a_pair_for_a_server_name_is_told(made: CertificateFiles) -> None:
    options = Options(data_dir=made.folder, tls_sni_cert_key=(f"{made.server},{made.admin_key}:a.example",))
    with pytest.raises(OptionsError, match=r"^--tls-sni-cert-key: .*admin.key is not the key of .*apiserver.crt$"):
        serving_tls(options, made)


def test_good_files_are_used(made: CertificateFiles) -> None:
    given = options(
        made,
        tls_cert_file="apiserver.crt",
        tls_private_key_file="apiserver.key",
        client_ca_file="ca.crt",
        kubelet_certificate_authority="ca.crt",
        kubelet_client_certificate="admin.crt",
        kubelet_client_key="admin.key",
    )
    tls = serving_tls(given, made)
    assert tls is not None
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2
    check_kubelet_files(given)


@pytest.mark.parametrize("name", ["junk", "empty", "curve.key"])
def test_a_file_without_a_key_for_tokens_is_told(made: CertificateFiles, tmp_path: Path, name: str) -> None:
    for flag, given in (
        ("--service-account-key-file", options(made, service_account_key_file=("apiserver.key", name))),
        ("--service-account-signing-key-file", options(made, service_account_signing_key_file=name)),
    ):
        given.data_dir = tmp_path
        with pytest.raises(OptionsError) as caught:
            service_account_keys(given)
        assert str(caught.value).startswith(f"{flag}: {made.folder}/{name} cannot be used: ")
    assert not (tmp_path / "sa.key").exists()


def test_keys_that_only_verify_are_added_to_the_servers_own(made: CertificateFiles, tmp_path: Path) -> None:
    given = options(made, service_account_key_file=("admin.key",))
    given.data_dir = tmp_path
    keys = service_account_keys(given)
    [other] = ServiceAccountKeys(made.admin_key.read_bytes()).verification_keys
    assert [each.key_id for each in keys.verification_keys] == [keys.signing.key_id, other.key_id]


def test_a_server_without_a_socket_has_no_tls_but_its_flags_are_read(made: CertificateFiles) -> None:
    assert serving_tls(Options(data_dir=made.folder, listen=False), made) is None
    with pytest.raises(OptionsError, match="unknown tls version"):
        serving_tls(Options(data_dir=made.folder, listen=False, tls_min_version="SSLv3"), made)


def test_suites_of_tls_1_3_alone_leave_none_for_tls_1_2(made: CertificateFiles) -> None:
    suites = ("TLS_AES_128_GCM_SHA256",)
    with pytest.raises(OptionsError, match=r"^error configuring http2: http2: TLSConfig\.CipherSuites is missing"):
        serving_tls(Options(data_dir=made.folder, tls_cipher_suites=suites), made)
    options = Options(data_dir=made.folder, tls_cipher_suites=suites, disable_http2_serving=True)
    tls = serving_tls(options, made)
    assert tls is not None
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a", "expected comma separated certificate and key file paths"),
        ("a,b,c", "expected comma separated certificate and key file paths"),
        ("a,b:", "empty names list is not allowed"),
        ("a,b: ", "empty names list is not allowed"),
    ],
)
def test_certificates_of_names_are_read_as_upstream_reads_them(text: str, told: str) -> None:
    with pytest.raises(OptionsError, match=f"^--tls-sni-cert-key: {told}$"):
        sni_cert_key(text)
    assert sni_cert_key(" a , b ") == ("a", "b", ())
    assert sni_cert_key("a,b: x , *.y") == ("a", "b", ("x", "*.y"))


JUNK = "neither: this\nnor: that\n"


@pytest.mark.parametrize(
    "given",
    [
        {"audit_policy_file": "{}"},
        {"admission_control_config_file": "{}"},
        {"authentication_config": "{}"},
        {"authorization_config": "{}"},
        {"egress_selector_config_file": "{}"},
        {"encryption_provider_config": "{}"},
        {"token_auth_file": "{}"},
        {"client_ca_file": "{}"},
        {"service_account_key_file": ("{}",)},
        {"service_account_signing_key_file": "{}"},
        {"tls_cert_file": "{}", "tls_private_key_file": "{}"},
        {"tls_sni_cert_key": ("{0},{0}",)},
        {"requestheader_client_ca_file": "{}"},
        {"authorization_mode": ("Webhook",), "authorization_webhook_config_file": "{}"},
        {"authentication_token_webhook_config_file": "{}"},
        {"kubelet_certificate_authority": "{}"},
        {"audit_policy_file": "{}", "audit_webhook_config_file": "{}"},
    ],
    ids=lambda given: "+".join(given),
)
async def test_a_start_that_a_given_file_ends_leaves_nothing_behind(tmp_path: Path, given: dict[str, object]) -> None:
    junk = tmp_path / "junk"
    junk.write_text(JUNK)
    filled: dict[str, Any] = {
        name: tuple(each.format(junk) for each in value) if isinstance(value, tuple) else str(value).format(junk)
        for name, value in given.items()
    }
    folder = tmp_path / "data"
    with pytest.raises(OptionsError):
        await ControlPlane(Options(data_dir=folder, secure_port=0, **filled)).start()
    assert not folder.exists()
