"""What the checks share: servers, the list of checks, small clients."""

import asyncio
import inspect
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import traceback
import urllib.request

CACHE = pathlib.Path(os.environ.get("OCTAVO_CACHE") or os.path.expanduser("~/.cache/octavo"))
NODE = CACHE / "clients-node"

# A machine that takes 5 ms for a step; a byte is a token, and the text is a placeholder.
SIM = ("--device", "sim", "--max-model-len", "2048")
FAST = (*SIM, "--step-time", "5ms", "--num-gpu-blocks-override", "4096")

CHECKS = []
OPTIONS = {}


class Left(Exception):
    """A check that cannot be made here, and why."""


def check(row="", flags=None):
    """Names a function as a check. `row` is that of the list of reports that it stands for;
    with `flags` it is given a running server with these, shared by all that ask for the same."""

    def keep(function):
        CHECKS.append((row, flags, function))
        return function

    return keep


def sentence(function):
    return function.__name__.replace("_", " ")


class Server:
    """octavo serve on a free port while the `with` lasts."""

    def __init__(self, *flags, model=None):
        self.command = [OPTIONS["octavo"], "serve", *([model] if model else []), "--port", "0",
                        *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        said = re.fullmatch(r"serving (\S+) at (http://\S+:(\d+))\n", line)
        if not said:
            self.process.kill()
            raise AssertionError(f"{' '.join(self.command)} said {line!r}")
        self.model, self.url, self.port = said[1], said[2], int(said[3])
        self.socket_url = self.url.replace("http", "ws", 1) + "/v1/responses"
        return self

    def __exit__(self, *_):
        # The second signal stops at once, whatever still runs.
        for _ in range(2):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                time.sleep(0.05)
        try:
            code = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not stop in 20 s") from None
        assert code == 0, f"the server ended with {code}"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.get("/v1/status"))

    def post(self, path, body, **headers):
        """Status, headers and body of an answer, errors too. Bytes go out as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data,
                                       {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read().decode()

    def refused(self, path, body, status=400, param=None):
        """That this is refused in the shape of OpenAI's errors; returns the error."""
        code, _, text = self.post(path, body)
        assert code == status, f"{status} expected, got {code}: {text[:200]}"
        error = json.loads(text)["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert param is None or error["param"] == param, error
        return error

    def becomes_idle(self, seconds=5):
        """Waits until nothing runs and no block is in use."""
        until = time.monotonic() + seconds
        while True:
            status = self.status()
            if (status["running"], status["waiting"], status["blocks_used"]) == (0, 0, 0):
                return status
            assert time.monotonic() < until, f"still busy after {seconds} s: {status}"
            time.sleep(0.02)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) * 1024

    def samples(self):
        """Everything at /metrics: {(name, labels …): value}, parsed by Prometheus' own client."""
        from prometheus_client.parser import text_string_to_metric_families
        found = {}
        for family in text_string_to_metric_families(self.get("/metrics")):
            for s in family.samples:
                found[(s.name, *sorted(s.labels.items()))] = s.value
        return found

    def total(self, name):
        return sum(value for key, value in self.samples().items() if key[0] == name)


def sse_events(text):
    """The data of server-sent events, which must be just that: one data line each."""
    parts = text.split("\n\n")
    assert parts.pop() == "", "the stream does not end with an empty line"
    assert all(p.startswith("data: ") and "\n" not in p for p in parts), parts
    return [p[len("data: "):] for p in parts]


def raw_exchange(port, request, timeout=20):
    """All that comes back for these bytes until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        s.sendall(request)
        got = b""
        while piece := s.recv(65536):
            got += piece
        return got


def http_request(path, body, *headers):
    data = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json",
            f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(head).encode() + data


def curl(*arguments, give=None):
    done = subprocess.run(["curl", "-sS", "--max-time", "30", *arguments], input=give,
                          capture_output=True, check=True)
    return done.stdout


def run_check(function, *arguments):
    """None where it passed, else what went wrong; Left where it could not be made."""
    try:
        if inspect.iscoroutinefunction(function):
            asyncio.run(asyncio.wait_for(function(*arguments), 60))
        else:
            function(*arguments)
        return None
    except Left as why:
        return why
    except Exception as problem:  # pylint: disable=broad-except
        frames = traceback.extract_tb(problem.__traceback__)
        here = [f for f in frames if "tests/clients" in f.filename and f.name != "run_check"]
        place = here[-1] if here else frames[-1]
        text = f"{type(problem).__name__}: {problem}"[:600]
        return f"{pathlib.Path(place.filename).name}:{place.lineno}: {place.line}\n      {text}"
