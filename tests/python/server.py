"""A running `evenkeel serve`, for tests."""

import re
import signal
import subprocess
import tempfile
import urllib.request


class Server:
    """A server on free ports."""

    def __init__(self, program, *arguments):
        self.errors = tempfile.TemporaryFile("w+")
        command = [program, "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        ports = [re.search(r"127\.0\.0\.1:(\d+)", line) for line in lines]
        assert all(ports), f"it does not start: {self.log()}"
        self.port, self.metrics_port = (int(port[1]) for port in ports)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def url(self, user="tester", more=""):
        return f"postgresql://{user}@127.0.0.1:{self.port}/evenkeel{more}"

    def page(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=20) as answer:
            return answer.read().decode()

    def figure(self, name):
        """Returns a figure of the metrics page, such as evenkeel_connections."""
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.page("/metrics"), re.MULTILINE)[1])

    def log(self):
        self.errors.seek(0)
        return self.errors.read()

    def memory(self):
        """Memory of the process that no file backs, in MiB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1]) / 1024

    def stop(self, seconds=60):
        """Asks the server to end, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)
