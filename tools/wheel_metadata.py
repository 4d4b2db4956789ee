"""The METADATA file of the wheel: fields, extras and the README as the description."""

from __future__ import annotations

import re
from typing import Optional

PACKAGE_SUMMARY = "Maps the energy of a deep-learning run to the code that uses it"
PACKAGE_KEYWORDS = ("energy", "power", "profiler", "deep learning", "PyTorch", "GPU", "RAPL", "NVML", "CUDA")
CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Environment :: GPU :: NVIDIA CUDA",
    "Framework :: Pytest",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C++",
    "Programming Language :: Python :: 3",
    *(f"Programming Language :: Python :: 3.{minor}" for minor in range(9, 14)),
    "Programming Language :: Python :: 3 :: Only",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: System :: Benchmark",
    "Topic :: System :: Monitoring",
    "Typing :: Typed",
)
# What optional parts import. The package itself needs nothing.
REQUIREMENTS_BY_EXTRA = {
    "fit": ("xgboost-cpu>=2.1",),  # joulemap model fit, joulemap calibrate --predict
    "tune": ("optuna>=4",),  # jm.tune
    "pandas": ("pandas",),
    "parquet": ("pyarrow",),
    "keras": ("keras>=3",),
    "lightning": ("lightning",),
    "transformers": ("transformers",),
    "mlflow": ("mlflow-skinny",),
    "wandb": ("wandb",),
    "jupyter": ("ipython",),
    "pytest": ("pytest",),
}
IMAGE_PATTERN = re.compile(r"^!\[[^\]]*\]\((?!\w+:)[^)]+\)\n+", re.MULTILINE)
RELATIVE_LINK_PATTERN = re.compile(r"(?<!!)\[([^\]]+)\]\((?![\w]+:|#)([^)]+)\)")


def make_description(readme: str, source_url: Optional[str]) -> str:
    """The README for a package index, where relative links lead nowhere: absolute links below source_url, or, without one,
    the text of each link alone. Pictures of the repository are left out."""
    without_images = IMAGE_PATTERN.sub("", readme)
    if source_url is None:
        return RELATIVE_LINK_PATTERN.sub(r"\1", without_images)
    return RELATIVE_LINK_PATTERN.sub(rf"[\1]({source_url.rstrip('/')}/\2)", without_images)


def make_metadata(version: str, readme: str, licenses: list[str], source_url: Optional[str] = None) -> str:
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", "joulemap"),
        ("Version", version),
        ("Summary", PACKAGE_SUMMARY),
        ("Keywords", ",".join(PACKAGE_KEYWORDS)),
        ("Author", "The Joulemap authors"),
        ("License-Expression", "Apache-2.0"),
        *(("License-File", name) for name in licenses),
        *([("Project-URL", f"Source, {source_url}")] if source_url else []),
        *(("Classifier", classifier) for classifier in CLASSIFIERS),
        ("Requires-Python", ">=3.9"),
        *make_extra_fields(),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    return f"{head}\n{make_description(readme, source_url)}"


def make_extra_fields() -> list[tuple[str, str]]:
    fields = []
    for extra_name, requirements in REQUIREMENTS_BY_EXTRA.items():
        fields.append(("Provides-Extra", extra_name))
        fields += [("Requires-Dist", f'{requirement}; extra == "{extra_name}"') for requirement in requirements]
    return fields
