// SPDX-License-Identifier: Apache-2.0
//
// joulemap._hot: the calls inside measured code, on Python's stable ABI, so that one build serves Python 3.9 and later.
// Calls that may be slow use ctypes instead (_library.py). The GIL is held throughout: no call here blocks, except the
// first begin_window(), which opens the sensors.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <structmember.h>
#include <time.h>

#include "joulemap/joulemap.h"

namespace {

// Python object with a name and, for windows, an id: the common layout of Window and Region.
struct NamedObject {
  PyObject_HEAD PyObject* name;
  unsigned long long id;
  char ended;
};

NamedObject* as_named_object(PyObject* self) { return reinterpret_cast<NamedObject*>(self); }

PyObject* new_named_object(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* name = nullptr;
  if (kwargs == nullptr && PyTuple_Size(args) == 1) {
    name = PyTuple_GetItem(args, 0);  // fast path for the usual call
  } else {
    static const char* keywords[] = {"name", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(keywords), &name)) return nullptr;
  }
  if (!PyUnicode_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "a name must be a str");
    return nullptr;
  }
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(name);
  as_named_object(self)->name = name;
  return self;
}

// Calls use(name as UTF-8), or use(nullptr) when nothing is recorded. Returns false when Python has raised.
template <class Use>
bool call_with_utf8_name(PyObject* name, Use use) {
  if (jm_is_recording() == 0) {
    use(nullptr);
    return true;
  }
  PyObject* const bytes = PyUnicode_AsUTF8String(name);
  if (bytes == nullptr) return false;
  use(PyBytes_AsString(bytes));
  Py_DECREF(bytes);
  return true;
}

PyObject* raise_last_error() {
  PyErr_SetString(PyExc_RuntimeError, jm_last_error());
  return nullptr;
}

bool begin_window(NamedObject* window) {
  if (window->id != 0) jm_window_free(window->id);
  window->id = 0;
  window->ended = 0;
  if (!call_with_utf8_name(window->name, [window](const char* name) { window->id = jm_begin(name); })) return false;
  if (window->id == 0) raise_last_error();
  return window->id != 0;
}

// Idempotent; no effect in a child of the process that began the window.
void end_window(NamedObject* window) {
  if (window->ended != 0) return;
  jm_end(window->id);
  window->ended = 1;
}

PyObject* window_begin(PyObject* self, PyObject*) {
  if (!begin_window(as_named_object(self))) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* window_end(PyObject* self, PyObject*) {
  end_window(as_named_object(self));
  Py_RETURN_NONE;
}

PyObject* window_exit(PyObject* self, PyObject*) {
  end_window(as_named_object(self));
  Py_RETURN_NONE;  // an exception inside the block propagates
}

PyObject* window_release(PyObject* self, PyObject*) {
  jm_window_free(as_named_object(self)->id);
  as_named_object(self)->id = 0;
  Py_RETURN_NONE;
}

void dealloc_named_object(PyObject* self) {
  if (as_named_object(self)->id != 0) jm_window_free(as_named_object(self)->id);
  Py_XDECREF(as_named_object(self)->name);
  PyTypeObject* const type = Py_TYPE(self);
  const auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

PyObject* region_enter(PyObject* self, PyObject*) {
  if (!call_with_utf8_name(as_named_object(self)->name, [](const char* name) { jm_region_push(name); })) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* region_exit(PyObject*, PyObject*) {
  jm_region_pop();
  Py_RETURN_NONE;
}

PyObject* mark_step_or_epoch(PyObject* number, int (*mark)(const int64_t*)) {
  if (number == Py_None) {
    mark(nullptr);
    Py_RETURN_NONE;
  }
  const int64_t value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (mark(&value) == JM_OK) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, jm_last_error());
  return nullptr;
}

PyObject* step(PyObject*, PyObject* number) { return mark_step_or_epoch(number, &jm_step); }
PyObject* epoch(PyObject*, PyObject* number) { return mark_step_or_epoch(number, &jm_epoch); }
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(jm_is_recording()); }

PyObject* log_value(PyObject*, PyObject* args) {
  PyObject* name = nullptr;
  double value = 0;
  if (!PyArg_ParseTuple(args, "Od", &name, &value)) return nullptr;
  if (!call_with_utf8_name(name, [value](const char* text) { jm_log(text, value); })) return nullptr;
  Py_RETURN_NONE;
}

// A forward step of a serving engine: collects its requests and reports them when it ends. Without a recording its
// methods return at once.
struct EngineStep {
  PyObject_HEAD jm_request_work* requests;
  size_t count;
  size_t capacity;
  PyObject* texts;  // list of bytes objects that `requests` points into
  int64_t begin_ns;
};

EngineStep* engine_step(PyObject* self) { return reinterpret_cast<EngineStep*>(self); }

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

PyObject* step_enter(PyObject* self, PyObject*) {
  engine_step(self)->count = 0;
  engine_step(self)->begin_ns = jm_is_recording() != 0 ? now_ns() : 0;
  Py_INCREF(self);
  return self;
}

// Appends the UTF-8 text of a value (str() of anything but a str) to `texts`; nullptr when Python has raised.
const char* append_utf8_text(EngineStep* step, PyObject* value) {
  PyObject* const text = PyUnicode_Check(value) ? value : PyObject_Str(value);
  if (text == nullptr) return nullptr;
  PyObject* const bytes = PyUnicode_AsUTF8String(text);
  if (text != value) Py_DECREF(text);
  if (bytes == nullptr) return nullptr;
  const int appended = PyList_Append(step->texts, bytes);
  Py_DECREF(bytes);  // the list keeps it
  return appended == 0 ? PyBytes_AsString(bytes) : nullptr;
}

bool reserve_request_slot(EngineStep* step) {
  if (step->texts == nullptr && (step->texts = PyList_New(0)) == nullptr) return false;
  if (step->count < step->capacity) return true;
  const size_t capacity = step->capacity == 0 ? 16 : 2 * step->capacity;
  void* const larger = PyMem_Realloc(step->requests, capacity * sizeof(jm_request_work));
  if (larger == nullptr) return PyErr_NoMemory() != nullptr;
  step->requests = static_cast<jm_request_work*>(larger);
  step->capacity = capacity;
  return true;
}

// Converter of PyArg_ParseTupleAndKeywords for a token count. The format "I" would wrap modulo 2^32.
int convert_token_count(PyObject* value, void* token_count) {
  PyObject* const integer = PyNumber_Index(value);
  if (integer == nullptr) return 0;
  int overflow = 0;
  const long long count = PyLong_AsLongLongAndOverflow(integer, &overflow);
  Py_DECREF(integer);
  if (overflow != 0 || count < 0 || count > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "a number of tokens must be from 0 to %lu, not %R",
                 static_cast<unsigned long>(UINT32_MAX), value);
    return 0;
  }
  *static_cast<uint32_t*>(token_count) = static_cast<uint32_t>(count);
  return 1;
}

