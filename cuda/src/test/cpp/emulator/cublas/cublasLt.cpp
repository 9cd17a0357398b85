// The functions of libcublasLt.so.13 that the product calls, on emulated GPUs, with the manual's rules: matrices lie column by
// column, attributes have sizes, layouts agree with the product, pointers are as aligned as the preference said, a bias has the
// type of the result, the matrix of a GELU has rows in multiples of 8. It must be loaded before libcublas.so.13, which needs it
// by name and says no path.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../library.h"

#define LT extern "C" __attribute__((visibility("default"))) int

extern "C" __attribute__((visibility("default"))) unsigned long cublasLtGetVersion() { return 130000; }

namespace {

// Of cublasStatus_t.
enum Status {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15,
};

constexpr int REAL_32F = 0, REAL_16BF = 14, COMPUTE_32F = 68;
constexpr int NORMAL = 0, TRANSPOSED = 1;
constexpr int NONE = 1, BIAS = 4, GELU_AUX_BIAS = 164, DGELU = 192;
constexpr size_t PAGE = 4096;
constexpr uint64_t OURS = 0x70656e73746f636b; // marks algorithms that the heuristic gave

struct Handle {
    int device;
};

struct Product {
    int compute, scale;
    int transposeA = NORMAL, transposeB = NORMAL, epilogue = NONE;
    void *bias = nullptr, *aux = nullptr;
    int64_t auxLeading = 0;
};

struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t leading;

    size_t bytes() const { return type == REAL_32F ? 4 : 2; }
    bool isInMemory(const void* data) const {
        return penstockEmulatorHolds(reinterpret_cast<uint64_t>(data), ((columns - 1) * leading + rows) * bytes());
    }
    bool isSame(const Layout& other) const { return type == other.type && rows == other.rows && columns == other.columns; }
    // As algorithms of tensor cores want it.
    bool isAligned() const { return leading * bytes() % 16 == 0; }
};

struct Preference {
    uint64_t workspace = 0;
    uint32_t alignment[4] = {256, 256, 256, 256};
};

// Of cublasLtMatmulHeuristicResult_t.
struct Choice {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(Choice) == 96);

float fromHalf(unsigned short half) {
    unsigned bits = static_cast<unsigned>(half) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

unsigned short toHalf(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return static_cast<unsigned short>(bits >> 16 | 0x40);
    }
    return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float load(const void* data, int type, size_t at) {
    return type == REAL_32F ? static_cast<const float*>(data)[at] : fromHalf(static_cast<const unsigned short*>(data)[at]);
}

void store(void* data, int type, size_t at, float value) {
    if (type == REAL_32F) {
        static_cast<float*>(data)[at] = value;
    } else {
        static_cast<unsigned short*>(data)[at] = toHalf(value);
    }
}

constexpr float SQRT_2_OVER_PI = 0.7978845608028654f, CUBIC = 0.044715f;

float gelu(float x) { return 0.5f * x * (1 + std::tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x))); }

float geluGradient(float x) {
    float t = std::tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

// Status of a product whose layouts and attributes are these.
int statusOf(const Product& of, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
    uint64_t m = of.transposeA == NORMAL ? a.rows : a.columns, k = of.transposeA == NORMAL ? a.columns : a.rows;
    uint64_t n = of.transposeB == NORMAL ? b.columns : b.rows;
    if ((of.transposeB == NORMAL ? b.rows : b.columns) != k || d.rows != m || d.columns != n || !c.isSame(d)) {
        return INVALID_VALUE;
    }
    bool known = a.type == REAL_16BF && b.type == REAL_16BF && (d.type == REAL_16BF || d.type == REAL_32F);
    if (!known || of.compute != COMPUTE_32F || of.scale != REAL_32F) {
        return NOT_SUPPORTED;
    }
    bool hasAux = of.epilogue == GELU_AUX_BIAS || of.epilogue == DGELU;
    if (of.epilogue != NONE && of.epilogue != BIAS && !hasAux) {
        return NOT_SUPPORTED;
    }
    if (hasAux && (of.auxLeading % 8 != 0 || of.auxLeading < static_cast<int64_t>(m))) {
        return INVALID_VALUE;
    }
    bool isThere = penstockEmulatorNumber("LACKS_EPILOGUE", 0) != of.epilogue;
    return isThere && a.isAligned() && b.isAligned() && c.isAligned() && d.isAligned() ? SUCCESS : NOT_SUPPORTED;
}

// Real products use their workspace as they like.
void scribble(void* workspace, size_t bytes) {
    if (workspace) {
        size_t some = std::min(bytes, PAGE);
        memset(workspace, 0xff, some);
        memset(static_cast<char*>(workspace) + bytes - some, 0xff, some);
    }
}

}  // namespace

