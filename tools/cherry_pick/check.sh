#!/usr/bin/env bash
# Builds and runs each foreign workspace below this folder: //comm, //storage and //hardware
# are usable without the rest, with three lines of WORKSPACE and no flags that change the code.
set -euo pipefail
cd "$(dirname "$0")"
cache=${PLINTH_CACHE:-$HOME/.cache/plinth}
for workspace in */WORKSPACE; do
  name=$(dirname "$workspace")
  echo "== $name"
  # Its own output base: the outer Bazel server keeps running. The cache only saves time.
  (cd "$name" && bazel --output_base="$cache/cherry_pick/$name" run --disk_cache="$cache/bazel-disk" \
    --nosandbox_debug --noshow_progress --force_pic --dynamic_mode=off --incompatible_strict_action_env //:main)
  (cd "$name" && bazel --output_base="$cache/cherry_pick/$name" shutdown)
done
