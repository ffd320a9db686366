#!/usr/bin/env python3
"""Runs a compiler and keeps what ptxas says of the kernels in OBJECT.ptxas.

    keep_ptxas.py COMPILER... -o OBJECT...

The last line kept is the processor time that it took. Everything else that the
compiler says is passed on, and so is its exit code.
"""
import resource
import subprocess
import sys


def main(command):
    done = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    kept, said = [], []
    for line in done.stdout.splitlines(keepends=True):
        about_kernel = line.startswith("ptxas info") or "bytes stack frame" in line
        (kept if about_kernel else said).append(line)
    sys.stderr.writelines(said)
    if done.returncode == 0 and "-o" in command:
        took = resource.getrusage(resource.RUSAGE_CHILDREN)
        kept.append(f"compiled in {took.ru_utime + took.ru_stime:.1f} s\n")
        with open(command[command.index("-o") + 1] + ".ptxas", "w") as out:
            out.writelines(kept)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main([argument for argument in sys.argv[1:] if argument]))
