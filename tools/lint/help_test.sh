#!/usr/bin/env bash
# Every program given answers --help on stdout with exit code 0, and an unknown flag with one
# line on stderr and another exit code.
set -uo pipefail
failures=0
complain() { echo "$1"; failures=$((failures + 1)); }
for program in "$@"; do
  for flag in --help -h --helpfull --version; do
    "$program" $flag >out 2>err
    code=$?
    [ $code -eq 0 ] || complain "$program $flag: exit code $code"
    [ -s out ] || complain "$program $flag: nothing on stdout"
    [ ! -s err ] || complain "$program $flag: on stderr: $(cat err)"
  done
  "$program" --help | grep -q -- '^Flags:$' || complain "$program --help: lists no flags"
  "$program" --help | grep -q -- '--flagfile' && complain "$program --help: lists a library's flag"
  "$program" --helpfull | grep -q -- '--flagfile' || complain "$program --helpfull: not all flags"
  "$program" --no_such_flag >out 2>err
  code=$?
  [ $code -ne 0 ] || complain "$program --no_such_flag: exit code 0"
  [ "$(wc -l <err)" -eq 1 ] && grep -q no_such_flag err ||
    complain "$program --no_such_flag: not one clear line: $(cat err)"
  [ ! -s out ] || complain "$program --no_such_flag: on stdout: $(cat out)"
done
[ $# -gt 0 ] && [ $failures -eq 0 ]
