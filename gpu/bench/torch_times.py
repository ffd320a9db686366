#!/usr/bin/env python3
"""Times PyTorch's attention and matrix products at the shapes of gpu_bench.

    torch_times.py < bench.json > torch.json

Prints {"version": …, "results": [{"kernel", "shape", "microseconds"}]}. Like gpu_bench
it takes operands in turn that exceed every cache, and times captured graphs.
"""
import json
import statistics
import sys

import torch

TURN_BYTES = 512 << 20


def turns_for(size):
    return max(1, min(64, TURN_BYTES // max(size, 1)))


def microseconds(calls):
    """The median time of one of `calls`, from graphs that hold them all."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for call in calls:
            call()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / len(calls))
    return statistics.median(times[1:])


def attention(shape):
    def tensor(heads, tokens):
        return torch.rand(shape["batch"], heads, tokens, shape["head_dim"], device="cuda",
                          dtype=torch.bfloat16)
    bytes_ = 4 * shape["batch"] * shape["kv_heads"] * shape["tokens"] * shape["head_dim"]
    q = tensor(shape["heads"], shape["rows"])
    pools = [(tensor(shape["kv_heads"], shape["tokens"]), tensor(shape["kv_heads"],
             shape["tokens"])) for _ in range(turns_for(bytes_))]
    causal = shape["rows"] > 1
    return microseconds([lambda k=k, v=v: torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=True) for k, v in pools])


def matmul(shape):
    x = torch.rand(shape["m"], shape["k"], device="cuda", dtype=torch.bfloat16)
    weights = [torch.rand(shape["n"], shape["k"], device="cuda", dtype=torch.bfloat16)
               for _ in range(turns_for(2 * shape["n"] * shape["k"]))]
    return microseconds([lambda w=w: torch.nn.functional.linear(x, w) for w in weights])


def main():
    results = []
    for row in json.load(sys.stdin)["results"]:
        shape = row["shape"]
        if row["kernel"].endswith("attention") and shape["kv_type"] == "bfloat16":
            results.append((row["kernel"], shape, attention(shape)))
        if row["kernel"] == "dense_gemm":
            results.append((row["kernel"], shape, matmul(shape)))
    print(json.dumps({"version": torch.__version__, "results": [
        {"kernel": kernel, "shape": shape, "microseconds": time}
        for kernel, shape, time in results]}))


if __name__ == "__main__":
    main()
