/* Graphs, and what is launched of them: a copy, that later changes of the graph do not reach. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>

/* A graph that can be launched. Its launches come one after the other, in whatever streams. */
typedef struct executable {
    object head;
    plan *plan;
    item *latest;
} executable;

/* ---- graphs ------------------------------------------------------------------------------ */

graph *graph_create(void) {
    graph *g = take(1, sizeof(*g));
    object_init(&g->head, DOUBLE_GRAPH, NULL);
    return g;
}

static void nodes_free(node *nodes, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        work_drop(nodes[i].work);
        free(nodes[i].after);
    }
    free(nodes);
}

void graph_destroy(graph *g) {
    object_finish(&g->head);
    nodes_free(g->nodes, g->n_nodes);
    free(g);
}

static node node_of(work *w, uint32_t n_after, const uint32_t *after) {
    node made = {.work = w, .n_after = n_after, .after = take(n_after, sizeof(*after))};
    if (n_after)
        memcpy(made.after, after, n_after * sizeof(*after));
    return made;
}

uint32_t graph_add(graph *g, work *w, uint32_t n_after, const uint32_t *after) {
    if (g->n_nodes == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->nodes = take_again(g->nodes, g->room, sizeof(node));
    }
    g->nodes[g->n_nodes] = node_of(w, n_after, after);
    return g->n_nodes++;
}

static plan *plan_create(const graph *g) {
    plan *p = take(1, sizeof(*p));
    p->references = 1;
    p->n_nodes = g->n_nodes;
    p->nodes = take(g->n_nodes, sizeof(node));
    for (uint32_t i = 0; i < g->n_nodes; i++)
        p->nodes[i] = node_of(work_keep(g->nodes[i].work), g->nodes[i].n_after, g->nodes[i].after);
    return p;
}

void plan_drop(plan *p) {
    if (!p || --p->references)
        return;
    nodes_free(p->nodes, p->n_nodes);
    free(p);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n) {
    CUresult error = enter(CALL_cuGraphGetNodes, NEEDS_INIT, NULL);
    if (error)
        return error;
    graph *g = object_find(handle, DOUBLE_GRAPH);
    if (!g || !n)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (nodes) /* they have no handles */
        return leave(CUDA_ERROR_NOT_SUPPORTED);
    *n = g->n_nodes;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
    CUresult error = enter(CALL_cuGraphDestroy, NEEDS_INIT, NULL);
    if (error)
        return error;
    graph *g = object_find(handle, DOUBLE_GRAPH);
    for (capture *k = driver.captures; k; k = k->next)
        if (k->graph == g) /* is not the caller's before the end of the capture */
            g = NULL;
    if (!g)
        return leave(CUDA_ERROR_INVALID_VALUE);
    graph_destroy(g);
    return leave(CUDA_SUCCESS);
}

/* ---- launches ---------------------------------------------------------------------------- */

static void executable_destroy(executable *x) {
    object_finish(&x->head);
    plan_drop(x->plan);
    item_drop(x->latest);
    free(x);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle,
                                             unsigned long long flags) {
    CUresult error = enter(CALL_cuGraphInstantiateWithFlags, NEEDS_ALL, &(context *){NULL});
    if (error)
        return error;
    graph *g = object_find(handle, DOUBLE_GRAPH);
    unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                               CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!out || !g || (flags & ~known))
        return leave(CUDA_ERROR_INVALID_VALUE);
    executable *x = take(1, sizeof(*x));
    object_init(&x->head, DOUBLE_GRAPH_EXEC, NULL);
    x->plan = plan_create(g);
    *out = object_handle(&x->head);
    return leave(CUDA_SUCCESS);
}

/* A launch in a stream that captures: its nodes become the capture's. */
static CUresult splice(const plan *p, stream *s) {
    graph *g = s->capture->graph;
    uint32_t first = g->n_nodes;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        node n = node_of(NULL, p->nodes[i].n_after, p->nodes[i].after);
        for (uint32_t k = 0; k < n.n_after; k++)
            n.after[k] += first;
        bool root = n.n_after == 0;
        graph_add(g, work_keep(p->nodes[i].work), root ? s->n_frontier : n.n_after,
                  root ? s->frontier : n.after);
        free(n.after);
    }
    if (!p->n_nodes)
        return CUDA_SUCCESS;
    /* The next node comes after all of them. */
    free(s->frontier);
    s->frontier = take(p->n_nodes, sizeof(s->frontier[0]));
    s->n_frontier = p->n_nodes;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        s->frontier[i] = first + i;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuGraphLaunch, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(stream_handle, c, &s);
    executable *x = object_find(handle, DOUBLE_GRAPH_EXEC);
    if (!error && !x)
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error && s->capture)
        return leave(s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                         : splice(x->plan, s));
    if (!error)
        error = capture_refuses(s);
    if (error)
        return leave(error);
    x->plan->references++;
    item *place = item_keep(stream_push(s, NULL, x->plan, x->latest));
    item_drop(x->latest);
    x->latest = place;
    return leave(CUDA_SUCCESS);
}

/* ---- updates ----------------------------------------------------------------------------- */

static CUgraphExecUpdateResult compare(const plan *p, const graph *g) {
    if (p->n_nodes != g->n_nodes)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const node *a = &p->nodes[i], *b = &g->nodes[i];
        if (a->n_after != b->n_after ||
            memcmp(a->after, b->after, a->n_after * sizeof(a->after[0])) != 0)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (a->work->type != b->work->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (a->work->fixed != b->work->fixed)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                                      CUgraphExecUpdateResultInfo *out) {
    CUresult error = enter(CALL_cuGraphExecUpdate_v2, NEEDS_ALL, &(context *){NULL});
    if (error)
        return error;
    executable *x = object_find(handle, DOUBLE_GRAPH_EXEC);
    graph *g = object_find(graph_handle, DOUBLE_GRAPH);
    if (!x || !g || !out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    memset(out, 0, sizeof(*out));
    out->result = compare(x->plan, g);
    if (out->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    plan_drop(x->plan); /* launches under way keep theirs */
    x->plan = plan_create(g);
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
    CUresult error = enter(CALL_cuGraphExecDestroy, NEEDS_INIT, NULL);
    if (error)
        return error;
    executable *x = object_find(handle, DOUBLE_GRAPH_EXEC);
    if (!x)
        return leave(CUDA_ERROR_INVALID_VALUE);
    executable_destroy(x);
    return leave(CUDA_SUCCESS);
}

void graphs_forget(void) {
    for (object *o; (o = object_any(DOUBLE_GRAPH));)
        graph_destroy((graph *)o);
    for (object *o; (o = object_any(DOUBLE_GRAPH_EXEC));)
        executable_destroy((executable *)o);
}
