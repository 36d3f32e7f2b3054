/* stream.h: queues of jobs. */
#ifndef NPU_STREAM_H
#define NPU_STREAM_H

#include <tenon/plugin.h>

extern const tn_stream_ops npu_stream_ops;
extern const tn_event_ops npu_event_ops;

#define NPU_STREAMS &npu_stream_ops
#define NPU_EVENTS &npu_event_ops

/* Work in a queue; the first member of something larger. `run` is called once, on the stream's
 * thread, and may free the job. A failure's message, a constant, goes to `*out_message`. */
struct npu_job {
    struct npu_job *next;
    tn_status (*run)(struct npu_job *job, const char **out_message);
};

/* Appends a job, and returns its place in the queue. */
uint64_t npu_push(tn_stream_impl *stream, struct npu_job *job);

/* Waits until the job at `place` has run. */
void npu_wait(tn_stream_impl *stream, uint64_t place);

/* Host memory for a job; NULL, with the message, when there is none. */
void *npu_new_job(tn_device_impl *device, uint64_t bytes);

#endif /* NPU_STREAM_H */
