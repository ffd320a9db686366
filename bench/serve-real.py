#!/usr/bin/env python3
"""`octavo serve` with a real model: its own cost, a peer's server, and what sim predicts of it.

    ./dev bench serve-real [--rounds 3] [--pairs 7] [--model FILE] [--peer-python PATH]

  1. Processor time of the server per token, beyond what `octavo bench` spends on the same
     requests, at 1 and 8 streams: interleaved pairs, median. Steps vary by more than a server
     costs, so the time of its threads that do not compute is told as well: network, actors.
  2. The same load against llama.cpp's server (llama-cpp-python[server], in a virtual environment
     of its own), 1, 8 and 32 clients with a shared system prompt, in turns.
  3. `sim` on the trace that was recorded at 8 clients, priced by `octavo profile measure`.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
OCTAVO = ROOT / "build/bin/octavo"
SIM = ROOT / "build/bin/sim"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "octavo"
SMOLLM2 = CACHE / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
THREADS = 2
ENGINE = ["--max-num-seqs", "32", "--max-model-len", "2048", "--threads", str(THREADS)]
SYSTEM = ("You are the assistant of a small library. You answer in plain words, you say what you "
          "do not know, and you never make up the title of a book. ") * 14


def cpu_seconds(pid):
    """Processor time of each of a process's threads, by id."""
    return {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


class Octavo:
    """`octavo serve` on a free port for the length of a with block."""

    def __init__(self, model, *flags):
        self.process = subprocess.Popen([OCTAVO, "serve", model, "--port", "0", *ENGINE, *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


class LlamaCpp:
    """llama-cpp-python's server, for the length of a with block."""

    def __init__(self, python, model):
        self.port = random.randrange(20000, 30000)
        self.process = subprocess.Popen(
            [python, "-m", "llama_cpp.server", "--model", model, "--n_ctx", "2048",
             "--n_threads", "2", "--n_threads_batch", "2", "--port", str(self.port),
             "--interrupt_requests", "false", "--verbose", "false"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/v1/models")
                if connection.getresponse().status == 200:
                    return self
            except OSError:
                time.sleep(0.1)
        raise SystemExit("llama.cpp's server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def says_something(chunk):
    """Does it carry text? A chat's first chunk tells the role and comes before any token."""
    if "error" in chunk:
        raise RuntimeError(str(chunk))
    return any(choice.get("text") or choice.get("delta", {}).get("content")
               for choice in chunk["choices"])


def stream(port, path, body):
    """Sends one streamed request; returns start and the moments at which text came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    start = time.perf_counter()
    connection.request("POST", path, json.dumps({**body, "stream": True}),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {answer.read()[:300]}")
    moments = []
    for line in answer:
        now = time.perf_counter()
        if line.startswith(b"data: {") and says_something(json.loads(line[6:])):
            moments.append(now)
    connection.close()
    return start, moments


def ask_all(port, clients, each):
    """So many clients ask one question after another; times of all requests, by client."""
    results, problems = [], []

    def client(number):
        try:
            for i in range(each):
                question = f"Question {number}.{i}: what should a reader of age {10 + number} read?"
                results.append(stream(port, "/v1/chat/completions", {
                    "model": None, "temperature": 0, "max_tokens": 48,
                    "messages": [{"role": "system", "content": SYSTEM},
                                 {"role": "user", "content": question}]}))
        except Exception as problem:  # told by the caller's thread
            problems.append(problem)

    start = time.perf_counter()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results, time.perf_counter() - start


def figures(results, total_s):
    """Of answers that say anything: a model may end its answer at once."""
    results = [result for result in results if result[1]]
    ttft = sorted(moments[0] - start for start, moments in results)
    e2e = sorted(moments[-1] - start for start, moments in results)
    tpot = sorted((m[-1] - m[0]) / (len(m) - 1) for _, m in results if len(m) > 1)
    p99 = lambda values: values[min(len(values) - 1, int(0.99 * len(values)))]
    return {"tokens_per_s": sum(len(m) for _, m in results) / total_s,
            "ttft_s_p50": statistics.median(ttft), "ttft_s_p99": p99(ttft),
            "ttft_s_mean": statistics.mean(ttft), "e2e_s_mean": statistics.mean(e2e),
            "e2e_s_p99": p99(e2e), "tpot_s_mean": statistics.mean(tpot), "tpot_s_p99": p99(tpot)}


def overhead(model, pairs, folder):
    draw = random.Random(1)
    for streams in (1, 8):
        requests = [{"prompt": [draw.randrange(1000, 30000) for _ in range(32)],
                     "max_tokens": 128} for _ in range(streams)]
        workload = folder / "overhead.jsonl"
        workload.write_text("".join(json.dumps(r) + "\n" for r in requests))
        shares, others = [], []
        with Octavo(model, "--no-enable-prefix-caching") as server:
            for _ in range(pairs):
                served, beside_steps = serve_once(server, requests)
                alone = bench_once(model, workload, folder)
                shares.append(100 * (served / alone - 1))
                others.append(100 * beside_steps / (served - beside_steps))
        tokens = 128 * streams
        print(f"1. {streams} streams: the server takes {statistics.median(shares):+.1f} % "
              f"processor time a token beyond octavo bench (median of {pairs} pairs of "
              f"{tokens} tokens; "
              f"{min(shares):+.1f} to {max(shares):+.1f}); threads that do not compute take "
              f"{statistics.median(others):.2f} % of the steps' time "
              f"({min(others):.2f} to {max(others):.2f})")


def serve_once(server, requests):
    """Processor time of one run of the workload, and what of it the busiest threads, which
    compute, did not take."""
    before = cpu_seconds(server.process.pid)
    body = lambda r: {"prompt": r["prompt"], "max_tokens": r["max_tokens"], "temperature": 0,
                      "ignore_eos": True}
    threads = [threading.Thread(target=stream, args=(server.port, "/v1/completions", body(r)))
               for r in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = cpu_seconds(server.process.pid)
    spent = sorted(after[task] - before.get(task, 0) for task in after)
    return sum(spent), sum(spent[:-THREADS])


def bench_once(model, workload, folder):
    """Processor time of one run of the workload, loading left out."""
    report = folder / "bench.json"
    subprocess.run([OCTAVO, "bench", model, "--workload", workload, "--repeat", "1",
                    "--out-json", report, "--no-enable-prefix-caching", *ENGINE],
                   check=True, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text())["workloads"][0]["processor_s"]


def peer_python(given):
    if given:
        return given
    home = CACHE / "venv-llamacpp"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    if subprocess.run([python, "-c", "import llama_cpp.server.app"],
                      capture_output=True).returncode != 0:
        print("building llama-cpp-python (some minutes, once) ...", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "llama-cpp-python[server]"],
                       check=True)
    return python


def against_peer(model, python, rounds):
    for clients, each in ((1, 4), (8, 2), (32, 1)):
        ours, theirs = [], []
        for _ in range(rounds):
            with Octavo(model) as server:
                ask_all(server.port, 1, 1)  # warm, as the peer is after its first request
                ours.append(figures(*ask_all(server.port, clients, each)))
            with LlamaCpp(python, model) as server:
                ask_all(server.port, 1, 1)
                theirs.append(figures(*ask_all(server.port, clients, each)))
        pick = lambda rows, name: statistics.median(row[name] for row in rows)
        a, b = pick(ours, "tokens_per_s"), pick(theirs, "tokens_per_s")
        print(f"2. {clients:2} clients: {a:6.1f} tokens/s, llama.cpp {b:6.1f}: {a / b:.2f} x; "
              f"first token p50/p99 {pick(ours, 'ttft_s_p50'):.2f}/"
              f"{pick(ours, 'ttft_s_p99'):.2f} s, llama.cpp {pick(theirs, 'ttft_s_p50'):.2f}/"
              f"{pick(theirs, 'ttft_s_p99'):.2f} s")


def prediction(model, folder):
    trace, profile, report = folder / "trace.jsonl", folder / "profile.json", folder / "report.json"
    subprocess.run([OCTAVO, "profile", "measure", model, "--out", profile, "--threads", "2"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Octavo(model, "--record-trace", str(trace)) as server:
        real = figures(*ask_all(server.port, 8, 4))
    subprocess.run([SIM, "--trace", trace, "--model", model, "--profile", profile,
                    "--num-gpu-blocks-override", "4096", "--max-num-batched-tokens", "512",
                    "--max-num-seqs", "32", "--max-model-len", "2048", "--out-json", report,
                    "--quiet"], check=True)
    predicted = json.load(open(report))
    for name in ("ttft", "tpot", "e2e"):
        for which in ("mean", "p99"):
            seconds, measured = predicted[name + "_s"][which], real[f"{name}_s_{which}"]
            print(f"3. {which:4} {name.upper():4}: measured {measured * 1e3:8.1f} ms, predicted "
                  f"{seconds * 1e3:8.1f} ms: {100 * (seconds / measured - 1):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(SMOLLM2))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--parts", default="123", help="which of the three to run")
    parser.add_argument("--peer-python", help="an interpreter that has llama_cpp.server already")
    options = parser.parse_args()
    if options.model == str(SMOLLM2) and not SMOLLM2.exists():
        subprocess.run([OCTAVO, "model", "get", "smollm2"], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "1" in options.parts:
            overhead(options.model, options.pairs, folder)
        if "2" in options.parts:
            against_peer(options.model, peer_python(options.peer_python), options.rounds)
        if "3" in options.parts:
            prediction(options.model, folder)


if __name__ == "__main__":
    main()
