"""Certificates for brokers and clients, right ones and wrong ones, made when needed.

For tests and measurements only: nothing protects the keys, and they last for days.
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

_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

DAY = datetime.timedelta(days=1)
HERE = ("localhost", "127.0.0.1")


class Certificates:
    """Writes each to `path` as NAME.crt and NAME.key (PEM), NAME.crt.der and NAME.key.der."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: dict[str, tuple[_Key, x509.Name]] = {}

    @classmethod
    def usual(cls, path: Path, *devices: str) -> "Certificates":
        """Of an authority "ca", of a "server" here, and of devices."""
        made = cls(path)
        made.make("ca", is_authority=True)
        made.make("server", "ca", hosts=HERE)
        for name in devices:
            made.make(name, "ca")
        return made

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
        """Make one, valid from now + `from_days` to now + `to_days`.

        `issuer`: the name of one made before; without it, it is signed by itself.
        """
        key: _Key
        if is_rsa:
            key = rsa.generate_private_key(65537, 2048)
        else:
            key = ec.generate_private_key(ec.SECP256R1())
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
        key = self._made[name][0]
        kind = PrivateFormat.PKCS8
        data = key.private_bytes(Encoding.PEM, kind, BestAvailableEncryption(b"secret"))
        (self.path / f"{name}.locked.key").write_bytes(data)

    def file(self, name: str) -> str:
        """The path of one file, e.g. "ca.crt"."""
        return str(self.path / name)

    def ssl(self, cert: str = "", key: str = "", ca: str = "ca") -> dict[str, str]:
        """The client's `ssl=`: it trusts `ca`, and shows the certificate `cert` with the key of
        `key`, of `cert` itself unless that is given."""
        names = {"ca": f"{ca}.crt"}
        if cert:
            names |= {"cert": f"{cert}.crt", "key": f"{key or cert}.key"}
        return {name: self.file(file) for name, file in names.items()}


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
