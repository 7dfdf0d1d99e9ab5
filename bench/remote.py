"""How fast a file comes from a web server: h5pack stream against curl with as many requests.

    python3 bench/remote.py FILE.h5 [--h5pack PATH] [--rounds 5]

FILE is served on the loopback, twice: by nginx, as fast as it can, and by a server of this program that lets each
request wait for 60 ms and sends 125 MB/s in all (1 Gb/s), as from a store that is far away. Rounds are interleaved: curl
asks for the same bytes in ranges of 2 MiB, 32 at the same time (`curl --parallel`), then h5pack delivers an epoch with
two threads, comparing digests on arrival and without, from a disk cache (`--remote-cache`) that holds the file, and from
the file itself. Before the clock runs, h5pack delivers the same digest as from the disk. Then comes nginx over TLS, as
it is and through a line of 125 MB/s that delays what it carries by 30 ms each way: curl by HTTP/1.1 with 32
connections, by HTTP/2 with one, and h5pack. Last comes a server that gives each request a rate of its own,
and more and more requests.
"""

import argparse
import http.server
import json
import os
import pathlib
import queue
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.parse

RANGE = 2 << 20
REQUESTS = 32


class FarServer(http.server.ThreadingHTTPServer):
    """Sends files of a folder, or ranges of them, each after a delay, all together at a rate."""

    daemon_threads = True
    request_queue_size = 256
    DELAY, RATE, PIECE = 0.06, 125e6, 256 << 10

    def __init__(self, root):
        self.root, self.requests, self.bytes = root, 0, 0
        self.free, self.lock = time.monotonic(), threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def traffic(self):
        """(requests, bytes) so far."""
        with self.lock:
            return self.requests, self.bytes

    def take_turn(self, size):
        """Waits until so many bytes may be sent."""
        with self.lock:
            self.bytes += size
            self.free = max(self.free, time.monotonic()) + size / self.RATE
            wait = self.free - time.monotonic()
        if wait > 0.002:
            time.sleep(wait)


