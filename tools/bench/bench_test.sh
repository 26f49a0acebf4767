#!/usr/bin/env bash
# The benchmarks work: tiny models, one round, a stand-in for the peer.
set -euo pipefail

expect() {  # exit status, text that the output holds, command ...
  local wanted=$1 pattern=$2 status=0 out; shift 2
  out=$("$@" 2>&1) || status=$?
  if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$pattern" <<<"$out"; then
    echo "FAILED: $*: exit $status, want $wanted with \"$pattern\", got: $out"; exit 1
  fi
}
peer() {  # first loss
  printf 'echo ready Fake-1\nwhile read -r line; do echo 0.5 %s; done\n' "$1" >"$TEST_TMPDIR/peer.sh"
}

step=(tools/bench/train_step --tiny --threads=1 --tokens=8 --rounds=1 --python=/bin/sh
  --peer_script="$TEST_TMPDIR/peer.sh")
peer 5.7
expect 0 '"peer_ms":5E2' "${step[@]}" --json
expect 0 'peer: Fake-1' "${step[@]}"
expect 0 'T=8' "${step[@]}" --peer=false
expect 0 'note: PyTorch is not timed' "${step[@]}" --python=/nonexistent
echo 'echo missing python3-torch' >"$TEST_TMPDIR/peer.sh"
expect 0 'note: PyTorch is not timed: install python3-torch' "${step[@]}"
peer 2
expect 1 "PyTorch's first loss is 2.000" "${step[@]}"
echo 'echo ready Fake-1; read -r line' >"$TEST_TMPDIR/peer.sh"
expect 1 '/bin/sh: has ended' "${step[@]}"
expect 1 '--tokens: "257", expected 1 to 256' "${step[@]}" --tokens=257

decode=(tools/bench/decode --tiny --threads=1 --tokens=4 --rounds=2)
expect 0 '"weights":"bf16","tokens_per_second":' "${decode[@]}" --json
expect 0 'bf16 ' "${decode[@]}"
expect 1 '--tokens must be 1 to 2031' "${decode[@]}" --tokens=2032
