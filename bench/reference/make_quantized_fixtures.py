#!/usr/bin/env python3
"""Writes model/quantized/fixtures/: quantized bytes and the values that other
implementations read from them.

    python3 bench/reference/make_quantized_fixtures.py

GGUF blocks are read by the `gguf` package, 8-bit floats by torch, AWQ by
AutoAWQ's own unpacking, GPTQ words are packed by AutoAWQ's exllama packer, and
compressed-tensors words by that package. The script makes a virtual environment
of its own (in $OCTAVO_CACHE or ~/.cache/octavo) and runs itself in it; only the
small files that it writes are part of the project.
"""

import glob
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "model" / "quantized" / "fixtures"
CACHE = pathlib.Path(os.environ.get("OCTAVO_CACHE") or pathlib.Path.home() / ".cache" / "octavo")
VENV = CACHE / "reference" / "quantized"
INSTALLED = ["numpy==2.4.6", "gguf==0.19.0", "torch>=2.6"]
# Single files of these are used; their dependencies are not needed.
OPENED = {
    "autoawq==0.2.9": "awq/utils/packing_utils.py",
    "compressed-tensors==0.20.1": "compressed_tensors/compressors/pack_quantized/helpers.py",
}


def prepare():
    """Makes the environment and runs this script in it."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *INSTALLED], check=True)
    for requirement in OPENED:
        folder = VENV / "opened" / requirement.split("==")[0]
        if not folder.exists():
            subprocess.run([str(python), "-m", "pip", "download", "-q", "--no-deps", "-d",
                            str(folder), requirement], check=True)
    sys.exit(subprocess.run([str(python), __file__, "--inside"], check=False).returncode)


def opened(requirement):
    """One Python file of a downloaded package, as a module."""
    wanted = OPENED[requirement]
    folder = VENV / "opened" / requirement.split("==")[0]
    archive = glob.glob(str(folder / "*"))[0]
    if archive.endswith(".whl"):
        text = zipfile.ZipFile(archive).read(wanted)
    else:
        with tarfile.open(archive) as tar:
            member = next(m for m in tar.getmembers() if m.name.endswith(wanted))
            text = tar.extractfile(member).read()
    path = VENV / "opened" / wanted.replace("/", "_")
    path.write_bytes(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def save(name, document):
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


def hex_of(array):
    return array.tobytes().hex()


# ---- GGUF blocks -----------------------------------------------------------

def ggml_blocks():
    import gguf
    import numpy as np

    rng = np.random.default_rng(20240607)
    # Where the half-precision scales sit in each block.
    halves = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
              "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "F16": [0], "BF16": []}
    cases = []
    for name, places in halves.items():
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = 32 if elements == 1 else (2 if elements == 32 else 1)
        raw = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
        for place in places:
            scales = rng.normal(0, 0.05, blocks).astype(np.float16)
            raw[:, place:place + 2] = scales.view(np.uint8).reshape(blocks, 2)
        if name == "BF16":
            raw = (rng.normal(0, 1, blocks).astype(np.float32).view(np.uint32) >> 16)
            raw = raw.astype(np.uint16).view(np.uint8).reshape(blocks, 2)
        values = gguf.quants.dequantize(raw, kind).astype(np.float32)
        cases.append({"type": name, "number": int(kind), "block_bytes": int(size),
                      "bytes": hex_of(raw), "values": hex_of(values)})
    # The package describes an older Q8_1, which no file holds.
    sizes = [{"type": kind.name, "number": int(kind), "elements": n, "bytes": size}
             for kind, (n, size) in gguf.GGML_QUANT_SIZES.items() if kind.name != "Q8_1"]
    save("ggml_blocks.json", {"cases": cases, "sizes": sizes})


def float8():
    import torch

    codes = torch.arange(256, dtype=torch.uint8)
    save("float8.json",
         {"e4m3": hex_of(codes.view(torch.float8_e4m3fn).float().numpy()),
          "e5m2": hex_of(codes.view(torch.float8_e5m2).float().numpy())})


# ---- quantized matrices ----------------------------------------------------

DTYPES = {"torch.int32": "I32", "torch.int64": "I64", "torch.int8": "I8", "torch.float16": "F16",
          "torch.bfloat16": "BF16", "torch.float32": "F32", "torch.float8_e4m3fn": "F8_E4M3"}


def tensor_of(tensor):
    import torch

    raw = tensor.contiguous().reshape(tensor.shape or (1,)).view(torch.uint8)
    return {"dtype": DTYPES[str(tensor.dtype)], "shape": list(tensor.shape),
            "bytes": hex_of(raw.numpy())}


def case(name, config, tensors, values):
    """`values` is [outputs, inputs]."""
    return {"name": name, "config": config, "shape": list(values.shape),
            "tensors": {key: tensor_of(t) for key, t in tensors.items()},
            "values": hex_of(values.float().contiguous().numpy())}


def awq_word_order(codes):
    """Codes [rows, 8c] to words, in AutoAWQ's order of columns."""
    import torch

    order = [0, 2, 4, 6, 1, 3, 5, 7]
    words = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
    for place, column in enumerate(order):
        words |= codes[:, column::8].to(torch.int64) << (4 * place)
    return words.to(torch.int32)


