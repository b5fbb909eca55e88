"""The certificate of the web room: the user's own, or one that is made once and kept; knows no server."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from realtime.errors import ConfigError

VALID_DAYS = 397
"""The longest that browsers take (CA/Browser Forum ballot SC31)."""
RENEW_DAYS = 7


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server proves its name with.

    Attributes:
        chain: PEM file.
        key: PEM file.
        fingerprint: SHA-256 of the certificate, in pairs of hex digits as browsers show it.
        own: whether the program has made it itself, so that browsers ask before they trust it.
    """

    chain: Path
    key: Path
    fingerprint: str
    own: bool


def given(chain: str, key: str) -> Certificate:
    """Take the user's certificate.

    Raises:
        ConfigError: one of the files is missing, or they do not belong together.
    """
    if not (chain and key):
        raise ConfigError("a certificate needs both web.tls_cert and web.tls_key", "name both files, or neither")
    paths = Path(chain).expanduser(), Path(key).expanduser()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*paths, password="")
        return Certificate(*paths, fingerprint=_fingerprint(paths[0]), own=False)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(
            f"the certificate {chain} with the key {key} cannot be used: {error}",
            "give a PEM chain and its PEM key without a password",
        ) from error


def own_in(folder: Path, host: str) -> Certificate:
    """Give the certificate that this installation made for itself; makes one where there is none or it ends soon.

    Args:
        folder: where it is kept.
        host: address or name that people type.

    Raises:
        ConfigError: it cannot be written.
    """
    chain, key = folder / "web-cert.pem", folder / "web-key.pem"
    try:
        if not (chain.exists() and key.exists() and _covers(chain, host)):
            folder.mkdir(parents=True, exist_ok=True)
            _make(chain, key, host)
        return Certificate(chain, key, _fingerprint(chain), own=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"no certificate can be kept in {folder}: {error}", "check its rights") from error


def _fingerprint(chain: Path) -> str:
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def _names(host: str) -> list[x509.GeneralName]:
    """What people may type: the address itself; with "every address" also the machine's name and its own addresses."""
    names: list[str] = [host, "localhost", "127.0.0.1", socket.gethostname()]
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _covers(chain: Path, host: str) -> bool:
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return left.days >= RENEW_DAYS and all(name in names for name in _names(host))


def _make(chain: Path, key: Path, host: str) -> None:
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "doppelcam")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    pem = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key.unlink(missing_ok=True)
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