PyObject* step_add(PyObject* self, PyObject* args, PyObject* kwargs) {
  EngineStep* const step = engine_step(self);
  if (step->begin_ns == 0) Py_RETURN_NONE;
  static const char* names[] = {"id",       "prompt",    "decoded", "context", "cached", "rejected",
                                "finished", "preempted", "aborted", "tenant",  "model",  nullptr};
  PyObject *id = nullptr, *tenant = Py_None, *model = Py_None;
  jm_request_work work{};
  work.size = sizeof work;
  int finished = 0, preempted = 0, aborted = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&O&O&O&O&pppOO", const_cast<char**>(names), &id,
                                   convert_token_count, &work.prompt_tokens, convert_token_count, &work.decoded_tokens,
                                   convert_token_count, &work.context_tokens, convert_token_count, &work.cached_tokens,
                                   convert_token_count, &work.rejected_tokens, &finished, &preempted, &aborted, &tenant,
                                   &model)) {
    return nullptr;
  }
  if (!reserve_request_slot(step)) return nullptr;
  if ((work.id = append_utf8_text(step, id)) == nullptr) return nullptr;
  if (tenant != Py_None && (work.tenant = append_utf8_text(step, tenant)) == nullptr) return nullptr;
  if (model != Py_None && (work.model = append_utf8_text(step, model)) == nullptr) return nullptr;
  work.events =
      (finished != 0 ? JM_FINISHED : 0) | (preempted != 0 ? JM_PREEMPTED : 0) | (aborted != 0 ? JM_ABORTED : 0);
  step->requests[step->count++] = work;
  Py_RETURN_NONE;
}

// Reports the step that began at `begin_ns` and ends now, and forgets its requests.
bool report_step(EngineStep* step, int64_t begin_ns, int64_t end_ns) {
  const jm_engine_step_work work{sizeof work, begin_ns, end_ns, step->requests, step->count};
  const int status = jm_engine_step(&work);
  step->count = 0;
  if (step->texts != nullptr && PyList_SetSlice(step->texts, 0, PyList_Size(step->texts), nullptr) != 0) return false;
  if (status != JM_OK) raise_last_error();
  return status == JM_OK;
}

PyObject* step_exit(PyObject* self, PyObject*) {
  EngineStep* const step = engine_step(self);
  const int64_t begin_ns = step->begin_ns;
  step->begin_ns = 0;
  if (begin_ns != 0 && !report_step(step, begin_ns, now_ns())) return nullptr;
  Py_RETURN_NONE;  // an exception inside the block propagates
}