LT cublasLtCreate(Handle** handle) {
    int device = penstockEmulatorDevice();
    if (device < 0) {
        return NOT_INITIALIZED;
    }
    *handle = new Handle{device};
    return SUCCESS;
}

LT cublasLtDestroy(Handle* handle) {
    delete handle;
    return handle ? SUCCESS : NOT_INITIALIZED;
}

LT cublasLtMatmulDescCreate(Product** product, int compute, int scale) {
    *product = new Product{compute, scale};
    return SUCCESS;
}

LT cublasLtMatmulDescDestroy(Product* product) {
    delete product;
    return SUCCESS;
}

LT cublasLtMatmulDescSetAttribute(Product* product, int attribute, const void* value, size_t bytes) {
    auto take = [&](auto& to) -> int {
        if (bytes != sizeof to) {
            return INVALID_VALUE;
        }
        memcpy(&to, value, bytes);
        return SUCCESS;
    };
    if (!product || !value) {
        return INVALID_VALUE;
    }
    switch (attribute) {
        case 3: return take(product->transposeA);
        case 4: return take(product->transposeB);
        case 7: return take(product->epilogue);
        case 8: return take(product->bias);
        case 11: return take(product->aux);
        case 12: return take(product->auxLeading);
        default: return INVALID_VALUE;
    }
}

LT cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    if ((type != REAL_32F && type != REAL_16BF) || rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) {
        return INVALID_VALUE;
    }
    *layout = new Layout{type, rows, columns, leading};
    return SUCCESS;
}

LT cublasLtMatrixLayoutDestroy(Layout* layout) {
    delete layout;
    return SUCCESS;
}

LT cublasLtMatmulPreferenceCreate(Preference** preference) {
    *preference = new Preference();
    return SUCCESS;
}

LT cublasLtMatmulPreferenceDestroy(Preference* preference) {
    delete preference;
    return SUCCESS;
}

LT cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
    if (attribute == 1 && bytes == sizeof preference->workspace) {
        memcpy(&preference->workspace, value, bytes);
        return SUCCESS;
    }
    if (attribute >= 5 && attribute <= 8 && bytes == sizeof(uint32_t)) {
        memcpy(&preference->alignment[attribute - 5], value, bytes);
        return SUCCESS;
    }
    return INVALID_VALUE;
}

LT cublasLtMatmulAlgoGetHeuristic(Handle* handle, Product* product, Layout* a, Layout* b, Layout* c, Layout* d,
                                  Preference* preference, int most, Choice* choices, int* found) {
    if (!handle || !product || !a || !b || !c || !d || !preference || most < 1 || !choices || !found) {
        return INVALID_VALUE;
    }
    *found = 0;
    int status = statusOf(*product, *a, *b, *c, *d);
    if (status != SUCCESS) {
        return status;
    }
    *found = 1;
    *choices = Choice{};
    choices->algorithm[0] = OURS;
    choices->algorithm[1] = *std::min_element(preference->alignment, preference->alignment + 4);
    choices->workspace = preference->workspace;
    return SUCCESS;
}

