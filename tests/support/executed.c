/* What executed.py notes on CPython 3.11: which code is executed, and which of it is called by code of a patch.

   A profiler or a tracer makes each instruction slower there, and doubles the time of a short run. This takes its part
   when a function begins, and nothing else (PEP 523). */

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1 /* for the frame, which is no part of the public API */

#include <Python.h>
#include <internal/pycore_frame.h>
#include <string.h>

enum { EXECUTED = 1, CALLED = 2, OF_A_PATCH = 4 };

static PyObject *executed, *called; /* lists of code objects, which they keep alive */
static const char *patches;         /* part of the path of every file that belongs to a patch */
static const char *passes_on;       /* and of one whose calls are Lightning's own */
static Py_ssize_t place;            /* of the marks among what a code object carries for others */
static _PyFrameEvalFunction evaluate;

static uintptr_t marks_of(PyCodeObject *code)
{
    void *marks = NULL;
    _PyCode_GetExtra((PyObject *)code, place, &marks);
    return (uintptr_t)marks;
}

static int is_of_a_patch(PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    return file != NULL && strstr(file, patches) != NULL && strstr(file, passes_on) == NULL;
}

static void mark(PyCodeObject *code, uintptr_t before, uintptr_t after)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* a generator may begin with an exception that is thrown into it */
    if (!(before & EXECUTED)) {
        PyList_Append(executed, (PyObject *)code);
        if (is_of_a_patch(code))
            after |= OF_A_PATCH;
    }
    if (after & ~before & CALLED)
        PyList_Append(called, (PyObject *)code);
    _PyCode_SetExtra((PyObject *)code, place, (void *)after);
    PyErr_Restore(type, value, traceback);
}

static PyObject *note_and_evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int is_thrown_into)
{
    PyCodeObject *code = frame->f_code;
    uintptr_t before = marks_of(code), after = before | EXECUTED;
    if (!(before & CALLED)) {
        _PyInterpreterFrame *caller = thread->cframe->current_frame;
        if (caller != NULL && marks_of(caller->f_code) & OF_A_PATCH)
            after |= CALLED;
    }
    if (after != before)
        mark(code, before, after);
    return evaluate(thread, frame, is_thrown_into);
}

static PyObject *note(PyObject *module, PyObject *arguments)
{
    const char *part, *other;
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    if (executed != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "it is noted already what this process executes");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "ssO!O!", &part, &other, &PyList_Type, &executed, &PyList_Type, &called))
        return NULL;
    patches = strdup(part);
    passes_on = strdup(other);
    place = _PyEval_RequestCodeExtraIndex(NULL);
    if (patches == NULL || passes_on == NULL || place < 0) {
        PyErr_SetString(PyExc_RuntimeError, "code objects have no place left for the marks");
        return NULL;
    }
    Py_INCREF(executed);
    Py_INCREF(called);
    evaluate = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, note_and_evaluate);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"note", note, METH_VARARGS, "note(patches, passes_on, executed, called): add code to the two lists from now on"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_executed", NULL, -1, functions};

PyMODINIT_FUNC PyInit__executed(void)
{
    return PyModule_Create(&definition);
}
