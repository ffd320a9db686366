#!/usr/bin/env python3
"""What caching and batching are worth on a real model on the CPU, and how well sim predicts it.

    ./dev bench cpu-claims [--model FILE] [--repeat 3] [--out-json F]

Four figures, each the median of --repeat runs:
  1. time to first token of a prompt of which 90 % is shared, before and after another request
     left the shared part in the prefix cache (through `octavo serve`);
  2. a mixed load under continuous and under static batching, with and without prefix caching;
  3. memory at the peak, against the model file and the KV that was used;
  4. the same load predicted: `octavo profile measure` prices it, `sim` replays it, and mean TTFT,
     TPOT and E2E are compared with those measured.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
OCTAVO = ROOT / "build/bin/octavo"
SIM = ROOT / "build/bin/sim"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "octavo"
SMOLLM2 = CACHE / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
ENGINE = ["--max-num-seqs", "32", "--max-model-len", "2048"]


class Server:
    """`octavo serve` on a free port for the length of a with block."""

    def __init__(self, model):
        self.process = subprocess.Popen([OCTAVO, "serve", model, "--port", "0", *ENGINE],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.address = self.process.stdout.readline().split(" at ")[1].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def first_token_s(self, prompt):
        """Seconds to the only token of a greedy completion, and the cached tokens."""
        body = {"prompt": prompt, "max_tokens": 1, "temperature": 0}
        request = urllib.request.Request(self.address + "/v1/completions",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        start = time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as answer:
            usage = json.load(answer)["usage"]
        return time.perf_counter() - start, usage["prompt_tokens_details"]["cached_tokens"]


def prefix_caching(model, repeat):
    draw = random.Random(3)
    tokens = lambda n: [draw.randrange(1000, 30000) for _ in range(n)]
    cold, warm = [], []
    with Server(model) as server:
        server.first_token_s(tokens(64))
        for _ in range(repeat):
            shared = tokens(900)
            cold.append(server.first_token_s(shared + tokens(100))[0])
            seconds, cached = server.first_token_s(shared + tokens(100))
            assert cached == 896, f"{cached} tokens were cached; 56 blocks of 16 are shared"
            warm.append(seconds)
    a, b = statistics.median(cold), statistics.median(warm)
    print(f"1. 1000 tokens, 900 of them shared: first token after {a * 1e3:.0f} ms cold, "
          f"{b * 1e3:.0f} ms warm: {100 * (1 - b / a):.0f} % less")
    return {"ttft_cold_s": a, "ttft_warm_s": b}


def bench(model, workload, repeat, *flags):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([OCTAVO, "bench", model, "--workload", workload, "--repeat", str(repeat),
                        "--out-json", out.name, *ENGINE, *flags],
                       check=True, stdout=subprocess.DEVNULL)
        return json.load(open(out.name))


def batching(model, repeat):
    rows = {}
    for name, flags in {
            "continuous, prefix cached": [],
            "continuous": ["--no-enable-prefix-caching"],
            "static": ["--no-enable-prefix-caching", "--policy", "static"],
    }.items():
        f = bench(model, "mixed", repeat, *flags)["workloads"][0]
        rows[name] = f
        print(f"2. mixed load, {name:26}: {f['total_s']:6.2f} s, {f['output_tokens_per_s']:6.1f} "
              f"tokens/s, first token after {f['ttft_s_mean']:5.2f} s on average")
    return rows


def memory(model):
    report = bench(model, "single", 1)
    file_bytes = pathlib.Path(model).stat().st_size
    tokens = 32 + 128
    kv = tokens * 23040
    ratio = report["peak_memory_bytes"] / (file_bytes + kv)
    peak_mb = report["peak_memory_bytes"] / 1e6
    print(f"3. loaded in {report['load_s']:.2f} s; peak {peak_mb:.0f} MB, "
          f"{ratio:.2f} x of file ({file_bytes / 1e6:.0f} MB) and KV in use ({kv / 1e6:.0f} MB)")
    return {"load_s": report["load_s"], "peak_ratio": ratio}


def prediction(model, repeat, folder):
    draw = random.Random(5)
    requests = [{"prompt": [draw.randrange(1000, 30000) for _ in range(draw.randint(16, 600))],
                 "max_tokens": draw.randint(16, 128)} for _ in range(32)]
    workload, trace = folder / "load.jsonl", folder / "trace.jsonl"
    workload.write_text("".join(json.dumps(r) + "\n" for r in requests))
    lines = [{"format": "octavo.trace/1"}]
    lines += [{"id": str(i), "arrival_s": 0, "prompt_tokens": len(r["prompt"]),
               "output_tokens": r["max_tokens"], "max_tokens": r["max_tokens"]}
              for i, r in enumerate(requests)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    profile, report = folder / "profile.json", folder / "report.json"
    subprocess.run([OCTAVO, "profile", "measure", model, "--out", profile], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    measured = bench(model, workload, repeat)
    blocks = measured["engine"]["num_blocks"]
    subprocess.run([SIM, "--trace", trace, "--model", model, "--profile", profile,
                    "--num-gpu-blocks-override", str(blocks), "--max-num-batched-tokens", "512",
                    "--out-json", report, "--quiet", *ENGINE], check=True)
    predicted = json.load(open(report))
    real = measured["workloads"][0]
    result = {}
    for name, ours in (("ttft", "ttft_s_mean"), ("tpot", "tpot_s_mean"), ("e2e", "e2e_s_mean")):
        seconds = predicted[name + "_s"]["mean"]
        error = 100 * (seconds / real[ours] - 1)
        result[name] = {"measured_s": real[ours], "predicted_s": seconds, "error_percent": error}
        print(f"4. mean {name.upper():4}: measured {real[ours] * 1e3:8.1f} ms, predicted "
              f"{seconds * 1e3:8.1f} ms: {error:+.1f} %")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(SMOLLM2))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out-json")
    options = parser.parse_args()
    if options.model == str(SMOLLM2) and not SMOLLM2.exists():
        subprocess.run([OCTAVO, "model", "get", "smollm2"], check=True)
    figures = {"prefix_caching": prefix_caching(options.model, options.repeat),
               "batching": batching(options.model, options.repeat),
               "memory": memory(options.model)}
    with tempfile.TemporaryDirectory() as folder:
        figures["prediction"] = prediction(options.model, options.repeat, pathlib.Path(folder))
    if options.out_json:
        pathlib.Path(options.out_json).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
