"""Every certificate that the tests of this folder use."""

from pathlib import Path

from tools.brokers.certificates import HERE, Certificates

ELSEWHERE = ("elsewhere.example",)


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
    return folder
