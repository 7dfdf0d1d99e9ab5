"""Object stores: signed requests, and where the keys come from."""

import os
import unittest
from unittest import mock

from key_server import KeyServer
from remote_files import RemoteTest

KEYS = {"AKIDEXAMPLE": "a/secret+key"}


class ObjectStoreTest(RemoteTest):
    def test_signed_requests(self):
        self.pack()
        (self.dir / "bucket" / "a folder").mkdir(parents=True)
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "a folder" / "phötos+1.h5")
        server = self.serve(keys=KEYS)
        path, url = "bucket/a folder/phötos+1.h5", "s3://bucket/a folder/phötos+1.h5"
        expected = self.digests(path)
        key = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a/secret+key"}
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url, "AWS_REGION": "eu-west-3"} | key):
            self.assertEqual(self.digests(url), expected)
            with mock.patch.dict(os.environ, {"AWS_SESSION_TOKEN": "a/token=="}):
                self.assertEqual(self.digests(url), expected)
            with mock.patch.dict(os.environ, {"AWS_SECRET_ACCESS_KEY": "another"}):
                result = self.run_h5pack("info", url)
                self.assert_one_line(result, 1, "may not read s3://bucket/a folder", "SignatureDoesNotMatch")
                self.assertNotIn("secret</", result.stderr)
        (self.dir / ".aws").mkdir()
        (self.dir / ".aws" / "credentials").write_text(
            "[default]\naws_access_key_id = nobody\n\n[train]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key = a/secret+key\n")
        (self.dir / ".aws" / "config").write_text(f"[profile train]\nregion = us-west-2\nendpoint_url = {server.url}/\n")
        with mock.patch.dict(os.environ, {"HOME": str(self.dir), "AWS_PROFILE": "train"}):
            self.assertEqual(self.digests(url), expected)
        # Anybody may read what needs no key.
        anonymous = self.serve()
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL": anonymous.url}):
            self.assertEqual(self.digests(url), expected)

    def places(self, keys):
        """Where keys come from, by the environment that leads there."""
        (self.dir / "identity").write_text("an/identity\n")
        (self.dir / "permission").write_text("may")
        (self.dir / "config").write_text(f"[default]\nrole_arn = arn:aws:iam::1:role/trainer\n"
                                         f"web_identity_token_file = {self.dir}/identity\n")
        return {"instance": {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{keys.url}/"},
                "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{keys.url}/container",
                              "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{self.dir}/permission"},
                "web identity": {"AWS_ROLE_ARN": "arn:aws:iam::1:role/trainer", "AWS_ENDPOINT_URL_STS": keys.url,
                                 "AWS_WEB_IDENTITY_TOKEN_FILE": f"{self.dir}/identity"},
                "web identity of a profile": {"AWS_CONFIG_FILE": f"{self.dir}/config", "AWS_ENDPOINT_URL_STS": keys.url}}

    def test_keys_of_machines_and_web_identities(self):
        for part in range(3):
            self.pack_photos("--chunk", 8, "--shard", f"{part}/3", output="s.h5", per_class=30, height=64, width=64)
        (self.dir / "bucket").mkdir()
        for file in self.dir.glob("s-*.h5"):
            file.rename(self.dir / "bucket" / file.name)
        expected = self.digests("bucket/s-*-of-00003.h5")
        valid = {}
        keys = KeyServer(valid)
        self.addCleanup(keys.close)
        server = self.serve(keys=valid)
        for place, leads_there in self.places(keys).items():
            with self.subTest(place), mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url} | leads_there):
                before = len(keys.given)
                self.assertEqual(self.digests("s3://bucket/s-*-of-00003.h5"), expected)
                self.assertEqual(len(keys.given), before + 1, "one key for all files")

    def test_keys_are_renewed(self):
        self.pack()
        (self.dir / "bucket").mkdir()
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "photos.h5")
        expected = self.digests("bucket/photos.h5")
        valid = {}
        keys = KeyServer(valid, lifetime=2)
        self.addCleanup(keys.close)
        server = self.serve(lambda number: 0.1, keys=valid)
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url} | self.places(keys)["instance"]):
            epochs = self.h5pack_json("stream", "s3://bucket/photos.h5", "--epochs", 40, "--batch", 16, "--digest")
        self.assertEqual([epoch["pixel_digest"] for epoch in epochs[:2]], [epoch[2] for epoch in expected])
        self.assertGreaterEqual(len(keys.given), 3)

    def test_places_without_keys(self):
        keys = KeyServer({}, faults=lambda path: 403 if path != "/latest/api/token" else None)
        self.addCleanup(keys.close)
        places = self.places(keys)
        for place, texts in (("instance", ["security-credentials", "403"]), ("container", ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AccessDenied"]),
                             ("web identity", ["identity", "AccessDenied"])):
            with self.subTest(place), mock.patch.dict(os.environ, places[place]):
                result = self.run_h5pack("info", "s3://bucket/x.h5")
                self.assert_one_line(result, 1, "cannot get a key of the object store", *texts)
                for secret in ("an/identity", "may\n"):
                    self.assertNotIn(secret, result.stderr)
        with mock.patch.dict(os.environ, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://keys.example/may"}):
            self.assert_one_line(self.run_h5pack("info", "s3://bucket/x.h5"), 1, "another machine without https")
        (self.dir / "identity").unlink()
        with mock.patch.dict(os.environ, places["web identity"]):
            self.assert_one_line(self.run_h5pack("info", "s3://bucket/x.h5"), 1, "identity is not there, or empty")
        # No instance at all is no error: anybody may read what needs no key.
        self.pack()
        (self.dir / "bucket").mkdir()
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "photos.h5")
        nowhere = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": self.serve().url} | nowhere):
            self.h5pack("info", "s3://bucket/photos.h5")


if __name__ == "__main__":
    unittest.main()
