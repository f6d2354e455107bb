"""A store as S3's: moto's server in a process of its own, with one bucket named `fleet`."""

import contextlib
import subprocess
import sys

import boto3
from botocore.exceptions import BotoCoreError

from host_tests.brokers import free_port
from host_tests.patience import until

_KEYS = {"aws_access_key_id": "user", "aws_secret_access_key": "secret"}


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
        until(lambda: _make_bucket(client))
        more = "?scheme=http&region=us-east-1&endpoint_override=127.0.0.1%%3A%d" % port
        yield lambda name: "s3a://user:secret@fleet/" + name + more, client
    finally:
        process.terminate()
        process.wait()


def _make_bucket(client):
    # -> an answer, None where there is none yet.
    with contextlib.suppress(BotoCoreError):
        return client.create_bucket(Bucket="fleet")
