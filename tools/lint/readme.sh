#!/usr/bin/env bash
# Every path in `backticks` with a slash, every relative link and every //label that a
# Markdown file names exists.
set -euo pipefail
cd "$(dirname "$0")/../.."
labels=$(bazel query --noshow_progress 'kind(rule, //...)')
failures=0
complain() { echo "$1: $2"; failures=$((failures + 1)); }

while read -r file; do
  dir=$(dirname "$file")
  # Fenced blocks hold commands and output: only their labels are checked.
  prose=$(awk '/^```/ {inside = !inside; next} !inside' "$file")
  while read -r link; do
    [ -e "$dir/${link%%#*}" ] || complain "$file" "link to missing $link"
  done < <(grep -oP '\]\(\K(?!https?:|#)[^)]+' <<<"$prose" || true)
  while read -r path; do
    [ -e "$path" ] || [ -e "$dir/$path" ] || complain "$file" "missing path $path"
  done < <(grep -oP '`\K(?!/)[a-z_]+(/[A-Za-z0-9_.-]+)+/?(?=`)' <<<"$prose" || true)
  while read -r label; do
    [[ $label == *: ]] && continue
    package=${label#//}; package=${package%%:*}
    # `//hardware` alone may mean the package; `//comm` the target of that name.
    [[ $label == *:* ]] || { [ -e "$package/BUILD" ] && continue; label="$label:${label##*/}"; }
    grep -qxF "$label" <<<"$labels" || [ -e "$package/${label##*:}" ] || complain "$file" "missing label $label"
  done < <(grep -oP '(?<![:\w@/])//[a-z][a-z0-9_/]*(:[a-z0-9_.+-]+)?(?![a-z0-9_/.]*\.\.\.)' "$file" | sort -u || true)
done < <(git ls-files '*.md')
[ "$failures" -eq 0 ]
