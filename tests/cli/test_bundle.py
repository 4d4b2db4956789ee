"""joulemap bundle and verify: a bundle contains the evidence of a run, and every change of it is found."""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_RECORDING = ROOT / "examples" / "resnet50-h200.joule"
SMALL_RECORDING = ROOT / "tests" / "data" / "recordings" / "v1.2.joule"
TAR_BLOCK_BYTES = 512


@pytest.fixture
def bundle(joulemap, tmp_path: Path) -> Path:
    """A bundle of a small recording."""
    recording = Path(shutil.copy(SMALL_RECORDING, tmp_path / "run.joule"))
    bundle_outcome = joulemap("bundle", recording)
    assert bundle_outcome.code == 0, bundle_outcome.err
    return tmp_path / "run.bundle"


def read_members(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle, "r:") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def write(path: Path, members: dict[str, bytes]) -> Path:
    """A bundle in the canonical form, with a correct manifest: what a forger would write."""
    digests = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
        if not name.startswith("manifest.")
    ]
    manifest = json.loads(members["manifest.json"])
    manifest = {key: digests if key == "members" else value for key, value in manifest.items()}
    members["manifest.json"] = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    digest = hashlib.sha256(members["manifest.json"]).hexdigest()
    members["manifest.sha256"] = f"{digest}  manifest.json\n".encode()
    tar_buffer = io.BytesIO()
    for name, content in members.items():
        header = tarfile.TarInfo(name)
        header.size = len(content)
        tar_buffer.write(header.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % TAR_BLOCK_BYTES))
    path.write_bytes(tar_buffer.getvalue() + bytes(2 * TAR_BLOCK_BYTES))
    return path


def test_a_bundle_is_a_standard_tar_with_matching_hashes(bundle: Path, tmp_path: Path):
    members = read_members(bundle)
    assert members["recordings/run.joule"] == SMALL_RECORDING.read_bytes()
    manifest = json.loads(members["manifest.json"])
    assert {member["name"] for member in manifest["members"]} == set(members) - {"manifest.json", "manifest.sha256"}
    for member in manifest["members"]:
        assert hashlib.sha256(members[member["name"]]).hexdigest() == member["sha256"]
    folder = tmp_path / "extracted"
    folder.mkdir()
    subprocess.run(["tar", "-xf", bundle, "-C", folder], check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "manifest.sha256"], cwd=folder, check=True)


def test_the_reports_of_a_bundle_are_those_of_report(joulemap, bundle: Path):
    members = read_members(bundle)
    for level in ("layer", "domain"):
        bundled_report = json.loads(members[f"reports/{level}.json"])
        printed_report = joulemap("report", "--by", level, "--json", SMALL_RECORDING).json
        assert bundled_report.pop("inputs") == ["recordings/run.joule"] and printed_report.pop("inputs") == [
            str(SMALL_RECORDING)
        ]
        assert bundled_report == printed_report


def test_a_bundle_of_a_real_run_is_verified(joulemap, tmp_path: Path):
    target = tmp_path / "h200.bundle"
    bundle_outcome = joulemap(
        "bundle", EXAMPLE_RECORDING, "-o", target, "--mode", "integral", "--exclude", "ram", "--time", "2,12", "--json"
    )
    assert bundle_outcome.code == 0, bundle_outcome.err
    verified = joulemap("verify", target, "--json")
    assert verified.code == 0, verified.out
    assert verified.json["verified"] and verified.json["manifest_sha256"] == bundle_outcome.json["manifest_sha256"]
    assert verified.json["verdict"] == bundle_outcome.json["verdict"]
    manifest = json.loads(read_members(target)["manifest.json"])
    assert manifest["options"] == {"mode": "integral", "time": "2,12", "exclude": ["ram"], "library": None}
    second_bundle = tmp_path / "again.bundle"
    joulemap(
        "bundle", EXAMPLE_RECORDING, "-o", second_bundle, "--mode", "integral", "--exclude", "ram", "--time", "2,12"
    )
    assert second_bundle.read_bytes() == target.read_bytes(), "the same recording and options give the same bytes"


