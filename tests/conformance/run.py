#!/usr/bin/env python3
"""Runs other people's WebSocket and HTTP clients against the echo server.

  tests/conformance/run.py [--server build/bin/echo_server] [--work DIR]
                           [--autobahn quick|full|off]

Uses Python's `websockets` and node's `ws` (installed into the work folder), curl,
and Autobahn's fuzzing client, which needs a Python 2.7: one on PATH or of pyenv;
without it that part is left out, and said. `quick` leaves out the section on
performance and the long cases on compression. Prints one table, and exits with 1
where anything failed.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Server:
    """An echo server while the `with` lasts."""

    def __init__(self, binary, *arguments):
        self.command = [str(binary), *arguments]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        if self.process.wait(timeout=20) != 0:
            raise SystemExit(f"{self.command[0]} ended with {self.process.returncode}")


def run(*command, **kwargs):
    return subprocess.run([str(part) for part in command], check=True, text=True,
                          capture_output=True, **kwargs).stdout


# ---- curl ------------------------------------------------------------------


def curl_cases(server):
    base = f"http://127.0.0.1:{server.port}"

    def curl(*arguments, give=None):
        done = subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], input=give,
                              capture_output=True, check=True)
        return done.stdout

    big = os.urandom(3_000_000)
    status = ["-o", "/dev/null", "-w", "%{http_code}"]
    return {
        "get": lambda: curl(base + "/") == b"hello\n",
        "two on one connection": lambda: curl(base + "/", base + "/", "-w", "%{num_connects}")
        == b"hello\n1hello\n0",
        "HTTP/1.0": lambda: curl("-0", base + "/stream?2") == b"line 0\nline 1\n",
        "head": lambda: b"Content-Length: 6" in curl("-I", base + "/"),
        "chunked stream": lambda: curl(base + "/stream?1000").count(b"\n") == 1000,
        "post": lambda: curl("--data-binary", "@-", base + "/echo", give=big) == big,
        "post with Expect": lambda: curl("-H", "Expect: 100-continue", "--data-binary", "@-",
                                         base + "/echo", give=big) == big,
        "chunked upload": lambda: curl("-X", "POST", "-T", "-", base + "/echo", give=big) == big,
        "offer of h2c": lambda: curl("--http2", "-d", "x", base + "/echo") == b"x",
        "options": lambda: curl("-X", "OPTIONS", *status, base + "/nowhere") == b"404",
        "unknown method": lambda: curl("-X", "BREW", *status, base + "/") == b"501",
        "trace": lambda: curl("-X", "TRACE", *status, base + "/") == b"405",
        "large header": lambda: curl("-H", "X: " + "a" * 70_000, *status, base + "/") == b"431",
        "large body": lambda: curl("-H", "Content-Length: 99999999", "-H", "Expect: 100-continue",
                                   "-d", "x", *status, base + "/echo") == b"413",
        "40 MB stream": lambda: len(curl(base + "/flood?40000000")) == 40_000_000,
    }


# ---- Python's websockets ---------------------------------------------------

WEBSOCKETS = '''
import asyncio, json, ssl, sys
import websockets
from websockets.exceptions import ConnectionClosed, InvalidStatus

uri, ca = sys.argv[1], sys.argv[2]
context = ssl.create_default_context(cafile=ca) if uri.startswith("wss") else None
SIZES = [0, 1, 125, 126, 127, 65535, 65536, 1 << 20]

def connect(path="/", **kwargs):
    return websockets.connect(uri + path, ssl=context, max_size=None, **kwargs)

async def echo(compression):
    async with connect(compression=compression) as ws:
        for size in SIZES:
            for message in ("\\u20ac" * (size // 3), bytes(range(256)) * (size // 256)):
                await ws.send(message)
                assert await ws.recv() == message
    return True

async def fragments(compression):
    async with connect(compression=compression) as ws:
        await ws.send(["one ", "two ", "", "three"])
        return await ws.recv() == "one two three"

async def pings():
    async with connect() as ws:
        for i in range(100):
            await (await ws.ping(b"p%d" % i))
    return True

async def close_by(side, code):
    async with connect() as ws:
        if side == "client":
            await ws.close(code, "why")
            return ws.close_code == code
        await ws.send(f"close {code}")
        try:
            await ws.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code == code and closed.rcvd.reason == "as asked"

async def too_big():
    # Not `async with`: its close trips over the connection that has ended already.
    ws = await connect(compression=None)
    sending = asyncio.create_task(ws.send(bytes(17 << 20)))
    try:
        await ws.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code == 1009
    finally:
        await asyncio.gather(sending, return_exceptions=True)

async def subprotocol():
    async with connect(subprotocols=["x", "echo"]) as ws:
        return ws.subprotocol == "echo"

async def refused():
    try:
        async with connect("/forbidden"):
            return False
    except InvalidStatus as error:
        return error.response.status_code == 403

async def many():
    async def one(i):
        async with connect() as ws:
            for k in range(20):
                await ws.send(f"{i} {k}")
                assert await ws.recv() == f"{i} {k}"
    await asyncio.gather(*(one(i) for i in range(100)))
    return True

async def main():
    cases = {"sizes": echo(None), "sizes, compressed": echo("deflate"),
             "fragments": fragments(None), "fragments, compressed": fragments("deflate"),
             "100 pings": pings(), "17 MiB is too big": too_big(), "subprotocol": subprotocol(),
             "refused with 403": refused(), "100 at once": many()}
    for code in (1000, 1001, 1011, 3000, 4999):
        cases[f"close {code} by client"] = close_by("client", code)
        cases[f"close {code} by server"] = close_by("server", code)
    results = {}
    for name, case in cases.items():
        try:
            results[name] = bool(await asyncio.wait_for(case, 60))
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))

asyncio.run(main())
'''

# ---- node's ws -------------------------------------------------------------

WS = '''
const WebSocket = require("ws");
const [uri, ca] = process.argv.slice(2);
const tls = uri.startsWith("wss") ? { ca: require("fs").readFileSync(ca) } : {};
const sizes = [0, 1, 125, 126, 65535, 65536, 1 << 20];

function open(options = {}, path = "/") {
  const socket = new WebSocket(uri + path, { ...tls, ...options });
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
  });
}
const next = (socket) => new Promise((resolve, reject) => {
  socket.once("message", (data, binary) => resolve(binary ? data : data.toString()));
  socket.once("close", (code) => reject(new Error("closed " + code)));
});
const closed = (socket) => new Promise((resolve) => {
  socket.once("close", (code, reason) => resolve([code, reason.toString()].join(" ")));
});

async function echo(options) {
  const socket = await open(options);
  for (const size of sizes) {
    const binary = Buffer.alloc(size, "ab12");
    const text = "x\\u00e9".repeat(size / 3);
    socket.send(binary);
    if (!binary.equals(await next(socket))) return false;
    socket.send(text);
    if (text !== await next(socket)) return false;
  }
  socket.close();
  await closed(socket);
  return true;
}

const deflate = (options) => echo({ perMessageDeflate: { threshold: 0, ...options } });
const cases = {
  "sizes": () => echo({ perMessageDeflate: false }),
  "sizes, compressed": () => deflate({}),
  "server window 9": () => deflate({ serverMaxWindowBits: 9 }),
  "server window 15": () => deflate({ serverMaxWindowBits: 15 }),
  "client window 9": () => deflate({ clientMaxWindowBits: 9 }),
  "server forgets": () => deflate({ serverNoContextTakeover: true }),
  "client forgets": () => deflate({ clientNoContextTakeover: true }),
  "both forget, small windows": () => deflate({ serverNoContextTakeover: true,
    clientNoContextTakeover: true, serverMaxWindowBits: 10, clientMaxWindowBits: 10 }),
  "fragments with a ping between": async () => {
    const socket = await open();
    const pong = new Promise((resolve) => socket.once("pong", (data) => resolve(data.toString())));
    socket.send("one ", { fin: false });
    socket.ping("now");
    if (await pong !== "now") return false;
    socket.send("two", { fin: true });
    return await next(socket) === "one two";
  },
  "close by server": async () => {
    const socket = await open();
    socket.send("close 4001");
    return await closed(socket) === "4001 as asked";
  },
  "close by client without a code": async () => {
    const socket = await open();
    socket.close();
    return (await closed(socket)).startsWith("1005");
  },
  "exception closes with 1011": async () => {
    const socket = await open();
    socket.send("throw");
    return (await closed(socket)).startsWith("1011");
  },
  "bomb": async () => {
    const socket = await open();
    socket.send("\\0".repeat(100 << 20));
    return (await closed(socket)).startsWith("1009");
  },
  "10,000 small messages keep their order": async () => {
    const socket = await open();
    let expected = 0;
    const all = new Promise((resolve) => socket.on("message", (data) => {
      if (data.toString() !== String(expected++)) resolve(false);
      if (expected === 10000) resolve(true);
    }));
    for (let i = 0; i < 10000; i++) socket.send(String(i));
    return all;
  },
};

(async () => {
  const results = {};
  for (const [name, run] of Object.entries(cases)) {
    const patience = new Promise((resolve) => setTimeout(resolve, 60000, "took over a minute"));
    try { results[name] = await Promise.race([run(), patience]); }
    catch (error) { results[name] = String(error); }
  }
  console.log(JSON.stringify(results));
  process.exit(0);
})();
'''


def prepare(work):
    """Installs the clients, and makes a certificate; returns what runs them."""
    work.mkdir(parents=True, exist_ok=True)
    python = work / "venv/bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", work / "venv")
        run(python, "-m", "pip", "install", "-q", "websockets")
    if not (work / "node_modules/ws").exists():
        run("npm", "install", "--prefix", work, "--no-fund", "--no-audit", "ws")
    (work / "client.py").write_text(WEBSOCKETS)
    (work / "client.js").write_text(WS)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", work / "key.pem", "-out",
        work / "certificate.pem")
    return python


def run_clients(name, server, work, python, table):
    for label, command in (("websockets", [python, work / "client.py"]),
                           ("ws", ["node", work / "client.js"])):
        scheme = "wss" if "--key" in server.command else "ws"
        out = run(*command, f"{scheme}://127.0.0.1:{server.port}", work / "certificate.pem")
        for case, result in json.loads(out).items():
            outcome = "OK" if result is True else "FAILED"
            table[f"{label}, {name}"][outcome] += 1
            if outcome == "FAILED":
                print(f"FAILED {label}, {name}: {case}: {result}")


# ---- Autobahn --------------------------------------------------------------

# The first six of each section on compression: messages up to 8 KiB.
DEFLATE_CASES = [f"{section}.{case}" for section in
                 (*(f"12.{n}" for n in range(1, 6)), *(f"13.{n}" for n in range(1, 8)))
                 for case in range(1, 7)]
PLAIN_CASES = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"]
ALL_DEFLATE_CASES = [f"12.{n}.*" for n in range(1, 6)] + [f"13.{n}.*" for n in range(1, 8)]


def find_python2():
    found = shutil.which("python2.7")
    if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
        return found
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    return next(iter(sorted(glob.glob(f"{pyenv}/versions/2.7*/bin/python2.7"))), None)


def prepare_autobahn(work):
    wstest = work / "autobahn/bin/wstest"
    if wstest.exists():
        return wstest
    python2 = find_python2()
    if python2 is None:
        return None
    run(python2, "-m", "pip", "install", "-q", "virtualenv==20.15.1", "-t", work / "virtualenv")
    run(python2, "-m", "virtualenv", work / "autobahn",
        env={**os.environ, "PYTHONPATH": str(work / "virtualenv")})
    run(work / "autobahn/bin/pip", "install", "-q", "autobahntestsuite")
    return wstest


def run_autobahn(server, name, cases, work, table):
    """Its client waits more than it works, so groups of cases have one each, some at a time."""
    wstest = prepare_autobahn(work)
    if wstest is None:
        print("Autobahn left out: no Python 2.7 here")
        return
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case.rsplit(".", 1)[0]].append(case)

    def run_group(group):
        out = work / f"reports-{name}" / group
        out.mkdir(parents=True, exist_ok=True)
        spec = {"outdir": str(out), "cases": groups[group], "exclude-cases": [],
                "exclude-agent-cases": {},
                "servers": [{"agent": "octavo", "url": f"ws://127.0.0.1:{server.port}"}]}
        (out / "spec.json").write_text(json.dumps(spec))
        with open(out / "log", "w") as log:
            command = [wstest, "-m", "fuzzingclient", "-s", "spec.json"]
            code = subprocess.run(command, cwd=out, stdout=log, stderr=log).returncode
        if code != 0:
            raise RuntimeError(f"Autobahn's client ended with {code}; see {out}/log")
        return json.loads((out / "index.json").read_text())["octavo"]

    with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as clients:
        for results in clients.map(run_group, groups):
            for case, result in results.items():
                count_verdict(case, result, name, table)


def count_verdict(case, result, name, table):
    verdicts = {result["behavior"], result["behaviorClose"]}
    worst = next((v for v in ("FAILED", "WRONG CODE", "UNCLEAN", "NON-STRICT", "UNIMPLEMENTED",
                              "INFORMATIONAL") if v in verdicts), "OK")
    section = case.split(".")[0]
    table[f"Autobahn {int(section):2}.*, {name}"][worst] += 1
    if worst not in ("OK", "INFORMATIONAL"):
        print(f"{worst} Autobahn {case}, {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=pathlib.Path, default=ROOT / "build/bin/echo_server")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/conformance")
    parser.add_argument("--autobahn", choices=("quick", "full", "off"), default="quick")
    options = parser.parse_args()
    python = prepare(options.work)
    tls = ("--certificate", str(options.work / "certificate.pem"),
           "--key", str(options.work / "key.pem"))
    table = collections.defaultdict(collections.Counter)
    for name, arguments in (("plain", ()), ("takeover", ("--takeover",)), ("TLS", tls)):
        with Server(options.server, *arguments) as server:
            run_clients(name, server, options.work, python, table)
    with Server(options.server) as server:
        for case, check in curl_cases(server).items():
            passed = check()
            table["curl"]["OK" if passed else "FAILED"] += 1
            if not passed:
                print(f"FAILED curl: {case}")
        if options.autobahn != "off":
            cases = (PLAIN_CASES + DEFLATE_CASES if options.autobahn == "quick" else
                     [*PLAIN_CASES, "9.*", *ALL_DEFLATE_CASES])
            run_autobahn(server, "forgetting", cases, options.work, table)
    if options.autobahn != "off":
        cases = DEFLATE_CASES if options.autobahn == "quick" else ALL_DEFLATE_CASES
        with Server(options.server, "--takeover", "--deflate-min", "0") as server:
            run_autobahn(server, "takeover", cases, options.work, table)
    for name in sorted(table):
        print(f"{name:30} " + ", ".join(f"{n} {what}" for what, n in sorted(table[name].items())))
    if any(outcomes[bad] for outcomes in table.values()
           for bad in ("FAILED", "WRONG CODE", "UNCLEAN")):
        sys.exit(1)


if __name__ == "__main__":
    main()
