/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture of streams into graphs. A capture begins in one stream; others join it by waiting for
 * an event that was recorded in it, and must be joined back before it ends. A call that cannot be
 * part of a graph spoils the capture: everything it touches fails until it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct drv_capture {
    uint64_t id;
    struct cu_stream *origin;
    struct cu_graph *graph;
    int mode;
    pthread_t thread;
    bool spoilt;
    struct cu_stream *streams[DBL_STREAMS];
    size_t count;
    struct drv_capture *next;
};

static struct {
    pthread_mutex_t mutex;
    struct drv_capture *all;
    uint64_t next_id;
} captures = {PTHREAD_MUTEX_INITIALIZER, NULL, 1};

_Atomic uint32_t drv_captures;

static void set_deps(struct cu_stream *stream, struct cu_node *const *nodes, size_t count)
{
    struct cu_node **deps = calloc(count + 1, sizeof(struct cu_node *));

    if (deps == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        deps[i] = nodes[i];
    free(stream->deps);
    stream->deps = deps;
    stream->dep_count = count;
}

static void join(struct drv_capture *capture, struct cu_stream *stream)
{
    capture->streams[capture->count++] = stream;
    atomic_store(&stream->capture, capture);
    if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        atomic_fetch_add(&stream->ctx->blocking_captures, 1);
}

static void leave(struct cu_stream *stream)
{
    if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        atomic_fetch_sub(&stream->ctx->blocking_captures, 1);
    atomic_store(&stream->capture, NULL);
    free(stream->deps);
    stream->deps = NULL;
    stream->dep_count = 0;
}

cu_result drv_capture_spoil(struct cu_stream *stream)
{
    struct drv_capture *capture;

    pthread_mutex_lock(&captures.mutex);
    capture = atomic_load(&stream->capture);
    if (capture != NULL)
        capture->spoilt = true;
    pthread_mutex_unlock(&captures.mutex);
    return CU_CAPTURE_UNSUPPORTED;
}

cu_result drv_capture_implicit(struct cu_ctx *ctx)
{
    pthread_mutex_lock(&captures.mutex);
    for (struct drv_capture *c = captures.all; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++)
            if (c->streams[i]->ctx == ctx && !(c->streams[i]->flags & CU_STREAM_NON_BLOCKING))
                c->spoilt = true;
    pthread_mutex_unlock(&captures.mutex);
    return CU_CAPTURE_IMPLICIT;
}

/*
 * A capture in global mode forbids such calls to every thread, one in thread-local mode to the
 * thread that began it; a thread that has switched to relaxed mode is not forbidden anything.
 */
cu_result drv_capture_forbids(struct cu_ctx *ctx)
{
    cu_result result = CU_OK;

    if (__builtin_expect(atomic_load_explicit(&drv_captures, memory_order_relaxed) == 0, 1) ||
        drv_thread.capture_mode == CU_CAPTURE_RELAXED)
        return CU_OK;
    pthread_mutex_lock(&captures.mutex);
    for (struct drv_capture *c = captures.all; c != NULL; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());

        if (c->mode == CU_CAPTURE_RELAXED ||
            (!mine &&
             (c->mode != CU_CAPTURE_GLOBAL || drv_thread.capture_mode != CU_CAPTURE_GLOBAL)))
            continue;
        c->spoilt = true;
        result = CU_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

static cu_result begin(struct cu_stream *handle, int mode, bool per_thread)
{
    struct cu_stream *stream;
    struct drv_capture *capture;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (mode < CU_CAPTURE_GLOBAL || mode > CU_CAPTURE_RELAXED)
        return CU_INVALID_VALUE;
    if (stream->legacy)
        return CU_CAPTURE_UNSUPPORTED;
    if (drv_capturing(stream))
        return CU_ILLEGAL_STATE;
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL)
        return CU_OUT_OF_MEMORY;
    capture->graph = graph_new();
    if (capture->graph == NULL) {
        free(capture);
        return CU_OUT_OF_MEMORY;
    }
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    pthread_mutex_lock(&captures.mutex);
    capture->id = captures.next_id++;
    capture->next = captures.all;
    captures.all = capture;
    join(capture, stream);
    atomic_fetch_add(&drv_captures, 1);
    pthread_mutex_unlock(&captures.mutex);
    return CU_OK;
}

cu_result cuStreamBeginCapture(struct cu_stream *stream)
{
    ENTER();
    return begin(stream, CU_CAPTURE_GLOBAL, false);
}

cu_result cuStreamBeginCapture_ptsz(struct cu_stream *stream)
{
    ENTER();
    return begin(stream, CU_CAPTURE_GLOBAL, true);
}

cu_result cuStreamBeginCapture_v2(struct cu_stream *stream, int mode)
{
    ENTER();
    return begin(stream, mode, false);
}

cu_result cuStreamBeginCapture_v2_ptsz(struct cu_stream *stream, int mode)
{
    ENTER();
    return begin(stream, mode, true);
}

/* Marks what NODE depends on; nodes come after their dependencies, so one pass backwards does. */
static bool all_joined(const struct drv_capture *capture)
{
    const struct cu_graph *graph = capture->graph;
    _cleanup_free_ bool *seen = calloc(graph->count + 1, sizeof(*seen));
    bool joined = true;

    if (seen == NULL)
        return false;
    for (size_t i = 0; i < capture->origin->dep_count; i++)
        seen[capture->origin->deps[i]->index] = true;
    for (size_t i = graph->count; i-- > 0;)
        for (size_t d = 0; seen[i] && d < graph->nodes[i]->dep_count; d++)
            seen[graph->nodes[i]->deps[d]->index] = true;
    for (size_t s = 0; s < capture->count; s++)
        for (size_t d = 0; d < capture->streams[s]->dep_count; d++)
            joined = joined && seen[capture->streams[s]->deps[d]->index];
    return joined;
}

/* With the mutex. */
static void end_capture(struct drv_capture *capture)
{
    struct drv_capture **at = &captures.all;

    for (size_t i = 0; i < capture->count; i++)
        leave(capture->streams[i]);
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    atomic_fetch_sub(&drv_captures, 1);
    free(capture);
}

static cu_result end(struct cu_stream *handle, struct cu_graph **ret_graph, bool per_thread)
{
    struct cu_stream *stream;
    struct drv_capture *capture;
    struct cu_graph *graph = NULL;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (ret_graph == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&captures.mutex);
    capture = atomic_load(&stream->capture);
    if (capture == NULL) {
        result = CU_ILLEGAL_STATE;
    } else if (capture->origin != stream) {
        result = CU_CAPTURE_UNMATCHED;
    } else if (capture->mode != CU_CAPTURE_RELAXED &&
               !pthread_equal(capture->thread, pthread_self())) {
        result = CU_CAPTURE_WRONG_THREAD;
    } else {
        if (capture->spoilt)
            result = CU_CAPTURE_INVALIDATED;
        else if (!all_joined(capture))
            result = CU_CAPTURE_UNJOINED;
        graph = capture->graph;
        end_capture(capture);
    }
    pthread_mutex_unlock(&captures.mutex);
    if (result != CU_OK) {
        graph_free(graph);
        graph = NULL;
    }
    *ret_graph = graph;
    return result;
}

cu_result cuStreamEndCapture(struct cu_stream *stream, struct cu_graph **ret_graph)
{
    ENTER();
    return end(stream, ret_graph, false);
}

cu_result cuStreamEndCapture_ptsz(struct cu_stream *stream, struct cu_graph **ret_graph)
{
    ENTER();
    return end(stream, ret_graph, true);
}

/* A node of TYPE at the end of STREAM, which it then ends with. */
static cu_result append(struct cu_stream *stream, int type, struct cu_node **ret_node)
{
    struct drv_capture *capture = atomic_load(&stream->capture);
    cu_result result;

    if (capture == NULL)
        return CU_CAPTURE_INVALIDATED;
    if (capture->spoilt)
        return CU_CAPTURE_INVALIDATED;
    result = graph_add(capture->graph, type, stream->deps, stream->dep_count, ret_node);
    if (result == CU_OK)
        set_deps(stream, ret_node, 1);
    return result;
}

cu_result drv_capture_kernel(struct cu_stream *stream, const struct drv_launch *launch)
{
    struct cu_node *node;
    cu_result result;

    pthread_mutex_lock(&captures.mutex);
    result = append(stream, CU_NODE_KERNEL, &node);
    if (result == CU_OK)
        node->launch = *launch;
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

cu_result drv_capture_host(struct cu_stream *stream, cu_host_fn *fn, void *data)
{
    struct cu_node *node;
    cu_result result;

    pthread_mutex_lock(&captures.mutex);
    result = append(stream, CU_NODE_HOST, &node);
    if (result == CU_OK) {
        node->fn = fn;
        node->data = data;
    }
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

cu_result drv_capture_copy(struct cu_stream *stream, uint64_t ns, bool set)
{
    struct cu_node *node;
    cu_result result;

    pthread_mutex_lock(&captures.mutex);
    result = append(stream, set ? CU_NODE_MEMSET : CU_NODE_MEMCPY, &node);
    if (result == CU_OK)
        node->copy_ns = ns;
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

cu_result drv_capture_alloc(struct cu_stream *stream, uint64_t bytes, cu_devptr *ret_ptr)
{
    struct cu_node *node;
    cu_result result;

    pthread_mutex_lock(&captures.mutex);
    result = append(stream, CU_NODE_MEM_ALLOC, &node);
    if (result == CU_OK)
        result = graph_alloc_address(stream->ctx, bytes, node);
    if (result == CU_OK)
        *ret_ptr = node->ptr;
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

cu_result drv_capture_free(struct cu_stream *stream, cu_devptr ptr)
{
    struct cu_node *node;
    cu_result result;

    pthread_mutex_lock(&captures.mutex);
    result = append(stream, CU_NODE_MEM_FREE, &node);
    if (result == CU_OK)
        node->ptr = ptr;
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

/* No node: the event stands for where its stream is. */
cu_result drv_capture_record(struct cu_stream *stream, struct cu_event *event)
{
    struct drv_capture *capture;
    cu_result result = CU_OK;

    pthread_mutex_lock(&captures.mutex);
    capture = atomic_load(&stream->capture);
    if (capture == NULL || capture->spoilt) {
        result = CU_CAPTURE_INVALIDATED;
    } else {
        free(event->nodes);
        event->nodes = calloc(stream->dep_count + 1, sizeof(struct cu_node *));
        event->node_count = event->nodes != NULL ? stream->dep_count : 0;
        for (size_t i = 0; i < event->node_count; i++)
            event->nodes[i] = stream->deps[i];
        event->capture = capture->id;
    }
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

static struct drv_capture *by_id(uint64_t id)
{
    struct drv_capture *c = captures.all;

    while (c != NULL && c->id != id)
        c = c->next;
    return c;
}

static cu_result add_deps(struct cu_stream *stream, const struct cu_event *event)
{
    size_t count = stream->dep_count;
    _cleanup_free_ struct cu_node **deps =
        calloc(count + event->node_count + 1, sizeof(struct cu_node *));

    if (deps == NULL)
        return CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        deps[i] = stream->deps[i];
    for (size_t i = 0; i < event->node_count; i++)
        deps[count++] = event->nodes[i];
    set_deps(stream, deps, count);
    return CU_OK;
}

cu_result drv_capture_wait(struct cu_stream *stream, struct cu_event *event)
{
    struct drv_capture *mine, *its;
    cu_result result = CU_OK;

    pthread_mutex_lock(&captures.mutex);
    mine = atomic_load(&stream->capture);
    its = event->capture != 0 ? by_id(event->capture) : NULL;
    if (event->capture != 0 && its == NULL) {
        result = CU_CAPTURED_EVENT; /* of a capture that has ended */
    } else if (its == NULL) {
        mine->spoilt = true;
        result = CU_CAPTURE_ISOLATION;
    } else if (mine != NULL && mine != its) {
        mine->spoilt = its->spoilt = true;
        result = CU_CAPTURE_MERGE;
    } else if (its->spoilt || (mine == NULL && its->count == DBL_STREAMS)) {
        result = CU_CAPTURE_INVALIDATED;
    } else if (mine == NULL && stream->legacy) {
        its->spoilt = true;
        result = CU_CAPTURE_IMPLICIT;
    } else {
        if (mine == NULL)
            join(its, stream);
        result = add_deps(stream, event);
    }
    pthread_mutex_unlock(&captures.mutex);
    return result;
}

int drv_capture_status(const struct cu_stream *stream)
{
    struct drv_capture *capture;
    int status = CU_CAPTURE_NONE;

    pthread_mutex_lock(&captures.mutex);
    capture = atomic_load(&stream->capture);
    if (capture != NULL)
        status = capture->spoilt ? CU_CAPTURE_INVALID : CU_CAPTURE_ACTIVE;
    pthread_mutex_unlock(&captures.mutex);
    return status;
}

struct info {
    int status;
    uint64_t id;
    struct cu_graph *graph;
    struct cu_node *const *nodes;
    size_t count;
};

static cu_result info(struct cu_stream *handle, bool per_thread, int *ret_status, struct info *info)
{
    struct cu_stream *stream;
    struct drv_capture *capture;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (ret_status == NULL)
        return CU_INVALID_VALUE;
    *info = (struct info){.status = drv_capture_status(stream)};
    pthread_mutex_lock(&captures.mutex);
    capture = atomic_load(&stream->capture);
    if (capture != NULL && info->status == CU_CAPTURE_ACTIVE)
        *info = (struct info){info->status, capture->id, capture->graph, stream->deps,
                              stream->dep_count};
    pthread_mutex_unlock(&captures.mutex);
    *ret_status = info->status;
    return CU_OK;
}

static cu_result tell(const struct info *info, uint64_t *ret_id, struct cu_graph **ret_graph,
                      struct cu_node *const **ret_nodes, const struct cu_edge **ret_edges,
                      size_t *ret_count)
{
    if (info->status != CU_CAPTURE_ACTIVE)
        return CU_OK;
    if (ret_id != NULL)
        *ret_id = info->id;
    if (ret_graph != NULL)
        *ret_graph = info->graph;
    if (ret_nodes != NULL)
        *ret_nodes = info->nodes;
    if (ret_edges != NULL)
        *ret_edges = NULL; /* none but plain dependencies */
    if (ret_count != NULL)
        *ret_count = info->count;
    return CU_OK;
}

#define CAPTURE_INFO(suffix, per_thread)                                                           \
    cu_result cuStreamGetCaptureInfo##suffix(struct cu_stream *stream, int *ret_status,            \
                                             uint64_t *ret_id)                                     \
    {                                                                                              \
        struct info i;                                                                             \
        cu_result result;                                                                          \
                                                                                                   \
        ENTER();                                                                                   \
        result = info(stream, per_thread, ret_status, &i);                                         \
        return result == CU_OK ? tell(&i, ret_id, NULL, NULL, NULL, NULL) : result;                \
    }                                                                                              \
    cu_result cuStreamGetCaptureInfo_v2##suffix(                                                   \
        struct cu_stream *stream, int *ret_status, uint64_t *ret_id, struct cu_graph **ret_graph,  \
        struct cu_node *const **ret_nodes, size_t *ret_count)                                      \
    {                                                                                              \
        struct info i;                                                                             \
        cu_result result;                                                                          \
                                                                                                   \
        ENTER();                                                                                   \
        result = info(stream, per_thread, ret_status, &i);                                         \
        return result == CU_OK ? tell(&i, ret_id, ret_graph, ret_nodes, NULL, ret_count) : result; \
    }                                                                                              \
    cu_result cuStreamGetCaptureInfo_v3##suffix(                                                   \
        struct cu_stream *stream, int *ret_status, uint64_t *ret_id, struct cu_graph **ret_graph,  \
        struct cu_node *const **ret_nodes, const struct cu_edge **ret_edges, size_t *ret_count)    \
    {                                                                                              \
        struct info i;                                                                             \
        cu_result result;                                                                          \
                                                                                                   \
        ENTER();                                                                                   \
        result = info(stream, per_thread, ret_status, &i);                                         \
        return result == CU_OK ? tell(&i, ret_id, ret_graph, ret_nodes, ret_edges, ret_count)      \
                               : result;                                                           \
    }

CAPTURE_INFO(, false)
CAPTURE_INFO(_ptsz, true)

cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = drv_thread.capture_mode;

    ENTER();
    if (mode == NULL || *mode < CU_CAPTURE_GLOBAL || *mode > CU_CAPTURE_RELAXED)
        return CU_INVALID_VALUE;
    drv_thread.capture_mode = *mode;
    *mode = before;
    return CU_OK;
}
