"""Certificates and keys that several servers of a test run use, so that only the first one has to make them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from steersman.controlplane.addresses import advertised_address, service_ranges
from steersman.controlplane.data_folder import certificate_files
from steersman.controlplane.options import Options

SERVICE_ACCOUNTS: Final = "sa.key"


def make_keys(folder: Path) -> None:
    """Makes what a server that listens on 127.0.0.1 looks for in its folder."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    options = Options(data_dir=folder, bind_address="127.0.0.1")
    certificate_files(options, advertised_address(options.bind_address), str(service_ranges(options)[0][1]))
    # Making an elliptic curve's key takes no time, an RSA key's a tenth of a second.
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / SERVICE_ACCOUNTS
    path.touch(0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def copy_keys(source: Path, folder: Path) -> None:
    """Gives a server's folder what was made."""
    for path in source.iterdir():
        shutil.copy(path, folder)
