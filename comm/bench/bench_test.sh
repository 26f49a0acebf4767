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
expect 0 '%  ' $bench --probe --ranks=3 --transport=shm --batches=1 --batch_ms=1 --max_bytes=8

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

# A measured table is gone by: where every further peer costs a second, a mesh is not chosen.
table=$TEST_TMPDIR/tcp.table
expect 0 'Measured: local link' $bench --ranks=2 --transport=tcp --tune="$table"
expect 0 'wrong elements: 0' env PLINTH_COMM_TUNING="$table" $bench --transport=tcp "${tiny[@]}"
chosen() { $bench --explain --ranks=8 --transport=tcp --min_bytes=1048576 --max_bytes=1048576 | grep ^chosen; }
sed -i 's/^message_us .*/message_us 1000000/' "$table"
[ "$(chosen)" != "$(PLINTH_COMM_TUNING=$table chosen)" ] || fail "the table changes nothing"
expect 1 'PLINTH_COMM_TUNING: /no/table: ' env PLINTH_COMM_TUNING=/no/table $bench "${tiny[@]}"

if [ -x /usr/bin/mpirun ]; then
  export OMPI_MCA_btl_base_warn_component_unused=0
  mpi=(env PATH="$PATH:/usr/bin" HOME="$TEST_TMPDIR" $bench)
  expect 0 'ratio to Open MPI' "${mpi[@]}" --vs=mpi --op=all --transport=shm "${tiny[@]}"
  expect 0 'over tcp: ' "${mpi[@]}" --vs=mpi --op=all --transport=tcp "${tiny[@]}"
  expect 0 '# all_reduce over mpi' "${mpi[@]}" --op=all --transport=mpi "${tiny[@]}"
  expect 0 'ratio to Open MPI' "${mpi[@]}" --vs=mpi --op=all --transport=mpi "${tiny[@]}"
  # What Open MPI really uses is looked at, not what it was asked for.
  expect 1 'Open MPI moves data by mca_btl_' env OMPI_MCA_btl=self,vader "${mpi[@]}" --vs=mpi --transport=tcp "${tiny[@]}"
  [ "$(OMPI_MCA_btl=self,vader "${mpi[@]}" --vs=mpi --transport=tcp "${tiny[@]}" 2>&1 | wc -l)" -eq 1 ] || fail "said by each rank"
fi

if /usr/bin/python3 -c 'import torch.distributed as d; d.ProcessGroupGloo' 2>/dev/null; then
  expect 0 'what Python adds to each call' $bench --vs=gloo --op=all --redop=all --dtype=f32,i8,bf16 --transport=tcp "${tiny[@]}"
  $bench --vs=gloo --ranks=3 --transport=tcp --op=all --json "${tiny[@]}" | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["peer"].startswith("gloo") and report["peer_binding_us"] > 0, report["peer"]
cells = [row[place] for row in report["rows"] for place in ("out_of_place", "in_place") if row[place]]
compared = {row["op"] for row in report["rows"] for place in ("out_of_place", "in_place")
            if row[place] and "peer" in row[place]}
assert len(compared) == 9 and "reduce_scatter" not in compared, compared
assert all(cell["peer"]["wrong"] == 0 for cell in cells if "peer" in cell)
' || fail "gloo over three ranks"
fi