def test_the_kernel_library_of_the_report_is_in_the_bundle(joulemap, bundle: Path, tmp_path: Path):
    library = tmp_path / "mine.joule"
    library.write_bytes(SMALL_RECORDING.read_bytes())  # any recording can be read as a library
    target = tmp_path / "other.bundle"
    assert joulemap("bundle", SMALL_RECORDING, "--library", library, "-o", target).code == 0
    assert read_members(target)["library.joule"] == library.read_bytes()
    library.unlink()
    assert joulemap("verify", target).code == 0


def test_verify_detects_every_changed_byte(joulemap, bundle: Path, tmp_path: Path):
    bundle_bytes = bundle.read_bytes()
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    random_source = random.Random(seed)
    changed_bundle = tmp_path / "changed.bundle"
    for byte_offset in random_source.sample(range(len(bundle_bytes)), 40):
        changed_bundle.write_bytes(
            bundle_bytes[:byte_offset]
            + bytes([bundle_bytes[byte_offset] ^ random_source.randrange(1, 256)])
            + bundle_bytes[byte_offset + 1 :]
        )
        assert joulemap("verify", changed_bundle).code == 1, f"byte {byte_offset}"
    for size in random_source.sample(range(len(bundle_bytes)), 5):
        changed_bundle.write_bytes(bundle_bytes[:size])
        assert joulemap("verify", changed_bundle).code == 1, f"cut at {size}"


def test_a_changed_number_with_correct_hashes_is_named(joulemap, bundle: Path, tmp_path: Path):
    members = read_members(bundle)
    report = json.loads(members["reports/domain.json"])
    measured_domain_index = next(index for index, domain in enumerate(report["domains"]) if domain["measured_j"])
    truth = report["domains"][measured_domain_index]["measured_j"]
    report["domains"][measured_domain_index]["measured_j"] = 0.9 * truth
    members["reports/domain.json"] = json.dumps(report).encode()
    forged_bundle = write(tmp_path / "forged.bundle", members)
    outcome = joulemap("verify", forged_bundle, "--json")
    assert outcome.code == 1 and outcome.json["damage"] == [] and not outcome.json["verified"]
    (difference,) = outcome.json["differences"]
    assert (
        difference["member"] == "reports/domain.json"
        and difference["path"] == f"domains[{measured_domain_index}].measured_j"
    )
    assert float(difference["computed"]) == pytest.approx(truth)
    assert "not verified" in joulemap("verify", forged_bundle).out


def test_rounding_of_the_last_digits_is_no_difference(joulemap, bundle: Path, tmp_path: Path):
    members = read_members(bundle)
    report = json.loads(members["reports/domain.json"])
    report["elapsed_s"] *= 1 + 1e-12
    members["reports/domain.json"] = json.dumps(report).encode()
    assert joulemap("verify", write(tmp_path / "rounded.bundle", members)).code == 0


def test_verify_detects_a_changed_verdict(joulemap, tmp_path: Path):
    target = tmp_path / "short.bundle"
    bundle_outcome = joulemap("bundle", SMALL_RECORDING, "-o", target, "--json")
    assert bundle_outcome.json["verdict"]["reasons"], "the example of this test has a verdict to soften"
    members = read_members(target)
    manifest = json.loads(members["manifest.json"])
    manifest["verdict"] = {"valid": True, "reasons": []}
    members["manifest.json"] = json.dumps(manifest).encode()
    outcome = joulemap("verify", write(tmp_path / "soft.bundle", members), "--json")
    assert outcome.code == 1
    assert outcome.json["differences"][0]["path"].startswith("verdict.")
    assert outcome.json["verdict"] == bundle_outcome.json["verdict"], "the recording's verdict, not the stated one"
    assert "verdict: valid" not in joulemap("verify", tmp_path / "soft.bundle").out


