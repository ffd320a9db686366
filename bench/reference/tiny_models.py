#!/usr/bin/env python3
"""Writes cpu/fixtures/models/: tiny random models as Hugging Face directories, one
for each architecture and for each form of quantized weights, and the logits that
transformers computes for a prompt.

    python3 bench/reference/tiny_models.py

Models are written by transformers' own save_pretrained. Logits are computed in
float64 with the weights as they are stored: rounded to 16 bits, or quantized and
made floats again by their formula (tiny_quantized.py). transformers keeps norms,
softmax and angles in float32 even then. Every feature is shown to matter: with it
turned off, logits must differ by far more than the test's tolerance, or the script
fails. It makes a virtual environment of its own ($OCTAVO_CACHE or ~/.cache/octavo);
OCTAVO_PYTHON names another Python that has torch, transformers and safetensors.
"""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "cpu" / "fixtures" / "models"
CACHE = pathlib.Path(os.environ.get("OCTAVO_CACHE") or pathlib.Path.home() / ".cache" / "octavo")
VENV = CACHE / "reference" / "transformers"
INSTALLED = ["torch>=2.6", "transformers>=5.0", "safetensors", "gguf", "numpy"]

VOCABULARY = 32
PROMPT = 24
# What moves logits by less than this, of their length, would not be seen: a feature
# left out, or a weight misread (the smallest mistake is a step of an 8-bit code).
MOVED_MIN, MISREAD_MIN = 0.05, 0.015


def python():
    """A Python with what the references need; made where there is none."""
    if os.environ.get("OCTAVO_PYTHON"):
        return os.environ["OCTAVO_PYTHON"]
    inside = VENV / "bin" / "python"
    if not inside.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(inside), "-m", "pip", "install", "-q", *INSTALLED], check=True)
    return str(inside)


# ---- architectures ---------------------------------------------------------

BASE = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "max_position_embeddings": 64, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}


