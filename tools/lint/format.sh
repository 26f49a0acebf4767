#!/usr/bin/env bash
# Every C++ file is as clang-format 14 would write it. `--fix` rewrites.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
git ls-files -z '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -r clang-format-14 "${mode[@]}"