class StoreServer(FarServer):
    """Sends each request after a delay and at a rate of its own, as object stores do."""

    DELAY, RATE = 0.1, 90e6

    def take_turn(self, size):
        with self.lock:
            self.bytes += size
        time.sleep(size / self.RATE)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server = self.server
        path = server.root / urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        with server.lock:
            server.requests += 1
        time.sleep(server.DELAY)
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        size = path.stat().st_size
        ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin = int(ranged[1]) if ranged else 0
        last = min(int(ranged[2] or size), size - 1) if ranged else size - 1
        self.send_response(206 if ranged else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if ranged:
            self.send_header("Content-Range", f"bytes {begin}-{last}/{size}")
        self.send_header("Content-Length", str(last - begin + 1))
        self.end_headers()
        self.wfile.flush()
        if self.command == "HEAD":
            return None
        try:
            with open(path, "rb") as file:
                while begin <= last:
                    piece = min(server.PIECE, last - begin + 1)
                    server.take_turn(piece)
                    begin += os.sendfile(self.connection.fileno(), file.fileno(), begin, piece)
        except ConnectionError:  # who asked has gone
            self.close_connection = True
        return None


class Line:
    """Carries connections to a port of this machine: all bytes 30 ms later, together at a rate."""

    DELAY, RATE, PIECE = 0.03, 125e6, 256 << 10

    def __init__(self, port):
        self.port, self.free, self.lock = port, time.monotonic(), threading.Lock()
        self.door = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"https://127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.door.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.port))
            for source, sink in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                under_way = queue.Queue(1024)  # pieces: more than a line of this rate holds
                threading.Thread(target=self.take, args=(source, under_way), daemon=True).start()
                threading.Thread(target=self.give, args=(sink, under_way), daemon=True).start()

    def take(self, source, under_way):
        piece = b"-"
        while piece:
            try:
                piece = source.recv(self.PIECE)
            except ConnectionError:
                piece = b""
            with self.lock:
                self.free = max(self.free, time.monotonic()) + len(piece) / self.RATE
                due = self.free + self.DELAY
            under_way.put((due, piece))

    def give(self, sink, under_way):
        piece = b"-"
        while piece:
            due, piece = under_way.get()
            time.sleep(max(0, due - time.monotonic()))
            try:
                sink.sendall(piece) if piece else sink.shutdown(socket.SHUT_WR)
            except OSError:  # who asked has gone
                pass


class Nginx:
    """nginx, which sends the files of a folder as fast as it can; by HTTPS, too, with HTTP/2."""

    TLS_PORT = 18443

    def __init__(self, folder, root, port=18080):
        self.url, self.log = f"http://127.0.0.1:{port}", folder / "access.log"
        self.tls_url, self.certificate = f"https://127.0.0.1:{self.TLS_PORT}", folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", f"{folder}/key.pem", "-out", self.certificate, "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        config = folder / "nginx.conf"
        config.write_text(f"""
            worker_processes 2; pid {folder}/pid; error_log {folder}/error.log; daemon off;
            events {{ worker_connections 1024; }}
            http {{ log_format bytes $body_bytes_sent; access_log {self.log} bytes;
                    sendfile on; keepalive_requests 1000000;
                    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
                    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
                    ssl_certificate {self.certificate}; ssl_certificate_key {folder}/key.pem;
                    server {{ listen unix:{folder}/unused; listen 127.0.0.1:{port};
                              listen 127.0.0.1:{self.TLS_PORT} ssl http2; root {root}; }} }}""")
        self.process = subprocess.Popen(["nginx", "-c", str(config), "-e", str(folder / "error.log")])
        time.sleep(0.5)
        if self.process.poll() is not None:
            raise SystemExit("nginx does not start: " + (folder / "error.log").read_text())

    def traffic(self):
        lines = self.log.read_text().split()
        return len(lines), sum(map(int, lines))

    def close(self):
        self.process.terminate()
        self.process.wait()


def curl_seconds(url, size, folder, protocol="http1.1"):
    """How long curl takes for all ranges. By HTTP/2 they share a connection."""
    config = folder / "ranges"
    config.write_text("next\n".join(
        f'{protocol}\nurl = "{url}"\nrange = "{begin}-{min(begin + RANGE, size) - 1}"\noutput = "/dev/null"\n'
        for begin in range(0, size, RANGE)))
    begin = time.perf_counter()
    subprocess.run(["curl", "--silent", "--fail", "--no-progress-meter", "--parallel", "--parallel-max", str(REQUESTS),
                    "--config", str(config)], check=True)
    return time.perf_counter() - begin


def h5pack_epoch(h5pack, path, *options):
    done = subprocess.run([h5pack, "stream", path, "--threads", "2", "--json", *options], check=True, capture_output=True,
                          text=True)
    return json.loads(done.stdout.splitlines()[-1])


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--h5pack", default="h5pack")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    path = options.file.resolve()
    size = path.stat().st_size
    expected = h5pack_epoch(options.h5pack, str(path), "--digest")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        far, nginx = FarServer(path.parent), Nginx(folder, path.parent)
        try:
            for server, url in (("nginx, no delay", f"{nginx.url}/{path.name}"),
                                ("60 ms a request, 125 MB/s", f"{far.url}/{path.name}")):
                epoch = h5pack_epoch(options.h5pack, url, "--digest")
                if (epoch["order_digest"], epoch["pixel_digest"]) != (expected["order_digest"], expected["pixel_digest"]):
                    raise SystemExit("other pixels than from the disk")
                cached = ("--remote-cache", str(folder / "kept"))
                h5pack_epoch(options.h5pack, url, *cached)
                curl, ours, whole, unverified, kept, local = [], [], [], [], [], []
                for _ in range(options.rounds):
                    curl.append(size / curl_seconds(url, size, folder) / 1e6)
                    begin = time.perf_counter()
                    epoch = h5pack_epoch(options.h5pack, url)
                    whole.append(size / (time.perf_counter() - begin) / 1e6)
                    ours.append(epoch["bytes_read"] / epoch["seconds"] / 1e6)
                    for rates, *how in ((unverified, url, "--verify", "off"), (kept, url, *cached), (local, str(path))):
                        other = h5pack_epoch(options.h5pack, *how)
                        rates.append(other["bytes_read"] / other["seconds"] / 1e6)
                print(f"{server}: curl {spread(curl, 0)} MB/s; h5pack {spread(ours, 0)} MB/s in the epoch, "
                      f"{spread(whole, 0)} with opening; ratio of the epoch {spread([a / b for a, b in zip(ours, curl)])}, "
                      f"with opening {spread([a / b for a, b in zip(whole, curl)])}; {epoch['images_per_second']:,.0f} images/s\n"
                      f"  without digests {spread(unverified, 0)} MB/s; from the disk cache {spread(kept, 0)} MB/s, "
                      f"{spread([a / b for a, b in zip(kept, local)])} of the file on the disk, {spread(local, 0)} MB/s")
            for name in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # chunkio looks at the first, curl at the second
                os.environ[name] = str(nginx.certificate)
            for server, url in (("nginx over TLS", nginx.tls_url), ("the same, 60 ms and 125 MB/s", Line(nginx.TLS_PORT).url)):
                url = f"{url}/{path.name}"
                first, second, ours = [], [], []
                for _ in range(options.rounds):
                    first.append(size / curl_seconds(url, size, folder) / 1e6)
                    second.append(size / curl_seconds(url, size, folder, "http2") / 1e6)
                    epoch = h5pack_epoch(options.h5pack, url)
                    ours.append(epoch["bytes_read"] / epoch["seconds"] / 1e6)
                print(f"{server}: curl by HTTP/1.1 {spread(first, 0)} MB/s, by HTTP/2 {spread(second, 0)}, "
                      f"{spread([a / b for a, b in zip(second, first)])} of it; h5pack {spread(ours, 0)}")
            store = StoreServer(path.parent)
            rates = {16: [], 32: [], 64: []}
            for _ in range(options.rounds):
                for requests, seen in rates.items():
                    epoch = h5pack_epoch(options.h5pack, f"{store.url}/{path.name}", "--epochs", "2", "--memory-budget", "2GiB",
                                         "--remote-requests", str(requests))
                    seen.append(epoch["bytes_read"] / epoch["seconds"] / 1e6)
            for requests, seen in rates.items():
                print(f"100 ms a request, then 90 MB/s each, {requests} of them: {spread(seen, 0)} MB/s, of "
                      f"{requests * RANGE / (store.DELAY + RANGE / store.RATE) / 1e6:.0f}")
        finally:
            nginx.close()


if __name__ == "__main__":
    main()
