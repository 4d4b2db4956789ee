# SPDX-License-Identifier: Apache-2.0
"""Entry point in recorded programs: Python imports it at startup, since `joulemap record` puts this folder first in
PYTHONPATH.

It waits until a framework is imported and then calls Joulemap's capture module for it; until then it loads nothing.
PYTHONPATH itself stays unchanged, so child processes are captured, too. An error in Joulemap's code is reported once,
in the recording, and the program continues without capture. Finally this file imports the sitecustomize that it hides.
An error in that module, or its absence, is left to Python.
"""

import atexit
import os
import sys
from _thread import get_ident

# Framework -> Joulemap's module whose install() is called once the framework has been imported.
CAPTURE_MODULES = {
    "torch": "_torch_capture",
    "tensorflow": "_tensorflow_capture",
    "keras": "_keras_capture",
    "jax": "_jax_capture",
    "onnxruntime": "_onnxruntime_capture",
    "transformers.generation.utils": "_transformers_capture",
    "transformers.generation.continuous_batching.continuous_api": "_transformers_batching_capture",
    "vllm.v1.core.sched.scheduler": "_vllm_capture",
    "sglang.srt.managers.scheduler": "_sglang_capture",
    "llama_cpp.llama": "_llama_cpp_capture",
    "onnxruntime_genai": "_onnxruntime_genai_capture",
}


def _record_failure(error):
    try:
        from joulemap import _capture

        message = f"{type(error).__name__}: {error}"
        _capture.diagnose("capture_failed", message, "the program was not captured; please report this")
    except Exception:  # noqa: BLE001 - the failure cannot be reported
        pass


class _FrameworkFinder:
    """Finds the joulemap package that belongs to the running `joulemap record`, and detects imports of frameworks."""

    def __init__(self, package_folder):
        self._package_folder = package_folder
        self._pending_capture_modules = dict(CAPTURE_MODULES)
        self._active_searches = set()  # names and threads: other finders may ask this one again

    def find_spec(self, name, path=None, target=None):
        if name == "joulemap":
            from importlib.machinery import PathFinder

            return PathFinder.find_spec(name, [self._package_folder], target)
        active_search = (name, get_ident())
        if name in self._pending_capture_modules and active_search not in self._active_searches:
            self._active_searches.add(active_search)
            try:
                return self._find_watched_spec(name, path, target)
            finally:
                self._active_searches.discard(active_search)
        return None

    def _find_watched_spec(self, name, path, target):
        """Watches each spec until one is executed: programs also look for a framework without importing it."""
        module_spec = None
        for finder in sys.meta_path:
            find_spec = None if finder is self else getattr(finder, "find_spec", None)
            module_spec = find_spec(name, path, target) if find_spec else None
            if module_spec is not None:
                break
        if module_spec is None:
            return None  # not found yet; the program may make it importable later
        try:
            self._install_after_import(name, module_spec.loader)
        except Exception as error:  # noqa: BLE001
            _record_failure(error)
        return module_spec

    def _install_after_import(self, name, loader):
        exec_module = loader.exec_module
        watched_names = getattr(exec_module, "joulemap_watched", None)
        if watched_names is not None:
            watched_names.add(name)  # a loader may be shared, as that of a zip file
            return
        watched_names = {name}

        def execute_and_watch(module):
            name = module.__name__
            if name not in watched_names:
                return exec_module(module)
            watched_names.discard(name)
            if not watched_names and vars(loader).get("exec_module") is execute_and_watch:
                del loader.exec_module
            exec_module(module)  # if it fails, the program may retry the import
            capture_module = self._pending_capture_modules.pop(name, None)
            if capture_module is None:
                return
            try:
                from importlib import import_module

                import_module("joulemap." + capture_module).install(module)
            except Exception as error:  # noqa: BLE001
                _record_failure(error)

        execute_and_watch.joulemap_watched = watched_names
        loader.exec_module = execute_and_watch


def _finish_recording():
    """Completes this process's part of the recording. The capture library does so at exit, but a process that ends by
    os._exit, execv or execve, or by the SIGINT that Python sends itself after an unhandled KeyboardInterrupt, does not
    get there."""
    if "joulemap._capture" in sys.modules or "joulemap._hot" in sys.modules:
        try:
            from joulemap import _capture

            _capture.finish()
        except Exception as error:  # noqa: BLE001
            _record_failure(error)


def _wrap_exec_calls():
    original_exit, original_execv, original_execve = os._exit, os.execv, os.execve

    def _exit(status):
        _finish_recording()
        original_exit(status)

    # os.execvp calls execv for each folder of PATH, so only a path that can be executed completes the recording.
    def execv(path, argv, /):
        if os.access(path, os.X_OK):
            _finish_recording()
        original_execv(path, argv)

    def execve(path, argv, env):
        if isinstance(path, int) or os.access(path, os.X_OK):
            _finish_recording()
        original_execve(path, argv, env)

    for wrapper, original_function in ((_exit, original_exit), (execv, original_execv), (execve, original_execve)):
        wrapper.__doc__ = original_function.__doc__
        wrapper.__module__ = original_function.__module__
        setattr(os, wrapper.__name__, wrapper)


def _start_capture():
    inject_folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [
        search_path for search_path in sys.path if os.path.abspath(search_path or os.curdir) != inject_folder
    ]
    if not os.environ.get("JOULEMAP_RECORDING"):
        return
    sys.meta_path.insert(0, _FrameworkFinder(os.path.dirname(os.path.dirname(inject_folder))))
    _wrap_exec_calls()
    atexit.register(_finish_recording)  # the first to be registered, so the last to run


try:
    _start_capture()
except Exception as _error:  # noqa: BLE001
    _record_failure(_error)

sys.modules.pop(__name__, None)
import sitecustomize  # noqa: E402, F401
