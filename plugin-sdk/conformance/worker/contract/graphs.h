/* Captures that must succeed. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GRAPHS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GRAPHS_H

#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <tenon/ext/capture.h>

/* The plugin's table, complete. NULL where there is none, and the case ends. */
const tn_ext_capture *tc_capture_extension(tc_contract *k);

/* A device that cannot capture ends the case. */
bool tc_capture_begin(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream);
bool tc_capture_end(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream,
                    tn_graph_impl **out);
bool tc_graph_launch(tc_contract *k, const tn_ext_capture *ext, tn_graph_impl *graph,
                     tn_stream_impl *stream);

#endif
