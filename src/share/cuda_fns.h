/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of each entry point of the CUDA driver that we implement (in the double) or hook (in
 * the shim), by symbol version: `fn_cuMemAlloc_v2` is the type of the symbol cuMemAlloc_v2, and a
 * pointer to it is `fn_cuMemAlloc_v2 *`. A declaration is checked against it by writing
 *
 *     fn_cuMemAlloc_v2 cuMemAlloc_v2;
 *
 * The variants with a stream per thread (`_ptsz`, `_ptds`) have the type of their plain symbol.
 * Where two versions have one type the later one says so by a typedef of the earlier.
 *
 * Entries older than CUDA 3.2 took 32-bit device addresses. Nobody asks for them any more; they
 * are exported by name (symbols.list) and have no type here.
 *
 * `ret_` marks what the driver writes; it may be NULL where the comment says so. Sizes are bytes.
 */
#ifndef ALLOT_SHARE_CUDA_FNS_H
#define ALLOT_SHARE_CUDA_FNS_H

#include "share/cuda_abi.h"

/* Entry. ret_status of v2 may be NULL; v1 answers CU_NOT_FOUND where v2 gives a status. */
typedef cu_result fn_cuInit(unsigned flags);
typedef cu_result fn_cuDriverGetVersion(int *ret_version);
typedef cu_result fn_cuGetErrorName(cu_result code, const char **ret_text);
typedef cu_result fn_cuGetErrorString(cu_result code, const char **ret_text);
typedef cu_result fn_cuGetProcAddress(const char *name, void **ret_fn, int version, uint64_t flags);
typedef cu_result fn_cuGetProcAddress_v2(const char *name, void **ret_fn, int version,
                                         uint64_t flags, int *ret_status);
typedef cu_result fn_cuGetExportTable(const void **ret_table, const struct cu_uuid *id);

/* Devices. */
typedef cu_result fn_cuDeviceGet(cu_device *ret_device, int ordinal);
typedef cu_result fn_cuDeviceGetCount(int *ret_count);
typedef cu_result fn_cuDeviceGetName(char *name, int bytes, cu_device device);
typedef cu_result fn_cuDeviceGetUuid(struct cu_uuid *ret_uuid, cu_device device);
typedef fn_cuDeviceGetUuid fn_cuDeviceGetUuid_v2;
typedef cu_result fn_cuDeviceTotalMem_v2(size_t *ret_bytes, cu_device device);
typedef cu_result fn_cuDeviceGetAttribute(int *ret_value, int attribute, cu_device device);
typedef cu_result fn_cuDeviceComputeCapability(int *ret_major, int *ret_minor, cu_device device);
typedef cu_result fn_cuDeviceGetPCIBusId(char *id, int bytes, cu_device device);
typedef cu_result fn_cuDeviceGetByPCIBusId(cu_device *ret_device, const char *id);
typedef cu_result fn_cuDeviceCanAccessPeer(int *ret_can, cu_device device, cu_device peer);
typedef cu_result fn_cuDeviceGetDefaultMemPool(struct cu_pool **ret_pool, cu_device device);
typedef cu_result fn_cuDeviceGetMemPool(struct cu_pool **ret_pool, cu_device device);
typedef cu_result fn_cuDeviceSetMemPool(cu_device device, struct cu_pool *pool);
typedef cu_result fn_cuDeviceGetGraphMemAttribute(cu_device device, int attribute, void *ret_value);
typedef cu_result fn_cuDeviceSetGraphMemAttribute(cu_device device, int attribute, void *value);
typedef cu_result fn_cuDeviceGraphMemTrim(cu_device device);

/* Contexts. A thread has a stack of them; most calls work in its top. */
typedef cu_result fn_cuDevicePrimaryCtxRetain(struct cu_ctx **ret_ctx, cu_device device);
typedef cu_result fn_cuDevicePrimaryCtxRelease(cu_device device);
typedef fn_cuDevicePrimaryCtxRelease fn_cuDevicePrimaryCtxRelease_v2;
typedef fn_cuDevicePrimaryCtxRelease fn_cuDevicePrimaryCtxReset;
typedef fn_cuDevicePrimaryCtxRelease fn_cuDevicePrimaryCtxReset_v2;
typedef cu_result fn_cuDevicePrimaryCtxSetFlags(cu_device device, unsigned flags);
typedef fn_cuDevicePrimaryCtxSetFlags fn_cuDevicePrimaryCtxSetFlags_v2;
typedef cu_result fn_cuDevicePrimaryCtxGetState(cu_device device, unsigned *ret_flags,
                                                int *ret_active);
