"""Tiny models with quantized weights, for tiny_models.py: each form as its published
description has it, and the floats that its formula gives.

AWQ: the packing of AutoAWQ's GEMM kernel. GPTQ: that of AutoGPTQ and GPTQModel, zero
points stored less one in the first version. compressed-tensors: pack-quantized,
int-quantized and float-quantized. FP8: as transformers' fine-grained FP8 writes it.
"""

import json

import tiny_models

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SHAPE = {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1,
         "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
         "tie_word_embeddings": True}


# ---- codes -----------------------------------------------------------------

class Codes:
    """A weight [outputs, inputs] as unsigned codes, with a scale and a zero point for
    each output and group of inputs."""

    def __init__(self, weight, bits, group, symmetric, scale_type, order=None):
        import torch

        n, k = weight.shape
        size = k if group < 0 else group
        position = torch.arange(k) if order is None else order
        self.bits, self.groups = bits, (position // size).to(torch.int32)
        count, top = k // size, 2 ** bits - 1
        members = torch.stack([weight[:, self.groups == g] for g in range(count)], dim=1)
        if symmetric:
            scale = members.abs().amax(2) / (top // 2)
            self.zeros = torch.full((n, count), 2 ** (bits - 1))
        else:
            low, high = members.amin(2).clamp(max=0), members.amax(2).clamp(min=0)
            scale = (high - low) / top
            # At least 1, so that the first version can store it less one.
            self.zeros = (-low / scale).round().clamp(1, top).long()
        self.scales = scale.to(scale_type)
        wide = self.groups.long()
        codes = (weight / self.scales.float()[:, wide]).round().long() + self.zeros[:, wide]
        self.codes = codes.clamp(0, top)

    def values(self, zero_error=0):
        wide = self.groups.long()
        zeros = self.zeros[:, wide] + zero_error
        return self.scales.double()[:, wide] * (self.codes - zeros).double()


def words(codes, bits, order=None):
    """Codes [rows, n] packed along n into 32-bit words, the first lowest; `order` says
    which code of a word's each place holds."""
    import torch

    per_word = 32 // bits
    filled = torch.nn.functional.pad(codes, (0, -codes.shape[1] % per_word))
    packed = torch.zeros(codes.shape[0], filled.shape[1] // per_word, dtype=torch.int64)
    for place, which in enumerate(order or range(per_word)):
        packed |= filled[:, which::per_word] << (bits * place)
    return packed.to(torch.uint32).view(torch.int32)


# ---- forms: each returns the tensors of one weight, its floats, and what they are
# to a reader who is off by one

def awq(group, kept=None):
    import torch

    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def store(weight, _):
        c = Codes(weight, 4, group, False, torch.float16)
        return {"qweight": words(c.codes.T, 4, order), "qzeros": words(c.zeros.T, 4, order),
                "scales": c.scales.T.contiguous()}, c.values(), c.values(1)

    return store, {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True,
                   "version": "gemm", "modules_to_not_convert": kept}


def gptq(bits, group, version, symmetric, act_order=False):
    import torch

    def store(weight, generator):
        k = weight.shape[1]
        order = torch.randperm(k, generator=generator) if act_order else None
        c = Codes(weight, bits, group, symmetric, torch.float16, order)
        zeros = c.zeros - 1 if version == 1 else c.zeros
        return {"qweight": words(c.codes, bits).T.contiguous(),
                "qzeros": words(zeros.T, bits), "scales": c.scales.T.contiguous(),
                "g_idx": c.groups}, c.values(), c.values(1)

    return store, {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric,
                   "desc_act": act_order,
                   "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}


def compressed_config(form, kind, bits, strategy, group=None, symmetric=True, actorder=None):
    weights = {"num_bits": bits, "type": kind, "symmetric": symmetric, "strategy": strategy,
               "group_size": group, "actorder": actorder, "dynamic": False}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                          "input_activations": None,
                                          "output_activations": None}}}


def compressed_int4(symmetric, act_order=False):
    import torch

    def store(weight, generator):
        n, k = weight.shape
        order = torch.randperm(k, generator=generator) if act_order else None
        c = Codes(weight, 4, 32, symmetric, torch.bfloat16, order)
        tensors = {"weight_packed": words(c.codes, 4), "weight_scale": c.scales,
                   "weight_shape": torch.tensor([n, k])}
        if not symmetric:
            tensors["weight_zero_point"] = words(c.zeros.T, 4).T.contiguous()
        if act_order:
            tensors["weight_g_idx"] = c.groups
        return tensors, c.values(), c.values(1)

    return store, compressed_config("pack-quantized", "int", 4, "group", 32, symmetric,
                                    "group" if act_order else None)


def compressed_int8():
    import torch

    def store(weight, _):
        c = Codes(weight, 8, -1, True, torch.bfloat16)
        return {"weight": (c.codes - 128).to(torch.int8),
                "weight_scale": c.scales}, c.values(), c.values(1)

    return store, compressed_config("int-quantized", "int", 8, "channel")


def small_floats(weight, scale):
    import torch

    stored = (weight / scale).to(torch.float8_e4m3fn)
    floats = stored.double() * scale.double()
    # What a reader gets that takes the exponent's bias for 8.
    return stored, floats, floats / 2


def compressed_fp8():
    import torch

    def store(weight, _):
        scale = (weight.abs().amax(1, keepdim=True) / 448).to(torch.bfloat16)
        stored, *values = small_floats(weight, scale.float())
        return {"weight": stored, "weight_scale": scale}, *values

    return store, compressed_config("float-quantized", "float", 8, "channel")


def fp8_tensor():
    import torch

    def store(weight, _):
        scale = weight.abs().max() / 448
        stored, *values = small_floats(weight, scale)
        return {"weight": stored, "weight_scale": scale,
                "input_scale": torch.tensor(0.02)}, *values

    return store, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "static"}


