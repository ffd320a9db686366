#!/usr/bin/env python3
"""The same GGUF files and requests through Octavo and llama.cpp, on the same threads, in turns.

Makes a virtual environment of its own with llama-cpp-python, which builds llama.cpp for
this machine (some minutes, once). Each round runs Octavo, then llama.cpp; figures are medians
over the rounds, and ratios say how many times as fast Octavo was.

    ./dev bench vs-llamacpp [--rounds 5] [--threads 2] [--models smollm2 gemma3-270m] [--out-json F]

llama.cpp is driven through its C API by bench/peers/llamacpp_driver.py, which batches continuously
as its server does; only the time inside llama.cpp counts, not Python's. Where requests share a
prompt it is measured both ways: every sequence computing its own prompt, as the server's slots
do, and with the shared part copied between sequences, as a program written for it can.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "octavo"
FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3-270m": "gemma-3-270m-q4_k_m.gguf",
}
GOALS = {"single": (1.0, 1.3), "prefill": (1.2, 2.0), "batch": (1.5, 3.0), "mixed": (2.0, 4.0)}
# What each workload is judged by, and whether more is better.
FIGURES = {"single": "decode_tokens_per_s", "prefill": "prefill_tokens_per_s",
           "batch": "output_tokens_per_s", "mixed": "total_s"}


def workloads(folder):
    """Token ids below 30000 exist in both models' vocabularies."""
    draw = random.Random(17)
    tokens = lambda n: [draw.randrange(1000, 30000) for _ in range(n)]
    shared = tokens(400)
    sets = {
        "single": [{"prompt": tokens(32), "max_tokens": 128}],
        "prefill": [{"prompt": tokens(512), "max_tokens": 1}],
        "batch": [{"prompt": tokens(32), "max_tokens": 128} for _ in range(8)],
        "mixed": [{"prompt": shared + tokens(draw.randint(16, 256)),
                   "max_tokens": draw.randint(16, 128)} for _ in range(32)],
    }
    paths = {}
    for name, requests in sets.items():
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(r) + "\n" for r in requests))
    return paths


def peer_python(given):
    """The interpreter that has llama-cpp-python, made where there is none."""
    if given:
        return given
    home = CACHE / "venv-llamacpp"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    if subprocess.run([python, "-c", "import llama_cpp"], capture_output=True).returncode != 0:
        print("building llama-cpp-python (some minutes, once) ...", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "llama-cpp-python"], check=True)
    return python


def run_octavo(model, paths, threads):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [ROOT / "build/bin/octavo", "bench", model, "--threads", str(threads),
                   "--repeat", "1", "--max-num-seqs", "32", "--max-model-len", "2048",
                   "--out-json", out.name]
        for path in paths.values():
            command += ["--workload", path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        report = json.load(open(out.name))
    results = {}
    for name, f in zip(paths, report["workloads"]):
        f["decode_tokens_per_s"] = 1 / f["tpot_s_mean"] if f["tpot_s_mean"] else 0
        results[name] = f
    return results, report


def run_peer(python, model, paths, threads):
    command = [python, ROOT / "bench/peers/llamacpp_driver.py", model, str(threads)]
    command += [str(p) for p in paths.values()]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(done.stdout)
    return dict(zip(paths, report["workloads"])), report


def median_of(rounds, workload, field):
    return statistics.median(r[workload][field] for r in rounds)


def compare(name, model, paths, python, options):
    ours, theirs, loads = [], [], []
    for number in range(options.rounds):
        print(f"{name}: round {number + 1} of {options.rounds}", file=sys.stderr)
        mine, report = run_octavo(model, paths, options.threads)
        peer, peer_report = run_peer(python, model, paths, options.threads)
        ours.append(mine)
        theirs.append(peer)
        loads.append((report["load_s"], peer_report["load_s"],
                      report["peak_memory_bytes"], peer_report["peak_memory_bytes"]))
    rows = []
    for work, figure in FIGURES.items():
        a, b = median_of(ours, work, figure), median_of(theirs, work, figure)
        ratio = b / a if figure.endswith("_s") and not figure.endswith("per_s") else a / b
        rows.append({"model": name, "workload": work, "figure": figure, "octavo": a,
                     "llama.cpp": b, "ratio": ratio, "least": GOALS[work][0],
                     "aim": GOALS[work][1]})
        if work == "mixed":
            c = median_of(theirs, work, "total_s_prefix_copied")
            rows.append({"model": name, "workload": "mixed, prefix copied by hand",
                         "figure": figure, "octavo": a, "llama.cpp": c, "ratio": c / a,
                         "least": None, "aim": None})
    load = [statistics.median(column) for column in zip(*loads)]
    return rows, dict(zip(("load_s", "peer_load_s", "peak_bytes", "peer_peak_bytes"), load))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--python", help="an interpreter that has llama_cpp already")
    parser.add_argument("--out-json")
    options = parser.parse_args()
    python = peer_python(options.python)
    table, memory = [], {}
    with tempfile.TemporaryDirectory() as folder:
        paths = workloads(pathlib.Path(folder))
        for name in options.models:
            model = CACHE / "models" / FILES[name]
            if not model.exists():
                subprocess.run([ROOT / "build/bin/octavo", "model", "get", name], check=True)
            rows, load = compare(name, model, paths, python, options)
            table += rows
            memory[name] = load
    print(f"{'model':12} {'workload':30} {'octavo':>10} {'llama.cpp':>10} {'ratio':>7}  "
          "least / aim")
    for r in table:
        goal = f"{r['least']} / {r['aim']}" if r["least"] else ""
        print(f"{r['model']:12} {r['workload']:30} {r['octavo']:10.2f} {r['llama.cpp']:10.2f} "
              f"{r['ratio']:6.2f}x  {goal}")
    print("\nsingle, prefill and batch in tokens/s; mixed in seconds for all 32 requests")
    for name, m in memory.items():
        print(f"{name}: loaded in {m['load_s']:.2f} s (llama.cpp {m['peer_load_s']:.2f} s), peak "
              f"{m['peak_bytes'] / 1e6:.0f} MB (with Python {m['peer_peak_bytes'] / 1e6:.0f} MB)")
    if options.out_json:
        pathlib.Path(options.out_json).write_text(json.dumps({"rows": table, "load": memory}))


if __name__ == "__main__":
    main()