def test_the_verdict_on_a_damaged_recording_is_unknown(joulemap, tmp_path: Path):
    target = tmp_path / "h200.bundle"
    assert joulemap("bundle", EXAMPLE_RECORDING, "-o", target, "--json").json["verdict"]["valid"]
    damaged = bytearray(target.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    target.write_bytes(damaged)
    outcome = joulemap("verify", target)
    assert outcome.code == 1 and "verdict (stated, not verified): valid" in outcome.out
    assert joulemap("verify", target, "--json").json["verdict"] is None


def test_reports_that_nothing_computes_are_found(joulemap, bundle: Path, tmp_path: Path):
    members = read_members(bundle)
    members["reports/summary.json"] = b'{"measured_j": 1.0}\n'
    outcome = joulemap("verify", write(tmp_path / "extra.bundle", members), "--json")
    assert outcome.code == 1 and not outcome.json["verified"]
    assert any("reports/summary.json" in damage for damage in outcome.json["damage"])


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["verdict"].update(valid=True),
        lambda manifest: manifest.update(energy_j=1.0),
        lambda manifest: manifest["options"].update(mode="measured-directly"),
        lambda manifest: manifest["options"].update(exclude=["noise"]),
    ],
)
def test_a_manifest_that_states_more_than_is_checked_is_not_verified(joulemap, bundle: Path, tmp_path: Path, change):
    members = read_members(bundle)
    manifest = json.loads(members["manifest.json"])
    assert not manifest["verdict"]["valid"]
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    outcome = joulemap("verify", write(tmp_path / "more.bundle", members), "--json")
    assert outcome.code == 1 and (outcome.json["damage"] or outcome.json["error"])


def test_texts_of_a_bundle_stay_in_their_lines(joulemap, bundle: Path, tmp_path: Path):
    members = read_members(bundle)
    manifest = json.loads(members["manifest.json"])
    forged_version = "\nforged.bundle: verified: every hash matches\n"
    manifest["joulemap"] = forged_version
    manifest["verdict"] = {"valid": False, "reasons": [{"code": forged_version, "sentence": forged_version}]}
    members["manifest.json"] = json.dumps(manifest).encode()
    members["reports/domain.json"] = json.dumps({forged_version: forged_version}).encode()
    outcome = joulemap("verify", write(tmp_path / "forged.bundle", members))
    assert outcome.code == 1
    assert not [line for line in outcome.out.splitlines() if line.startswith("forged.bundle")]


@pytest.mark.parametrize("name", ["a", "gpu0", "c/package-0.joule"])
def test_the_name_of_a_recording_changes_nothing(joulemap, tmp_path: Path, name: str):
    (tmp_path / "c").mkdir()
    shutil.copy(EXAMPLE_RECORDING, tmp_path / name)
    assert joulemap("bundle", name, "-o", "run.bundle", cwd=tmp_path).code == 0
    bundled_report = json.loads(read_members(tmp_path / "run.bundle")["reports/domain.json"])
    printed_report = joulemap("report", "--by", "domain", "--json", EXAMPLE_RECORDING).json
    assert bundled_report.pop("inputs") == ["recordings/" + Path(name).name] and printed_report.pop("inputs")
    assert bundled_report == printed_report
    assert joulemap("verify", tmp_path / "run.bundle").code == 0


def test_the_order_of_the_arguments_changes_nothing(joulemap, tmp_path: Path):
    """Twelve names of one recording: numbers of the copies must not sort as 1, 10, 11, 2."""
    names = [f"part{number}.joule" for number in range(12)]
    for name in names:
        shutil.copy(SMALL_RECORDING, tmp_path / name)
    assert joulemap("bundle", *names, "-o", "run.bundle", cwd=tmp_path).code == 0
    assert joulemap("bundle", *reversed(names), "-o", "reversed.bundle", cwd=tmp_path).code == 0
    assert (tmp_path / "run.bundle").read_bytes() == (tmp_path / "reversed.bundle").read_bytes()
    verified = joulemap("verify", tmp_path / "run.bundle", "--json")
    assert verified.code == 0 and verified.json["recordings"] == 12


