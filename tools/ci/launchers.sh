#!/usr/bin/env bash
# mpirun, srun and torchrun each start four ranks of //comm:bench, which must find each other.
#   tools/ci/launchers.sh [mpirun] [srun] [torchrun]     all three when none is named
# A launcher that is not installed is skipped; tools/setup/install.sh launchers installs OpenMPI
# and Slurm, torchrun comes with PyTorch.
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- mpirun srun torchrun
failed=0

bazel build --noshow_progress //comm:bench 2>&1 | grep -E '^(ERROR|FAILED)' >&2
bench=$(bazel info --noshow_progress bazel-bin 2>/dev/null)/comm/bench/bench
[ -x "$bench" ] || { echo "//comm:bench does not build" >&2; exit 1; }
arguments=(--max_bytes=1024 --batches=3)

# Runs a command and looks for the size of the world that rank 0 prints, once.
check() {  # name command...
  local name=$1 log; shift
  log=$(mktemp)
  if timeout 60 "$@" "$bench" "${arguments[@]}" >"$log" 2>&1 &&
     [ "$(grep -cE '(^|[^0-9])4 ranks' "$log")" = 1 ]; then
    echo "PASSED  $name: $(grep -E '(^|[^0-9])4 ranks' "$log")"
  else
    echo "FAILED  $name: $*"
    tail -n 20 "$log"
    failed=1
  fi
  rm -f "$log"
}

# Two launches of the same kind at one time, which must not take each other's ranks.
check_pair() {  # name command...
  local name=$1 first second; shift
  first=$(mktemp) second=$(mktemp)
  check "$name, first of two at once" "$@" >"$first" &
  local other=$!
  check "$name, second of two at once" "$@" >"$second"
  wait "$other"
  cat "$first" "$second"
  if grep -q ^FAILED "$first" "$second"; then failed=1; fi
  rm -f "$first" "$second"
}

for launcher in "$@"; do
  if ! command -v "$launcher" >/dev/null; then
    echo "SKIPPED $launcher: not installed"
    continue
  fi
  case "$launcher" in
    mpirun)
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      check mpirun mpirun --oversubscribe -n 4
      check_pair mpirun mpirun --oversubscribe -n 4
      ;;
    srun)
      was_up=no
      if [ -e "${PLINTH_SLURM_DIR:-/tmp/plinth-slurm}/slurmd.pid" ]; then was_up=yes; fi
      settings=$(tools/ci/slurm_up.sh) || { failed=1; continue; }
      eval "$settings"
      check srun srun -n 4
      check_pair srun srun -n 4
      [ "$was_up" = yes ] || tools/ci/slurm_up.sh stop
      ;;
    torchrun)
      # Debian's own does not start anything with Debian's own Python. The spelling with
      # underscores is understood by every version.
      if ! torchrun --nproc_per_node=1 --no_python true >/dev/null 2>&1; then
        echo "SKIPPED torchrun: it does not even start \`true\`"
        continue
      fi
      check torchrun torchrun --nproc_per_node=4 --no_python
      ;;
    *) echo "no check for $launcher" >&2; failed=1 ;;
  esac
done
exit "$failed"
