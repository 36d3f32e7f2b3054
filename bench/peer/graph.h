/* A step that is captured once and replayed. */
#ifndef TNI_BENCH_PEER_GRAPH_H
#define TNI_BENCH_PEER_GRAPH_H

#include <functional>
#include <memory>

class peer_graph {
  public:
    /* Runs the step a few times, then captures it. */
    explicit peer_graph(const std::function<void()> &step);
    ~peer_graph();
    bool is_there() const; /* not on the CPU, nor in a libtorch without CUDA */
    void replay();

  private:
    struct captured;
    std::unique_ptr<captured> graph;
};

#endif