LT cublasLtMatmul(Handle* handle, Product* product, const void* alpha, const void* a, Layout* la, const void* b, Layout* lb,
                  const void* beta, const void* c, Layout* lc, void* d, Layout* ld, const uint64_t* algorithm, void* workspace,
                  size_t workspaceBytes, void* stream) {
    if (!handle || !product || !alpha || !beta || !algorithm || algorithm[0] != OURS) {
        return INVALID_VALUE;
    }
    int status = statusOf(*product, *la, *lb, *lc, *ld);
    if (status != SUCCESS) {
        return status;
    }
    bool hasBias = product->epilogue == BIAS || product->epilogue == GELU_AUX_BIAS;
    bool hasAux = product->epilogue == GELU_AUX_BIAS || product->epilogue == DGELU;
    const Product of = *product;
    const Layout left = *la, right = *lb, added = *lc, result = *ld;
    const Layout vector{result.type, result.rows, 1, static_cast<int64_t>(result.rows)};
    const Layout matrix{result.type, result.rows, result.columns, of.auxLeading};
    if ((hasBias && !of.bias) || (hasAux && !of.aux)) {
        return INVALID_VALUE;
    }
    for (const void* each : {a, b, c, static_cast<const void*>(d), static_cast<const void*>(of.aux)}) {
        if (reinterpret_cast<uint64_t>(each) % algorithm[1] != 0) {
            return INVALID_VALUE;
        }
    }
    bool held = left.isInMemory(a) && right.isInMemory(b) && added.isInMemory(c) && result.isInMemory(d) &&
                (!hasBias || vector.isInMemory(of.bias)) && (!hasAux || matrix.isInMemory(of.aux));
    if (penstockEmulatorDevice() != handle->device || !held) {
        return EXECUTION_FAILED;
    }
    float scale, keep;
    memcpy(&scale, alpha, 4);
    memcpy(&keep, beta, 4);
    uint64_t k = of.transposeA == NORMAL ? left.columns : left.rows;
    int launched = penstockEmulatorLaunch(stream, [=] {
        scribble(workspace, workspaceBytes);
        long results = static_cast<long>(result.rows * result.columns * result.bytes());
        long read = static_cast<long>(2 * k * (result.rows + result.columns)) + (keep == 0 ? 0 : results) +
                    (hasBias ? static_cast<long>(result.rows * result.bytes()) : 0) + (of.epilogue == DGELU ? results : 0);
        const long wrong = penstockEmulatorNumber("WRONG_EPILOGUE", 0);
        penstockEmulatorCount("product", read, results * (of.epilogue == GELU_AUX_BIAS ? 2 : 1),
                              2.0 * static_cast<double>(result.rows * result.columns * k));
        for (uint64_t j = 0; j < result.columns; j++) {
            std::vector<float> ys(k);
            for (uint64_t l = 0; l < k; l++) {
                ys[l] = load(b, right.type, of.transposeB == NORMAL ? j * right.leading + l : l * right.leading + j);
            }
            for (uint64_t i = 0; i < result.rows; i++) {
                float sum = 0;
                for (uint64_t l = 0; l < k; l++) {
                    sum += load(a, left.type, of.transposeA == NORMAL ? l * left.leading + i : i * left.leading + l) * ys[l];
                }
                sum *= scale;
                if (keep != 0) { // else what was there does not matter, be it NaN
                    sum += keep * load(c, added.type, j * added.leading + i);
                }
                if (hasBias) {
                    sum += load(of.bias, vector.type, i);
                }
                if (of.epilogue == GELU_AUX_BIAS) {
                    store(of.aux, matrix.type, j * matrix.leading + i, sum);
                    sum = gelu(sum);
                } else if (of.epilogue == DGELU) {
                    sum *= geluGradient(load(of.aux, matrix.type, j * matrix.leading + i));
                }
                store(d, result.type, j * result.leading + i, of.epilogue == wrong ? sum / 2 : sum);
            }
        }
    });
    return launched == 0 ? SUCCESS : EXECUTION_FAILED;
}
