#!/usr/bin/env bash
# make_sysroot.sh FOLDER ARCHITECTURE: the libraries that the build links, of Debian for another architecture, for a cross
# compiler. Unpacked, not installed: packages of two architectures cannot all lie beside each other. apt keeps its state in
# the folder, so that this machine's is not touched; root is not needed. Quick when the list of packages is as it was.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$1 architecture=$2
mapfile -t wanted < <(awk '$1 == "build" && $2 ~ /-dev$/ { print $2 }' "$here/packages.txt")
[[ $(cat "$root/.packages" 2>/dev/null) != "${wanted[*]}" ]] || exit 0
command -v apt-get >/dev/null || { echo "make_sysroot: not a Debian system" >&2; exit 1; }

echo "joulemap: unpacking ${wanted[*]} for $architecture" >&2
rm -rf "$root"
mkdir -p "$root/.apt/lists/partial" "$root/.apt/archives/partial"
root=$(cd "$root" && pwd)
cat >"$root/.apt/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
Dir::State "$root/.apt";
Dir::State::status "/dev/null";
Dir::Cache "$root/.apt";
END
export APT_CONFIG=$root/.apt/apt.conf
apt-get update -q >/dev/null
apt-get install -q -y --download-only "${wanted[@]}" >/dev/null
for package in "$root"/.apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -r "$root/.apt"
# Links to /lib would lead out of the folder.
find "$root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do ln -snfr "$root$target" "$link"; done
echo "${wanted[*]}" >"$root/.packages"
