"""Every certificate that the tests of this folder use."""

from pathlib import Path

from host_tests.brokers.certificates import HERE, Certificates

ELSEWHERE = ("elsewhere.example",)

# Of P-256, as `openssl ecparam -genkey` puts it before the key.
_PARAMETERS = """\
-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
"""


def make_all(path: Path) -> Certificates:
    """Make them under `path`."""
    folder = Certificates(path)
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
    _write_as_found_elsewhere(path)
    return folder


def _write_as_found_elsewhere(path: Path) -> None:
    # With what openssl writes around PEM, with the line ends of Windows, several at once.
    def read(name: str) -> str:
        return (path / name).read_text()

    texts = {
        "odd.crt": "Certificate:\n    Data:\n" + read("device.crt").replace("\n", "\r\n"),
        "odd.key": f"{_PARAMETERS}{read('device.key')}".replace("\n", "\r\n"),
        "chain.crt": read("device.crt") + read("ca.crt"),
        "roots.crt": read("other.crt") + read("ca.crt"),
        "half.crt": read("ca.crt")[:101] + "\n-----END CERTIFICATE-----\n",
    }
    for name, text in texts.items():
        (path / name).write_text(text, newline="")