void dealloc_step(PyObject* self) {
  PyMem_Free(engine_step(self)->requests);
  Py_XDECREF(engine_step(self)->texts);
  PyTypeObject* const type = Py_TYPE(self);
  const auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

PyMethodDef kStepMethods[] = {
    {"add", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(step_add)), METH_VARARGS | METH_KEYWORDS,
     "add(id, prompt=0, decoded=0, context=0, cached=0, rejected=0, finished=False, preempted=False, aborted=False, "
     "tenant=None, model=None)"},
    {"__enter__", step_enter, METH_NOARGS, nullptr},
    {"__exit__", step_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot kStepSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_step)}, {Py_tp_methods, kStepMethods}, {0, nullptr}};
PyType_Spec kStepSpec = {"joulemap.engine_step", sizeof(EngineStep), 0, Py_TPFLAGS_DEFAULT, kStepSlots};

// engine_event(id, events): an event outside of a step.
PyObject* engine_event(PyObject*, PyObject* args) {
  PyObject* id = nullptr;
  jm_request_work work{};
  work.size = sizeof work;
  if (!PyArg_ParseTuple(args, "OI", &id, &work.events)) return nullptr;
  if (jm_is_recording() == 0) Py_RETURN_NONE;
  EngineStep step{};
  step.texts = PyList_New(0);
  if (step.texts == nullptr) return nullptr;
  work.id = append_utf8_text(&step, id);
  step.requests = &work;
  step.count = 1;
  const int64_t time_ns = now_ns();
  const bool reported = work.id != nullptr && report_step(&step, time_ns, time_ns);
  Py_DECREF(step.texts);
  if (!reported) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef kWindowMethods[] = {{"begin", window_begin, METH_NOARGS, "Opens the window, again if it was open."},
                                {"end", window_end, METH_NOARGS, "Closes the window. No effect if it is closed."},
                                {"release", window_release, METH_NOARGS, "Frees the window."},
                                {"__enter__", window_begin, METH_NOARGS, nullptr},
                                {"__exit__", window_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyMemberDef kWindowMembers[] = {{"name", T_OBJECT_EX, offsetof(NamedObject, name), READONLY, nullptr},
                                {"id", T_ULONGLONG, offsetof(NamedObject, id), READONLY, nullptr},
                                {"ended", T_BOOL, offsetof(NamedObject, ended), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyType_Slot kWindowSlots[] = {{Py_tp_new, reinterpret_cast<void*>(new_named_object)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_named_object)},
                              {Py_tp_methods, kWindowMethods},
                              {Py_tp_members, kWindowMembers},
                              {0, nullptr}};
PyType_Spec kWindowSpec = {"joulemap._hot.Window", sizeof(NamedObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           kWindowSlots};

PyMethodDef kRegionMethods[] = {{"__enter__", region_enter, METH_NOARGS, nullptr},
                                {"__exit__", region_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyType_Slot kRegionSlots[] = {{Py_tp_new, reinterpret_cast<void*>(new_named_object)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_named_object)},
                              {Py_tp_methods, kRegionMethods},
                              {0, nullptr}};
PyType_Spec kRegionSpec = {"joulemap.region", sizeof(NamedObject), 0, Py_TPFLAGS_DEFAULT, kRegionSlots};

PyMethodDef kExtensionFunctions[] = {{"step", step, METH_O, "step(number or None)"},
                                     {"epoch", epoch, METH_O, "epoch(number or None)"},
                                     {"log_value", log_value, METH_VARARGS, "log_value(name, value)"},
                                     {"engine_event", engine_event, METH_VARARGS, "engine_event(id, events)"},
                                     {"is_recording", is_recording, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};

PyModuleDef kExtensionModule = {
    PyModuleDef_HEAD_INIT, "_hot", nullptr, -1, kExtensionFunctions, nullptr, nullptr, nullptr, nullptr};

bool add_type(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* const type = PyType_FromSpec(spec);
  if (type != nullptr && PyModule_AddObject(module, name, type) == 0) return true;
  Py_XDECREF(type);
  return false;
}

}  // namespace

PyMODINIT_FUNC PyInit__hot(void) {
  PyObject* const module = PyModule_Create(&kExtensionModule);
  if (module == nullptr) return nullptr;
  if (add_type(module, "Window", &kWindowSpec) && add_type(module, "Region", &kRegionSpec) &&
      add_type(module, "EngineStep", &kStepSpec)) {
    return module;
  }
  Py_DECREF(module);
  return nullptr;
}
