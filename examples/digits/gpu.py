# SPDX-License-Identifier: Apache-2.0
"""The least of the CUDA driver: memory of the first GPU. Frameworks do the same in more words."""
import ctypes

OUT_OF_MEMORY = 2
GIB = 1 << 30


class Gpu:
    """The first GPU of this task. OSError where there is no driver."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), 0, 0)

    def call(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code not in (0, OUT_OF_MEMORY):
            raise OSError(f"{name} failed with error {code}")
        return code

    def memory(self):
        """Bytes that are free, and all that this task may use."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def take(self, size):
        """Whether SIZE bytes more were given."""
        block = ctypes.c_uint64()
        return self.call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(size)) == 0