typedef cu_result fn_cuCtxCreate_v2(struct cu_ctx **ret_ctx, unsigned flags, cu_device device);
typedef cu_result fn_cuCtxCreate_v3(struct cu_ctx **ret_ctx, void *affinity, int count,
                                    unsigned flags, cu_device device);
typedef cu_result fn_cuCtxCreate_v4(struct cu_ctx **ret_ctx, struct cu_ctx_create_params *params,
                                    unsigned flags, cu_device device);
typedef cu_result fn_cuCtxDestroy_v2(struct cu_ctx *ctx);
typedef fn_cuCtxDestroy_v2 fn_cuCtxDestroy;
typedef cu_result fn_cuCtxPushCurrent_v2(struct cu_ctx *ctx);
typedef fn_cuCtxPushCurrent_v2 fn_cuCtxPushCurrent;
typedef cu_result fn_cuCtxPopCurrent_v2(struct cu_ctx **ret_ctx);
typedef fn_cuCtxPopCurrent_v2 fn_cuCtxPopCurrent;
typedef cu_result fn_cuCtxSetCurrent(struct cu_ctx *ctx);
typedef cu_result fn_cuCtxGetCurrent(struct cu_ctx **ret_ctx);
typedef cu_result fn_cuCtxGetDevice(cu_device *ret_device);
typedef cu_result fn_cuCtxGetDevice_v2(cu_device *ret_device, struct cu_ctx *ctx);
typedef cu_result fn_cuCtxGetFlags(unsigned *ret_flags);
typedef cu_result fn_cuCtxSetFlags(unsigned flags);
typedef cu_result fn_cuCtxGetId(struct cu_ctx *ctx, uint64_t *ret_id);
typedef cu_result fn_cuCtxSynchronize(void);
typedef cu_result fn_cuCtxSynchronize_v2(struct cu_ctx *ctx);
typedef cu_result fn_cuCtxSetLimit(int limit, size_t value);
typedef cu_result fn_cuCtxGetLimit(size_t *ret_value, int limit);
typedef cu_result fn_cuCtxGetApiVersion(struct cu_ctx *ctx, unsigned *ret_version);
typedef cu_result fn_cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest);
typedef cu_result fn_cuCtxEnablePeerAccess(struct cu_ctx *peer, unsigned flags);
typedef cu_result fn_cuCtxDisablePeerAccess(struct cu_ctx *peer);
typedef cu_result fn_cuGreenCtxCreate(struct cu_green_ctx **ret_ctx, void *desc, cu_device device,
                                      unsigned flags);

/* Modules, functions. */
typedef cu_result fn_cuModuleLoad(struct cu_module **ret_module, const char *path);
typedef cu_result fn_cuModuleLoadData(struct cu_module **ret_module, const void *image);
typedef cu_result fn_cuModuleLoadDataEx(struct cu_module **ret_module, const void *image,
                                        unsigned count, int *options, void **values);
typedef cu_result fn_cuModuleLoadFatBinary(struct cu_module **ret_module, const void *image);
typedef cu_result fn_cuModuleUnload(struct cu_module *module);
typedef cu_result fn_cuModuleGetFunction(struct cu_function **ret_function,
                                         struct cu_module *module, const char *name);
typedef cu_result fn_cuModuleGetFunctionCount(unsigned *ret_count, struct cu_module *module);
typedef cu_result fn_cuModuleGetLoadingMode(int *ret_mode);
typedef cu_result fn_cuLibraryLoadData(struct cu_library **ret_library, const void *image, int *jit,
                                       void **jit_values, unsigned jit_count, int *options,
                                       void **option_values, unsigned option_count);
typedef cu_result fn_cuLibraryUnload(struct cu_library *library);
typedef cu_result fn_cuLibraryGetKernel(struct cu_kernel **ret_kernel, struct cu_library *library,
                                        const char *name);
typedef cu_result fn_cuLibraryGetModule(struct cu_module **ret_module, struct cu_library *library);
typedef cu_result fn_cuKernelGetFunction(struct cu_function **ret_function,
                                         struct cu_kernel *kernel);
