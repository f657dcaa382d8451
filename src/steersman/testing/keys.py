"""Certificates and keys that the servers of a test run share, so that only the first server has to create them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from steersman.controlplane.addresses import advertised_address, service_ranges
from steersman.controlplane.data_folder import certificate_files
from steersman.controlplane.options import Options

SERVICE_ACCOUNTS: Final = "sa.key"


def make_keys(folder: Path) -> None:
    """Create the keys and certificates of a server that listens on 127.0.0.1."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    options = Options(data_dir=folder, bind_address="127.0.0.1")
    certificate_files(options, advertised_address(options.bind_address), str(service_ranges(options)[0][1]))
    # An elliptic curve key is created at once, an RSA key takes a tenth of a second.
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / SERVICE_ACCOUNTS
    path.touch(0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def copy_keys(source: Path, folder: Path) -> None:
    """Copy the created keys into a server's folder."""
    for path in source.iterdir():
        shutil.copy(path, folder)
