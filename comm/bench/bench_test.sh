#!/usr/bin/env bash
# The whole program: tiny runs of every operation over every transport, the JSON, what it refuses.
set -uo pipefail
bench=comm/bench/bench
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_NTASKS
tiny=(--max_bytes=4096 --factor=512 --batches=1 --batch_ms=0)

fail() { echo "FAILED: $*"; exit 1; }
expect() {  # exit status, text that the output holds, command ...
  local wanted=$1 pattern=$2 status=0 out; shift 2
  out=$(timeout 60 "$@" 2>&1) || status=$?
  if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$pattern" <<<"$out"; then
    fail "$*: exit $status, want $wanted with \"$pattern\", got: $out"
  fi
}

for ranks in 1 2 3; do
  expect 0 'wrong elements: 0' $bench --ranks=$ranks --op=all --transport=all "${tiny[@]}"
done
expect 0 '# all_reduce over shm' $bench --op=all --redop=all --dtype=f32,bf16,i8 --root=all "${tiny[@]}"
expect 0 'registered buffers' $bench --buffers=registered --transport=shm "${tiny[@]}"
expect 0 '%  ' $bench --probe --transport=shm --batches=1 --batch_ms=1 --max_bytes=8

# One JSON object and nothing else, with a row for each operation over each transport.
timeout 60 $bench --op=all --transport=all --max_bytes=8 --batches=1 --batch_ms=0 --json |
  python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["schema"] == "plinth.bench.comm.v2", report["schema"]
assert report["ranks"] == 2 and report["wrong"] == 0
rows = {(row["op"], row["transport"]) for row in report["rows"]}
assert len(rows) == 10 * 3, sorted(rows)
for row in report["rows"]:
    cell = row["out_of_place"] or row["in_place"]
    assert cell["p10_us"] <= cell["median_us"] <= cell["p90_us"], row
' || fail "JSON"

expect 1 '--op: "alreduce", expected all_reduce' $bench --op=alreduce
expect 1 'OMPI_COMM_WORLD_RANK' env OMPI_COMM_WORLD_SIZE=4 $bench "${tiny[@]}"
expect 1 'SLURM_NTASKS=4 promises 4 ranks, but this process sees 1' env SLURM_NTASKS=4 $bench "${tiny[@]}"
expect 1 'WORLD_SIZE' env WORLD_SIZE=4 $bench "${tiny[@]}"
expect 1 'apt-get install openmpi-bin' env PATH=/nowhere $PWD/$bench --vs=mpi "${tiny[@]}"

if [ -x /usr/bin/mpirun ]; then
  export OMPI_MCA_btl_base_warn_component_unused=0
  expect 0 'ratio to Open MPI' env PATH="$PATH:/usr/bin" HOME="$TEST_TMPDIR" $bench --vs=mpi --op=all --transport=shm "${tiny[@]}"
fi
