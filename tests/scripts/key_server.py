"""What gives keys of an object store: an instance, a container, and the service that takes web identities."""

import datetime
import json
import urllib.parse

from local_server import LocalServer


class KeyServer(LocalServer):
    """Gives a new key each time that it is asked, and writes it into `keys`; of these, the last two are valid.

    lifetime: seconds after which a key expires, as it says.
    faults: called with each path; a status instead of an answer, or None.
    """

    def __init__(self, keys, lifetime=3600, faults=lambda path: None):
        self.keys, self.lifetime, self.faults = keys, lifetime, faults
        self.given = []
        super().__init__(self.answer)

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        status = self.faults(request.path)
        text = "<Error><Code>AccessDenied</Code></Error>" if status else self.text(request, body)
        data = (text or "").encode()
        request.send_response(status or (200 if text is not None else 404))
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def new_key(self):
        number = len(self.given)
        self.given.append((f"ASIA{number}", f"secret/{number}", f"token=={number}"))
        self.keys[f"ASIA{number}"] = f"secret/{number}"
        self.keys.pop(f"ASIA{number - 2}", None)
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.lifetime)
        return (*self.given[-1], end.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def text(self, request, body):
        """None: nothing is there."""
        key_as_json = lambda: json.dumps(dict(zip(("AccessKeyId", "SecretAccessKey", "Token", "Expiration"), self.new_key())))
        if request.command == "PUT":
            timed = request.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            return "session" if request.path == "/latest/api/token" and timed else None
        if request.path.startswith("/latest/meta-data/iam/security-credentials/"):
            if request.headers.get("X-aws-ec2-metadata-token") != "session":
                return None
            role = request.path.rpartition("/")[2]
            return "trainer\n" if not role else key_as_json() if role == "trainer" else None
        if request.path == "/container" and request.headers.get("Authorization") == "may":
            return key_as_json()
        form = dict(urllib.parse.parse_qsl(body))
        if request.command == "POST" and form.get("Action") == "AssumeRoleWithWebIdentity" \
                and form["RoleArn"] == "arn:aws:iam::1:role/trainer" and form["WebIdentityToken"] == "an/identity":
            key, secret, token, end = self.new_key()
            return (f"<AssumeRoleWithWebIdentityResponse><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>"
                    f"{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}</Expiration>"
                    "</Credentials></AssumeRoleWithWebIdentityResponse>")
        return None
