#!/usr/bin/env python3
"""Checks `octavo serve` with other people's clients.

  tests/clients/run.py [--octavo build/bin/octavo] [--only WORD]

Uses the openai package, Python's websockets and Prometheus' parser, node's ws and
a headless Chromium (by playwright-core), which are installed once into the cache
($OCTAVO_CACHE, else ~/.cache/octavo), and curl. Prints a table; exits with 1 where
anything failed, and with 77 where the clients cannot be had. What cannot be checked
here (no model in the cache, no node, no Chromium) is left out, and said.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("OCTAVO_CACHE") or os.path.expanduser("~/.cache/octavo"))
PYTHON = CACHE / "venv-clients/bin/python"
PACKAGES = ["openai==3.57.0", "websockets==17.4", "prometheus_client==0.26.0"]
NODE_PACKAGES = ["ws@8.23.0", "playwright-core@1.65.1"]
CANNOT_BE_HAD = 77
ATTEMPTS = 3


def prepare(mark, wanted, *commands):
    """Runs the commands unless the file `mark` says that they were run for `wanted`."""
    if mark.exists() and mark.read_text() == wanted:
        return
    mark.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        subprocess.run([str(part) for part in command], check=True, timeout=280,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    mark.write_text(wanted)


def prepare_clients():
    venv, node = PYTHON.parents[1], CACHE / "clients-node"
    prepare(venv / "installed", " ".join(PACKAGES), [sys.executable, "-m", "venv", venv],
            [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES])
    if shutil.which("npm"):
        prepare(node / "installed", " ".join(NODE_PACKAGES),
                ["npm", "install", "--prefix", node, "--no-fund", "--no-audit", *NODE_PACKAGES])


class Table:
    def __init__(self):
        self.failed = self.passed = self.left = 0

    def add(self, row, name, problem, seconds):
        from support import Left
        if problem is None:
            self.passed += 1
            print(f"  ok    {row:5} {name} ({seconds:.1f} s)", flush=True)
        elif isinstance(problem, Left):
            self.left += 1
            print(f"  left  {row:5} {name}: skipped: {problem}", flush=True)
        else:
            self.failed += 1
            print(f"  FAIL  {row:5} {name}\n      {problem}", flush=True)


def run_one(table, row, function, *arguments):
    """Runs a check. One that fails is tried again: on a busy machine a wait may be too short,
    but what is wrong stays wrong. The table says how often it took."""
    from support import Left, run_check, sentence
    name = sentence(function)
    for attempt in range(1, ATTEMPTS + 1):
        begun = time.monotonic()
        problem = run_check(function, *arguments)
        if problem is None or isinstance(problem, Left):
            break
        print(f"  again {row:5} {name} failed on attempt {attempt}: {problem}", flush=True)
    if attempt > 1:
        name += f" [attempt {attempt}]"
    table.add(row, name, problem, time.monotonic() - begun)


def run_group(table, flags, checks):
    """Checks that share a server, which must still stand, and end well, after them."""
    from support import Server, run_check

    def all_checks():
        with Server(*flags) as server:
            for row, function in checks:
                run_one(table, row, function, server)
            assert server.process.poll() is None, "the server has died"

    problem = run_check(all_checks)
    if problem:
        table.add("", "the server of " + " ".join(flags), problem, 0)


def run_all(only):
    import check_http
    import check_life
    import check_model
    import check_openai
    import check_page
    import check_sockets
    import support
    table = Table()
    groups, alone = {}, []
    for row, flags, function in support.CHECKS:
        if only and only not in support.sentence(function) and only != row:
            continue
        if flags:
            groups.setdefault(flags, []).append((row, function))
        else:
            alone.append((row, function))
    # Those that mostly wait run beside all others.
    waiting = (check_sockets.a_long_prefill_is_kept_open_by_pings_and_comments,
               check_page.the_page_shows_a_streamed_answer_its_times_and_no_error)
    aside = [threading.Thread(target=run_one, args=(table, row, function))
             for row, function in alone if function in waiting]
    for thread in aside:
        thread.start()
    for flags, checks in groups.items():
        run_group(table, flags, checks)
    try:
        for row, function in alone:
            if function not in waiting:
                run_one(table, row, function)
    finally:
        check_model.stop_model()
    for thread in aside:
        thread.join()
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", type=pathlib.Path, default=ROOT / "build/bin/octavo")
    parser.add_argument("--only", default="", help="checks with this in their sentence, or row")
    options = parser.parse_args()
    if pathlib.Path(sys.prefix) != PYTHON.parents[1]:
        try:
            prepare_clients()
        except (subprocess.SubprocessError, OSError) as problem:
            said = (getattr(problem, "stderr", None) or str(problem)).strip()
            print(f"skipped: the clients cannot be had: {said.splitlines()[-1]}")
            sys.exit(CANNOT_BE_HAD)
        os.execv(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]])
    sys.dont_write_bytecode = True  # the source tree stays as it is
    import support
    support.OPTIONS["octavo"] = str(options.octavo.resolve())
    begun = time.monotonic()
    table = run_all(options.only)
    print(f"{table.passed} passed, {table.failed} failed, {table.left} left out, in "
          f"{time.monotonic() - begun:.0f} s")
    sys.exit(1 if table.failed else 0)


if __name__ == "__main__":
    main()
