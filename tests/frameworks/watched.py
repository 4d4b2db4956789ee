# SPDX-License-Identifier: Apache-2.0
"""Runs a program as under the injected sitecustomize: watched.py FRAMEWORK CAPTURE PROGRAM ARGUMENTS..."""

import importlib
import os
import runpy
import sys

framework, capture, program = sys.argv[1:4]
if framework == "keras":
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
importlib.import_module(f"joulemap.{capture}").install(importlib.import_module(framework))
sys.argv = sys.argv[3:]
runpy.run_path(program, run_name="__main__")
