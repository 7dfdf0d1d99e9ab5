"""A web server, and object store, of one folder, which fails when it is told to."""

import datetime
import hashlib
import hmac
import os
import re
import socket
import struct
import threading
import time
import urllib.parse

from local_server import LocalServer


class FileServer(LocalServer):
    """Serves the files of a folder by ranges, each with an entity tag, until it is closed.

    faults: called with the number of each request, from 0 on; returns None, or what to do instead: a status; "reset";
        "cut" after half of the bytes; "shifted" bytes, as it says itself; "whole", without ranges; "wrong" bytes;
        "hang"; seconds to wait; bytes of another file, by the same name; a dict of headers with "status".
    keys: secrets of an object store by their ids, by which requests must be signed (Signature Version 4).
    """

    def __init__(self, folder, faults=lambda number: None, keys=None, port=0):
        self.folder, self.faults, self.keys = folder, faults, keys
        self.requests, self.bytes, self.lock = [], 0, threading.Lock()
        self.stopping = threading.Event()
        super().__init__(self.answer, port)

    def close(self):
        self.stopping.set()
        super().close()

    def answer(self, request):
        path = urllib.parse.unquote(urllib.parse.urlsplit(request.path).path)
        with self.lock:
            number = len(self.requests)
            self.requests.append((path, request.headers.get("Range")))
        fault = self.faults(number)
        if isinstance(fault, float):
            self.stopping.wait(fault)
        if self.stopping.is_set():
            request.close_connection = True  # as others do, which the client keeps open
            return None
        status = fault.pop("status") if isinstance(fault, dict) else fault if type(fault) is int else None
        if self.keys is not None and not self.signed_well(request):
            return self.send(request, 403, b"<Error><Code>SignatureDoesNotMatch</Code><StringToSign>secret</StringToSign></Error>")
        if status is not None:
            return self.send(request, status, b"<Error><Code>SlowDown</Code></Error>", fault if isinstance(fault, dict) else {})
        if fault == "hang":
            self.stopping.wait(60)
            return None
        file = os.path.join(self.folder, path.lstrip("/"))
        if not os.path.isfile(file):
            return self.send(request, 404, b"<Error><Code>NoSuchKey</Code></Error>")
        with open(file, "rb") as opened:
            stat = os.fstat(opened.fileno())
            tag = f'"{stat.st_mtime_ns}-{stat.st_size}"'
            if request.headers.get("If-Match", tag) != tag:
                return self.send(request, 412, b"")
            ranged = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
            if fault == "whole" or not ranged:
                return self.send(request, 200, opened.read(), {"ETag": tag})
            begin, last = int(ranged[1]), min(int(ranged[2]), stat.st_size - 1)
            if fault == "shifted":
                begin, last = begin + 1, last + 1
            if begin > last:
                return self.send(request, 416, b"", {"Content-Range": f"bytes */{stat.st_size}"})
            opened.seek(begin)
            body = opened.read(last - begin + 1)
        if isinstance(fault, bytes):
            body = fault[begin:last + 1]
        headers = {"ETag": tag, "Content-Range": f"bytes {begin}-{last}/{stat.st_size}"}
        if fault == "wrong":
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1:]
        if fault == "reset":
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            return request.connection.close()
        return self.send(request, 206, body, headers, cut=fault == "cut")

    def send(self, request, status, body, headers={}, cut=False):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, str(value))
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if cut:
            body = body[:len(body) // 2]
            request.close_connection = True
        request.wfile.write(body)
        with self.lock:
            self.bytes += len(body)

    def signed_well(self, request):
        """Signature Version 4, from its description in the documentation of S3."""
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", request.headers.get("Authorization", ""))
        if not given or given[1] not in self.keys:
            return False
        key, day, region, signed = self.keys[given[1]], given[2], given[3], given[4]
        moment = request.headers.get("x-amz-date", "")
        passed = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - datetime.datetime.strptime(moment, "%Y%m%dT%H%M%SZ")
        if abs(passed.total_seconds()) > 300 or not moment.startswith(day):
            return False
        lines = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed.split(";"))
        split = urllib.parse.urlsplit(request.path)
        payload = request.headers.get("x-amz-content-sha256")
        if payload != hashlib.sha256(b"").hexdigest() or not {"host", "x-amz-content-sha256"} <= set(signed.split(";")):
            return False
        canonical = "\n".join(["GET", split.path, split.query, lines, signed, payload])
        scope = f"{day}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        secret = b"AWS4" + key.encode()
        for part in (day, region, "s3", "aws4_request"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(hmac.new(secret, text.encode(), hashlib.sha256).hexdigest(), given[5])


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