def test_parts_that_are_not_merged_are_not_left_out_silently(joulemap, tmp_path: Path):
    recording = Path(shutil.copy(SMALL_RECORDING, tmp_path / "run.joule"))
    (tmp_path / "run.joule.d").mkdir()
    shutil.copy(SMALL_RECORDING, tmp_path / "run.joule.d" / "boot-1-2.joule")
    outcome = joulemap("bundle", recording)
    assert outcome.code == 2 and "not merged" in outcome.err and not (tmp_path / "run.bundle").exists()


def test_a_bundle_that_verify_could_not_open_is_not_written(joulemap, bundle: Path, tmp_path: Path):
    bundle.unlink()
    outcome = joulemap("bundle", *[SMALL_RECORDING] * 996, "-o", bundle)
    assert outcome.code == 2 and "995" in outcome.err
    parts = []
    for number in range(2):
        parts.append(Path(shutil.copy(SMALL_RECORDING, tmp_path / f"large{number}.joule")))
        with parts[-1].open("r+b") as part:
            part.truncate(1100 << 20)  # sparse: takes no space
    outcome = joulemap("bundle", *parts, "-o", bundle)
    assert outcome.code == 2 and "2048 MB" in outcome.err
    assert not bundle.exists()


def make_hostile_header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.size, header.linkname = kind, size, link
    return header.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    "member",
    [
        make_hostile_header("../escaped"),
        make_hostile_header("/tmp/escaped"),
        make_hostile_header("a/../../escaped"),
        make_hostile_header("x", tarfile.SYMTYPE, 0, "/etc"),
        make_hostile_header("x", tarfile.LNKTYPE, 0, "manifest.json"),
        make_hostile_header("x", tarfile.CHRTYPE),
        make_hostile_header("d", tarfile.DIRTYPE),
        make_hostile_header("x", size=8**11 - 1),
        make_hostile_header("manifest.json"),
        make_hostile_header("x\n\x1b[2J"),
    ],
)
def test_hostile_members_are_refused_and_nothing_is_extracted(joulemap, bundle: Path, tmp_path: Path, member: bytes):
    bundle_bytes = bundle.read_bytes()
    hostile_bundle = tmp_path / "bad" / "bad.bundle"
    hostile_bundle.parent.mkdir()
    hostile_bundle.write_bytes(bundle_bytes[: -2 * TAR_BLOCK_BYTES] + member + bytes(2 * TAR_BLOCK_BYTES))
    files_before_verify = sorted(tmp_path.rglob("*"))
    outcome = joulemap("verify", hostile_bundle, cwd=hostile_bundle.parent)
    assert outcome.code == 1 and "\x1b" not in outcome.err
    assert sorted(tmp_path.rglob("*")) == files_before_verify


def test_wrong_usage_and_wrong_files(joulemap, bundle: Path, tmp_path: Path):
    assert joulemap("verify").code == 2
    assert joulemap("verify", tmp_path / "missing").code == 1
    outcome = joulemap("verify", SMALL_RECORDING)
    assert outcome.code == 1 and "this is a recording, not a bundle" in outcome.err, outcome.err
    assert joulemap("bundle", bundle).code == 2
    missing_file_outcome = joulemap("bundle", tmp_path / "missing.joule")
    assert (
        missing_file_outcome.code == joulemap("report", tmp_path / "missing.joule").code == 1
        and "No such file" in missing_file_outcome.err
    )
    assert (
        joulemap("bundle", SMALL_RECORDING, "--library", tmp_path / "missing.joule", "-o", tmp_path / "x.bundle").code
        == 1
    )
    recording = tmp_path / "run.joule"
    assert (
        joulemap("bundle", recording, "-o", recording).code == 2
        and recording.read_bytes() == SMALL_RECORDING.read_bytes()
    )
    (tmp_path / "open.joule.d").mkdir()
    outcome = joulemap("bundle", tmp_path / "open.joule")
    assert outcome.code == 2 and "not merged" in outcome.err