def awq_cases(awq, generator):
    import torch

    cases = []
    for k, n, group in [(64, 16, 32), (32, 8, -1)]:
        size = k if group < 0 else group
        codes = torch.randint(0, 16, (k, n), generator=generator)
        zeros = torch.randint(0, 16, (k // size, n), generator=generator)
        scales = torch.rand(k // size, n, generator=generator).half() * 0.1
        qweight, qzeros = awq_word_order(codes), awq_word_order(zeros)
        # In float32: half-precision products would round.
        values = awq.dequantize_gemm(qweight, qzeros, scales.float(), 4, size)
        config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True,
                  "version": "gemm"}
        cases.append(case(f"awq group {group}", config,
                          {"qweight": qweight, "qzeros": qzeros, "scales": scales}, values.T))
    return cases


def gptq_cases(awq, generator):
    import torch

    cases = []
    for k, n, bits, group, version, sym, desc_act in [
            (64, 8, 4, 32, 1, False, False), (64, 8, 4, 32, 2, True, True),
            (64, 4, 8, 32, 1, True, True), (32, 8, 4, -1, 2, False, False)]:
        size = k if group < 0 else group
        codes = torch.randint(0, 2 ** bits, (k, n), generator=generator).to(torch.int32)
        if sym:
            zeros = torch.full((k // size, n), 2 ** (bits - 1), dtype=torch.int32)
        else:
            zeros = torch.randint(1, 2 ** bits, (k // size, n), generator=generator).to(torch.int32)
        scales = (torch.rand(k // size, n, generator=generator) * 0.1).half()
        order = torch.randperm(k, generator=generator) if desc_act else torch.arange(k)
        g_idx = (order // size).to(torch.int32)
        stored = zeros - 1 if version == 1 else zeros
        qweight, qzeros = awq.pack_exllama(codes, stored, bits)
        values = scales.float()[g_idx.long()] * (codes - zeros[g_idx.long()]).float()
        config = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym,
                  "desc_act": desc_act}
        if version == 2:
            config["checkpoint_format"] = "gptq_v2"
        tensors = {"qweight": qweight, "qzeros": qzeros, "scales": scales, "g_idx": g_idx}
        cases.append(case(f"gptq v{version} {bits} bits group {group} desc_act {desc_act}", config,
                          tensors, values.T))
    return cases


def compressed(bits, strategy, group, symmetric, form, kind="int", actorder=None, block=None):
    weights = {"num_bits": bits, "type": kind, "symmetric": symmetric, "strategy": strategy,
               "group_size": group, "actorder": actorder, "block_structure": block,
               "dynamic": False}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def packed_cases(packer, generator):
    import torch

    cases = []
    for bits, strategy, group, symmetric, actorder in [
            (4, "group", 32, True, None), (4, "group", 32, False, "group"),
            (8, "channel", None, True, None)]:
        n, k = (12, 64) if bits == 4 else (4, 30)
        size = group or k
        low = -(2 ** (bits - 1))
        codes = torch.randint(low, -low, (n, k), generator=generator).to(torch.int8)
        zeros = torch.randint(low, -low, (n, k // size), generator=generator).to(torch.int8)
        if symmetric:
            zeros.zero_()
        scales = (torch.rand(n, k // size, generator=generator) * 0.1).to(torch.bfloat16)
        g_idx = (torch.randperm(k, generator=generator) // size).to(torch.int32)
        groups = g_idx.long() if actorder else torch.arange(k) // size
        values = (codes.float() - zeros.float()[:, groups]) * scales.float()[:, groups]
        tensors = {"weight_packed": packer.pack_to_int32(codes, bits), "weight_scale": scales,
                   "weight_shape": torch.tensor([n, k])}
        if not symmetric:
            tensors["weight_zero_point"] = packer.pack_to_int32(zeros, bits, packed_dim=0)
        if actorder:
            tensors["weight_g_idx"] = g_idx
        config = compressed(bits, strategy, group, symmetric, "pack-quantized", actorder=actorder)
        cases.append(case(f"packed {bits} bits {strategy} symmetric {symmetric}", config, tensors,
                          values))
    return cases


def byte_cases(generator):
    import torch

    def fp8(n, k):
        return torch.randn(n, k, generator=generator).to(torch.float8_e4m3fn)

    def scale(*shape):
        return torch.rand(*shape, generator=generator) * 0.1

    ints = torch.randint(-128, 128, (4, 32), generator=generator).to(torch.int8)
    channel = scale(4, 1)
    cases = [case("int8 channel", compressed(8, "channel", None, True, "int-quantized"),
                  {"weight": ints, "weight_scale": channel}, ints.float() * channel)]
    weight, one = fp8(4, 32), scale(1)
    cases.append(case("fp8 tensor",
                      compressed(8, "tensor", None, True, "float-quantized", "float"),
                      {"weight": weight, "weight_scale": one}, weight.float() * one))
    weight, channel = fp8(4, 32), scale(4, 1).to(torch.bfloat16)
    cases.append(case("fp8 channel",
                      compressed(8, "channel", None, True, "float-quantized", "float"),
                      {"weight": weight, "weight_scale": channel},
                      weight.float() * channel.float()))
    # Blocks of 4 x 16, the last ones partial in both directions.
    weight, blocks = fp8(6, 40), scale(2, 3)
    wide = blocks.repeat_interleave(4, 0)[:6].repeat_interleave(16, 1)[:, :40]
    config = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
              "weight_block_size": [4, 16]}
    cases.append(case("hf fp8 block", config,
                      {"weight": weight, "weight_scale_inv": blocks},
                      weight.float() * wide))
    weight, one = fp8(4, 16), scale(1).reshape(())
    cases.append(case("hf fp8 tensor", {"quant_method": "fp8", "activation_scheme": "static"},
                      {"weight": weight, "weight_scale": one}, weight.float() * one))
    return cases


def matrices():
    import torch

    awq = opened("autoawq==0.2.9")
    packer = opened("compressed-tensors==0.20.1")
    generator = torch.Generator().manual_seed(20240607)
    cases = (awq_cases(awq, generator) + gptq_cases(awq, generator)
             + packed_cases(packer, generator) + byte_cases(generator))
    save("matrices.json", {"cases": cases})


if __name__ == "__main__":
    if "--inside" not in sys.argv:
        prepare()
    ggml_blocks()
    float8()
    matrices()
