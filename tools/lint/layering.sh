#!/usr/bin/env bash
# Reports, with Clang, a header whose target is not listed in `deps`.
#   tools/lint/layering.sh [bazel flags]
# Libraries and programs, as tests are nobody's dependency. Nothing is run: no optimisation, one
# instruction set, no linking.
set -euo pipefail
cd "$(dirname "$0")/../.."
targets=$(mktemp)
trap 'rm -f "$targets"' EXIT
bazel query --noshow_progress 'kind("cc_(library|binary) rule", //...)' >"$targets"
bazel build "$@" --config=clang --compilation_mode=fastbuild --copt=-DHWY_COMPILE_ONLY_STATIC \
  --output_groups=compilation_outputs --target_pattern_file="$targets"
