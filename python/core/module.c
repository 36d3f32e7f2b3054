/* tenon._core: the module. */
#include "python/core/core.h"

#include <math.h>

static int fill(PyObject *module) {
    /* operators first: what is written by hand takes the place of an operator of the same name */
    if (tnp_errors_init(module) < 0 || tnp_dtypes_init(module) < 0 ||
        tnp_devices_init(module) < 0 || tnp_operators_init(module) < 0 ||
        tnp_tensors_init(module) < 0 || tnp_exchange_init() < 0 || tnp_optim_init(module) < 0)
        return -1;
    PyMethodDef *const lists[] = {
        tnp_dtype_functions,   tnp_device_functions, tnp_data_functions,  tnp_autograd_functions,
        tnp_dlpack_functions,  tnp_optim_functions,  tnp_file_functions,  tnp_custom_functions,
        tnp_profile_functions, tnp_graph_functions,  tnp_loader_functions};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (PyModule_AddFunctions(module, lists[i]) < 0)
            return -1;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"inf", INFINITY},
                   {"nan", NAN},
                   {"pi", 3.14159265358979323846},
                   {"e", 2.71828182845904523536}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        PyObject *value = PyFloat_FromDouble(numbers[i].value);
        if (!value || PyModule_AddObjectRef(module, numbers[i].name, value) < 0)
            return -1;
        Py_DECREF(value);
    }
    if (PyModule_AddIntConstant(module, "_max_rank", TN_MAX_RANK) < 0)
        return -1;
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "tenon._core", .m_doc = "The C part of the package tenon.",
    .m_size = -1, /* one for the process: libtenon is one, too */
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && fill(module) < 0)
        Py_CLEAR(module);
    return module;
}
