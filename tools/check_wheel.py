#!/usr/bin/env python3
"""Refuses wheels that do not hold what their names promise.

    tools/check_wheel.py WHEEL...

Every ELF file must be of the machine of the tag, need no glibc symbol newer than the tag, and need no library but those of
glibc, libgcc_s and the wheel itself. RECORD must list every file with its hash, and METADATA must be complete. Several
wheels must have the same version and files. Uses readelf, which reads files of every machine. Exits 1 if there is a problem.
"""

from __future__ import annotations

import base64
import csv
import email.parser
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

WHEEL_NAME_PATTERN = re.compile(
    r"joulemap-(?P<version>[\d.]+)-cp39-abi3-manylinux_2_(?P<glibc>\d+)_(?P<machine>x86_64|aarch64)\.whl"
)
ELF_MACHINE_NAMES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
SYSTEM_LIBRARY_PATTERN = re.compile(r"(libc|libm|libdl|libpthread|libgcc_s|ld-linux-[\w-]+)\.so\.\d+")
REQUIRED_FIELDS = ("Name", "Version", "Summary", "Keywords", "Author", "License-Expression", "License-File", "Classifier",
                   "Requires-Python", "Provides-Extra", "Description-Content-Type")  # fmt: skip
RELATIVE_LINK_PATTERN = re.compile(r"\]\((?!\w+:|#)[^)]+\)")
FileContents = dict[str, bytes]


class ElfRequirements(NamedTuple):
    machine: str
    glibc_minor: int  # y of the newest GLIBC_2.y
    libraries: list[str]
    cxx_versions: list[str]  # of a shared libstdc++


def read_elf_requirements(data: bytes) -> ElfRequirements:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout
    machine = re.search(r"Machine:\s+(.+)", text)
    glibc = [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", text)]
    return ElfRequirements(
        machine=machine[1].strip() if machine else "unknown",
        glibc_minor=max(glibc, default=0),
        libraries=re.findall(r"\(NEEDED\).*\[(.+)\]", text),
        cxx_versions=sorted(set(re.findall(r"Name: ((?:GLIBCXX|CXXABI)_[\w.]+)", text))),
    )


def find_elf_problems(files: FileContents, machine: str, glibc_minor: int) -> list[str]:
    wheel_file_names = {Path(name).name for name in files}
    problems = []
    for name, data in files.items():
        if not data.startswith(b"\x7fELF"):
            continue
        needs = read_elf_requirements(data)
        if needs.machine != ELF_MACHINE_NAMES[machine]:
            problems.append(f"{name} is for {needs.machine}, not for {machine}")
        if needs.glibc_minor > glibc_minor:
            problems.append(f"{name} needs glibc 2.{needs.glibc_minor}, the tag promises 2.{glibc_minor}")
        if needs.cxx_versions:
            problems.append(f"{name} needs a shared libstdc++: {needs.cxx_versions[-1]}")
        missing_libraries = [
            library
            for library in needs.libraries
            if library not in wheel_file_names and not SYSTEM_LIBRARY_PATTERN.fullmatch(library)
        ]
        problems += [f"{name} needs {library}, which the wheel does not contain" for library in missing_libraries]
    return problems


def find_newest_glibc(files: FileContents) -> int:
    return max(read_elf_requirements(data).glibc_minor for data in files.values() if data.startswith(b"\x7fELF"))


def find_record_problems(files: FileContents, info: str) -> list[str]:
    rows = {row[0]: row[1:] for row in csv.reader(files[f"{info}/RECORD"].decode().splitlines())}
    problems = [f"RECORD and the wheel differ in {name}" for name in sorted(set(rows) ^ set(files))]
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if name in rows and name != f"{info}/RECORD" and rows[name] != [f"sha256={digest}", str(len(data))]:
            problems.append(f"RECORD has another hash or size of {name}")
    return problems


def find_metadata_problems(files: FileContents, info: str, version: str, tag: str) -> list[str]:
    message = email.parser.Parser().parsestr(files[f"{info}/METADATA"].decode())
    problems = [f"METADATA has no {field}" for field in REQUIRED_FIELDS if not message.get(field)]
    if message["Version"] != version:
        problems.append(f"METADATA is of version {message['Version']}, the name of {version}")
    for name in message.get_all("License-File", []):
        if f"{info}/licenses/{name}" not in files:
            problems.append(f"the wheel does not contain the licence {name}")
    text = str(message.get_payload())
    problems += [f"the description has a relative link: {link}" for link in RELATIVE_LINK_PATTERN.findall(text)]
    if f"Tag: {tag}\n" not in files[f"{info}/WHEEL"].decode():
        problems.append(f"WHEEL does not contain the tag {tag}")
    return problems


def read_wheel_files(wheel: Path) -> FileContents:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def find_wheel_problems(wheel: Path, files: FileContents) -> list[str]:
    wheel_name_match = WHEEL_NAME_PATTERN.fullmatch(wheel.name)
    if not wheel_name_match:
        return [f"{wheel.name} is not the name of a wheel of joulemap for Linux"]
    info = f"joulemap-{wheel_name_match['version']}.dist-info"
    tag = wheel.name.removesuffix(".whl").split("-", 2)[2]
    problems = find_elf_problems(
        files, wheel_name_match["machine"], int(wheel_name_match["glibc"])
    ) + find_record_problems(files, info)
    return problems + find_metadata_problems(files, info, wheel_name_match["version"], tag)


def main() -> int:
    wheels = {Path(name): read_wheel_files(Path(name)) for name in sys.argv[1:]}
    problems = []
    for wheel, files in wheels.items():
        problems += [f"{wheel.name}: {problem}" for problem in find_wheel_problems(wheel, files)]
        print(f"check_wheel: {wheel.name}: {len(files)} files, newest glibc symbol 2.{find_newest_glibc(files)}")
    file_sets = [set(files) for files in wheels.values()]
    for compared_files in file_sets[1:]:
        problems += [f"only one of the wheels contains {name}" for name in sorted(file_sets[0] ^ compared_files)]
    for problem in problems:
        print(f"check_wheel: {problem}", file=sys.stderr)
    return 1 if problems or not wheels else 0


if __name__ == "__main__":
    sys.exit(main())