typedef cu_result fn_cuFuncGetAttribute(int *ret_value, int attribute,
                                        struct cu_function *function);
typedef cu_result fn_cuFuncSetAttribute(struct cu_function *function, int attribute, int value);
typedef cu_result fn_cuFuncGetModule(struct cu_module **ret_module, struct cu_function *function);
typedef cu_result fn_cuFuncGetName(const char **ret_name, struct cu_function *function);
typedef cu_result fn_cuFuncSetCacheConfig(struct cu_function *function, int config);
typedef cu_result fn_cuFuncSetBlockShape(struct cu_function *function, int x, int y, int z);
typedef cu_result fn_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks,
                                                                 struct cu_function *function,
                                                                 int block, size_t shared);

/* Launching. */
typedef cu_result fn_cuLaunchKernel(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared_bytes,
                                    struct cu_stream *stream, void **params, void **extra);
typedef cu_result fn_cuLaunchCooperativeKernel(struct cu_function *function, unsigned grid_x,
                                               unsigned grid_y, unsigned grid_z, unsigned block_x,
                                               unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, struct cu_stream *stream,
                                               void **params);
typedef cu_result fn_cuLaunchCooperativeKernelMultiDevice(struct cu_multi_launch *list,
                                                          unsigned count, unsigned flags);
typedef cu_result fn_cuLaunchKernelEx(const struct cu_launch_config *config,
                                      struct cu_function *function, void **params, void **extra);
typedef cu_result fn_cuLaunchHostFunc(struct cu_stream *stream, cu_host_fn *fn, void *data);
typedef cu_result fn_cuLaunch(struct cu_function *function);
typedef cu_result fn_cuLaunchGrid(struct cu_function *function, int width, int height);
typedef cu_result fn_cuLaunchGridAsync(struct cu_function *function, int width, int height,
                                       struct cu_stream *stream);

/* Streams and events. */
typedef cu_result fn_cuStreamCreate(struct cu_stream **ret_stream, unsigned flags);
typedef cu_result fn_cuStreamCreateWithPriority(struct cu_stream **ret_stream, unsigned flags,
                                                int priority);
typedef cu_result fn_cuStreamDestroy_v2(struct cu_stream *stream);
typedef fn_cuStreamDestroy_v2 fn_cuStreamDestroy;
typedef cu_result fn_cuStreamSynchronize(struct cu_stream *stream);
typedef fn_cuStreamSynchronize fn_cuStreamQuery;
typedef cu_result fn_cuStreamWaitEvent(struct cu_stream *stream, struct cu_event *event,
                                       unsigned flags);
typedef cu_result fn_cuStreamAddCallback(struct cu_stream *stream, cu_stream_callback *callback,
                                         void *data, unsigned flags);
typedef cu_result fn_cuStreamGetPriority(struct cu_stream *stream, int *ret_priority);
typedef cu_result fn_cuStreamGetFlags(struct cu_stream *stream, unsigned *ret_flags);
typedef cu_result fn_cuStreamGetId(struct cu_stream *stream, uint64_t *ret_id);
typedef cu_result fn_cuStreamGetCtx(struct cu_stream *stream, struct cu_ctx **ret_ctx);
typedef cu_result fn_cuStreamGetCtx_v2(struct cu_stream *stream, struct cu_ctx **ret_ctx,
                                       struct cu_green_ctx **ret_green);
typedef cu_result fn_cuStreamGetDevice(struct cu_stream *stream, cu_device *ret_device);
typedef cu_result fn_cuEventCreate(struct cu_event **ret_event, unsigned flags);
typedef cu_result fn_cuEventDestroy_v2(struct cu_event *event);
typedef fn_cuEventDestroy_v2 fn_cuEventDestroy;
typedef cu_result fn_cuEventRecord(struct cu_event *event, struct cu_stream *stream);
typedef cu_result fn_cuEventRecordWithFlags(struct cu_event *event, struct cu_stream *stream,
                                            unsigned flags);
typedef cu_result fn_cuEventQuery(struct cu_event *event);
typedef cu_result fn_cuEventSynchronize(struct cu_event *event);
typedef cu_result fn_cuEventElapsedTime(float *ret_ms, struct cu_event *start,
                                        struct cu_event *end);
