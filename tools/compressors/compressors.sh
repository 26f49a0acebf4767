#!/usr/bin/env bash
# Bits per byte of gzip -9 and xz -9 on a text, beside those of a model on the same text.
#   compressors --text=FILE [--metrics=RUN/metrics.jsonl] [--json]
# --text      the held-out text, as prepare writes it (eval.txt)
# --metrics   metrics of a training run; its last held-out evaluation is shown
# --json      print one JSON object instead of a table; null = not known
# Exit status: 0 the figures are printed, whoever wins; 1 an input is missing; 2 wrong usage.
set -euo pipefail
export LC_ALL=C

fail() { echo "compressors: $2" >&2; exit "$1"; }

text="" metrics="" json=0
while [ $# -gt 0 ]; do
  case "$1" in
    --text=*) text=${1#*=} ;;
    --metrics=*) metrics=${1#*=} ;;
    --json) json=1 ;;
    -h | --help) sed -n '2,7s/^# \?//p' "$0"; exit 0 ;;
    *) fail 2 "unknown argument $1 (see --help)" ;;
  esac
  shift
done
[ -n "$text" ] || fail 2 "--text=FILE is required (see --help)"
[ -f "$text" ] || fail 1 "$text: no such file"
[ -r "$text" ] || fail 1 "$text: cannot be read"
bytes=$(wc -c <"$text")
[ "$bytes" -gt 0 ] || fail 1 "$text: is empty"

# The last record of the run that has a held-out evaluation: "step bits".
model_step=null model=null
if [ -n "$metrics" ]; then
  [ -f "$metrics" ] || fail 1 "$metrics: no such file"
  [ -r "$metrics" ] || fail 1 "$metrics: cannot be read"
  last=$(sed -nE 's/^\{"step":([0-9]+),.*"eval_bits_per_byte":([0-9.e+-]+).*\}$/\1 \2/p' "$metrics" |
    awk '$2 > 0 {line = $0} END {print line}')
  [ -n "$last" ] || fail 1 "$metrics: no held-out evaluation with bits per byte yet"
  read -r model_step model <<<"$last"
fi

# Reads stdin, so that the file's name is not part of the result.
packed_bytes() {  # program
  if command -v "$1" >/dev/null; then "$1" -9 -c <"$text" | wc -c; else echo null; fi
}
gzip=$(packed_bytes gzip)
xz=$(packed_bytes xz)

awk -v text="$text" -v bytes="$bytes" -v gzip="$gzip" -v xz="$xz" -v step="$model_step" \
  -v model="$model" -v json="$json" '
  function rate(packed) { return packed == "null" ? "null" : sprintf("%.4f", packed * 8 / bytes) }
  function row(name, packed) {
    if (packed == "null") printf "%-18s not installed\n", name
    else printf "%-18s %9s %12d\n", name, rate(packed), packed
  }
  function verdict(name, packed,    theirs) {
    if (packed == "null" || model == "null") return
    theirs = packed * 8 / bytes
    if (model < theirs) printf "The model beats %s: %.1f %% fewer bits.\n", name, (1 - model / theirs) * 100
    else printf "The model does not beat %s: %.1f %% more bits.\n", name, (model / theirs - 1) * 100
  }
  BEGIN {
    if (json) {
      printf "{\"text_bytes\": %d, \"gzip_bits_per_byte\": %s, \"xz_bits_per_byte\": %s, ", bytes, rate(gzip), rate(xz)
      printf "\"model_bits_per_byte\": %s, \"model_step\": %s}\n", model, step
      exit
    }
    printf "%s: %d bytes\n\n%-18s %9s %12s\n", text, bytes, "", "bits/byte", "bytes"
    row("gzip -9", gzip)
    row("xz -9", xz)
    if (model == "null") exit
    printf "%-18s %9.4f %12s\n\n", "model, step " step, model, "-"
    verdict("gzip -9", gzip)
    verdict("xz -9", xz)
  }'
