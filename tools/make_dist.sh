#!/usr/bin/env bash
# Puts what `make dist` built into a folder and an archive that run where none of our libraries are installed, and proves it:
# no library beyond glibc and libgcc, no symbol of a glibc newer than 2.34.
set -euo pipefail
cd "$(dirname "$0")/.."
newest_glibc=2.34
version=$(sed -n 's/^project(joulemap VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=joulemap-$version-linux-$(uname -m)
folder=build/dist/$name
rm -rf "$folder"
mkdir -p "$folder/bin"
strip -o "$folder/bin/joulemap" build/dist-objects/bin/joulemap
cp README.md LICENSE CHANGELOG.md "$folder/"

needed=$(objdump -p "$folder/bin/joulemap" | awk '/NEEDED/ { print $2 }' | grep -vE '^(libc|libm|libgcc_s|libpthread|ld-linux.*)\.so' || true)
[[ -z $needed ]] || { echo "make_dist: needs libraries that may be missing elsewhere: $needed" >&2; exit 1; }
newest=$(objdump -T "$folder/bin/joulemap" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1)
if [[ $(printf '%s\n%s\n' "GLIBC_$newest_glibc" "$newest" | sort -V | tail -1) != "GLIBC_$newest_glibc" ]]; then
  echo "make_dist: needs $newest, newer than $newest_glibc" >&2
  exit 1
fi
tar -C build/dist -czf "build/dist/$name.tar.gz" "$name"
echo "make_dist: $folder ($newest), build/dist/$name.tar.gz"