typedef fn_cuEventElapsedTime fn_cuEventElapsedTime_v2;

/* Capture. All ret_ but the status may be NULL. */
typedef cu_result fn_cuStreamBeginCapture_v2(struct cu_stream *stream, int mode);
typedef cu_result fn_cuStreamBeginCapture(struct cu_stream *stream);
typedef cu_result fn_cuStreamEndCapture(struct cu_stream *stream, struct cu_graph **ret_graph);
typedef cu_result fn_cuStreamIsCapturing(struct cu_stream *stream, int *ret_status);
typedef cu_result fn_cuStreamGetCaptureInfo(struct cu_stream *stream, int *ret_status,
                                            uint64_t *ret_id);
typedef cu_result fn_cuStreamGetCaptureInfo_v2(struct cu_stream *stream, int *ret_status,
                                               uint64_t *ret_id, struct cu_graph **ret_graph,
                                               struct cu_node *const **ret_nodes,
                                               size_t *ret_count);
typedef cu_result fn_cuStreamGetCaptureInfo_v3(struct cu_stream *stream, int *ret_status,
                                               uint64_t *ret_id, struct cu_graph **ret_graph,
                                               struct cu_node *const **ret_nodes,
                                               const struct cu_edge **ret_edges, size_t *ret_count);
typedef cu_result fn_cuThreadExchangeStreamCaptureMode(int *mode);

/* Graphs. */
typedef cu_result fn_cuGraphCreate(struct cu_graph **ret_graph, unsigned flags);
typedef cu_result fn_cuGraphDestroy(struct cu_graph *graph);
typedef cu_result fn_cuGraphAddKernelNode(struct cu_node **ret_node, struct cu_graph *graph,
                                          struct cu_node *const *after, size_t count,
                                          const struct cu_kernel_node *params);
typedef fn_cuGraphAddKernelNode fn_cuGraphAddKernelNode_v2;
typedef cu_result fn_cuGraphAddEmptyNode(struct cu_node **ret_node, struct cu_graph *graph,
                                         struct cu_node *const *after, size_t count);
typedef cu_result fn_cuGraphAddHostNode(struct cu_node **ret_node, struct cu_graph *graph,
                                        struct cu_node *const *after, size_t count,
                                        const struct cu_host_node *params);
typedef cu_result fn_cuGraphAddMemcpyNode(struct cu_node **ret_node, struct cu_graph *graph,
                                          struct cu_node *const *after, size_t count,
                                          const struct cu_copy3d *copy, struct cu_ctx *ctx);
typedef cu_result fn_cuGraphAddMemsetNode(struct cu_node **ret_node, struct cu_graph *graph,
                                          struct cu_node *const *after, size_t count,
                                          const struct cu_memset_node *params, struct cu_ctx *ctx);
typedef cu_result fn_cuGraphAddChildGraphNode(struct cu_node **ret_node, struct cu_graph *graph,
                                              struct cu_node *const *after, size_t count,
                                              struct cu_graph *child);
typedef cu_result fn_cuGraphAddMemAllocNode(struct cu_node **ret_node, struct cu_graph *graph,
                                            struct cu_node *const *after, size_t count,
                                            struct cu_alloc_node *params);
typedef cu_result fn_cuGraphAddMemFreeNode(struct cu_node **ret_node, struct cu_graph *graph,
                                           struct cu_node *const *after, size_t count,
                                           cu_devptr ptr);
typedef cu_result fn_cuGraphAddNode(struct cu_node **ret_node, struct cu_graph *graph,
                                    struct cu_node *const *after, size_t count,
                                    struct cu_node_params *params);
typedef cu_result fn_cuGraphAddNode_v2(struct cu_node **ret_node, struct cu_graph *graph,
                                       struct cu_node *const *after, const struct cu_edge *edges,
                                       size_t count, struct cu_node_params *params);
typedef cu_result fn_cuGraphGetNodes(struct cu_graph *graph, struct cu_node **nodes, size_t *count);
typedef cu_result fn_cuGraphNodeGetType(struct cu_node *node, int *ret_type);
typedef cu_result fn_cuGraphMemAllocNodeGetParams(struct cu_node *node,
                                                  struct cu_alloc_node *ret_params);
typedef cu_result fn_cuGraphChildGraphNodeGetGraph(struct cu_node *node,
                                                   struct cu_graph **ret_graph);