def rope(kind, theta=10_000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def no_rope_scaling(config):
    config.rope_parameters = rope("default", config.rope_parameters["rope_theta"])


def no_window(config):
    config.sliding_window = 1_000
    if getattr(config, "layer_types", None):
        config.layer_types = ["full_attention"] * config.num_hidden_layers


def one_rope(config):
    """Sliding layers turn as the others do."""
    config.rope_parameters["sliding_attention"] = config.rope_parameters["full_attention"]


def unscaled_full_layers(config):
    config.rope_parameters["full_attention"] = rope("default", 50.0)


def without(name):
    def change(config):
        setattr(config, name, None)
    change.__name__ = f"no_{name}"
    return change


def scale_of_head_dim(config):
    config.query_pre_attn_scalar = config.head_dim


def architectures():
    """Name, config class, its fields, dtype, and what to turn off to see it matter."""
    llama3 = rope("llama3", 5_000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=32)
    gemma_rope = {"full_attention": rope("linear", 50.0, factor=4.0),
                  "sliding_attention": rope("default", 10.0)}
    gemma = {"num_hidden_layers": 3, "sliding_window": 6, "query_pre_attn_scalar": 3,
             "tie_word_embeddings": True, "pad_token_id": 0}
    one = {"num_hidden_layers": 1}
    return [
        ("llama2", "LlamaConfig", {**one, "num_key_value_heads": 4}, "float16", []),
        ("llama3", "LlamaConfig",
         {**one, "rope_parameters": llama3, "tie_word_embeddings": True}, "bfloat16",
         [no_rope_scaling]),
        ("llama_linear", "LlamaConfig",
         {"rope_parameters": rope("linear", factor=4.0), "attention_bias": True,
          "mlp_bias": True}, "bfloat16", [no_rope_scaling]),
        ("llama_yarn", "LlamaConfig",
         {**one,
          "rope_parameters": rope("yarn", 100.0, factor=4.0,
                                  original_max_position_embeddings=16)},
         "bfloat16", [no_rope_scaling]),
        ("mistral", "MistralConfig", {**one, "sliding_window": 6}, "bfloat16",
         [no_window]),
        ("qwen2", "Qwen2Config",
         {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1,
          "tie_word_embeddings": True}, "bfloat16", [no_window]),
        ("qwen3", "Qwen3Config", one, "bfloat16", []),
        ("gemma2", "Gemma2Config",
         {**gemma, "num_hidden_layers": 2, "attn_logit_softcapping": 2.0,
          "final_logit_softcapping": 3.0},
         "bfloat16", [no_window, without("attn_logit_softcapping"),
                      without("final_logit_softcapping"), scale_of_head_dim]),
        ("gemma3", "Gemma3TextConfig",
         {**gemma, "rope_parameters": gemma_rope,
          "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
         "bfloat16", [no_window, one_rope, unscaled_full_layers, scale_of_head_dim]),
    ]


def fill(model, seed, gain=1.5):
    """Random weights of a size at which attention looks at some tokens and not at
    others. Norms and biases too, which a fresh model leaves at one and zero."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    gemma = "Gemma" in type(model).__name__
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name:
                weight.copy_((0.0 if gemma else 1.0) + 0.3 * noise)
            elif name.endswith("bias"):
                weight.copy_(0.5 * noise)
            elif "embed" in name or "lm_head" in name:
                weight.copy_(0.5 * noise)
            else:
                weight.copy_(noise * (gain / weight.shape[1] ** 0.5))


def logits_of(model, prompt):
    import torch

    with torch.no_grad():
        return model.double().eval()(torch.tensor([prompt])).logits[0]


def distance(a, b):
    """Of all positions the largest length of a difference, as a share."""
    return ((a - b).norm(dim=1) / b.norm(dim=1)).max().item()


def check_moved(name, change, logits, expected, least=MOVED_MIN):
    moved = distance(logits, expected)
    print(f"  {name}: {change} moves logits by {moved:.0%}")
    if moved < least:
        sys.exit(f"{name}: {change} moves logits by {moved:.2%} only")


def check_that_it_matters(name, config, weights, expected, prompt, changes):
    from transformers import AutoModelForCausalLM

    for change in changes:
        other = copy.deepcopy(config)
        change(other)
        model = AutoModelForCausalLM.from_config(other, attn_implementation="eager")
        model.load_state_dict(weights, strict=False)
        check_moved(name, change.__name__, logits_of(model, prompt), expected)


def prompt_of(seed):
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (PROMPT,), generator=generator).tolist()


def save_expected(folder, prompt, logits):
    import torch
    from safetensors.torch import save_file

    save_file({"tokens": torch.tensor(prompt, dtype=torch.int32),
               "logits": logits.float().contiguous()}, folder / "expected.safetensors")


def fresh(name):
    folder = OUT / name
    folder.mkdir(parents=True)
    return folder


def trim(folder):
    """Leaves only the files of a checkpoint, and spells Llama 3.1's configuration as
    its makers do."""
    (folder / "generation_config.json").unlink(missing_ok=True)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.pop("transformers_version", None)
    if folder.name == "llama3":
        old = config.pop("rope_parameters")
        config["rope_theta"] = old.pop("rope_theta")
        config["rope_scaling"] = old
        config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config, indent=1) + "\n")


def write_architectures():
    import torch
    import transformers

    for seed, (name, kind, fields, dtype, changes) in enumerate(architectures(), 100):
        config = getattr(transformers, kind)(**{**BASE, **fields})
        model = transformers.AutoModelForCausalLM.from_config(config,
                                                              attn_implementation="eager")
        fill(model, seed)
        model.to(getattr(torch, dtype))
        folder = fresh(name)
        sharded = {"max_shard_size": "14KB"} if name == "llama_linear" else {}
        model.save_pretrained(folder, **sharded)
        trim(folder)
        prompt = prompt_of(seed)
        weights = {k: v.double() for k, v in model.state_dict().items()}
        expected = logits_of(model, prompt)
        save_expected(folder, prompt, expected)
        check_that_it_matters(name, config, weights, expected, prompt, changes)


def main():
    if "--inside" not in sys.argv:
        done = subprocess.run([python(), __file__, "--inside"], check=False)
        sys.exit(done.returncode)
    import tiny_quantized
    import torch

    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    write_architectures()
    tiny_quantized.write()
    files = [file for file in OUT.rglob("*") if file.is_file()]
    print(f"{OUT.relative_to(ROOT)}: {len(files)} files, "
          f"{sum(file.stat().st_size for file in files) // 1024} KiB")


if __name__ == "__main__":
    main()
