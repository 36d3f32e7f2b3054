/* tenon/graph.h: capture of a device's work, and its replay.
 *
 * A step of a model is the same kernels with the same shapes every time. Captured once, they are put
 * on the device by one call, without the host's work for each of them:
 *
 *     tn_status step(void *user) {                  // runs once, in tn_graph_capture
 *         struct model *m = user;
 *         tn_optimizer_zero_grad(m->adamw);
 *         tn_tensor *loss = loss_of(m, m->x, m->y);
 *         tn_backward(loss);
 *         tn_copy_(m->loss, loss);
 *         return tn_optimizer_step(m->adamw);
 *     }
 *     tn_graph_capture(device, step, &m, &graph);   // records; nothing has run yet
 *     for (...) {
 *         tn_copy_(m.x, next_x);                    // inputs are replaced in place
 *         tn_graph_replay(graph);                   // runs the step
 *     }
 *     tn_graph_destroy(graph);
 *
 * What repeats is what the device does. What the host does happens once, while fn runs: its branches
 * and loops, numbers that it computes, version counters, the making of tensors and of autograd's
 * nodes. Three things follow each replay all the same, as they would another call of the step: random
 * numbers (each replay draws new ones, those that the step would have drawn), the count of steps of an
 * optimizer, and its learning rate. docs/graphs.md has more.
 *
 * One thread at a time replays or destroys a graph; different graphs do not disturb each other.
 */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_graph tn_graph;

/* Runs fn(user) with the calling thread's work on `device` recorded instead of run, and makes a graph
 * of it. {0, 0}: the default device. A graph of no work is one that does nothing.
 *
 * While fn runs, the thread's current stream of the device is one of the graph's own. Tensors that fn
 * makes have memory of the graph's own, which holds nothing until the first replay, is written anew by
 * each one, and is handed to nobody else while the graph lives: keep those that are results. Tensors
 * made before that fn works on are kept by the graph, and found at each replay as they are then.
 *
 * Work on other streams, and of other threads, goes on as ever. Not captured, and refused with
 * TN_ERR_STATE and the name of the call: reading on the host (tn_item, tn_to_host, printing, operators
 * whose result has a shape that depends on data), writing from host memory that is not pinned, waiting
 * (tn_synchronize, streams, events), another current stream, what the CPU would have to do in the
 * device's place, tensors of other devices (a number on the CPU, of no dimensions, is taken as it is
 * now), a capture or a replay. After one of these, or a failed allocation or call of the plugin,
 * the capture fails with that error, whatever fn returns.
 *
 * Fails with fn's status too, and with TN_ERR_UNSUPPORTED on a device that cannot capture: one that
 * computes at once ("cpu"), or whose plugin does not offer tenon.capture/1. *out is NULL then, nothing
 * has run, and the device is as before; what fn did on the host stays done. */
TN_API tn_status tn_graph_capture(tn_device device, tn_status (*fn)(void *user), void *user,
                                  tn_graph **out);

/* Queues one run of the graph on the calling thread's current stream of its device, behind what is
 * there and behind the graph's earlier runs, on whichever stream. What goes wrong in it is reported by
 * that stream, as ever. TN_ERR_STATE inside a capture. */
TN_API tn_status tn_graph_replay(tn_graph *graph);

/* Runs that are queued are finished. Tensors of the graph that are kept stay as they are. Before
 * tn_shutdown, which refuses while there are graphs. */
TN_API void tn_graph_destroy(tn_graph *graph);

TN_API tn_device tn_graph_device(const tn_graph *graph);

/* Does the calling thread capture? */
TN_API bool tn_is_capturing(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_GRAPH_H */