typedef cu_result fn_cuGraphInstantiate(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                        struct cu_node **ret_error_node, char *log, size_t bytes);
typedef fn_cuGraphInstantiate fn_cuGraphInstantiate_v2;
typedef cu_result fn_cuGraphInstantiateWithFlags(struct cu_graph_exec **ret_exec,
                                                 struct cu_graph *graph, uint64_t flags);
typedef cu_result fn_cuGraphInstantiateWithParams(struct cu_graph_exec **ret_exec,
                                                  struct cu_graph *graph,
                                                  struct cu_instantiate_params *params);
typedef cu_result fn_cuGraphExecDestroy(struct cu_graph_exec *exec);
typedef cu_result fn_cuGraphExecGetFlags(struct cu_graph_exec *exec, uint64_t *ret_flags);
typedef cu_result fn_cuGraphLaunch(struct cu_graph_exec *exec, struct cu_stream *stream);
typedef fn_cuGraphLaunch fn_cuGraphUpload;

/* Memory: linear, pitched, managed, of the host. Any free takes any kind of device address. */
typedef cu_result fn_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
typedef cu_result fn_cuMemAlloc_v2(cu_devptr *ret_ptr, size_t bytes);
typedef cu_result fn_cuMemAllocPitch_v2(cu_devptr *ret_ptr, size_t *ret_pitch, size_t width,
                                        size_t height, unsigned element);
typedef cu_result fn_cuMemAllocManaged(cu_devptr *ret_ptr, size_t bytes, unsigned flags);
typedef cu_result fn_cuMemFree_v2(cu_devptr ptr);
typedef cu_result fn_cuMemGetAddressRange_v2(cu_devptr *ret_base, size_t *ret_bytes, cu_devptr ptr);
typedef cu_result fn_cuMemAllocHost_v2(void **ret_ptr, size_t bytes);
typedef cu_result fn_cuMemHostAlloc(void **ret_ptr, size_t bytes, unsigned flags);
typedef cu_result fn_cuMemFreeHost(void *ptr);
typedef cu_result fn_cuMemHostRegister(void *ptr, size_t bytes, unsigned flags);
typedef fn_cuMemHostRegister fn_cuMemHostRegister_v2;
typedef fn_cuMemFreeHost fn_cuMemHostUnregister;
typedef cu_result fn_cuMemHostGetDevicePointer_v2(cu_devptr *ret_ptr, void *host, unsigned flags);
typedef cu_result fn_cuMemHostGetFlags(unsigned *ret_flags, void *host);
typedef cu_result fn_cuPointerGetAttribute(void *ret_value, int attribute, cu_devptr ptr);
typedef cu_result fn_cuPointerGetAttributes(unsigned count, int *attributes, void **ret_values,
                                            cu_devptr ptr);
typedef cu_result fn_cuMemPrefetchAsync(cu_devptr ptr, size_t bytes, cu_device device,
                                        struct cu_stream *stream);
typedef cu_result fn_cuMemPrefetchAsync_v2(cu_devptr ptr, size_t bytes, struct cu_location location,
                                           unsigned flags, struct cu_stream *stream);
typedef cu_result fn_cuMemAdvise(cu_devptr ptr, size_t bytes, int advice, cu_device device);
typedef cu_result fn_cuMemAdvise_v2(cu_devptr ptr, size_t bytes, int advice,
                                    struct cu_location location);
typedef cu_result fn_cuIpcGetMemHandle(struct cu_ipc_mem *ret_handle, cu_devptr ptr);
typedef cu_result fn_cuIpcOpenMemHandle(cu_devptr *ret_ptr, struct cu_ipc_mem handle,
                                        unsigned flags);
typedef fn_cuIpcOpenMemHandle fn_cuIpcOpenMemHandle_v2;
typedef cu_result fn_cuIpcCloseMemHandle(cu_devptr ptr);
typedef cu_result fn_cuImportExternalMemory(struct cu_external_memory **ret_memory,
                                            const void *desc);

