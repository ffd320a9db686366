#!/usr/bin/env bash
# Checks and measures the CUDA executor on a machine with a GPU; ./gpu/check.sh --help.
set -euo pipefail

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)

help() {
  cat << 'TEXT'
Builds for this machine's GPU, then runs the tests natively, the benches, and models
end to end. Ten minutes at most.

  gpu/check.sh [--model MODEL] [--out FOLDER] [--build FOLDER]

  --model MODEL    a real model as well: a .gguf file or Hugging Face directory
                   (OCTAVO_MODEL in the environment does the same)
  --out FOLDER     results: report.json, and each part's own output (build-check/results)
  --build FOLDER   where to build (build-check)

Needs nvcc, a driver and what ./dev build needs. Where they are: cuBLASLt, NCCL; PyTorch
for python3 gives times to compare with, as do ../shared/profiles/aiconfigurator.

Exit code: 0 all is well, 1 something failed, 2 wrong usage, 3 no GPU or no nvcc here.
TEXT
}

say() { printf '%s\n' "$*" >&2; }

die() { # message, exit code
  say "gpu/check.sh: $1"
  exit "$2"
}

build=$root/build-check out='' model=${OCTAVO_MODEL:-}
while (($# > 0)); do
  case $1 in
    --help | -h)
      help
      exit 0
      ;;
    --model | --out | --build)
      (($# > 1)) || die "$1 needs a value; --help says which" 2
      declare "${1#--}=$(realpath -m -- "$2")"
      shift 2
      ;;
    *) die "'$1' is unknown; --help lists what is not" 2 ;;
  esac
done
out=${out:-$build/results}

command -v nvidia-smi > /dev/null ||
  die "this machine has no NVIDIA driver (no nvidia-smi): nothing was checked" 3
gpus=$(nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader) ||
  die "nvidia-smi finds no GPU: nothing was checked" 3
command -v nvcc > /dev/null || die "nvcc is not on PATH: nothing was checked" 3
say "$gpus"

mkdir -p -- "$out"
deadline=$((SECONDS + 600))
failed=()

# Runs a command with what is left of the time, at most `seconds`; its output goes to
# FOLDER/name.txt, or with name.json, standard output alone.
part() { # seconds, name, command...
  local limit=$1 name=$2 left=$((deadline - SECONDS)) begin=$SECONDS status=0
  shift 2
  ((limit <= left)) || limit=$left
  ((limit > 0)) || {
    say "  $name: not run, the ten minutes are over"
    failed+=("$name (not run)")
    return 1
  }
  if [[ $name == *.json ]]; then
    timeout "$limit" "$@" > "$out/$name" 2> "$out/$name.errors.txt" || status=$?
  else
    timeout "$limit" "$@" > "$out/$name.txt" 2>&1 || status=$?
  fi
  ((status == 0)) && say "  $name: well, $((SECONDS - begin)) s" && return 0
  ((status == 124)) && say "  $name: not done after $limit s" ||
    say "  $name: failed with exit code $status; see $out"
  failed+=("$name")
  return 1
}

builds() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u | tr -d .)
  cmake --preset cuda -S "$root" -B "$build" \
    -DCMAKE_CUDA_ARCHITECTURES="$(sed 's/$/-real/' <<< "$capability" | paste -sd ';')" &&
    cmake --build "$build" -j "$(nproc)" --target octavo octavo_cuda gpu_native_tests gpu_bench
}

sees_devices() {
  "$build/bin/octavo" devices > "$out/devices.list"
  cat -- "$out/devices.list"
  grep -q '^cuda:0 ' "$out/devices.list"
}

# Greedy tokens of a tiny model are the CPU's.
same_text() {
  local text=() device
  python3 "$root/gpu/bench/tiny_model.py" "$root/cpu/fixtures/models/llama3" "$out/tiny"
  for device in cpu cuda; do
    text+=("$("$build/bin/octavo" generate "$out/tiny" --prompt '1+2=3' --temperature 0 \
      --max-tokens 24 --ignore-eos --quiet --device "$device")")
    echo "$device: ${text[-1]}"
  done
  [[ ${text[0]} == "${text[1]}" ]]
}

cd -- "$root"
export -f builds sees_devices same_text
export root build out
# Ranks' kernels wait for each other, in tests on one device: one that is loaded only when it
# is launched would wait for those that wait for it.
loaded=(env CUDA_MODULE_LOADING=EAGER)
say "building for this GPU into $build"
if part 420 build bash -euo pipefail -c builds; then
  part 20 devices bash -euo pipefail -c sees_devices || true
  part 60 tiny-model bash -euo pipefail -c same_text || true
  part 180 tests "${loaded[@]}" "$build/bin/gpu_native_tests" || true
  if part 150 bench.json "${loaded[@]}" "$build/bin/gpu_bench"; then
    if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
      part 90 torch.json bash -c 'python3 "$root/gpu/bench/torch_times.py" < "$out/bench.json"' ||
        rm -f -- "$out/torch.json"
    else
      say "  torch.json: python3 has no PyTorch with CUDA, so there is nothing to compare with"
    fi
    peers=$root/../shared/profiles/aiconfigurator
    [[ -d $peers ]] && peers=(--peers "$peers") || peers=()
    part 20 report python3 gpu/bench/report.py "$out" "${peers[@]}" && cat -- "$out/report.txt"
  fi
  if [[ -n $model ]]; then
    part 150 model "$build/bin/octavo" bench "$model" --device cuda --repeat 1 \
      --out-json "$out/model.json" && cat -- "$out/model.txt" || true
  else
    say "  model: none was named by --model"
  fi
fi

if ((${#failed[@]} > 0)); then
  printf -v list '%s, ' "${failed[@]}"
  die "${list%, } failed; see $out" 1
fi
say "gpu/check.sh: all is well after $SECONDS s; results are in $out"
