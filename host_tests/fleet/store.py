"""A store as S3's: moto's server in a process of its own, with one bucket named `fleet`."""

import contextlib
import subprocess
import sys
import time

import boto3
from botocore.exceptions import BotoCoreError

from host_tests.brokers import free_port

_KEYS = {"aws_access_key_id": "user", "aws_secret_access_key": "secret"}
_START_S = 120


@contextlib.contextmanager
def store():
    """-> (function: name of a folder in the bucket -> its address; client of boto3)."""
    port = free_port()
    address = "http://127.0.0.1:%d" % port
    null = subprocess.DEVNULL
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    process = subprocess.Popen(command, stdout=null, stderr=null)
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **_KEYS)
    try:
        _make_bucket(client)
        more = "?scheme=http&region=us-east-1&endpoint_override=127.0.0.1%%3A%d" % port
        yield lambda name: "s3a://user:secret@fleet/" + name + more, client
    finally:
        process.terminate()
        process.wait()


def _make_bucket(client):
    deadline = time.monotonic() + _START_S
    while True:
        try:
            return client.create_bucket(Bucket="fleet")
        except BotoCoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
