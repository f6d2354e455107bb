"""Mosquitto that speaks TLS."""

from pathlib import Path

from tools.demo.mosquitto import Mosquitto

# What OpenSSL reads at its start.
_UP_TO = """\
openssl_conf = main
[main]
ssl_conf = ssl
[ssl]
system_default = limits
[limits]
MaxProtocol = TLSv{}
# TLS 1.2 without RSA-PSS, which boards do not offer and Mbed TLS 3.6.3 takes wrongly.
SignatureAlgorithms = {}
"""
_SIGNATURES = {
    "1.2": "ECDSA+SHA256:ECDSA+SHA384:RSA+SHA256:RSA+SHA384",
    "1.3": "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256",
}


class TLSMosquitto(Mosquitto):
    """Shows the certificate NAME of a folder with `certificates`; speaks TLS up to `version`.

    Clients may have a certificate of the folder's authority "ca".
    """

    def __init__(
        self, certificates: Path, name: str, version: str = "1.3", **options: object
    ) -> None:
        super().__init__()
        self.options |= {
            "cafile": certificates / "ca.crt",
            "certfile": certificates / f"{name}.crt",
            "keyfile": certificates / f"{name}.key",
            **options,
        }
        self._limits = self.folder / "openssl.cnf"
        self._limits.write_text(_UP_TO.format(version, _SIGNATURES[version]))

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "OPENSSL_CONF": str(self._limits)}
