#!/usr/bin/env python3
"""Holds every kernel to its budget of registers, without a device.

    budget.py BUDGETS.json FOLDER [--write] [--table]

FOLDER holds the objects that nvcc made, with OBJECT.ptxas beside each (see
keep_ptxas.py). A kernel that spills, takes more registers than its budget, has no
budget, reads memory by single bytes, or lacks an instruction in its PTX that it is meant
to use, is a failure, and so is a budget without a kernel. --write adds a budget of what
was measured for kernels that have none.

A budget's key is a pattern (*, ?) for a kernel's name with its template arguments,
without namespace octavo::gpu; the first that matches counts:

    "paged_decode<*>": {"registers": 128, "threads": 128, "shared_bytes": 65536,
                        "in_flight_bytes": 32768, "bound": "memory",
                        "instructions": ["mma.sync", "cp.async"]}

threads and shared_bytes are of a usual launch, the largest where they differ; the
occupancy follows from them. "spills": true allows a kernel to spill.

--table prints, for each budget and architecture, the most registers of its kernels, the
least occupancy, and the fraction of the roofline to expect of a launch that fills the
device. That is a bound from what a multiprocessor can hold, not a measurement:

  memory  By Little's law a multiprocessor must have bandwidth x latency / multiprocessors
          bytes of reads under way. Blocks that fit x in_flight_bytes (what one block has
          asked for and not yet got: its ring's stages but one, or 16 bytes a load and
          thread) by that, at most 1, times READ_PEAK of the bandwidth that is named on
          the box. Latency under load is taken as LATENCY_NS everywhere.
  tensor  mma.sync reaches MMA_PEAK of the tensor cores' rate where each of the four
          schedulers of a multiprocessor has two warps; less, in proportion, with fewer.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

Device = collections.namedtuple("Device", "warps blocks shared_bytes multiprocessors bandwidth")
# CUDA C++ Programming Guide, technical specifications per compute capability; and of an
# A100 80 GB SXM, an L40S and an H200 SXM the multiprocessors and bytes per second.
DEVICES = {
    "sm_80": Device(64, 32, 164 << 10, 108, 2.04e12),
    "sm_89": Device(48, 24, 100 << 10, 142, 0.864e12),
    "sm_90": Device(64, 32, 228 << 10, 132, 4.8e12),
}
REGISTERS = 65536  # of a multiprocessor
REGISTER_UNIT = 256  # they are given to a warp in multiples of this
SHARED_RESERVED = 1024  # of each block, for the system
LATENCY_NS = 600
READ_PEAK = 0.92
# Hopper reaches its full rate by wgmma alone.
MMA_PEAK = {"sm_80": 0.9, "sm_89": 0.9, "sm_90": 0.62}

Use = collections.namedtuple("Use", "kernel architecture registers spilled static_shared")


def read_log(text):
    """The resource use of each kernel that ptxas reports."""
    entry = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
    uses, current, spilled = [], None, 0
    for line in text.splitlines():
        if found := entry.search(line):
            current, spilled = found.groups(), 0
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(found[1]) + int(found[2])
        elif current and (found := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            uses.append(Use(*current, int(found[1]), spilled, int(shared[1]) if shared else 0))
            current = None
    return uses


def read_ptx(content):
    """The PTX of each kernel in an object, by its mangled name."""
    # Braces within do not help: a kernel's text ends where the next begins, or all of it.
    found = re.findall(rb"\.entry (\w+)\(([^\0]*?)(?=\.entry |\0)", content)
    return {name.decode(): body.decode(errors="replace") for name, body in found}


def demangle(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    return dict(zip(names, map(short_name, done.stdout.splitlines())))


def short_name(name):
    """A demangled kernel without its return type, parameters and our namespace."""
    depth, end = 0, len(name)
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0 and not name.startswith("(anonymous", i):
            end = i
            break
    name = name[:end].removeprefix("void ").replace("> >", ">>")
    return name.replace("octavo::gpu::", "").replace("(anonymous namespace)::", "")


def blocks_that_fit(architecture, registers, threads, shared_bytes):
    """Blocks that a multiprocessor holds at a time."""
    device = DEVICES[architecture]
    warps = (threads + 31) // 32
    per_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    return min(device.blocks, device.warps // warps, REGISTERS // per_warp // warps,
               device.shared_bytes // (shared_bytes + SHARED_RESERVED))


def expected_fraction(architecture, budget, blocks):
    """Of the roofline, as the head of this file explains; None where nothing is known."""
    device = DEVICES[architecture]
    if budget.get("bound") == "tensor":
        return MMA_PEAK[architecture] * min(1, blocks * budget["threads"] / 32 / 8)
    if "in_flight_bytes" not in budget:
        return None
    needed = device.bandwidth * LATENCY_NS * 1e-9 / device.multiprocessors
    return READ_PEAK * min(1, blocks * budget["in_flight_bytes"] / needed)


def pattern_of(name, budgets):
    return next((p for p in budgets if fnmatch.fnmatchcase(name, p)), None)


def check(use, budget, ptx):
    """What is wrong with one kernel, as a list of sentences."""
    problems = []
    if use.spilled and not budget.get("spills"):
        problems.append(f"spills {use.spilled} bytes")
    if use.registers > budget["registers"]:
        problems.append(f"takes {use.registers} registers, {budget['registers']} are allowed")
    for instruction in budget.get("instructions", []) if ptx else []:
        if instruction not in ptx:
            problems.append(f"has no {instruction} in its PTX")
    # What a compiler makes of a copy that it knows no alignment of.
    single_bytes = re.findall(r"\bld\.(?:global|shared)\S*\.[us]8\b", ptx)
    if single_bytes:
        problems.append(f"reads single bytes, by {len(single_bytes)} {single_bytes[0]}")
    return problems


def failures_of(uses, names, budgets, ptx):
    failures = []
    for use in uses:
        pattern = pattern_of(names[use.kernel], budgets)
        problems = ["has no budget: add one by --write"]
        if pattern is not None:
            problems = check(use, budgets[pattern], ptx.get(use.kernel, ""))
        failures += [f"{use.architecture} {names[use.kernel]}: {p}" for p in problems]
    matched = {pattern_of(name, budgets) for name in names.values()}
    return failures + [f"{p}: no kernel has this name" for p in budgets if p not in matched]


def proposals(uses, names, budgets):
    """Budgets for kernels without one: what their instances take at most."""
    new = {}
    for use in uses:
        name = names[use.kernel]
        if pattern_of(name, budgets):
            continue
        pattern = re.sub(r"<.*>$", "<*>", name)
        most = new.get(pattern, {}).get("registers", 0)
        new[pattern] = {"registers": max(most, use.registers), "threads": 128,
                        "shared_bytes": use.static_shared, "instructions": []}
    return new


def text_of(budgets):
    """As the file has them: a kernel a line."""
    lines = [f"  {json.dumps(pattern)}: {json.dumps(budgets[pattern])}" for pattern in budgets]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def print_table(uses, names, budgets):
    """A line for each budget and architecture."""
    print(f"{'kernels':50} {'of':>3} {'sm':5} {'registers':>9} {'spilled':>7} {'threads':>7} "
          f"{'shared':>7} {'blocks':>6} {'warps':>5} {'of roofline':>11}")
    for pattern, budget in budgets.items():
        for architecture in sorted(DEVICES):
            mine = [use for use in uses if use.architecture == architecture
                    and pattern_of(names[use.kernel], budgets) == pattern]
            if not mine:
                continue
            registers = max(use.registers for use in mine)
            threads = budget.get("threads", 128)
            shared = budget.get("shared_bytes", 0) + max(use.static_shared for use in mine)
            blocks = blocks_that_fit(architecture, registers, threads, shared)
            warps = blocks * ((threads + 31) // 32) / DEVICES[architecture].warps
            part = expected_fraction(architecture, budget, blocks)
            print(f"{pattern:50} {len(mine):3} {architecture:5} {registers:9} "
                  f"{max(use.spilled for use in mine):7} {threads:7} {shared:7} {blocks:6} "
                  f"{warps:5.0%} {'-' if part is None else format(part, '.0%'):>11}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("budgets", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    # A build that was stopped may leave what was said of an object that is gone.
    logs = [log for log in sorted(arguments.folder.rglob("*.ptxas"))
            if log.with_suffix("").is_file()]
    if not logs:
        sys.exit(f"budget.py: no *.ptxas below {arguments.folder}: build octavo_cuda first")
    budgets = json.loads(arguments.budgets.read_text())
    uses, ptx = [], {}
    for log in logs:
        uses += read_log(log.read_text())
        ptx |= read_ptx(log.with_suffix("").read_bytes())
    names = demangle(sorted({use.kernel for use in uses}))
    if arguments.write:
        budgets |= proposals(uses, names, budgets)
        arguments.budgets.write_text(text_of(budgets))
    if arguments.table:
        print_table(uses, names, budgets)
    failures = failures_of(uses, names, budgets, ptx)
    for failure in failures:
        print(f"budget.py: {failure}", file=sys.stderr)
    print(f"{len(names)} kernels, {len(failures)} problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
