#!/usr/bin/env bash
# Installs what the build needs (`build`), the tests as well (`test`), the quickstart's text
# (`text`), or the launchers (`launchers`). Idempotent, says what it does, works as root or with
# sudo.
#   tools/setup/install.sh build|test|text|launchers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-build}

# The Python of the test clients: a virtual environment outside the checkout.
python_dir=${PLINTH_CACHE:-$HOME/.cache/plinth}/python

install_debian() {  # package...
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing Debian packages: ${missing[*]}" >&2
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "not root and no sudo: install them yourself with apt-get" >&2; exit 1; }
    sudo=(sudo)
  fi
  local log
  log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update -q &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "apt-get failed; its last lines are above" >&2
    exit 1
  fi
  rm -f "$log"
}

install_python() {
  local want
  want=$(sha256sum <"$here/requirements.txt")
  [ "$(cat "$python_dir/installed" 2>/dev/null)" = "$want" ] && return
  echo "installing Python test clients into $python_dir" >&2
  rm -rf "$python_dir"
  /usr/bin/python3 -m venv "$python_dir"
  "$python_dir/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  echo "$want" >"$python_dir/installed"
}

packages() {  # file: the first word of each line that is not a comment
  sed -e '/^#/d' -e '/^$/d' -e 's/ .*//' "$here/$1"
}

. /etc/os-release
if [ "${ID:-}" != debian ] || [ "${VERSION_ID:-}" != 12 ]; then
  echo "this is ${PRETTY_NAME:-an unknown system}; Plinth is built and tested on Debian 12" >&2
fi
# shellcheck disable=SC2046  # one word for each package is wanted
case "$what" in
  build) install_debian $(packages packages.txt) ;;
  text) install_debian $(packages text_packages.txt) ;;
  launchers) install_debian $(packages launcher_packages.txt) ;;
  test)
    install_debian $(packages packages.txt) $(packages test_packages.txt)
    install_python
    ;;
  *) echo "usage: $0 build|test|text|launchers" >&2; exit 2 ;;
esac
