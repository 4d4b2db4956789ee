# SPDX-License-Identifier: Apache-2.0
"""What Python imports when it starts under `joulemap record`, which puts this folder first in PYTHONPATH.

It waits for the frameworks to be imported and then calls the file of ours that watches them; until then it loads nothing.
PYTHONPATH itself stays, so that child processes are watched, too. Whatever goes wrong in our code is told once, in the
recording, and the program goes on as without us. In the end it imports the sitecustomize that would have been imported
without us: an error in that one, or that there is none, is Python's to handle as ever.
"""

import os
import sys

# Framework -> the file of ours that is called once it has been imported.
WATCHERS = {
    "torch": "_torch_capture",
    "keras": "_tensorflow_capture",
    "jax": "_jax_capture",
    "onnxruntime": "_onnxruntime_capture",
}


def _tell_failure(error):
    try:
        from joulemap import _capture

        message = f"{type(error).__name__}: {error}"
        _capture.diagnose("capture_failed", message, "the program was not watched; please report this")
    except Exception:  # noqa: BLE001 - there is nobody left to tell
        pass


class _Finder:
    """Finds the package that belongs to this recorder, and sees frameworks being imported."""

    def __init__(self, packages):
        self._packages = packages
        self._waiting = dict(WATCHERS)

    def find_spec(self, name, path=None, target=None):
        if name == "joulemap":
            from importlib.machinery import PathFinder

            return PathFinder.find_spec(name, [self._packages], target)
        if name in self._waiting:
            return self._watched(name, path, target)
        return None

    def _watched(self, name, path, target):
        watcher = self._waiting.pop(name)
        spec = None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                break
        if spec is None:
            self._waiting[name] = watcher  # not there yet; the program may put it there
            return None
        try:
            self._call_afterwards(name, spec.loader, watcher)
        except Exception as error:  # noqa: BLE001
            _tell_failure(error)
        return spec

    def _call_afterwards(self, name, loader, watcher):
        execute = loader.exec_module

        def execute_and_watch(module):
            del loader.exec_module
            try:
                execute(module)
            except BaseException:
                self._waiting[name] = watcher  # the program may try again
                raise
            try:
                from importlib import import_module

                import_module("joulemap." + watcher).install(module)
            except Exception as error:  # noqa: BLE001
                _tell_failure(error)

        loader.exec_module = execute_and_watch


def _finish():
    """This process's part of the recording is complete; what leaves Python by a side door says so first."""
    if "joulemap._capture" in sys.modules or "joulemap._hot" in sys.modules:
        try:
            from joulemap import _capture

            _capture.finish()
        except Exception as error:  # noqa: BLE001
            _tell_failure(error)


def _watch_side_doors():
    leave, execute, execute_in = os._exit, os.execv, os.execve

    def _exit(status):
        _finish()
        leave(status)

    # A program that is looked for in many folders is given to execv once for each.
    def execv(path, argv, /):
        if os.access(path, os.X_OK):
            _finish()
        execute(path, argv)

    def execve(path, argv, env):
        if isinstance(path, int) or os.access(path, os.X_OK):
            _finish()
        execute_in(path, argv, env)

    for wrapper, original in ((_exit, leave), (execv, execute), (execve, execute_in)):
        wrapper.__doc__ = original.__doc__
        wrapper.__module__ = original.__module__
        setattr(os, wrapper.__name__, wrapper)


def _start():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    if not os.environ.get("JOULEMAP_RECORDING"):
        return
    sys.meta_path.insert(0, _Finder(os.path.dirname(os.path.dirname(here))))
    _watch_side_doors()


try:
    _start()
except Exception as _error:  # noqa: BLE001
    _tell_failure(_error)

sys.modules.pop(__name__, None)
import sitecustomize  # noqa: E402, F401
