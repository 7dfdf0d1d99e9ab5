"""Files of an object store that checks signatures: moto, which plays S3."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request

import h5py
import numpy as np
import pytest

import chunkio
from file_server import wait_for

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

BUCKET = "photos"
POLICY = """{"Version": "2012-10-17",
             "Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::photos/may/*"}}"""


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/moto-api/", timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def store(monkeypatch):
    """Its address, and a client that may do everything, until the store checks who asks."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(url), 60)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        yield url, lambda service: boto3.client(service, endpoint_url=url, region_name="us-east-1",
                                                aws_access_key_id="anybody", aws_secret_access_key="anything")
    finally:
        process.terminate()
        process.wait()


def check_who_asks(url):
    request = urllib.request.Request(f"{url}/moto-api/reset-auth", data=b"0", method="POST",
                                     headers={"Content-Type": "text/plain"})
    urllib.request.urlopen(request, timeout=5).close()


def test_keys_of_users(store, tmp_path, monkeypatch):
    url, client = store
    images = np.random.default_rng(0).integers(0, 255, (500, 32, 32, 3), np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", data=images, chunks=(50, 32, 32, 3))
        file["labels"] = np.arange(500) % 7
    client("s3").create_bucket(Bucket=BUCKET)
    for name in ("may/a b+c.h5", "may not/a.h5"):
        client("s3").upload_file(str(tmp_path / "a.h5"), BUCKET, name)
    iam = client("iam")
    iam.create_user(UserName="trainer")
    iam.put_user_policy(UserName="trainer", PolicyName="may", PolicyDocument=POLICY)
    key = iam.create_access_key(UserName="trainer")["AccessKey"]
    check_who_asks(url)

    with pytest.raises(chunkio.Error, match="may not read s3://photos/may/a b"):
        chunkio.Dataset(f"s3://{BUCKET}/may/a b+c.h5")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    loader = chunkio.Loader(chunkio.Dataset(f"s3://{BUCKET}/may/a b+c.h5"), batch_size=32, seed=3)
    for batch in loader:
        np.testing.assert_array_equal(batch.images, images[batch.sample_ids])
    with pytest.raises(chunkio.Error, match="may not read s3://photos/may not/a.h5"):
        chunkio.Dataset(f"s3://{BUCKET}/may not/a.h5")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(chunkio.Error, match="SignatureDoesNotMatch"):
        chunkio.Dataset(f"s3://{BUCKET}/may/a b+c.h5")
