#!/usr/bin/env bash
# make_deb.sh [DIST OUT]: the Debian package from the folder and the wheel that `make dist` built, for the architecture of this
# machine. ISA-L and XGBoost are Debian's own packages. dpkg-shlibdeps determines what the package depends on; check_deb.sh tries it.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:-build/dist} out=${2:-build/deb}
version=$(sed -n 's/^project(joulemap VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
folder=$dist/joulemap-$version-linux-$(uname -m)
architecture=$(dpkg --print-architecture) multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer="${DEBFULLNAME:-The Joulemap authors} <${DEBEMAIL:-joulemap@localhost}>"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
root=$out/root
libraries=$root/usr/lib/$multiarch package=$root/usr/lib/joulemap/python/joulemap
documents=$root/usr/share/doc/joulemap modules=$root/usr/lib/python3/dist-packages

rm -rf "$out"
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib/joulemap/bin" "$libraries" "$modules" "$documents"
mkdir -p "$root/usr/include" "$root/usr/share/lintian/overrides"

# The program finds the capture library and the Python package beside its folder, as in the portable folder.
cp "$folder/bin/joulemap" "$root/usr/lib/joulemap/bin/"
ln -s ../lib/joulemap/bin/joulemap "$root/usr/bin/joulemap"
cp -r "$folder/python" "$root/usr/lib/joulemap/"
ln -s ../../joulemap/python/joulemap "$modules/joulemap"
unzip -q "$dist"/*.whl 'joulemap-*.dist-info/METADATA' 'joulemap-*.dist-info/entry_points.txt' -d "$modules"
for library in libjoulemap.so libjoulemap_capture.so; do
  cp "$folder/lib/$library" "$libraries/"
  ln -snf "../../../$multiarch/$library" "$package/$library"
done
cp -r include/joulemap "$root/usr/include/"
mapfile -t binaries < <(find "$root/usr" -type f \( -name joulemap -o -name '*.so' \) | sort)
patchelf --remove-rpath "${binaries[@]}"

# Manual pages and completions come from the program itself.
rm -rf build/share
mkdir -p build/share/bash-completion/completions build/share/zsh/site-functions build/share/fish/vendor_completions.d
"$folder/bin/joulemap" man build/share/man
"$folder/bin/joulemap" completion bash > build/share/bash-completion/completions/joulemap
"$folder/bin/joulemap" completion zsh > build/share/zsh/site-functions/_joulemap
"$folder/bin/joulemap" completion fish > build/share/fish/vendor_completions.d/joulemap.fish
for page in build/share/man/man1/*.1; do install -D -m 644 "$page" "$root/usr/share/man/man1/$(basename "$page")"; done
find "$root/usr/share" -name '*.1' -exec gzip -9n {} +
copy_if_built() { [[ ! -e build/share/$1 ]] || install -D -m 644 "build/share/$1" "$root/usr/share/$2"; }
copy_if_built bash-completion/completions/joulemap bash-completion/completions/joulemap
copy_if_built zsh/site-functions/_joulemap zsh/vendor-completions/_joulemap
copy_if_built fish/vendor_completions.d/joulemap.fish fish/vendor_completions.d/joulemap.fish

cp README.md "$documents/"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: joulemap\n\n'
  printf 'Files: *\nCopyright: %s The Joulemap authors\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n' \
    "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y)"
} >"$documents/copyright"
printf 'joulemap (%s) unstable; urgency=medium\n\n  * Release %s. CHANGELOG.md of the source lists the changes.\n\n -- %s  %s\n' \
  "$version" "$version" "$maintainer" "$(date -uR -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.gz"
cp tools/lintian-overrides "$root/usr/share/lintian/overrides/joulemap"

# dpkg-shlibdeps reads the control file of a source package.
mkdir -p "$out/debian"
printf 'Source: joulemap\n\nPackage: joulemap\nArchitecture: any\n' >"$out/debian/control"
depends=$(cd "$out" && dpkg-shlibdeps -O -l"root/usr/lib/$multiarch" --ignore-missing-info -xjoulemap \
  "${binaries[@]/#$out\//}" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[[ -n $depends ]] || { echo "make_deb: dpkg-shlibdeps found no dependencies" >&2; exit 1; }
cat >"$root/DEBIAN/control" <<END
Package: joulemap
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: python3 (>= 3.9)
Suggests: libxgboost0
Section: science
Priority: optional
Description: map the energy of a deep-learning run to the code that uses it
 Joulemap reads the energy counters of CPUs and GPUs, records what a training
 or inference run does, and reports the energy by phase, layer, operation and
 kernel, with an interval for every number.
 .
 This package contains the program, the Python package, the C header and the
 shared libraries.
END
printf 'activate-noawait ldconfig\n' >"$root/DEBIAN/triggers"
# Python writes compiled files beside the modules when root imports them.
printf '#!/bin/sh\nset -e\nfind /usr/lib/joulemap -name __pycache__ -prune -exec rm -rf {} +\n' >"$root/DEBIAN/prerm"
chmod -R u=rwX,go=rX "$root"
chmod 755 "$root/DEBIAN/prerm"
find "$root/usr" -type f ! -path '*/bin/joulemap' -exec chmod 644 {} +
(cd "$root" && find usr -type f -printf '%P\0' | sort -z | sed -z 's|^|usr/|' | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/md5sums"
dpkg-deb --root-owner-group --build "$root" "$out/joulemap_${version}_$architecture.deb" >/dev/null
rm -r "$root" "$out/debian"
echo "make_deb: $out/joulemap_${version}_$architecture.deb (depends on $depends)"
tools/check_deb.sh "$out/joulemap_${version}_$architecture.deb"
