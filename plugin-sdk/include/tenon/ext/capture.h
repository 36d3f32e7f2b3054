/* tenon/ext/capture.h: extension "tenon.capture/1", offered by plugins that can record the work of
 * a stream once and run it again as a whole, any number of times (CUDA graphs, command buffers, a
 * list of commands).
 *
 * Between `begin` and `end` or `abandon` a stream captures: what is queued on it, by whichever
 * thread, is recorded and does not run. Other streams, also of the same device, go on as ever and may
 * capture themselves; one capture has one stream. While a stream captures
 *   recorded   tn_kernel.run, copy, fill, copy_from_host with `src_pinned`, copy_to_host with
 *              `dst_pinned`: each with the handles, offsets, scalars and addresses that it was given;
 *              the bytes behind them, pinned ones too, are those that a launch finds
 *   refused    copy_from_host and copy_to_host of other host memory, copy_peer, query and synchronize
 *              of the stream, record and wait of events on it, begin, launch: TN_ERR_STATE, with a
 *              message, nothing done and nothing recorded, also of no bytes
 *   as ever    alloc, dealloc and info; events recorded before; prepare, supports and abandon of
 *              kernels; everything on another stream. Work queued before `begin` runs on
 * A kernel that cannot be recorded answers TN_ERR_UNSUPPORTED in `run`, which passes its record over.
 * What was recorded stays good, here and after what is refused. When any other call on the stream
 * fails, what was recorded is of no use and the host abandons it.
 *
 * A graph belongs to its device and to no stream. It keeps what its kernels need of the plugin
 * (programs, plans, parameters); memory that it names, the workspace of its kernels included, is the
 * host's to keep until `destroy` has returned. */
#ifndef TENON_EXT_CAPTURE_H
#define TENON_EXT_CAPTURE_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EXT_CAPTURE "tenon.capture/1"

/* Recorded work; a handle as those of plugin.h, completed by the plugin. */
typedef struct tn_graph_impl tn_graph_impl;

typedef struct tn_ext_capture {
    uint64_t struct_size;

    /* `stream` captures from now on; an error of work queued before stays to be reported after it.
     * TN_ERR_UNSUPPORTED: this device cannot; TN_ERR_STATE: the stream does already. [any-thread]
     * [device open] [required] */
    tn_status (*begin)(tn_stream_impl *stream);

    /* Ends the capture of `stream`, which is an ordinary stream again, whatever is answered, also
     * that there is no memory for the graph. What
     * another thread queues at the same time is recorded, runs or is refused. The graph may have
     * recorded nothing; on failure *out_graph is NULL. TN_ERR_STATE: the stream does not capture.
     * [any-thread] [device open] [required] */
    tn_status (*end)(tn_stream_impl *stream, tn_graph_impl **out_graph);

    /* Ends the capture and forgets what was recorded; nothing where the stream does not capture. A
     * capturing stream is ended or abandoned before it is destroyed. [any-thread] [device open]
     * [required] */
    void (*abandon)(tn_stream_impl *stream);

    /* Queues one run of the recorded work, in the order in which it was recorded, on a stream of
     * the graph's device, behind what is queued there, and behind earlier launches of this graph,
     * also those on other streams. Returns without waiting for either. What goes wrong in the work
     * is an error of `stream`, as if it had been queued there just now: an index out of range, too;
     * what was recorded behind it still runs. On failure nothing was queued. [any-thread] [device
     * open] [required] */
    tn_status (*launch)(tn_graph_impl *graph, tn_stream_impl *stream);

    /* Frees a graph once the launches still queued have run, for which it waits: when it returns the
     * memory that they name may be freed. [any-thread] [device open] [required] */
    void (*destroy)(tn_graph_impl *graph);

    /* From the next launch on `graph` does what `from`, another one of the same device, does,
     * behind its own earlier launches as ever; cheaper than to make `from` ready to be launched.
     * `from` is as it was, and may be destroyed. Queued launches run what they were launched with, and
     * are not waited for. TN_ERR_UNSUPPORTED: they differ by more than the driver can change; `graph`
     * is as it was. No thread launches, updates or destroys either at the same time. [any-thread]
     * [device open] [optional] */
    tn_status (*update)(tn_graph_impl *graph, tn_graph_impl *from);
} tn_ext_capture;

TN_LAST_MEMBER(tn_ext_capture, update);

#ifdef __cplusplus
}
#endif

#endif /* TENON_EXT_CAPTURE_H */
