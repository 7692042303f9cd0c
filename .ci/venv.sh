#!/usr/bin/env bash
# Make a virtual environment with pip in the folder named by the first argument.
set -euo pipefail

folder=$1
good='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
    if [ -n "$name" ] && "$name" -c "$good" 2>/dev/null; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

if ! python=$(find_python); then
  echo "Python 3.11 or newer is needed and was not found; install it or set PYTHON=..." >&2
  exit 1
fi

# Debian ships venv without ensurepip unless python3-venv is installed.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends "$version-venv" >/dev/null
  else
    echo "$python cannot make virtual environments; install its venv module, on Debian with:" \
      "sudo apt-get install $version-venv" >&2
    exit 1
  fi
fi

"$python" -m venv "$folder"
