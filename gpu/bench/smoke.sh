#!/bin/sh
# smoke.sh GPU_BENCH FOLDER: runs every bench over tiny shapes and reports each kernel.
set -eu
mkdir -p "$2"
"$1" --smoke > "$2/bench.json"
python3 "$(dirname "$0")/report.py" "$2" | tee "$2/report.txt"
for bench in "$(dirname "$0")"/../kernels/*/*.bench.cpp; do
  kernel=$(basename "$bench" .bench.cpp | sed 's/^paged_//')
  grep -q "$kernel" "$2/report.txt" || {
    echo "$kernel is not in the report" >&2
    exit 1
  }
done
