/* See graph.h. compare.py sets PEER_CUDA where libtorch and the headers of CUDA are there. */
#include "bench/peer/graph.h"

#include "bench/peer/peer.h"

#if PEER_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>

struct peer_graph::captured {
    at::cuda::CUDAGraph graph;
};

/* On a stream of its own, as PyTorch asks for. */
peer_graph::peer_graph(const std::function<void()> &step) {
    if (!peer_device().is_cuda())
        return;
    peer_wait();
    graph = std::make_unique<captured>();
    c10::StreamGuard guard(c10::cuda::getStreamFromPool(false, peer_device().index()).unwrap());
    for (int i = 0; i < 3; i++)
        step();
    peer_wait();
    graph->graph.capture_begin();
    step();
    graph->graph.capture_end();
}

void peer_graph::replay() {
    graph->graph.replay();
}
#else
struct peer_graph::captured {};

peer_graph::peer_graph(const std::function<void()> &) {}

void peer_graph::replay() {}
#endif

peer_graph::~peer_graph() = default;

bool peer_graph::is_there() const {
    return graph != nullptr;
}
