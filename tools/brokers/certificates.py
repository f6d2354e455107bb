"""Certificates for the tests, right ones and wrong ones, made when they are needed.

A `Folder` writes each as NAME.crt and NAME.key (PEM) and NAME.crt.der and NAME.key.der.
"""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
HERE = ("localhost", "127.0.0.1")
ELSEWHERE = ("elsewhere.example",)


class Folder:
    """Certificates and keys under `path`; `issuer` is the name of one made before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: dict = {}

    def make(
        self,
        name: str,
        issuer: str = "",
        *,
        hosts: tuple[str, ...] = (),
        from_days: int = -1,
        to_days: int = 1,
        is_authority: bool = False,
        is_rsa: bool = False,
    ) -> None:
        """Make one, valid from now + `from_days` to now + `to_days`; without issuer, by itself."""
        key = (
            rsa.generate_private_key(65537, 2048)
            if is_rsa
            else ec.generate_private_key(ec.SECP256R1())
        )
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer, above = self._made[issuer] if issuer else (key, subject)
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(above)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + from_days * DAY)
            .not_valid_after(now + to_days * DAY)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(signer, hashes.SHA256())
        self._made[name] = key, subject
        for suffix, encoding in (("", Encoding.PEM), (".der", Encoding.DER)):
            data = certificate.public_bytes(encoding)
            (self.path / f"{name}.crt{suffix}").write_bytes(data)
            # Both formats of private keys that are in use: PKCS 8, and the older ones.
            kind = PrivateFormat.PKCS8 if not suffix else PrivateFormat.TraditionalOpenSSL
            data = key.private_bytes(encoding, kind, NoEncryption())
            (self.path / f"{name}.key{suffix}").write_bytes(data)

    def lock_key(self, name: str) -> None:
        """Write NAME.locked.key, which has a password."""
        key = self._made[name][0]
        kind = PrivateFormat.PKCS8
        data = key.private_bytes(Encoding.PEM, kind, BestAvailableEncryption(b"secret"))
        (self.path / f"{name}.locked.key").write_bytes(data)

    def file(self, name: str) -> str:
        """The path of one file, e.g. "ca.crt"."""
        return str(self.path / name)


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def make_all(path: Path) -> Folder:
    """Every certificate that the tests of this folder use."""
    folder = Folder(path)
    for name in ("ca", "other"):
        folder.make(name, is_authority=True)
    folder.make("server", "ca", hosts=HERE)
    folder.make("rsa", "ca", hosts=HERE, is_rsa=True)
    folder.make("expired", "ca", hosts=HERE, from_days=-2, to_days=-1)
    folder.make("future", "ca", hosts=HERE, from_days=1, to_days=2)
    folder.make("elsewhere", "ca", hosts=ELSEWHERE)
    folder.make("self-signed", hosts=HERE)
    folder.make("all-wrong", "other", hosts=ELSEWHERE, from_days=-2, to_days=-1)
    folder.make("device", "ca")
    folder.make("rsa-device", "ca", is_rsa=True)
    folder.make("old-device", "ca", from_days=-2, to_days=-1)
    folder.make("stranger", "other")
    folder.lock_key("device")
    return folder
