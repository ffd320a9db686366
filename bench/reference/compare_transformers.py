#!/usr/bin/env python3
"""Compares the CPU decoder with Hugging Face transformers in float32 on real models.

    build/bin/octavo model get smollm2 && build/bin/octavo model get gemma3-270m
    python3 bench/reference/compare_transformers.py
    python3 bench/reference/compare_transformers.py --perturb 3      # must fail

The reference reads the same GGUF file with the `gguf` package, makes its weights
floats, and runs them in transformers: neither the reading, nor the dequantizing, nor
the forward pass is ours. Texts are this project's own prose and code, docstrings of
Python's library, and a few sentences in several scripts. For each model it prints
the mean KL divergence (reference from ours) of a position, how often the likeliest
token is the same, both perplexities, and whether token ids are the same; the exit
code is 1 where a goal is missed. It makes a virtual environment of its own
(tiny_models.py says where); needs about 4 GB of memory.
"""

import argparse
import copy
import functools
import inspect
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import tiny_models

ROOT = tiny_models.ROOT
FOLDER = tiny_models.CACHE / "models"
MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
          "gemma3-270m": "gemma-3-270m-q4_k_m.gguf"}
GOALS = {"mean_kl_max": 0.01, "top1_min": 0.97, "perplexity_change_max": 0.01}

MIXED = """
Ein Zug fährt um 7:45 Uhr in Köln ab und kommt gegen Mittag in München an. Élodie préfère le
café crème à la terrasse, où l'été n'en finit pas. El niño corrió hacia el puente y gritó: ¡mira!
今天天气很好,我们去公园散步吧。东京は世界で最も人口の多い都市の一つです。서울의 봄은 꽃이 많이 핍니다.
Сегодня мы читаем книгу о звёздах и планетах. Η θάλασσα είναι ήρεμη σήμερα. مرحبا بالعالم، كيف حالك؟
नमस्ते दुनिया, आज मौसम अच्छा है। 👩‍🚀🚀 launch in 3… 2… 1… 🎉🎉 naïve café (e\u0301 and é), Z̷a̷l̷g̷o̷,
\t\ttabs,   runs   of    spaces,\r\nline ends, \u00a0no-break\u00a0spaces and\u3000wide ones.

| n | n² | n³ |
|--:|---:|---:|
| 2 |  4 |  8 |
| 12 | 144 | 1,728 |

{"name": "octavo", "sizes": [16, 32, 64], "ratio": 0.125, "tags": {"a": null, "b": true}}
SELECT name, COUNT(*) FROM visits WHERE day >= '2024-02-29' GROUP BY name HAVING COUNT(*) > 3;
2 + 2 = 4, 17 * 23 = 391, 1/3 ≈ 0.3333, e^{iπ} + 1 = 0, ∫₀¹ x² dx = ⅓
"""


@functools.cache
def texts():
    """Kind and text of each passage, read once."""
    docs = "\n\n".join(inspect.getdoc(__import__(name)) or "" for name in
                       ("argparse", "heapq", "decimal", "difflib", "doctest", "threading"))

    def of(*names):
        return "\n\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)

    return {"prose": of("ARCHITECTURE.md"), "readme": of("README.md"), "docstrings": docs,
            "c++": of("cpu/kv_cache.cpp", "cpu/thread_pool.cpp"), "mixed": MIXED}


# ---- the reference ---------------------------------------------------------

def metadata_of(reader):
    fields = {key: field.contents() for key, field in reader.fields.items()
              if not key.startswith("tokenizer.")}
    arch = fields["general.architecture"]
    return arch, {key.removeprefix(arch + "."): value for key, value in fields.items()}


def config_of(arch, meta, vocabulary, tied):
    import transformers

    common = {
        "vocab_size": vocabulary, "hidden_size": meta["embedding_length"],
        "intermediate_size": meta["feed_forward_length"],
        "num_hidden_layers": meta["block_count"],
        "num_attention_heads": meta["attention.head_count"],
        "num_key_value_heads": meta["attention.head_count_kv"],
        "head_dim": meta.get("attention.key_length",
                             meta["embedding_length"] // meta["attention.head_count"]),
        "max_position_embeddings": meta["context_length"],
        "rms_norm_eps": meta["attention.layer_norm_rms_epsilon"], "tie_word_embeddings": tied}
    theta = meta.get("rope.freq_base", 10_000.0)
    if arch == "llama":
        return transformers.LlamaConfig(**common,
                                        rope_parameters=tiny_models.rope("default", theta))
    if arch != "gemma3":
        sys.exit(f"architecture {arch} is not prepared here")
    # What the file leaves out is the family's: five sliding layers to each full one,
    # which turn by 10000, and scores over the root of the heads' size.
    kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention"
             for i in range(common["num_hidden_layers"])]
    return transformers.Gemma3TextConfig(
        **common, layer_types=kinds, sliding_window=meta["attention.sliding_window"],
        query_pre_attn_scalar=common["head_dim"],
        rope_parameters={"full_attention": tiny_models.rope("default", theta),
                         "sliding_attention": tiny_models.rope("default", 10_000.0)})


NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "post_ffw_norm": "post_feedforward_layernorm"}


def name_in_transformers(name, arch):
    top = {"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight",
           "output_norm.weight": "model.norm.weight"}
    if name in top:
        return top[name]
    _, layer, part, suffix = name.split(".")
    gemma = arch == "gemma3"
    names = NAMES | {"ffn_norm": "pre_feedforward_layernorm" if gemma
                     else "post_attention_layernorm",
                     "post_attention_norm": "post_attention_layernorm"}
    return f"model.layers.{layer}.{names[part]}.{suffix}"


def halves_apart(weight, heads):
    """Rows of q or k whose pairs lie side by side, as transformers has them."""
    n, k = weight.shape
    return weight.reshape(heads, n // heads // 2, 2, k).transpose(0, 2, 1, 3).reshape(n, k)


def reference_model(path):
    import gguf
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM

    reader = gguf.GGUFReader(path)
    arch, meta = metadata_of(reader)
    weights = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name = name_in_transformers(tensor.name, arch)
        if arch == "llama" and ".attn_q." in tensor.name:
            values = halves_apart(values, meta["attention.head_count"])
        if arch == "llama" and ".attn_k." in tensor.name:
            values = halves_apart(values, meta["attention.head_count_kv"])
        if arch == "gemma3" and "norm" in name:
            values = values - 1  # transformers adds it
        weights[name] = torch.from_numpy(np.array(values))
    vocabulary = weights["model.embed_tokens.weight"].shape[0]
    tied = "lm_head.weight" not in weights
    config = config_of(arch, meta, vocabulary, tied)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    missing, unknown = model.load_state_dict(weights, strict=False)
    if unknown or set(missing) - {"lm_head.weight"} or (missing and not tied):
        sys.exit(f"{path}: weights that do not fit: missing {missing}, unknown {unknown}")
    return model.float().eval()


def rounded_copy(model):
    """The reference with what meets weights rounded as our kernels round it: 8 bits, a
    scale for 32 inputs. It cannot follow ours value by value, since each rounding turns
    a tiny difference into a step; what it costs on the whole is comparable."""
    import torch

    def rounded(_, inputs):
        blocks = inputs[0].unflatten(-1, (-1, 32))
        scale = (blocks.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-30)
        return ((blocks / scale).round() * scale).flatten(-2)

    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda m, i: (rounded(m, i),))
    return model


def perturb(model, layer):
    """Makes one layer of the reference wrong by half."""
    import torch

    with torch.no_grad():
        model.model.layers[layer].mlp.down_proj.weight *= 1.5


# ---- the comparison --------------------------------------------------------

class Sums:
    """What is compared, over positions."""

    def __init__(self):
        self.positions = self.predicted = self.same = 0
        self.kl = self.kl_max = self.nll = self.nll_ours = 0.0

    def add(self, reference, ours, following):
        """Logits [rows, vocabulary] of both, and the tokens that follow (one fewer at a
        passage's end)."""
        p, q = (x.log_softmax(1) for x in (reference, ours))
        kl = (p.exp() * (p - q)).double().sum(1)
        self.positions += len(p)
        self.kl += kl.sum().item()
        self.kl_max = max(self.kl_max, kl.max().item())
        self.same += (p.argmax(1) == q.argmax(1)).sum().item()
        rows = range(len(following))
        self.predicted += len(following)
        self.nll -= p[rows, following].sum().item()
        self.nll_ours -= q[rows, following].sum().item()

    def figures(self):
        ours, reference = (math.exp(x / self.predicted) for x in (self.nll_ours, self.nll))
        return {"positions": self.positions, "mean_kl": self.kl / self.positions,
                "kl_max": self.kl_max, "top1": self.same / self.positions,
                "perplexity_reference": reference, "perplexity": ours,
                "perplexity_ratio": ours / reference}


def run_program(program, arguments, **more):
    command = [str(program), *(str(a) for a in arguments)]
    return subprocess.run(command, check=True, capture_output=True, **more).stdout


def tokenizer_of(path):
    """transformers' tokenizer for a GGUF file."""
    import gguf
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    kind = gguf.GGUFReader(path).fields.get("tokenizer.ggml.pre")
    if kind and kind.contents() == "smollm":
        # transformers does not read this key. As in the model's own tokenizer.json:
        words.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return words


def tokens_of(options, path, scratch):
    """Our token ids of each text, and whether transformers' tokenizer gives the same.

    Only what is scored is compared. Of Gemma's vocabulary in GGUF transformers makes a
    tokenizer that cuts runs of over 31 spaces evenly (40 as 16 + 24). Gemma's own
    tokenizer.json, with which tokenizer_fixtures.py compares, lists runs of 2 to 31 as
    added tokens, which go first (31 + 9), as ours do: a difference there is not ours."""
    names = []
    for kind, text in texts().items():
        names += ["--text", scratch / f"{kind}.txt"]
        names[-1].write_bytes(text.encode())
    ours = json.loads(run_program(options.program, [path, *names, "--print-tokens"]))
    words = tokenizer_of(path)
    same = True
    for kind, text, ids in zip(texts(), texts().values(), ours):
        theirs, ids = words(text)["input_ids"][:options.length], ids[:options.length]
        if theirs != ids:
            same = False
            at = next((i for i, (a, b) in enumerate(zip(theirs, ids)) if a != b),
                      min(len(theirs), len(ids)))
            print(f"  {path.name}, {kind}: tokens differ from place {at}: transformers "
                  f"{words.convert_ids_to_tokens(theirs[at:at + 4])}, ours "
                  f"{words.convert_ids_to_tokens(ids[at:at + 4])}")
    return [ids[:options.length] for ids in ours], same


