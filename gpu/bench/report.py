#!/usr/bin/env python3
"""Puts what gpu/check.sh measured side by side, as a table and as JSON.

    report.py FOLDER [--peers FOLDER]

FOLDER has bench.json of gpu_bench and may have torch.json of torch_times.py; all is
written to report.json there. --peers: times of vLLM on an H200 (shared/profiles/
aiconfigurator), absolute, shown whatever this device is; of products in bf16.

A call's roofline is the longer of its least bytes at the bandwidth and its operations
at the rate that this device was measured to have (for reading, and for bf16 products; e4m3
ones count as twice as fast);
"of roof" is the roofline by the time that it took.
"""
import argparse
import csv
import json
import pathlib


def peer_times(folder):
    """What vLLM took on an H200, by kernel and shape: microseconds."""
    times = {}
    files = {
        "gemm": folder / "h200_sxm_vllm0.24.0_gemm_bf16_full.csv",
        "decode_attention": folder / "h200_sxm_vllm0.24.0_generation_attention_bf16_hd128.csv",
        "prefill_attention": folder / "h200_sxm_vllm0.24.0_context_attention_bf16_hd128.csv",
    }
    for kind, path in files.items():
        if not path.is_file():
            continue
        with path.open() as lines:
            for row in csv.DictReader(lines):
                if kind == "gemm":
                    key = (kind, int(row["m"]), int(row["n"]), int(row["k"]))
                else:
                    key = (kind, int(row["batch_size"]), int(row["isl"]), int(row["step"]),
                           int(row["num_heads"]), int(row["num_key_value_heads"]))
                times[key] = float(row["latency_ms"]) * 1000
    return times


def peer_key(kernel, shape):
    if kernel.endswith("attention"):
        if shape["kv_type"] != "bfloat16" or shape["head_dim"] != 128:
            return None
        return (kernel, shape["batch"], shape["rows"], shape["tokens"] - shape["rows"],
                shape["heads"], shape["kv_heads"])
    return ("gemm", shape["m"], shape["n"], shape["k"]) if "m" in shape else None


def add_comparisons(bench, torch, peers):
    """Adds to each result its roofline, and the others' times where they are known."""
    ceilings = bench["ceilings"]
    known = {(r["kernel"], json.dumps(r["shape"], sort_keys=True)): r["microseconds"]
             for r in torch.get("results", [])}
    for row in bench["results"]:
        roof = 1e6 * max(row["bytes"] / ceilings["read_bytes_per_s"],
                         row["flops"] / (row["rate"] * ceilings["bf16_flops_per_s"]))
        row["roofline_fraction"] = roof / row["microseconds"]
        row["bytes_per_s"] = row["bytes"] / row["microseconds"] * 1e6
        row["flops_per_s"] = row["flops"] / row["microseconds"] * 1e6
        # A product by the library has the same peers as ours.
        kernel = row["kernel"].removesuffix(" (library)").removesuffix(" (written out)")
        row["torch_us"] = known.get((kernel, json.dumps(row["shape"], sort_keys=True)))
        row["vllm_h200_us"] = peers.get(peer_key(kernel, row["shape"]))


def shape_text(shape):
    if "m" in shape:
        return f"{shape['m']} x {shape['n']} x {shape['k']}"
    if "batch" in shape:
        return (f"{shape['batch']} x {shape['tokens']} tokens, {shape['heads']}/"
                f"{shape['kv_heads']} heads, kv {shape['kv_type']}")
    return ", ".join(f"{name} {value}" for name, value in sorted(shape.items())
                     if name not in ("heads", "kv_heads", "head_dim"))


def table(bench):
    device, ceilings = bench["device"], bench["ceilings"]
    lines = [f"{device['name']}, sm_{device['compute']}: reads "
             f"{ceilings['read_bytes_per_s'] / 1e12:.2f} TB/s, copies "
             f"{ceilings['copy_bytes_per_s'] / 1e12:.2f} TB/s, "
             f"{ceilings['bf16_flops_per_s'] / 1e12:.0f} TFLOP/s in bf16"
             + ("" if bench["cublaslt"] else " (by our own kernel: no cuBLASLt)"), "",
             f"{'kernel':22}{'shape':46}{'us':>9}{'of roof':>9}{'TB/s':>7}{'TFLOP/s':>9}"
             f"{'torch us':>10}{'vLLM H200 us':>14}"]
    for row in bench["results"]:
        others = "".join(f"{'-' if row[key] is None else format(row[key], '.1f'):>{width}}"
                         for key, width in (("torch_us", 10), ("vllm_h200_us", 14)))
        lines.append(f"{row['kernel']:22}{shape_text(row['shape']):46}{row['microseconds']:9.1f}"
                     f"{row['roofline_fraction']:9.0%}{row['bytes_per_s'] / 1e12:7.2f}"
                     f"{row['flops_per_s'] / 1e12:9.1f}{others}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path)
    arguments = parser.parse_args()
    bench = json.loads((arguments.folder / "bench.json").read_text())
    torch_file = arguments.folder / "torch.json"
    torch = json.loads(torch_file.read_text()) if torch_file.is_file() else {}
    add_comparisons(bench, torch, peer_times(arguments.peers) if arguments.peers else {})
    bench["torch"] = torch.get("version")
    (arguments.folder / "report.json").write_text(json.dumps(bench, indent=1) + "\n")
    print(table(bench))


if __name__ == "__main__":
    main()
