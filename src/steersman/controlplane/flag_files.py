"""The TLS of a control plane, and validation of the certificates, keys and authorities that flags name.

Each error is one sentence with the flag, the file and the fault.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steersman.authentication.authorities import Authorities
from steersman.controlplane import tls_parameters
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.go.strings import trim_space
from steersman.machinery.private_files import check_regular, read_private
from steersman.net.tls import HTTP1, HTTP2, Certificate, ServerTLS
from steersman.server.certificates import LOOPBACK_NAME, CertificateFiles

if TYPE_CHECKING:  # spares the import: most servers are given no keys of service account tokens
    from steersman.authentication.service_account_keys import ServiceAccountKeys

logger = logging.getLogger(__name__)


def check_serving_files(options: Options) -> None:
    """Validate the certificates, keys and authorities that flags name for serving, and the keys of tokens.

    Raises OptionsError. Warnings are logged where the files are used.
    """
    if options.tls_cert_file:
        pair = Certificate(options.tls_cert_file, options.tls_private_key_file)
        _load_pair(pair, "--tls-cert-file", "--tls-private-key-file")
    for each in options.tls_sni_cert_key:
        _load_pair(Certificate(*sni_cert_key(each)), "--tls-sni-cert-key", "--tls-sni-cert-key")
    if not options.service_account_signing_endpoint:
        _check_token_keys(options)
    if options.client_ca_file:
        check_authorities("--client-ca-file", options.client_ca_file)
    if options.requestheader_client_ca_file:
        check_proxy_authorities(options)


def serving_tls(options: Options, files: CertificateFiles) -> ServerTLS | None:
    """Return the TLS configuration for serving, with the certificates of flags or the server's own in `files`.

    A server without a socket has none, but its flags are validated. Raises OptionsError and OSError.
    """
    certificates = [Certificate(str(files.server), str(files.server_key))]
    if options.tls_cert_file:
        own = Certificate(str(files.server), str(files.server_key), (LOOPBACK_NAME,))
        certificates = [Certificate(options.tls_cert_file, options.tls_private_key_file), own]
        check_pair(certificates[0], "--tls-cert-file", "--tls-private-key-file")
        _warn_of_dates(options.tls_cert_file)
    certificates += map(_named_certificate, options.tls_sni_cert_key)
    client_ca = _announced_ca_files(options, files)
    if options.client_ca_file:
        check_authorities("--client-ca-file", options.client_ca_file)
    if options.requestheader_client_ca_file:
        check_proxy_authorities(options)
        client_ca.append(options.requestheader_client_ca_file)
    min_version, ciphers = tls_parameters.min_version(options.tls_min_version), None
    if options.tls_cipher_suites:
        ciphers = tls_parameters.cipher_suites(options.tls_cipher_suites)
        if min_version < ssl.TLSVersion.TLSv1_3 and not options.disable_http2_serving:
            tls_parameters.check_suites_of_http2(options.tls_cipher_suites)
        if not ciphers:
            min_version = ssl.TLSVersion.TLSv1_3  # no TLS 1.2 suite is left
    curves = tls_parameters.curves(options.tls_curve_preferences)
    if not options.listen:
        return None
    try:
        return ServerTLS(
            certificates,
            client_ca_files=client_ca,
            min_version=min_version,
            ciphers=":".join(ciphers) if ciphers else None,
            curves=curves,
            alpn_protocols=HTTP1 if options.disable_http2_serving else HTTP2,
            defers_verification=defers_verification(options),
            address=options.bind_address,
        )
    except ssl.SSLError as error:
        raise OptionsError(f"TLS cannot be set up with the certificates in {files.folder}: {error.reason}") from None


def _named_certificate(text: str) -> Certificate:
    """Return a certificate of `--tls-sni-cert-key`. Raises OptionsError."""
    cert, key, names = sni_cert_key(text)
    certificate = Certificate(cert, key, names)
    check_pair(certificate, "--tls-sni-cert-key", "--tls-sni-cert-key")
    _warn_of_dates(cert)
    return certificate


def sni_cert_key(text: str) -> tuple[str, str, tuple[str, ...]]:
    """Split `CERT,KEY[:NAME,...]` into the certificate file, its key file and its names. Raises OptionsError."""
    pair, colon, after = text.partition(":")
    names = trim_space(after)
    if colon and not names:
        raise OptionsError("--tls-sni-cert-key: empty names list is not allowed")
    files = [trim_space(each) for each in pair.split(",")]
    if len(files) != 2:
        raise OptionsError("--tls-sni-cert-key: expected comma separated certificate and key file paths")
    return files[0], files[1], tuple(trim_space(each) for each in names.split(",")) if colon else ()


def defers_verification(options: Options) -> bool:
    """Return True if client certificates are verified above TLS, so that an untrusted one is answered with 401.

    Its implementation takes longer to import than `ssl`. Without these flags only this server's own authority counts,
    and `ssl` suffices. `--tls-curve-preferences` needs it too, as `ssl` accepts only one curve.
    """
    return bool(options.client_ca_file or options.requestheader_client_ca_file or options.tls_curve_preferences)


def _announced_ca_files(options: Options, files: CertificateFiles) -> list[str]:
    """Return the files of the authorities whose names clients get in the handshake."""
    return [str(files.ca), *filter(None, [options.client_ca_file])]


def check_proxy_authorities(options: Options) -> None:
    """Raise OptionsError unless the proxies' authorities are usable and do not overlap with the clients'."""
    flag = "--requestheader-client-ca-file"
    check_authorities(flag, options.requestheader_client_ca_file)
    if options.client_ca_file and not options.requestheader_allowed_names:
        of_clients = Authorities((options.client_ca_file,))
        if of_clients.share(Authorities((options.requestheader_client_ca_file,))):
            raise OptionsError(
                f"{flag} and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be "
                "specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary "
                "users"
            )


def check_proxy_client(options: Options) -> None:
    """Raise OptionsError unless the client certificate for aggregated servers is usable."""
    cert, key = options.proxy_client_cert_file, options.proxy_client_key_file
    if cert and key:
        check_pair(Certificate(cert, key), "--proxy-client-cert-file", "--proxy-client-key-file")


def check_kubelet_files(options: Options) -> None:
    """Raise OptionsError unless the files in the flags about kubelets are usable."""
    if options.kubelet_client_certificate:
        certificate = Certificate(options.kubelet_client_certificate, options.kubelet_client_key)
        check_pair(certificate, "--kubelet-client-certificate", "--kubelet-client-key")
    if options.kubelet_certificate_authority:
        check_authorities("--kubelet-certificate-authority", options.kubelet_certificate_authority)


TOKEN_KEY: Final = "sa.key"
"""Name of the file in the data folder with the key that signs tokens."""


def service_account_keys(options: Options) -> ServiceAccountKeys:
    """Return the keys of service account tokens: those of flags, and the data folder's key if no flag has a signing
    key.

    Raises OptionsError and OSError.
    """
    from steersman.authentication.service_account_keys import KeyFileError, ServiceAccountKeys

    _check_token_keys(options)
    signing = options.service_account_signing_key_file
    try:
        if signing:
            return ServiceAccountKeys.load(signing, options.service_account_key_file)
        return ServiceAccountKeys.load_or_make(options.data_dir / TOKEN_KEY, options.service_account_key_file)
    except (KeyFileError, ValueError) as error:
        raise OptionsError(str(error)) from None


def _check_token_keys(options: Options) -> None:
    """Validate the keys of tokens that flags name. Raises OptionsError."""
    if not (options.service_account_key_file or options.service_account_signing_key_file):
        return
    from steersman.authentication.service_account_keys import ServiceAccountKeys

    for file in options.service_account_key_file:
        _check_key_file(
            "--service-account-key-file", file, lambda pem: ServiceAccountKeys(b"", [pem]).verification_keys
        )
    if signing := options.service_account_signing_key_file:
        _check_key_file("--service-account-signing-key-file", signing, lambda pem: ServiceAccountKeys(pem).signing_key)


def check_pair(given: Certificate, cert_flag: str, key_flag: str) -> None:
    """Raise OptionsError unless the files are a certificate and its key; warn if others can read the key."""
    _read(cert_flag, given.cert_file)
    with _os_errors_of(key_flag, given.key_file):
        read_private(given.key_file)
    _load_pair(given, cert_flag, key_flag)


def _load_pair(given: Certificate, cert_flag: str, key_flag: str) -> None:
    """Raise OptionsError unless the files are a certificate and its key."""
    _read(cert_flag, given.cert_file)
    _read(key_flag, given.key_file)
    try:
        # Without a password argument OpenSSL would prompt on the terminal for the password of an encrypted key.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(given.cert_file, given.key_file, lambda: "")
    except (ssl.SSLError, ValueError):
        raise OptionsError(_fault_of_pair(given, cert_flag, key_flag)) from None


def check_authorities(flag: str, file: str) -> None:
    """Raise OptionsError unless the file holds certificates of authorities."""
    data = _read(flag, file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cafile=file)
    except ssl.SSLError:
        fault = _fault_of_certificates(data) or "holds what cannot be used as an authority"
        raise OptionsError(f"{flag}: {file} {fault}") from None


def _fault_of_pair(given: Certificate, cert_flag: str, key_flag: str) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    certificate, key = _read(cert_flag, given.cert_file), _read(key_flag, given.key_file)
    if fault := _fault_of_certificates(certificate):
        return f"{cert_flag}: {given.cert_file} {fault}"
    if fault := _fault_of_key(key):
        return f"{key_flag}: {given.key_file} {fault}"
    with contextlib.suppress(ValueError, UnsupportedAlgorithm):
        if load_pem_x509_certificate(certificate).public_key() != load_pem_private_key(key, None).public_key():
            return f"{key_flag}: {given.key_file} is not the key of {given.cert_file}"
    return f"{cert_flag}: {given.cert_file} is too weak for TLS, or of a kind that TLS does not know"


def _fault_of_certificates(data: bytes) -> str:
    from cryptography.x509 import load_pem_x509_certificates

    if fault := _fault_of_pem(data, b"CERTIFICATE-----", "certificate"):
        return fault
    try:
        load_pem_x509_certificates(data)
    except ValueError:
        return "holds a certificate that is damaged"
    return ""


def _fault_of_key(data: bytes) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if fault := _fault_of_pem(data, b"PRIVATE KEY-----", "private key"):
        return fault
    try:
        load_pem_private_key(data, None)
    except TypeError:
        return "holds a key that is locked with a password"
    except (ValueError, UnsupportedAlgorithm):
        return "holds a key that is damaged, or of a kind that is not known"
    return ""


def _fault_of_pem(data: bytes, mark: bytes, kind: str) -> str:
    if not data.strip():
        return "is empty"
    return "" if mark in data else f"holds no {kind} in PEM form"


def _check_key_file(flag: str, file: str, parse: Callable[[bytes], object]) -> None:
    from steersman.authentication.service_account_keys import KeyFileError

    data = _read(flag, file)
    try:
        parse(data)
    except KeyFileError as error:
        empty = "it is empty" if not data.strip() else error
        raise OptionsError(f"{flag}: {file} cannot be used: {empty}") from None


def _read(flag: str, file: str) -> bytes:
    with _os_errors_of(flag, file):
        check_regular(Path(file))
        return Path(file).read_bytes()


@contextlib.contextmanager
def _os_errors_of(flag: str, file: str) -> Iterator[None]:
    """Convert an OSError to an OptionsError that names the flag and the file."""
    try:
        yield
    except OSError as error:
        raise OptionsError(f"{flag}: {f'{file}: {error.strerror}' if error.strerror else error}") from None


def _warn_of_dates(cert_file: str) -> None:
    from cryptography.x509 import load_pem_x509_certificate  # takes long to import; most servers make their own

    with contextlib.suppress(ValueError):
        certificate = load_pem_x509_certificate(Path(cert_file).read_bytes())
        now = datetime.now(UTC)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            logger.warning(
                "the certificate %s is valid from %s to %s only: clients will refuse it",
                cert_file,
                certificate.not_valid_before_utc,
                certificate.not_valid_after_utc,
            )