/* Memory in the order of a stream, out of pools. */
typedef cu_result fn_cuMemAllocAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_stream *stream);
typedef cu_result fn_cuMemAllocFromPoolAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                                             struct cu_stream *stream);
typedef cu_result fn_cuMemFreeAsync(cu_devptr ptr, struct cu_stream *stream);
typedef cu_result fn_cuMemPoolCreate(struct cu_pool **ret_pool, const struct cu_pool_props *props);
typedef cu_result fn_cuMemPoolDestroy(struct cu_pool *pool);
typedef cu_result fn_cuMemPoolTrimTo(struct cu_pool *pool, size_t keep);
typedef cu_result fn_cuMemPoolSetAttribute(struct cu_pool *pool, int attribute, void *value);
typedef cu_result fn_cuMemPoolGetAttribute(struct cu_pool *pool, int attribute, void *ret_value);
typedef cu_result fn_cuMemPoolSetAccess(struct cu_pool *pool, const struct cu_access *list,
                                        size_t count);
typedef cu_result fn_cuMemPoolGetAccess(int *ret_flags, struct cu_pool *pool,
                                        struct cu_location *location);
typedef cu_result fn_cuMemGetDefaultMemPool(struct cu_pool **ret_pool, struct cu_location *location,
                                            int type);
typedef fn_cuMemGetDefaultMemPool fn_cuMemGetMemPool;
typedef cu_result fn_cuMemSetMemPool(struct cu_location *location, int type, struct cu_pool *pool);
typedef cu_result fn_cuMemPoolImportFromShareableHandle(struct cu_pool **ret_pool, void *handle,
                                                        int type, uint64_t flags);

/* Virtual memory: addresses and physical memory apart. */
typedef cu_result fn_cuMemAddressReserve(cu_devptr *ret_ptr, size_t bytes, size_t alignment,
                                         cu_devptr wish, uint64_t flags);
typedef cu_result fn_cuMemAddressFree(cu_devptr ptr, size_t bytes);
typedef cu_result fn_cuMemCreate(cu_vmm *ret_handle, size_t bytes, const struct cu_alloc_prop *prop,
                                 uint64_t flags);
typedef cu_result fn_cuMemRelease(cu_vmm handle);
typedef cu_result fn_cuMemRetainAllocationHandle(cu_vmm *ret_handle, void *ptr);
typedef cu_result fn_cuMemMap(cu_devptr ptr, size_t bytes, size_t offset, cu_vmm handle,
                              uint64_t flags);
typedef cu_result fn_cuMemUnmap(cu_devptr ptr, size_t bytes);
typedef cu_result fn_cuMemSetAccess(cu_devptr ptr, size_t bytes, const struct cu_access *list,
                                    size_t count);
typedef cu_result fn_cuMemGetAccess(uint64_t *ret_flags, const struct cu_location *location,
                                    cu_devptr ptr);
typedef cu_result fn_cuMemGetAllocationGranularity(size_t *ret_bytes,
                                                   const struct cu_alloc_prop *prop, int option);
typedef cu_result fn_cuMemGetAllocationPropertiesFromHandle(struct cu_alloc_prop *ret_prop,
                                                            cu_vmm handle);
typedef cu_result fn_cuMemExportToShareableHandle(void *ret_handle, cu_vmm handle, int type,
                                                  uint64_t flags);
typedef cu_result fn_cuMemImportFromShareableHandle(cu_vmm *ret_handle, void *handle, int type);
typedef cu_result fn_cuMulticastCreate(cu_vmm *ret_handle, const void *prop);

/* Arrays. */
typedef cu_result fn_cuArrayCreate_v2(struct cu_array **ret_array,
                                      const struct cu_array_desc *desc);
typedef cu_result fn_cuArray3DCreate_v2(struct cu_array **ret_array,
                                        const struct cu_array3d_desc *desc);
typedef cu_result fn_cuArrayDestroy(struct cu_array *array);
typedef cu_result fn_cuArrayGetDescriptor_v2(struct cu_array_desc *ret_desc,
                                             struct cu_array *array);
typedef cu_result fn_cuArray3DGetDescriptor_v2(struct cu_array3d_desc *ret_desc,
                                               struct cu_array *array);
typedef cu_result fn_cuArrayGetMemoryRequirements(struct cu_array_need *ret_need,
                                                  struct cu_array *array, cu_device device);
typedef cu_result fn_cuMipmappedArrayCreate(struct cu_mipmap **ret_mipmap,
                                            const struct cu_array3d_desc *desc, unsigned levels);
