#!/usr/bin/env bash
# Installs the Debian packages of the given groups of packages.txt that are missing.
# Quick when nothing is: one dpkg-query. Without root it prints the line to run and fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

wanted=()
while read -r group package; do
  for asked in "$@"; do
    [[ $group == "$asked" ]] && wanted+=("$package")
  done
done < <(grep -v '^#' "$here/packages.txt")
[[ ${#wanted[@]} -gt 0 ]] || { echo "install_packages: no packages in group: $*" >&2; exit 2; }

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: not a Debian system; install these packages: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $state == "install ok installed" ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "joulemap: installing ${missing[*]}" >&2
if [[ $(id -u) -ne 0 ]]; then
  echo "install_packages: not root; run: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
apt-get install -y -q --no-install-recommends "${missing[@]}" |
  awk '/^Setting up/ { printf "  %s\n", $3; fflush() }' >&2
exit "${PIPESTATUS[0]}"
