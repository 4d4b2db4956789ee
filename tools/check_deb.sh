#!/usr/bin/env bash
# check_deb.sh DEB: lintian, then the package with what it depends on, and nothing else, in a new root: the program prints its
# version and its sensors, and a C program links against the library. apt resolves the dependencies for an empty system, so a
# package that Debian does not have fails the check. As root; otherwise lintian alone runs.
set -euo pipefail
cd "$(dirname "$0")/.."
deb=$(readlink -f "$1")
lintian --fail-on error,warning "$deb"
[[ $(id -u) -eq 0 ]] || { echo "check_deb: not root; the package was not installed into a new root" >&2; exit 0; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/.apt/lists/partial" "$root/.apt/archives/partial"
cat >"$root/.apt/apt.conf" <<END
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "$root/.apt";
Dir::State::status "/dev/null";
Dir::Cache "$root/.apt";
END
export APT_CONFIG=$root/.apt/apt.conf
apt-get update -q >/dev/null
apt-get install -q -y --download-only "$deb" >/dev/null
for package in "$root"/.apt/archives/*.deb "$deb"; do dpkg-deb -x "$package" "$root"; done
mkdir -p "$root/proc" "$root/sys" "$root/tmp"
chroot "$root" /usr/bin/joulemap --version
chroot "$root" /usr/bin/joulemap doctor --sysroot /tmp >/dev/null
libraries=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
cc -I"$root/usr/include" examples/measure_windows.c -L"$libraries" -Wl,-rpath-link,"$libraries" -ljoulemap -o "$root/tmp/windows"
chroot "$root" /tmp/windows >/dev/null
echo "check_deb: $(basename "$deb") runs with $(ls "$root"/.apt/archives/*.deb | wc -l) packages besides it"