def compare(options, path, scratch):
    import numpy as np
    import torch

    passages, same_tokens = tokens_of(options, path, scratch)
    (scratch / "tokens.json").write_text(json.dumps(passages))
    model = reference_model(path)
    rounding = rounded_copy(model) if options.rounding else None
    if options.perturb is not None:
        perturb(model, options.perturb)
    command = [str(options.program), str(path), "--tokens", str(scratch / "tokens.json"),
               "--logits", "-", "--chunk", str(options.chunk)]
    by_kind = {"rounding alone": Sums()} if options.rounding else {}
    total = Sums()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        for kind, ids in zip(texts(), passages):
            with torch.no_grad():
                reference = model(torch.tensor([ids])).logits[0]
                if rounding is not None:
                    by_kind["rounding alone"].add(
                        reference, rounding(torch.tensor([ids])).logits[0], ids[1:])
            by_kind[kind] = Sums()
            for at in range(0, len(ids), 32):
                rows = min(32, len(ids) - at)
                raw = program.stdout.read(4 * rows * reference.shape[1])
                ours = torch.from_numpy(np.frombuffer(raw, np.float32).copy()).reshape(rows, -1)
                for sums in (by_kind[kind], total):
                    sums.add(reference[at:at + rows], ours, ids[at + 1:at + rows + 1])
    if program.returncode != 0:
        sys.exit(f"{options.program} ended with {program.returncode}")
    return {"file": path.name, "same_tokens": same_tokens, **total.figures(),
            "by_kind": {kind: sums.figures() for kind, sums in by_kind.items()}}


def missed_goals(result):
    missed = []
    if result["mean_kl"] > GOALS["mean_kl_max"]:
        missed.append(f"mean KL {result['mean_kl']:.4f} is above {GOALS['mean_kl_max']}")
    if result["top1"] < GOALS["top1_min"]:
        missed.append(f"top-1 agreement {result['top1']:.2%} is below {GOALS['top1_min']:.0%}")
    if abs(result["perplexity_ratio"] - 1) > GOALS["perplexity_change_max"]:
        missed.append(f"perplexity differs by {result['perplexity_ratio'] - 1:+.2%}; "
                      f"{GOALS['perplexity_change_max']:.0%} is allowed")
    if not result["same_tokens"]:
        missed.append("token ids differ")
    return missed


def print_table(results):
    print(f"{'model':34} {'positions':>9} {'mean KL':>9} {'max KL':>8} {'top-1':>7} "
          f"{'ppl ref':>9} {'ppl ours':>9} {'ratio':>8} tokens")
    for result in results:
        parts = {result["file"]: result} | {"  " + k: v for k, v in result["by_kind"].items()}
        for name, f in parts.items():
            same = "" if name.startswith(" ") else " same" if f["same_tokens"] else " DIFFER"
            print(f"{name:34} {f['positions']:9} {f['mean_kl']:9.6f} {f['kl_max']:8.4f} "
                  f"{f['top1']:7.2%} {f['perplexity_reference']:9.3f} {f['perplexity']:9.3f} "
                  f"{f['perplexity_ratio']:8.5f}{same}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), choices=list(MODELS),
                        metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--python", help="an environment that has what is needed")
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build" / "bin" / "bench_score_text")
    parser.add_argument("--length", type=int, default=640, help="tokens of a passage, at most")
    parser.add_argument("--chunk", type=int, default=48, help="tokens of one forward pass of ours")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here")
    parser.add_argument("--perturb", type=int, metavar="LAYER",
                        help="make the MLP of a layer of the reference wrong by half")
    parser.add_argument("--rounding", action="store_true",
                        help="also compare the reference with itself where activations are "
                             "rounded to 8 bits as our kernels do")
    return parser.parse_args()


def main():
    options = parse()
    if os.environ.get("OCTAVO_INSIDE") != "1":
        if options.python:
            os.environ["OCTAVO_PYTHON"] = options.python
        os.environ["OCTAVO_INSIDE"] = "1"
        python = tiny_models.python()
        os.execv(python, [python, __file__, *sys.argv[1:]])
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.models:
            path = FOLDER / MODELS[name]
            if not path.exists():
                sys.exit(f"{path} is missing: build/bin/octavo model get {name}")
            results.append(compare(options, path, pathlib.Path(scratch)))
    print_table(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    failures = [f"{r['file']}: {goal}" for r in results for goal in missed_goals(r)]
    for failure in failures:
        print("missed:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
