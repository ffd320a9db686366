#!/usr/bin/env python3
"""Makes a tiny model that programs can run from a fixture that has no tokenizer.

    tiny_model.py FIXTURE FOLDER

The tokenizer's tokens are bytes, '!' and on first, as many as the vocabulary holds.
"""
import json
import pathlib
import shutil
import sys


def byte_letters():
    """The letters that stand for bytes in byte-level tokenizers (GPT-2's), from '!' on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]


def tokenizer(vocab_size):
    letters = byte_letters() + [f"token{i}" for i in range(256, vocab_size)]
    shape = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": shape,
        "post_processor": None,
        "decoder": shape,
        "model": {"type": "BPE", "vocab": {n: i for i, n in enumerate(letters[:vocab_size])},
                  "merges": []},
    }


def main(fixture, folder):
    shutil.copytree(fixture, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(config["vocab_size"])))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
