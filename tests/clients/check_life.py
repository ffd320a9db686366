"""Draining, stopping, hanging, and what is written for the simulator."""

import asyncio
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error

import websockets

from support import FAST, OPTIONS, SIM, Server, check, http_request, raw_exchange

SLOW = (*SIM, "--step-time", "10ms", "--num-gpu-blocks-override", "4096")


def stream_in_thread(server, tokens):
    """A raw stream, which begins before this returns; the text is there after .join()."""
    got = {}
    body = {"prompt": "a", "max_tokens": tokens, "ignore_eos": True, "stream": True}
    request = http_request("/v1/completions", body, "Connection: close")

    def read():
        got["raw"] = raw_exchange(server.port, request, timeout=40).decode()

    thread = threading.Thread(target=read)
    thread.got = got
    thread.start()
    until = time.monotonic() + 10
    while server.status()["running"] == 0:
        assert time.monotonic() < until
        time.sleep(0.01)
    return thread


def data_of(raw):
    """The events of a chunked answer: what stands between the chunk sizes."""
    return [line[len("data: "):] for line in raw.split("\n") if line.startswith("data: ")]


def end_of(server, seconds):
    try:
        return server.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the server still lives after {seconds} s") from None


@check()
def on_sigterm_running_streams_finish_and_new_requests_get_503():
    with Server(*SLOW) as server:
        assert server.get("/ready") == "{}"
        late = http_request("/v1/completions", {"prompt": "late"}, "Connection: close")
        running = stream_in_thread(server, 200)
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.2)
        refusals = [raw_exchange(server.port, request).decode() for request in
                    (late, b"GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")]
        running.join()
        data = data_of(running.got["raw"])
        assert data[-1] == "[DONE]" and len(data) == 202, data[-3:]
        assert json.loads(data[-2])["choices"][0]["finish_reason"] == "length"
        assert end_of(server, 10) == 0
        for got in refusals:
            assert got.startswith("HTTP/1.1 503") and "Retry-After: " in got, got


@check()
def on_sigterm_a_socket_finishes_its_responses_and_closes_with_1001():
    async def talk(server):
        async with websockets.connect(server.socket_url) as ws:
            create = {"type": "response.create", "input": "a", "max_output_tokens": 100,
                      "ignore_eos": True}
            await ws.send(json.dumps({**create, "id": "a"}))
            await ws.recv()
            os.kill(server.process.pid, signal.SIGTERM)
            await asyncio.sleep(0.2)
            await ws.send(json.dumps({**create, "id": "late"}))
            events = []
            try:
                while True:
                    events.append(json.loads(await asyncio.wait_for(ws.recv(), 20)))
            except websockets.exceptions.ConnectionClosed as closed:
                return events, closed.rcvd.code if closed.rcvd else None

    with Server(*SLOW) as server:
        events, code = asyncio.run(talk(server))
        late = [e for e in events if e.get("id") == "late"]
        assert [e["status"] for e in late] == [503], late
        ended = [e for e in events if e["type"] == "response.incomplete"]
        assert ended and ended[0]["response"]["usage"]["output_tokens"] == 100, events[-1]
        assert code == 1001, code
        assert end_of(server, 10) == 0


@check("E 41")
def a_stream_that_is_cut_ends_with_an_error_event_and_done():
    with Server(*SLOW) as server:
        running = stream_in_thread(server, 2000)
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        begun = time.monotonic()
        os.kill(server.process.pid, signal.SIGTERM)
        assert end_of(server, 5) == 0
        # At once: the 20 s that the stream had left are not waited for.
        assert time.monotonic() - begun < 5
        running.join()
        data = data_of(running.got["raw"])
        assert data[-1] == "[DONE]" and json.loads(data[-2])["error"]["message"], data[-2:]
        assert running.got["raw"].endswith("0\r\n\r\n")


@check("E 41")
def a_socket_s_response_that_is_cut_fails():
    async def talk(server):
        async with websockets.connect(server.socket_url) as ws:
            await ws.send(json.dumps({"type": "response.create", "input": "a", "ignore_eos": True}))
            while json.loads(await ws.recv())["type"] != "response.output_text.delta":
                pass
            os.kill(server.process.pid, signal.SIGTERM)
            events = []
            try:
                while True:
                    events.append(json.loads(await asyncio.wait_for(ws.recv(), 20)))
            except websockets.exceptions.ConnectionClosed:
                return events

    # The time for answers under way is over after a second.
    with Server(*SLOW, "--shutdown-timeout", "1") as server:
        events = asyncio.run(talk(server))
        assert events[-1]["type"] == "response.failed", events[-1]
        assert events[-1]["response"]["error"]["message"]
        assert end_of(server, 5) == 0


@check("L 89")
def health_is_red_while_the_engine_hangs_whatever_comes_in():
    flags = (*SIM, "--step-time", "100s", "--num-gpu-blocks-override", "64",
             "--progress-deadline", "2")
    with Server(*flags) as server:
        def code():
            try:
                server.get("/health")
                return 200
            except urllib.error.HTTPError as red:
                return red.code

        assert code() == 200
        hanging = [stream_without_reading(server)]
        begun = time.monotonic()
        codes = []
        # Others who come, and go, are no progress.
        while time.monotonic() - begun < 4:
            hanging.append(stream_without_reading(server))
            if len(hanging) > 3:
                hanging.pop(1).close()
            codes.append(code())
            time.sleep(0.3)
        assert codes[0] == 200 and codes[-1] == 503, codes
        assert server.get("/version") and server.get("/metrics")
        for one in hanging:
            one.close()
        server.process.kill()  # a step that takes 100 s cannot be stopped
        server.process.wait()
        server.process.returncode = 0


def stream_without_reading(server):
    s = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    s.sendall(http_request("/v1/completions", {"prompt": "a", "stream": True}))
    return s


def run_sim(*arguments):
    sim = pathlib.Path(OPTIONS["octavo"]).with_name("sim")
    return subprocess.run([sim, *arguments], text=True, capture_output=True, timeout=60)


@check()
def a_recorded_trace_replays_in_the_simulator():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.jsonl"
        with Server(*FAST, "--record-trace", str(path)) as server:
            for k in range(5):
                body = {"prompt": "a secret word " * 3, "max_tokens": 5 + k, "ignore_eos": True}
                assert server.post("/v1/completions", body)[0] == 200
        text = path.read_text()
        assert "octavo.trace/1" in text and "secret" not in text
        done = run_sim("--trace", path, "--step-time", "5ms", "--num-gpu-blocks-override", "4096")
        assert done.returncode == 0, done.stderr
        # 5 + 6 + 7 + 8 + 9 tokens.
        assert "35" in done.stdout and " 5" in done.stdout, done.stdout


@check()
def a_decision_log_verifies_in_the_simulator():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "decisions.jsonl"
        with Server(*FAST, "--decision-log", str(path)) as server:
            for k in range(5):
                body = {"prompt": "word " * 30, "max_tokens": 5 + k, "n": 1 + k % 2}
                assert server.post("/v1/completions", body)[0] == 200
            cut = stream_without_reading(server)
            while server.status()["running"] == 0:
                time.sleep(0.01)
            cut.close()
            server.becomes_idle()
        done = run_sim("--replay", path, "--verify")
        assert done.returncode == 0, done.stdout + done.stderr


@check()
def two_servers_cannot_have_one_port():
    with Server(*FAST) as server:
        done = subprocess.run([OPTIONS["octavo"], "serve", *FAST, "--port", str(server.port)],
                              text=True, capture_output=True, timeout=20)
        assert done.returncode == 2 and str(server.port) in done.stderr, done.stderr
