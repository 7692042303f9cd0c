#!/usr/bin/env bash
# Libraries that Qt and OpenGL need to open windows on a bare Debian or Ubuntu.
# Installs them only as root and only where some are missing; otherwise says what is missing.
# Elsewhere there is nothing to do: PyQt's wheels bring the rest.
set -euo pipefail

packages=(
  xvfb xauth libegl1 libgl1 libopengl0 libgl1-mesa-dri libxkbcommon-x11-0 libxcb-cursor0
  libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0
  libxcb-xinerama0 libdbus-1-3 libfontconfig1 libglib2.0-0 fonts-dejavu-core
)

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || exit 0

# Newer releases ship some of these under a name that ends in t64.
installed() {
  local name
  for name in "$1" "$1t64"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
  done
  return 1
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  if apt-get update -qq && apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
  then
    exit 0
  fi
fi
echo "Windows and their tests need system libraries that are missing here; install them with:" \
  "sudo apt-get install --no-install-recommends ${missing[*]}"
