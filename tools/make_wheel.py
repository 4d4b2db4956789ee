#!/usr/bin/env python3
"""Builds the Python wheel from a build: the package, its libraries and the program. Standard library only, no
network.

    tools/make_wheel.py --build build/dist-objects --out build/dist

The same input gives the same bytes. tools/check_wheel.py checks that the binaries satisfy the platform tag. The wheel does
not contain XGBoost: Debian's needs glibc 2.34 and a shared libstdc++; `pip install joulemap[fit]` installs another build.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from wheel_metadata import make_metadata

ROOT = Path(__file__).resolve().parent.parent
WHEEL_TAG = "cp39-abi3-manylinux_2_28_{machine}"
SOURCE_PATTERNS = ("*.py", "*.pyi", "py.typed")
RUNTIME_LOADED_PACKAGES = ("python3-dev", "libxgboost-dev")  # headers of what is loaded at run time
EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip file can store

WHEEL_FILE_TEXT = """\
Wheel-Version: 1.0
Generator: joulemap make_wheel
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[console_scripts]
joulemap = joulemap._program:main

[pytest11]
joulemap = joulemap._pytest_plugin

[sglang.srt.plugins]
joulemap = joulemap._engine_plugin:install_sglang_adapter

[vllm.general_plugins]
joulemap = joulemap._engine_plugin:install_vllm_adapter
"""


def project_version() -> str:
    version_match = re.search(
        r"^project\(joulemap VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE
    )
    assert version_match, "CMakeLists.txt contains no version"
    return version_match[1]


def strip_binary(binary: Path, strip: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / binary.name
        shutil.copy(binary.resolve(), copy)
        subprocess.run([strip, "--strip-unneeded", str(copy)], check=True)
        return copy.read_bytes()


def read_third_party_licenses() -> dict[str, bytes]:
    """The licences of the libraries that the binaries contain, as Debian's packages have them."""
    lines = [line.split() for line in (ROOT / "tools" / "packages.txt").read_text().splitlines()]
    development_packages = [words[1] for words in lines if words[0] == "build" and words[1].endswith("-dev")]
    linked_packages = [package for package in development_packages if package not in RUNTIME_LOADED_PACKAGES]
    document_folder = Path("/usr/share/doc")
    sources = {package: document_folder / package / "copyright" for package in linked_packages}
    sources["libstdc++"] = sorted(document_folder.glob("libstdc++-*-dev/copyright"))[-1]
    return {f"third-party/{package}.txt": source.read_bytes() for package, source in sorted(sources.items())}


def collect_wheel_files(options: argparse.Namespace, version: str, tag: str) -> dict[str, tuple[bytes, bool]]:
    """Returns every file of the wheel except RECORD: its bytes, and whether it is executable."""
    files: dict[str, tuple[bytes, bool]] = {}
    build, strip = options.build, options.strip
    package = ROOT / "python" / "joulemap"
    for pattern in SOURCE_PATTERNS:
        for source in sorted(package.glob(pattern)):
            files[f"joulemap/{source.name}"] = (source.read_bytes(), False)
    sitecustomize_path = package / "inject" / "sitecustomize.py"
    files["joulemap/inject/sitecustomize.py"] = (sitecustomize_path.read_bytes(), False)
    for source in sorted([*(package / "_collect").glob("*.py"), *(package / "_collect").glob("*.csv")]):
        files[f"joulemap/_collect/{source.name}"] = (source.read_bytes(), False)
    for folder in ("_bench_serve", "_predict"):
        for source in sorted((package / folder).glob("*.py")):
            files[f"joulemap/{folder}/{source.name}"] = (source.read_bytes(), False)
    for header in sorted((ROOT / "include" / "joulemap").iterdir()):
        files[f"joulemap/include/joulemap/{header.name}"] = (header.read_bytes(), False)
    for library in ("libjoulemap.so", "libjoulemap_capture.so"):
        files[f"joulemap/{library}"] = (strip_binary(build / "lib" / library, strip), True)
    for extension in ("_hot.abi3.so", "_capture.abi3.so"):
        files[f"joulemap/{extension}"] = (strip_binary(build / "python" / "joulemap" / extension, strip), True)
    files["joulemap/bin/joulemap"] = (strip_binary(build / "bin" / "joulemap", strip), True)
    for library in sorted(options.beside.glob("libisal.*")) if options.beside else []:
        files[f"joulemap/lib/{library.name}"] = (library.read_bytes(), library.suffix != ".LICENSE")

    info = f"joulemap-{version}.dist-info"
    readme = (ROOT / "README.md").read_text()
    licenses = {"LICENSE": (ROOT / "LICENSE").read_bytes(), **read_third_party_licenses()}
    files[f"{info}/METADATA"] = (make_metadata(version, readme, list(licenses), options.source_url).encode(), False)
    files[f"{info}/WHEEL"] = (WHEEL_FILE_TEXT.format(tag=tag).encode(), False)
    files[f"{info}/entry_points.txt"] = (ENTRY_POINTS.encode(), False)
    for name, text in licenses.items():
        files[f"{info}/licenses/{name}"] = (text, False)
    return files


def make_record(files: dict[str, tuple[bytes, bool]], record_path: str) -> bytes:
    lines = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{record_path},,\n"]).encode()


def write_wheel(path: Path, files: dict[str, tuple[bytes, bool]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, executable) in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST_ZIP_DATE)
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dist-objects", help="build folder")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "dist", help="output folder")
    parser.add_argument(
        "--beside", type=Path, help="folder with the stripped third-party libraries that the program needs"
    )
    parser.add_argument("--machine", default=platform.machine(), help="target machine, as printed by uname -m")
    parser.add_argument("--strip", default="strip", help="strip program for the target")
    parser.add_argument(
        "--source-url", help="address of the source tree, for the links of the README on a package index"
    )
    options = parser.parse_args()
    version = project_version()
    tag = WHEEL_TAG.format(machine=options.machine)
    files = collect_wheel_files(options, version, tag)
    record_path = f"joulemap-{version}.dist-info/RECORD"
    files[record_path] = (make_record(files, record_path), False)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"joulemap-{version}-{tag}.whl"
    write_wheel(path, files)
    print(f"make_wheel: {path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