def fp8_block():
    import torch

    def store(weight, _):
        n, k = weight.shape
        down, across = -(-n // 128), -(-k // 128)
        whole = torch.zeros(down * 128, across * 128)
        whole[:n, :k] = weight.abs()
        scale = whole.reshape(down, 128, across, 128).amax((1, 3)) / 448
        wide = scale.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        stored, *values = small_floats(weight, wide)
        return {"weight": stored, "weight_scale_inv": scale}, *values

    return store, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                   "weight_block_size": [128, 128]}


def cases():
    """Name, form, and the fields in which the shape differs."""
    wide = {"hidden_size": 32, "intermediate_size": 256}
    return [
        ("awq_group32", awq(32), {}),
        ("awq_group128", awq(128, ["self_attn", "gate_proj", "up_proj"]), wide),
        ("awq_whole", awq(-1), {}),
        ("gptq4_v1_group32", gptq(4, 32, 1, False), {}),
        ("gptq4_v2_group64", gptq(4, 64, 2, True), {"intermediate_size": 128,
                                                    "num_attention_heads": 4}),
        ("gptq4_v1_act_order", gptq(4, 32, 1, True, act_order=True), {}),
        ("gptq8_v1_group32", gptq(8, 32, 1, False), {}),
        ("gptq4_v2_whole", gptq(4, -1, 2, False), {}),
        ("compressed_int4", compressed_int4(True), {}),
        ("compressed_int4_act_order", compressed_int4(False, act_order=True), {}),
        ("compressed_int8", compressed_int8(), {}),
        ("compressed_fp8", compressed_fp8(), {}),
        ("fp8_tensor", fp8_tensor(), {}),
        ("fp8_block", fp8_block(), {"hidden_size": 32, "intermediate_size": 160}),
    ]


def write_one(name, form, fields, seed):
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, LlamaConfig

    store, quantization = form
    config = LlamaConfig(**{**tiny_models.BASE, **SHAPE, **fields})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    tiny_models.fill(model, seed, gain=0.7)
    older = quantization["quant_method"] in ("awq", "gptq")
    kept_type = torch.float16 if older else torch.bfloat16
    generator = torch.Generator().manual_seed(seed)
    tensors, floats, wrong = {}, {}, {}
    for key, weight in model.state_dict().items():
        if key == "lm_head.weight":
            continue
        module = key.removesuffix(".weight")
        kept = quantization.get("modules_to_not_convert") or []
        if module.endswith(LINEAR) and not any(part in module for part in kept):
            parts, floats[key], wrong[key] = store(weight, generator)
            tensors |= {f"{module}.{part}": t.contiguous() for part, t in parts.items()}
        else:
            tensors[key] = weight.to(kept_type)
            floats[key] = tensors[key].double()
    folder = tiny_models.fresh(name)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    described = config.to_diff_dict() | {"architectures": ["LlamaForCausalLM"],
                                         "quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(described) + "\n")
    tiny_models.trim(folder)
    model.double().load_state_dict(floats, strict=False)
    prompt = tiny_models.prompt_of(seed)
    expected = tiny_models.logits_of(model, prompt)
    tiny_models.save_expected(folder, prompt, expected)
    model.load_state_dict(floats | wrong, strict=False)
    tiny_models.check_moved(name, "off by one", tiny_models.logits_of(model, prompt), expected,
                            tiny_models.MISREAD_MIN)


def write():
    for seed, (name, form, fields) in enumerate(cases(), 200):
        write_one(name, form, fields, seed)
