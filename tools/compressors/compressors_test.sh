#!/usr/bin/env bash
# Runs the tool as a user does.
set -euo pipefail
tool=$1
cd "$TEST_TMPDIR"
tool=$TEST_SRCDIR/$TEST_WORKSPACE/$tool

expect() {  # exit status, text that the output holds, arguments ...
  local wanted=$1 pattern=$2 status=0; shift 2
  "$tool" "$@" >out 2>&1 || status=$?
  if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$pattern" out; then
    echo "FAILED: compressors $*: exit $status, want $wanted with \"$pattern\", got:"; cat out; exit 1
  fi
}

seq 1 20000 >text
: >empty
mkdir directory
bytes=$(wc -c <text)
bits() { awk -v b="$("$1" -9 -c <text | wc -c)" -v n="$bytes" 'BEGIN {printf "%.4f", b * 8 / n}'; }
row() { printf "%-18s %9s" "$1" "$2"; }
record() { echo "{\"step\":$1,\"steps\":9,\"loss\":1.5,\"eval_loss\":1.25,\"eval_bits_per_byte\":$2}"; }
echo '{"step":1,"steps":9,"loss":2}' >none
{ record 3 0.01; record 6 5e-03; record 7 null; record 8 0; cat none; } >good
record 3 7.9 >bad
between=$(awk -v g="$(bits gzip)" -v x="$(bits xz)" 'BEGIN {print (g + x) / 2}')
record 3 "$between" >middle

expect 0 "$(row "gzip -9" "$(bits gzip)")" --text=text
expect 0 "$(row "xz -9" "$(bits xz)")" --text=text
expect 0 "$(row "model, step 6" 0.0050)" --text=text --metrics=good
expect 0 "The model beats gzip -9:" --text=text --metrics=good
expect 0 "The model beats xz -9:" --text=text --metrics=good
expect 0 "The model does not beat gzip -9:" --text=text --metrics=bad
expect 0 "The model beats gzip -9:" --text=text --metrics=middle
expect 0 "The model does not beat xz -9:" --text=text --metrics=middle
expect 0 "\"gzip_bits_per_byte\": $(bits gzip), \"xz_bits_per_byte\": $(bits xz), \"model_bits_per_byte\": 7.9, \"model_step\": 3}" \
  --text=text --metrics=bad --json
expect 0 '"model_bits_per_byte": null' --text=text --json
expect 0 "--metrics" --help
expect 1 "nothing: no such file" --text=nothing
expect 1 "directory: no such file" --text=directory
expect 1 "empty: is empty" --text=empty
expect 1 "nothing: no such file" --text=text --metrics=nothing
expect 1 "none: no held-out evaluation" --text=text --metrics=none
expect 2 "--text=FILE is required"
expect 2 "unknown argument --texts=x" --texts=x
