#!/bin/sh
# Runs a Python program with the interpreter that holds the PyPI test clients.
if [ -z "$PLINTH_PYTHON" ]; then
  echo "PLINTH_PYTHON is not set: use ./test, or export it as ./test does" >&2
  exit 1
fi
exec "$PLINTH_PYTHON" "$@"
