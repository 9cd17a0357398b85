// The functions of libcublas.so.13 that the product calls, on emulated GPUs, with the manual's rules: matrices lie column by
// column, factors have one type, leading dimensions and pointers are checked, work runs on the handle's stream.
#include <algorithm>
#include <cstring>
#include <vector>

#include "../library.h"

extern "C" unsigned long cublasLtGetVersion();

#define CUBLAS extern "C" __attribute__((visibility("default"))) int

namespace {

// Of cublasStatus_t.
enum Status {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15,
};

constexpr int REAL_32F = 0, REAL_16BF = 14, COMPUTE_32F = 68, COMPUTE_32F_PEDANTIC = 69;
constexpr int NORMAL = 0, TRANSPOSED = 1;
constexpr size_t PAGE = 4096;

struct Handle {
    int device;
    void* stream = nullptr;
    char* workspace = nullptr;
    size_t workspaceBytes = 0;
};

size_t bytesOf(int type) { return type == REAL_32F ? 4 : 2; }

float load(const void* matrix, int type, size_t at) {
    if (type == REAL_32F) {
        return static_cast<const float*>(matrix)[at];
    }
    unsigned bits = static_cast<unsigned>(static_cast<const unsigned short*>(matrix)[at]) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// A column-major matrix [rows, columns].
struct Matrix {
    const void* data;
    int type, rows, columns, leading;

    bool isInMemory() const {
        size_t elements = rows == 0 || columns == 0 ? 0 : (columns - size_t{1}) * leading + rows;
        return elements == 0 || penstockEmulatorHolds(reinterpret_cast<uint64_t>(data), elements * bytesOf(type));
    }

    // Transposed or not, as rows of `depth` values that lie side by side.
    std::vector<float> gathered(bool alongColumns, int count, int depth) const {
        std::vector<float> values(static_cast<size_t>(count) * depth);
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < depth; k++) {
                size_t at = alongColumns ? static_cast<size_t>(i) * leading + k : static_cast<size_t>(k) * leading + i;
                values[static_cast<size_t>(i) * depth + k] = load(data, type, at);
            }
        }
        return values;
    }
};

// Real products use their workspace as they like.
void scribble(const Handle& handle) {
    if (handle.workspace) {
        size_t bytes = std::min(handle.workspaceBytes, PAGE);
        memset(handle.workspace, 0xff, bytes);
        memset(handle.workspace + handle.workspaceBytes - bytes, 0xff, bytes);
    }
}

}  // namespace

CUBLAS cublasGetProperty(int part, int* value) {
    if (part < 0 || part > 2) {
        return INVALID_VALUE;
    }
    *value = part == 0 ? static_cast<int>(cublasLtGetVersion() / 10000) : 0;
    return SUCCESS;
}

// Without a context the real one takes the first GPU's; nobody should count on that.
CUBLAS cublasCreate_v2(Handle** handle) {
    int device = penstockEmulatorDevice();
    if (device < 0) {
        return NOT_INITIALIZED;
    }
    *handle = new Handle{device};
    return SUCCESS;
}

CUBLAS cublasDestroy_v2(Handle* handle) {
    if (!handle) {
        return NOT_INITIALIZED;
    }
    delete handle;
    return SUCCESS;
}

// Goes back to a workspace of its own.
CUBLAS cublasSetStream_v2(Handle* handle, void* stream) {
    if (!handle) {
        return NOT_INITIALIZED;
    }
    handle->stream = stream;
    handle->workspace = nullptr;
    handle->workspaceBytes = 0;
    return SUCCESS;
}

CUBLAS cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
    if (!handle) {
        return NOT_INITIALIZED;
    }
    auto address = reinterpret_cast<uint64_t>(workspace);
    if (address % 256 != 0 || (bytes > 0 && !penstockEmulatorHolds(address, bytes))) {
        return INVALID_VALUE;
    }
    handle->workspace = static_cast<char*>(workspace);
    handle->workspaceBytes = bytes;
    return SUCCESS;
}

CUBLAS cublasSetMathMode(Handle* handle, int mode) {
    if (!handle) {
        return NOT_INITIALIZED;
    }
    return mode == 0 || mode == 16 ? SUCCESS : NOT_SUPPORTED;
}

// c = alpha op(a) op(b) + beta c, with alpha and beta in the host's memory
CUBLAS cublasGemmEx(Handle* handle, int opA, int opB, int m, int n, int k, const void* alpha, const void* a, int typeA, int lda,
                    const void* b, int typeB, int ldb, const void* beta, void* c, int typeC, int ldc, int compute, int) {
    if (!handle) {
        return NOT_INITIALIZED;
    }
    bool knownOps = (opA == NORMAL || opA == TRANSPOSED) && (opB == NORMAL || opB == TRANSPOSED);
    if (!knownOps || m < 0 || n < 0 || k < 0 || !alpha || !beta || lda < std::max(1, opA == NORMAL ? m : k) ||
        ldb < std::max(1, opB == NORMAL ? k : n) || ldc < std::max(1, m)) {
        return INVALID_VALUE;
    }
    bool knownTypes = (typeA == REAL_32F || typeA == REAL_16BF) && typeA == typeB && typeC == REAL_32F;
    if (!knownTypes || (compute != COMPUTE_32F && compute != COMPUTE_32F_PEDANTIC)) {
        return NOT_SUPPORTED;
    }
    if (m == 0 || n == 0) {
        return SUCCESS;
    }
    Matrix left{a, typeA, opA == NORMAL ? m : k, opA == NORMAL ? k : m, lda};
    Matrix right{b, typeB, opB == NORMAL ? k : n, opB == NORMAL ? n : k, ldb};
    Matrix result{c, typeC, m, n, ldc};
    if (penstockEmulatorDevice() != handle->device || !left.isInMemory() || !right.isInMemory() || !result.isInMemory()) {
        return EXECUTION_FAILED;
    }
    float scale, keep;
    memcpy(&scale, alpha, 4);
    memcpy(&keep, beta, 4);
    Handle now = *handle;
    int launched = penstockEmulatorLaunch(handle->stream, [=] {
        scribble(now);
        long factors = (static_cast<long>(m) * k + static_cast<long>(k) * n) * static_cast<long>(bytesOf(typeA));
        long sums = static_cast<long>(m) * n * static_cast<long>(bytesOf(typeC));
        penstockEmulatorCount("product", factors + (keep == 0 ? 0 : sums), sums, 2.0 * m * n * k);
        std::vector<float> x = left.gathered(opA == TRANSPOSED, m, k), y = right.gathered(opB == NORMAL, n, k);
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < m; i++) {
                const float* xs = x.data() + static_cast<size_t>(i) * k;
                const float* ys = y.data() + static_cast<size_t>(j) * k;
                float sum = 0;
                for (int l = 0; l < k; l++) {
                    sum += xs[l] * ys[l];
                }
                float* at = static_cast<float*>(c) + static_cast<size_t>(j) * ldc + i;
                // where beta is 0, what was there does not matter, be it NaN
                *at = scale * sum + (keep == 0 ? 0 : keep * *at);
            }
        }
    });
    return launched == 0 ? SUCCESS : EXECUTION_FAILED;
}
