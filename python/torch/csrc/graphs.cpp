/* Work of a device that is recorded once and replayed, for compiled graphs of PyTorch (tenon_torch/_capture.py). */
#include "python/torch/csrc/bridge.h"

#include <pybind11/pybind11.h>
#include <tenon/graph.h>
#include <tenon/storage.h>
#include <torch/csrc/utils/pybind.h>

namespace tenon_torch {

namespace {

class Graph {
  public:
    /* Calls `work`, whose calls on the device are recorded and do not run. What it raises is raised here. */
    Graph(int index, const pybind11::function &work) {
        Recording recording{work, nullptr};
        tn_status status = tn_graph_capture(device_at(static_cast<c10::DeviceIndex>(index)), record,
                                            &recording, &graph);
        if (recording.error != nullptr) {
            tn_error_clear();
            tn_graph_destroy(graph);
            std::rethrow_exception(recording.error);
        }
        check(status);
    }
    ~Graph() {
        pybind11::gil_scoped_release free; /* it waits for runs that are queued */
        tn_graph_destroy(graph);
    }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    void replay() {
        check(tn_graph_replay(graph));
    }

  private:
    struct Recording {
        const pybind11::function &work;
        std::exception_ptr error;
    };
    static tn_status record(void *user) {
        auto *recording = static_cast<Recording *>(user);
        try {
            recording->work();
        } catch (...) {
            recording->error = std::current_exception();
            return TN_ERR_STATE;
        }
        return TN_OK;
    }
    tn_graph *graph = nullptr;
};

/* Where a tensor's elements are, whatever tensor they are seen through. */
std::pair<uintptr_t, int64_t> place(const at::Tensor &t) {
    tn_storage *storage = t.numel() == 0 ? nullptr : storage_of(t.storage().data_ptr());
    return {reinterpret_cast<uintptr_t>(storage), t.storage_offset()};
}

/* The same elements through a storage of PyTorch's own, which ends when nobody uses this tensor or what was made of it. */
at::Tensor alias(const at::Tensor &t) {
    TN_SCOPE;
    return t.numel() == 0 ? t : adopt(borrow(t));
}

} // namespace

void bind_graphs(pybind11::module_ &m) {
    pybind11::class_<Graph>(m, "Graph")
        .def(pybind11::init<int, const pybind11::function &>())
        .def("replay", &Graph::replay);
    m.def("place", place);
    m.def("alias", alias);
}

} // namespace tenon_torch