typedef cu_result fn_cuMipmappedArrayDestroy(struct cu_mipmap *mipmap);
typedef cu_result fn_cuMipmappedArrayGetLevel(struct cu_array **ret_array, struct cu_mipmap *mipmap,
                                              unsigned level);
typedef cu_result fn_cuMipmappedArrayGetMemoryRequirements(struct cu_array_need *ret_need,
                                                           struct cu_mipmap *mipmap,
                                                           cu_device device);

/* Copies and fills. */
typedef cu_result fn_cuMemcpy(cu_devptr dst, cu_devptr src, size_t bytes);
typedef cu_result fn_cuMemcpyAsync(cu_devptr dst, cu_devptr src, size_t bytes,
                                   struct cu_stream *stream);
typedef cu_result fn_cuMemcpyHtoD_v2(cu_devptr dst, const void *src, size_t bytes);
typedef cu_result fn_cuMemcpyHtoDAsync_v2(cu_devptr dst, const void *src, size_t bytes,
                                          struct cu_stream *stream);
typedef cu_result fn_cuMemcpyDtoH_v2(void *dst, cu_devptr src, size_t bytes);
typedef cu_result fn_cuMemcpyDtoHAsync_v2(void *dst, cu_devptr src, size_t bytes,
                                          struct cu_stream *stream);
typedef fn_cuMemcpy fn_cuMemcpyDtoD_v2;
typedef fn_cuMemcpyAsync fn_cuMemcpyDtoDAsync_v2;
typedef cu_result fn_cuMemcpyPeer(cu_devptr dst, struct cu_ctx *dst_ctx, cu_devptr src,
                                  struct cu_ctx *src_ctx, size_t bytes);
typedef cu_result fn_cuMemcpyPeerAsync(cu_devptr dst, struct cu_ctx *dst_ctx, cu_devptr src,
                                       struct cu_ctx *src_ctx, size_t bytes,
                                       struct cu_stream *stream);
typedef cu_result fn_cuMemcpy2D_v2(const struct cu_copy2d *copy);
typedef fn_cuMemcpy2D_v2 fn_cuMemcpy2DUnaligned_v2;
typedef cu_result fn_cuMemcpy2DAsync_v2(const struct cu_copy2d *copy, struct cu_stream *stream);
typedef cu_result fn_cuMemcpy3D_v2(const struct cu_copy3d *copy);
typedef cu_result fn_cuMemcpy3DAsync_v2(const struct cu_copy3d *copy, struct cu_stream *stream);
typedef cu_result fn_cuMemsetD8_v2(cu_devptr dst, uint8_t value, size_t count);
typedef cu_result fn_cuMemsetD16_v2(cu_devptr dst, uint16_t value, size_t count);
typedef cu_result fn_cuMemsetD32_v2(cu_devptr dst, unsigned value, size_t count);
typedef cu_result fn_cuMemsetD8Async(cu_devptr dst, uint8_t value, size_t count,
                                     struct cu_stream *stream);
typedef cu_result fn_cuMemsetD16Async(cu_devptr dst, uint16_t value, size_t count,
                                      struct cu_stream *stream);
typedef cu_result fn_cuMemsetD32Async(cu_devptr dst, unsigned value, size_t count,
                                      struct cu_stream *stream);
typedef cu_result fn_cuMemsetD2D8_v2(cu_devptr dst, size_t pitch, uint8_t value, size_t width,
                                     size_t height);
typedef cu_result fn_cuMemsetD2D8Async(cu_devptr dst, size_t pitch, uint8_t value, size_t width,
                                       size_t height, struct cu_stream *stream);

/* Suspending another process. Arguments may be NULL. PID is one as the caller sees it. */
typedef cu_result fn_cuCheckpointProcessGetState(int pid, int *ret_state);
typedef cu_result fn_cuCheckpointProcessGetRestoreThreadId(int pid, int *ret_tid);
typedef cu_result fn_cuCheckpointProcessLock(int pid, struct cu_checkpoint_lock *args);
typedef cu_result fn_cuCheckpointProcessCheckpoint(int pid, struct cu_checkpoint_save *args);
typedef cu_result fn_cuCheckpointProcessRestore(int pid, struct cu_checkpoint_restore *args);
typedef cu_result fn_cuCheckpointProcessUnlock(int pid, struct cu_checkpoint_unlock *args);

#endif
