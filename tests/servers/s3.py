"""An S3 server for tests: moto behind a layer that is slow, throttles, fails and loses answers as
it is told.

    python s3.py PORT_FILE

listens on a free port of 127.0.0.1, makes the bucket evenkeeltests, and writes the number of the
port to PORT_FILE. `PUT /_faults` with JSON sets what goes wrong from then on, `GET /_faults` gives
what was counted since. `PUT /_faults?below=PATH` sets what goes wrong with keys and listings below
a path, for tests that run beside others:

    {"latency_ms": [2, 20], "throttle": 0.1, "fail": 0.05, "lose": 0.05, "down": false, "seed": 1}

Clients of Google's XML interface are served too, which differs in the headers of a put-if-absent
and of who asks.

throttle: 503 SlowDown instead of an answer; fail: 500 InternalError; lose: the request is carried
out, its answer is lost; down: every request is answered by 503.
"""

import json
import os
import random
import re
import socket
import sys
import threading
import time
from urllib.parse import parse_qs, unquote
from urllib.request import Request, urlopen

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "evenkeeltests"
XML = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{0}</Code><Message>{0}</Message></Error>'
SOMEBODY = "AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
NOTHING = {"latency_ms": [0, 0], "throttle": 0, "fail": 0, "lose": 0, "down": False, "seed": 0}


class Faults:
    def __init__(self, application):
        self.application = application
        self.settings = dict(NOTHING)
        # Of keys below some paths.
        self.below = {}
        self.random = random.Random(0)
        self.counts = {}
        self.lock = threading.Lock()
        # moto looks whether a file exists and writes it in two steps; S3 does so in one.
        self.writes = threading.Lock()

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def draw(self, environ):
        asked = environ["PATH_INFO"] + "?" + unquote(environ.get("QUERY_STRING", ""))
        with self.lock:
            settings = next((self.below[path] for path in self.below if path in asked), self.settings)
            return self.random.uniform(*settings["latency_ms"]), self.random.random(), settings

    def control(self, environ, start_response):
        if environ["REQUEST_METHOD"] == "PUT":
            length = int(environ.get("CONTENT_LENGTH") or 0)
            settings = {**NOTHING, **json.loads(environ["wsgi.input"].read(length) or b"{}")}
            below = parse_qs(environ.get("QUERY_STRING", "")).get("below")
            with self.lock:
                if below:
                    self.below[below[0].strip("/")] = settings
                else:
                    self.settings = settings
                    self.random = random.Random(settings["seed"])
                    self.counts = {}
        with self.lock:
            body = json.dumps({"settings": self.settings, "counts": self.counts}).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def refuse(self, environ, start_response, status, code):
        drain(environ)
        body = XML.format(code).encode()
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] == "/_faults":
            return self.control(environ, start_response)
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):
            environ["HTTP_AUTHORIZATION"] = SOMEBODY
        if environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None) == "0":
            environ["HTTP_IF_NONE_MATCH"] = "*"
        latency, dice, settings = self.draw(environ)
        method = environ["REQUEST_METHOD"]
        listing = method == "GET" and "list-type=" in environ.get("QUERY_STRING", "")
        self.count("LIST" if listing else method)
        if latency:
            time.sleep(latency / 1000)
        throttle, fail, lose = settings["throttle"], settings["fail"], settings["lose"]
        if settings["down"] or dice < throttle:
            self.count("throttled")
            return self.refuse(environ, start_response, "503 Slow Down", "SlowDown")
        if dice < throttle + fail:
            self.count("failed")
            return self.refuse(environ, start_response, "500 Internal Server Error", "InternalError")
        if method in ("PUT", "POST", "DELETE"):
            with self.writes:
                answer = list(self.application(environ, start_response))
        else:
            try:
                answer = read(environ, start_response) or self.application(environ, start_response)
            except KeyError:
                # moto looks keys up in several steps, between which another request may delete one.
                return self.refuse(environ, start_response, "500 Internal Server Error", "InternalError")
        if dice < throttle + fail + lose:
            self.count("lost")
            connection = environ.get("evenkeel.connection")
            if connection is not None:
                connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError("the answer is lost")
        return answer


def read(environ, start_response):
    """Answers a read of an object, or of a range of one, that moto has: most requests are reads, and
    moto takes milliseconds to interpret each. Returns nothing if moto must answer.
    """
    conditions = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE")
    is_plain = environ["REQUEST_METHOD"] == "GET" and not environ.get("QUERY_STRING")
    path, of_bucket = environ["PATH_INFO"].encode("latin-1").decode(errors="replace"), f"/{BUCKET}/"
    if not is_plain or not path.startswith(of_bucket) or any(name in environ for name in conditions):
        return None
    key = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_object(BUCKET, path.removeprefix(of_bucket))
    body = None if key is None else key.value
    # moto is still writing it, or has not computed its ETag.
    if body is None or len(body) != key.contentsize or key._etag is None:
        return None
    status, headers = "200 OK", [("ETag", key.etag), ("Last-Modified", key.last_modified_RFC1123)]
    if "HTTP_RANGE" in environ:
        ends = re.fullmatch(r"bytes=(\d+)-(\d+)", environ["HTTP_RANGE"])
        if ends is None or not int(ends[1]) <= int(ends[2]) or not int(ends[1]) < len(body):
            return None
        first, last = int(ends[1]), min(int(ends[2]), len(body) - 1)
        status = "206 Partial Content"
        headers.append(("Content-Range", f"bytes {first}-{last}/{len(body)}"))
        body = body[first : last + 1]
    start_response(status, [*headers, ("Content-Length", str(len(body)))])
    return [body]


def drain(environ):
    left = int(environ.get("CONTENT_LENGTH") or 0)
    while left > 0:
        chunk = environ["wsgi.input"].read(min(left, 1 << 20))
        if not chunk:
            return
        left -= len(chunk)


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def make_environ(self):
        environ = super().make_environ()
        environ["evenkeel.connection"] = self.connection
        return environ

    def log(self, *arguments):
        pass


def main():
    application = Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever).start()
    make_bucket = Request(f"http://127.0.0.1:{server.server_port}/{BUCKET}", method="PUT")
    urlopen(make_bucket).read()
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_port))
    os.rename(sys.argv[1] + ".new", sys.argv[1])


if __name__ == "__main__":
    main()
