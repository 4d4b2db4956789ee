# SPDX-License-Identifier: Apache-2.0
"""Captures ONNX Runtime in a recorded program: install() is called after onnxruntime has been imported.

Each run of a session is a step and a coarse scope with exact time: mode inference, with the model's file name as a
region. ONNX Runtime's own profiler traces the first runs of a session. It must be enabled when the session is created
and costs some ten microseconds per node. It is ended after a few runs and costs nothing afterwards.
"""

from __future__ import annotations

import atexit
import functools
import os
import weakref
from typing import Optional

from . import _capture_interface as capture
from ._framework_trace import FrameworkTrace

_PROFILED_RUN_COUNT = 4
# Limits profiling in programs that create a session for every request.
_MAX_SESSIONS = 8


class TracedSession:
    """Captures the runs of one session."""

    def __init__(self, model: object, trace: Optional[FrameworkTrace]) -> None:
        is_path = isinstance(model, (str, os.PathLike))
        self._model_name = os.path.basename(os.fspath(model)) if is_path else "model"
        mode = capture.child_scope(0, capture.SCOPE_MODE, "inference")
        self.scope = capture.child_scope(mode, capture.SCOPE_REGION, self._model_name)
        self._trace = trace
        self._run_count = 0

    def begin(self) -> int:
        capture.on_event(capture.EVENT_FORWARD_INFER)
        return capture.enter(self.scope)

    def end(self, session, depth: int) -> None:
        capture.leave_to(depth)
        self._run_count += 1
        if self._trace is not None and self._run_count == _PROFILED_RUN_COUNT:
            self._store_trace(session)

    def store_trace_at_exit(self, session) -> None:
        if self._trace is not None and self._run_count > 0:
            self._store_trace(session)

    @capture.suppress_failures
    def _store_trace(self, session) -> None:
        trace, self._trace = self._trace, None
        session.end_profiling()
        trace.store_trace("onnxruntime.json", [("mode", "inference"), ("region", self._model_name)])


class OnnxRuntimeCapture:
    def __init__(self, onnxruntime) -> None:
        self._onnxruntime = onnxruntime
        self._profiled_session_count = 0
        self._sessions: weakref.WeakSet = weakref.WeakSet()
        atexit.register(self._store_traces_at_exit)

    @capture.suppress_failures
    def _store_traces_at_exit(self) -> None:
        for session in list(self._sessions):
            session._joulemap_watched.store_trace_at_exit(session)

    @capture.suppress_failures
    def start_session_trace(self, options) -> Optional[FrameworkTrace]:
        """Enables profiling in the options of a new session, unless the program has enabled it."""
        if options.enable_profiling or self._profiled_session_count >= _MAX_SESSIONS:
            return None
        self._profiled_session_count += 1
        trace = FrameworkTrace()
        os.makedirs(trace.folder, exist_ok=True)
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(trace.folder, "profile")
        return trace

    def wrap_sessions(self) -> None:
        session_type = self._onnxruntime.InferenceSession
        original_init, original_run = session_type.__init__, session_type.run
        capture_instance = self

        @functools.wraps(original_init)
        def __init__(self, path_or_bytes, sess_options=None, *args, **kwargs):
            options = sess_options if sess_options is not None else capture_instance._onnxruntime.SessionOptions()
            trace = capture_instance.start_session_trace(options)
            try:
                original_init(self, path_or_bytes, options, *args, **kwargs)
            finally:
                if trace is not None:
                    options.enable_profiling = False  # the program may use the same options for another session
            self._joulemap_watched = TracedSession(path_or_bytes, trace)
            capture_instance._sessions.add(self)

        @functools.wraps(original_run)
        def traced_run(self, *args, **kwargs):
            traced_session = getattr(self, "_joulemap_watched", None)
            if traced_session is None:
                return original_run(self, *args, **kwargs)
            depth = traced_session.begin()
            try:
                return original_run(self, *args, **kwargs)
            finally:
                traced_session.end(self, depth)

        session_type.__init__, session_type.run = __init__, traced_run


@capture.suppress_failures
def install(onnxruntime) -> None:
    if not capture.is_recording():
        return
    OnnxRuntimeCapture(onnxruntime).wrap_sessions()
    capture.fact("onnxruntime", onnxruntime.__version__)
