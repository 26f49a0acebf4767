#!/usr/bin/env bash
# A Slurm of one node on this machine, for checks: munged, slurmctld and slurmd from Debian's
# packages, as root and without systemd, with all their files in one directory.
#   eval "$(tools/ci/slurm_up.sh)"     starts what does not run yet and sets SLURM_CONF
#   tools/ci/slurm_up.sh stop
set -euo pipefail
dir=${PLINTH_SLURM_DIR:-/tmp/plinth-slurm}
conf=$dir/slurm.conf

pid_of() { cat "$dir/$1.pid" 2>/dev/null || true; }
# A process that only waits to be reaped has no command line any more.
runs() {  # daemon
  local pid
  pid=$(pid_of "$1")
  [ -n "$pid" ] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$1"
}
fail() { echo "$1" >&2; tail -n 20 "$dir"/*.log >&2 2>/dev/null || true; exit 1; }

stop() {
  local daemon pid
  for daemon in slurmd slurmctld munged; do
    runs "$daemon" || continue
    pid=$(pid_of "$daemon")
    kill "$pid"
    for _ in $(seq 50); do runs "$daemon" || break; sleep 0.1; done
    if runs "$daemon"; then kill -9 "$pid"; fi
  done
  rm -rf "$dir"
}

if [ "${1:-}" = stop ]; then stop; exit 0; fi
[ $# -eq 0 ] || { echo "usage: $0 [stop]" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "$0 must run as root" >&2; exit 1; }
for tool in munged slurmctld slurmd srun; do
  PATH=$PATH:/usr/sbin command -v $tool >/dev/null ||
    { echo "no $tool: run tools/setup/install.sh launchers" >&2; exit 1; }
done
export PATH=$PATH:/usr/sbin SLURM_CONF=$conf

mkdir -p "$dir/state" "$dir/spool"
chmod 755 "$dir"
if [ ! -e "$dir/munge.key" ]; then
  head -c 1024 /dev/urandom >"$dir/munge.key"
  chmod 400 "$dir/munge.key"
fi
# More CPUs than there may be, so that four tasks fit anywhere.
cat >"$conf" <<END
ClusterName=plinth
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END

runs munged || munged --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" \
  --log-file="$dir/munged.log" --pid-file="$dir/munged.pid" --seed-file="$dir/munged.seed" ||
  fail "munged did not start"
runs slurmctld || slurmctld -f "$conf" >/dev/null || fail "slurmctld did not start"
runs slurmd || slurmd -f "$conf" >/dev/null || fail "slurmd did not start"
for _ in $(seq 100); do
  state=$(sinfo -h -o %t 2>/dev/null || true)
  if [ "$state" = idle ] || [ "$state" = mix ] || [ "$state" = alloc ]; then
    echo "Slurm runs in $dir" >&2
    echo "export SLURM_CONF=$conf"
    exit 0
  fi
  sleep 0.1
done
fail "the node did not come up: ${state:-no answer}"
