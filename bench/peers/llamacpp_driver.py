"""Runs workloads through llama.cpp's C API with continuous batching; prints JSON figures.

    python llamacpp_driver.py MODEL THREADS WORKLOAD.jsonl...

Every step is one llama_decode of up to 512 tokens: one for each running sequence, then prompts
in order, in chunks. Sampling is greedy. Time counts inside llama.cpp only.
"""
import ctypes
import json
import resource
import sys
import time

import llama_cpp as lc
import numpy

STEP_TOKENS = 512


class sequence:
    def __init__(self, number, request):
        self.number = number
        self.prompt = request["prompt"]
        self.max_tokens = request["max_tokens"]
        self.computed = 0
        self.output = []
        self.first_s = self.last_s = 0.0

    def done(self):
        return len(self.output) >= self.max_tokens


def new_context(model, sequences, threads, unified):
    longest = max(len(s.prompt) + s.max_tokens for s in sequences)
    room = (longest + 31) // 32 * 32
    params = lc.llama_context_default_params()
    params.n_ctx = room * len(sequences)
    params.n_batch = params.n_ubatch = STEP_TOKENS
    params.n_seq_max = len(sequences)
    params.n_threads = params.n_threads_batch = threads
    params.kv_unified = unified
    return lc.llama_init_from_model(model, params)


def add(batch, token, position, number, wanted):
    i = batch.n_tokens
    batch.token[i] = token
    batch.pos[i] = position
    batch.n_seq_id[i] = 1
    batch.seq_id[i][0] = number
    batch.logits[i] = wanted
    batch.n_tokens += 1
    return i


def fill(batch, sequences):
    """Takes tokens of one step; returns (sequence, row) of those that sample after it."""
    batch.n_tokens = 0
    sampling = []
    for s in sequences:
        if not s.done() and s.computed >= len(s.prompt) and batch.n_tokens < STEP_TOKENS:
            row = add(batch, s.output[-1], s.computed, s.number, True)
            s.computed += 1
            sampling.append((s, row))
    for s in sequences:
        while s.computed < len(s.prompt) and batch.n_tokens < STEP_TOKENS:
            last = s.computed + 1 == len(s.prompt)
            row = add(batch, s.prompt[s.computed], s.computed, s.number, last)
            s.computed += 1
            if last:
                sampling.append((s, row))
    return sampling


def copy_prefix(context, batch, sequences):
    """Computes what all prompts share once and gives it to every sequence."""
    prompts = [s.prompt for s in sequences]
    shared = 0
    while all(len(p) > shared + 1 and p[shared] == prompts[0][shared] for p in prompts):
        shared += 1
    spent = 0.0
    for begin in range(0, shared, STEP_TOKENS):
        batch.n_tokens = 0
        for at in range(begin, min(begin + STEP_TOKENS, shared)):
            add(batch, prompts[0][at], at, 0, False)
        start = time.perf_counter()
        assert lc.llama_decode(context, batch) == 0
        lc.llama_synchronize(context)
        spent += time.perf_counter() - start
    memory = lc.llama_get_memory(context)
    for s in sequences:
        if s.number != 0:
            lc.llama_memory_seq_cp(memory, 0, s.number, 0, shared)
        s.computed = shared
    return spent


def run(model, requests, threads, unified, copied=False):
    sequences = [sequence(i, r) for i, r in enumerate(requests)]
    context = new_context(model, sequences, threads, unified)
    vocabulary = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))
    batch = lc.llama_batch_init(STEP_TOKENS, 0, len(sequences))
    spent = copy_prefix(context, batch, sequences) if copied else 0.0
    while not all(s.done() for s in sequences):
        sampling = fill(batch, sequences)
        start = time.perf_counter()
        if lc.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        lc.llama_synchronize(context)
        spent += time.perf_counter() - start
        for s, row in sampling:
            logits = lc.llama_get_logits_ith(context, row)
            values = numpy.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)),
                                              (vocabulary,))
            s.output.append(int(values.argmax()))
            s.first_s = s.first_s or spent
            s.last_s = spent
    lc.llama_batch_free(batch)
    lc.llama_free(context)
    return sequences, spent


def best_of_layouts(model, requests, threads, copied=False):
    """One cache for all sequences or one for each: whichever is faster here."""
    runs = [run(model, requests, threads, True, copied)]
    if 1 < len(requests) <= 8 and not copied:
        runs.append(run(model, requests, threads, False))
    return min(runs, key=lambda r: r[1])


def figures(model, path, threads):
    requests = [json.loads(line) for line in open(path)]
    sequences, total = best_of_layouts(model, requests, threads)
    gaps = [(s.last_s - s.first_s) / (len(s.output) - 1) for s in sequences if len(s.output) > 1]
    result = {
        "total_s": total,
        "ttft_s_mean": sum(s.first_s for s in sequences) / len(sequences),
        "prefill_tokens_per_s": sum(len(s.prompt) for s in sequences) /
        max(s.first_s for s in sequences),
        "output_tokens_per_s": sum(len(s.output) for s in sequences) / total,
        "decode_tokens_per_s": len(gaps) / sum(gaps) if gaps else 0,
    }
    if len(requests) > 8:
        result["total_s_prefix_copied"] = best_of_layouts(model, requests, threads, True)[1]
    return result


def main():
    path, threads, *files = sys.argv[1:]
    lc.llama_backend_init()
    start = time.perf_counter()
    model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
    if not model:
        raise SystemExit(f"llama.cpp cannot load {path}")
    load_s = time.perf_counter() - start
    results = [figures(model, f, int(threads)) for f in files]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"load_s": load_s, "peak_memory_bytes": peak, "workloads": results}))


if __name__ == "__main__":
    main()
