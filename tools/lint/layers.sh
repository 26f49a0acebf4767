#!/usr/bin/env bash
# Each package depends only on packages to its left:
#   config < hardware < {comm | storage} < {models | cluster} < infer < train < tools
# tools/build and third_party are open to all. What a file includes, its target lists: includes.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

declare -A allowed=(
  [config]=""
  [hardware]="config"
  [comm]="config hardware"
  [storage]="config hardware"
  [models]="config hardware storage"
  [cluster]="config hardware comm"
  [infer]="config hardware comm storage models cluster"
  [train]="config hardware comm storage models cluster infer"
)
failures=0
for package in "${!allowed[@]}"; do
  [ -d "$package" ] || continue
  # Tests may reach further (a storage test that trains); libraries and binaries may not.
  found=$(bazel query --noshow_progress --output=package \
    "deps(kind('cc_library|cc_binary|proto_cc_library', //$package/...) except attr(testonly, 1, //$package/...)) intersect //...")
  for directory in $found; do
    top=${directory%%/*}
    case " $package third_party ${allowed[$package]} " in
      *" $top "*) continue ;;
    esac
    [ "$directory" = tools/build ] && continue
    echo "//$package must not depend on //$directory (allowed: $package ${allowed[$package]})"
    failures=$((failures + 1))
  done
done
bazel query --noshow_progress --output=xml 'kind(rule, //...)' | tools/lint/includes.py
[ "$failures" -eq 0 ]
