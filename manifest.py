"""Freezes umqtt31 into firmware: `include("path/to/manifest.py")` in the board's manifest.

`package-full.json` is the same for mip, `package.json` the client without extras.
Written by `python -m tools boards package`.
"""
# ruff: noqa: F821 - both are names of MicroPython's build

metadata(description="MQTT 3.1 client: no allocation, QoS 2, survives resets", version="0.1.0")
package(
    "umqtt31",
    (
        "__init__.py",
        "aio.py",
        "alias.py",
        "errors.py",
        "fileblockdevice.py",
        "handshake.py",
        "journal.py",
        "opening.py",
        "properties.py",
        "queueing.py",
        "reasons.py",
        "robust.py",
        "simple.py",
        "sock.py",
        "sslparams.py",
        "tls.py",
        "v5.py",
        "wifi.py",
    ),
    base_path="lib",
)
