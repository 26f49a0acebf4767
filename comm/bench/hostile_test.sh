#!/usr/bin/env bash
# What is not meant to happen: each case ends with one line and leaves nothing behind.
set -uo pipefail
bench=comm/bench/bench
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_NTASKS
tiny=(--max_bytes=4096 --factor=512 --batches=1 --batch_ms=0)

fail() { echo "FAILED: $*"; exit 1; }
refused() {  # text that the only line of errors holds, command ...
  local pattern=$1 status=0 out; shift
  out=$(timeout 60 "$@" 2>&1 >/dev/null) || status=$?
  out=$(grep -v 'flight records are in' <<<"$out")  # where more is to be found
  if [ "$status" -ne 1 ] || [ "$(wc -l <<<"$out")" -ne 1 ] || ! grep -qF -- "$pattern" <<<"$out"; then
    fail "$*: exit $status, want 1 and one line with \"$pattern\", got: $out"
  fi
}
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}
rank_of_two() {  # rank, port, arguments ...
  local rank=$1 port=$2; shift 2
  RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
    MASTER_PORT=$port PLINTH_COMM_TIMEOUT=10s exec timeout 60 "$bench" "$@"
}
processes() { pgrep -cf -- "--max_bytes=$1" || true; }  # that run with that very size
segments() { ls /dev/shm | grep -c plinth || true; }

# Flags that make no sense.
refused '--min_bytes: "-1"' $bench --min_bytes=-1
refused '--ranks: "0"' $bench --ranks=0
refused '--ranks: "100000"' $bench --ranks=100000
refused '--factor: "0"' $bench --factor=0
refused '--batches: "-5"' $bench --batches=-5
refused '--batch_ms: "nan"' $bench --batch_ms=nan
refused 'beside --vs=gloo' $bench --vs=gloo --transport=shm,tcp
refused 'json' $bench --json=/tmp
refused '/no/such/folder/table: cannot be written' $bench --tune=/no/such/folder/table --ranks=2
refused "$TEST_TMPDIR: cannot be written" $bench --tune="$TEST_TMPDIR" --ranks=2

# What a rank finds wrong is said once, not by each.
refused 'neither an algorithm' env PLINTH_COMM_ALGORITHM=zigzag $bench --ranks=4 "${tiny[@]}"
refused '--algorithm: "zigzag"' $bench --ranks=4 --algorithm=zigzag
refused 'direct' env PLINTH_COMM_ALGORITHM=all_reduce=direct $bench --ranks=4 --transport=tcp "${tiny[@]}"
refused 'nccl' env PLINTH_NCCL_LIBRARY=/no/libnccl.so $bench --ranks=2 --transport=nccl "${tiny[@]}"
refused 'needs PyTorch with gloo in /bin/false' \
  env PLINTH_GLOO_PYTHON=/bin/false $bench --ranks=2 --transport=tcp --vs=gloo "${tiny[@]}"
refused 'needs PyTorch with gloo in /no/python' \
  env PLINTH_GLOO_PYTHON=/no/python $bench --ranks=2 --transport=tcp --vs=gloo "${tiny[@]}"
refused 'apt-get install openmpi-bin' env PATH=/nowhere "$PWD/$bench" --vs=mpi
refused 'apt-get install openmpi-bin' env PATH=/nowhere "$PWD/$bench" --transport=mpi

# Launchers that contradict each other.
refused 'WORLD_SIZE' env WORLD_SIZE=4 OMPI_COMM_WORLD_SIZE=2 $bench "${tiny[@]}"
refused 'OMPI_COMM_WORLD_SIZE=4' env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 \
  MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 \
  OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=4 $bench "${tiny[@]}"
refused 'MPI needs ranks that mpirun started' env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 \
  MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 $bench --vs=mpi "${tiny[@]}"

# What answers at the rendezvous is no store.
python3 -c '
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    listener.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)
' >"$TEST_TMPDIR/garbage" & garbage=$!
until [ -s "$TEST_TMPDIR/garbage" ]; do sleep 0.1; done
out=$(rank_of_two 1 "$(cat "$TEST_TMPDIR/garbage")" "${tiny[@]}" 2>&1) && fail "garbage: exit 0"
kill $garbage
[ "$(wc -l <<<"$out")" -eq 1 ] && grep -q 'not a Plinth store' <<<"$out" || fail "garbage: $out"

# A second launch at one MASTER_PORT is told so; the first one does not suffer.
port=$(free_port)
(rank_of_two 0 "$port" "${tiny[@]}") >"$TEST_TMPDIR/first" 2>&1 & first=$!
until (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do sleep 0.1; done
out=$(rank_of_two 0 "$port" "${tiny[@]}" 2>&1) && fail "second launch: exit 0"
grep -q 'choose another MASTER_PORT' <<<"$out" || fail "second launch: $out"
(rank_of_two 1 "$port" "${tiny[@]}") || fail "rank 1 of the first launch"
wait $first || fail "first launch: $(cat "$TEST_TMPDIR/first")"

# Two at once.
$bench --ranks=2 --transport=shm,tcp "${tiny[@]}" >/dev/null & one=$!
$bench --ranks=2 --transport=shm,tcp "${tiny[@]}" >/dev/null & two=$!
wait $one && wait $two || fail "two at once"

# Ended in the middle of it: nobody is left, and nothing in /dev/shm.
before=$(segments)
size=33554441
for signal in KILL TERM INT; do
  for transport in shm tcp; do
    set -m  # a group of its own, which an interrupt from the keyboard would reach
    $bench --ranks=3 --transport=$transport --max_bytes=$size --batches=100000 \
      >"$TEST_TMPDIR/run" 2>&1 & pid=$!
    set +m
    for _ in $(seq 200); do grep -q 'median of' "$TEST_TMPDIR/run" && break; sleep 0.05; done
    sleep 0.5  # into the first batches
    [ "$(processes $size)" -ge 4 ] || fail "not running: $(cat "$TEST_TMPDIR/run")"
    if [ $signal = INT ]; then kill -INT -- -$pid; else kill -$signal $pid; fi
    wait $pid 2>/dev/null
    for _ in $(seq 100); do [ "$(processes $size)" -eq 0 ] && break; sleep 0.05; done
    [ "$(processes $size)" -eq 0 ] || fail "SIG$signal leaves ranks over $transport"
  done
done
[ "$(segments)" -le "$before" ] || fail "left in /dev/shm: $(ls /dev/shm)"

# A rank that is killed is named.
$bench --ranks=3 --transport=tcp --max_bytes=$size --batches=100000 >/dev/null 2>"$TEST_TMPDIR/error" & pid=$!
until [ "$(pgrep -cP $pid)" -eq 3 ]; do sleep 0.05; done
sleep 1
kill -KILL "$(pgrep -P $pid | tail -1)"
wait $pid && fail "a killed rank: exit 0"
[ "$(grep -vc 'flight records are in' "$TEST_TMPDIR/error")" -eq 1 ] && grep -q 'rank 2 was ended by signal 9' "$TEST_TMPDIR/error" ||
  fail "a killed rank: $(cat "$TEST_TMPDIR/error")"
