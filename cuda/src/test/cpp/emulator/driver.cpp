// The functions of libcuda.so.1 that the product calls, over the emulated machine.
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "capture.h"
#include "check.h"
#include "library.h"
#include "machine.h"
#include "settings.h"

using namespace emulator;

#define DRIVER extern "C" __attribute__((visibility("default"))) int

// The calling thread's context, without which most calls are refused.
static thread_local Context* bound = nullptr;

#define REQUIRE_CONTEXT_TO_ASK(whether) \
    if (!bound) {                       \
        return INVALID_CONTEXT;         \
    }                                   \
    if (bound->countCall(whether)) {    \
        return bound->failed;           \
    }

#define REQUIRE_CONTEXT REQUIRE_CONTEXT_TO_ASK(nullptr)

// What is wrong at this call, which gives something back all the same.
static int wrong() { return bound ? bound->countCall() : SUCCESS; }

#define REQUIRE_DEVICE_MEMORY(address, bytes)                 \
    if (!Memory::ofAll().contains(address, bytes)) {          \
        return INVALID_VALUE;                                 \
    }

// Calls that wait, allocate or free may not come while a stream of the thread is captured.
#define REQUIRE_NO_CAPTURE                                  \
    if (int refused = refuseWhileCapturing(bound)) {        \
        return refused;                                     \
    }

static int deviceCount = -1;

// What went wrong in the kernel that failed last; with a text, remembers it.
static std::string lastFailure(const std::string* now = nullptr) {
    static std::mutex lock;
    static std::string last;
    std::lock_guard guard(lock);
    if (now) {
        last = *now;
    }
    return last;
}

// Calls that gave devices something to do, and those that waited until it was done.
static std::atomic<long> launches{0}, waits{0};

static int start(Stream* stream, const Node& node) {
    if (node.kind == Kind::KERNEL) {
        int due = bound->countLaunch();
        if (due == DEVICE_UNAVAILABLE) {
            return due;
        }
    }
    stream->submit(node.work, node.kind);
    return SUCCESS;
}

// Gives work to a stream: to be done in its turn, or recorded if the stream is captured.
static int give(Stream* stream, std::function<void()> work, Kind kind = Kind::OTHER) {
    if (!stream) {
        return refuseWhileCapturing(bound) ? STREAM_CAPTURE_IMPLICIT : INVALID_HANDLE;  // there is no legacy stream here
    }
    if (auto capture = captureOf(stream)) {
        if (capture->invalid) {
            return STREAM_CAPTURE_INVALIDATED;
        }
        capture->nodes.push_back({std::move(work), kind});
        capture->done[stream]++;
        return SUCCESS;
    }
    launches++;
    return start(stream, {std::move(work), kind});
}

static std::mutex primaryLock;
static std::map<int, std::unique_ptr<Context>>& primaryContexts() {
    static std::map<int, std::unique_ptr<Context>> contexts;
    return contexts;
}
static std::map<int, int> retained;

// ---- devices and contexts --------------------------------------------------------------------------------------

DRIVER cuInit(unsigned) {
    deviceCount = static_cast<int>(number("DEVICES", 4));
    return deviceCount > 0 ? SUCCESS : NO_DEVICE;
}

DRIVER cuDriverGetVersion(int* version) {
    *version = static_cast<int>(number("DRIVER", 13000));
    return SUCCESS;
}

DRIVER cuDeviceGetCount(int* count) {
    *count = deviceCount;
    return deviceCount < 0 ? NOT_INITIALIZED : SUCCESS;
}

DRIVER cuDeviceGet(int* device, int index) {
    *device = index;
    return index >= 0 && index < deviceCount ? SUCCESS : INVALID_DEVICE;
}

DRIVER cuDeviceGetName(char* name, int length, int) {
    snprintf(name, length, "emulated GPU");
    return SUCCESS;
}

DRIVER cuDeviceGetUuid(char* uuid, int device) {
    memset(uuid, 0, 16);
    snprintf(uuid, 16, "emulated %d", number("SAME_GPU", 0) ? 0 : device);
    return SUCCESS;
}

DRIVER cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = memoryOfDevice();
    return SUCCESS;
}

DRIVER cuDeviceGetAttribute(int* value, int attribute, int) {
    // threads per block; shared memory per block; warp; multiprocessors; capability; shared memory per block on request
    static const std::map<int, int> known = {{1, 1024}, {8, 48 << 10}, {10, 32}, {16, 2}, {76, 0}, {97, 163 << 10}};
    if (attribute == 75) {
        *value = static_cast<int>(number("CAPABILITY", 8));
        return SUCCESS;
    }
    auto found = known.find(attribute);
    if (found == known.end()) {
        return INVALID_VALUE;
    }
    *value = found->second;
    return SUCCESS;
}

DRIVER cuDevicePrimaryCtxRetain(Context** context, int device) {
    if (device < 0 || device >= deviceCount) {
        return INVALID_DEVICE;
    }
    std::lock_guard guard(primaryLock);
    auto& primary = primaryContexts()[device];
    if (!primary) {
        primary = std::make_unique<Context>(device);
    }
    if (primary->countCall() == DEVICE_UNAVAILABLE) {
        if (retained[device] == 0) {
            primary->failed = SUCCESS;  // for the next one
        }
        return DEVICE_UNAVAILABLE;
    }
    retained[device]++;
    *context = primary.get();
    return SUCCESS;
}

// The last release ends the context; a failed kernel is forgotten with it.
DRIVER cuDevicePrimaryCtxRelease_v2(int device) {
    std::lock_guard guard(primaryLock);
    if (retained[device] < 1) {
        return INVALID_CONTEXT;
    }
    Context& primary = *primaryContexts()[device];
    int status = primary.countCall();
    if (--retained[device] == 0) {
        primary.synchronize();
        primary.failed = SUCCESS;
        primary.forgetPeers();
    }
    return status;
}

DRIVER cuCtxSetCurrent(Context* context) {
    bound = context;
    return SUCCESS;
}

DRIVER cuCtxGetCurrent(Context** context) {
    *context = bound;
    return SUCCESS;
}

DRIVER cuCtxSynchronize() {
    REQUIRE_CONTEXT
    REQUIRE_NO_CAPTURE
    waits++;
    bound->synchronize();
    return bound->failed;
}

// ---- memory -----------------------------------------------------------------------------------------------------

DRIVER cuMemGetInfo_v2(size_t* free, size_t* total) {
    REQUIRE_CONTEXT
    *total = memoryOfDevice();
    size_t used = Memory::ofAll().used(bound->device);
    *free = used > *total ? 0 : *total - used;
    return SUCCESS;
}

DRIVER cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    REQUIRE_CONTEXT
    REQUIRE_NO_CAPTURE
    return bytes == 0 ? INVALID_VALUE : Memory::ofAll().allocate(bound->device, bytes, *address);
}

// The manual: it may wait for what runs. Who counts on that reads NaN.
DRIVER cuMemFree_v2(uint64_t address) {
    if (!bound) {
        return INVALID_CONTEXT;
    }
    int status = wrong();
    REQUIRE_NO_CAPTURE
    Memory::ofAll().spoil(address);
    bound->synchronize();
    int freed = Memory::ofAll().free(address);
    return status ? status : freed;
}

DRIVER cuMemHostAlloc(void** address, size_t bytes, unsigned) {
    REQUIRE_CONTEXT
    REQUIRE_NO_CAPTURE
    *address = Memory::ofAll().pin(bytes);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}

DRIVER cuMemFreeHost(void* address) {
    int status = wrong();
    return !Memory::ofAll().unpin(address) ? INVALID_VALUE : status;
}

DRIVER cuMemsetD2D8Async(uint64_t address, size_t pitch, unsigned char value, size_t width, size_t height, Stream* stream) {
    REQUIRE_CONTEXT
    REQUIRE_DEVICE_MEMORY(address, (height - 1) * pitch + width)
    if (pitch < width) {
        return INVALID_VALUE;
    }
    return give(stream, [=] {
        count("zero", 0, static_cast<long>(width * height), 0);
        for (size_t row = 0; row < height; row++) {
            memset(reinterpret_cast<char*>(address) + row * pitch, value, width);
        }
    });
}

DRIVER cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, Stream* stream) {
    REQUIRE_CONTEXT
    REQUIRE_DEVICE_MEMORY(address, bytes)
    return give(stream, [=] {
        count("zero", 0, static_cast<long>(bytes), 0);
        memset(reinterpret_cast<void*>(address), value, bytes);
    });
}

// Copies to and from pageable memory return after the copy, those of pinned memory before. A device that is lost meanwhile
// leaves half of it.
static int copy(void* to, const void* from, size_t bytes, const void* host, Stream* stream) {
    bool isWaitedFor = host && !Memory::ofAll().isPinned(host, bytes);
    if (int refused = isWaitedFor ? refuseCaptured(stream) : SUCCESS) {
        return refused;
    }
    bool isLost = bound->isLostAtCopy(host);
    Context* context = bound;
    int given = give(stream, [=] {
        if (context->failed) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(number("COPY_MILLIS", 0)));
        memcpy(to, from, isLost ? bytes / 2 : bytes);
        if (isLost) {
            context->failed = DEVICE_UNAVAILABLE;
        }
    }, Kind::COPY);
    if (isWaitedFor && given == SUCCESS) {
        waits++;
        stream->synchronize();
    }
    return given;
}

DRIVER cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
    REQUIRE_CONTEXT
    REQUIRE_DEVICE_MEMORY(to, bytes)
    return copy(reinterpret_cast<void*>(to), from, bytes, from, stream);
}

DRIVER cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
    REQUIRE_CONTEXT
    REQUIRE_DEVICE_MEMORY(from, bytes)
    return copy(to, reinterpret_cast<void*>(from), bytes, to, stream);
}

DRIVER cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    REQUIRE_CONTEXT
    REQUIRE_DEVICE_MEMORY(to, bytes)
    REQUIRE_DEVICE_MEMORY(from, bytes)
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, nullptr, stream);
}

// ---- peers --------------------------------------------------------------------------------------------------------

DRIVER cuDeviceCanAccessPeer(int* can, int device, int peer) {
    if (device < 0 || peer < 0 || device >= deviceCount || peer >= deviceCount) {
        return INVALID_DEVICE;
    }
    *can = arePeers(device, peer);
    return SUCCESS;
}

DRIVER cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
    REQUIRE_CONTEXT
    return flags ? INVALID_VALUE : bound->enablePeer(peer);
}

DRIVER cuCtxDisablePeerAccess(Context* peer) {
    REQUIRE_CONTEXT
    return bound->disablePeer(peer);
}

// Without access the real one goes through the host and says nothing: here it is refused, so that tests see it.
DRIVER cuMemcpyPeerAsync(uint64_t to, Context* toContext, uint64_t from, Context* fromContext, size_t bytes, Stream* stream) {
    REQUIRE_CONTEXT
    if (!toContext || !fromContext) {
        return INVALID_CONTEXT;
    }
    for (Context* context : {toContext, fromContext}) {
        if (context->failed) {
            return context->failed;
        }
        if (!bound->touches(context)) {
            return PEER_ACCESS_NOT_ENABLED;
        }
    }
    if (!Memory::ofAll().isOn(toContext->device, to, bytes) || !Memory::ofAll().isOn(fromContext->device, from, bytes)) {
        return INVALID_VALUE;
    }
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, nullptr, stream);
}

// ---- streams and events ------------------------------------------------------------------------------------------

struct CapturableEvent : Event {
    using Event::Event;

    CapturedMoment inCapture;
};

DRIVER cuStreamCreate(Stream** stream, unsigned) {
    REQUIRE_CONTEXT
    *stream = bound->addStream();
    return SUCCESS;
}

DRIVER cuStreamDestroy_v2(Stream* stream) {
    if (!bound) {
        return INVALID_CONTEXT;
    }
    int status = wrong();
    stream->owner->remove(stream); // whichever context the thread has
    return status;
}

DRIVER cuStreamSynchronize(Stream* stream) {
    REQUIRE_CONTEXT
    if (int refused = refuseCaptured(stream)) {
        return refused;
    }
    waits++;
    stream->synchronize();
    return bound->failed;
}

DRIVER cuStreamQuery(Stream* stream) {
    REQUIRE_CONTEXT_TO_ASK(stream)
    if (int refused = refuseCaptured(stream)) {
        return refused;
    }
    return stream->idle() ? SUCCESS : NOT_READY;
}

DRIVER cuStreamWaitEvent(Stream* stream, CapturableEvent* event, unsigned) {
    REQUIRE_CONTEXT
    Event::Place place = event->place();
    int status;
    if (waitInCapture(stream, event->inCapture, place.record > 0, status)) {
        return status;
    }
    stream->submit([awaited = event->shared_from_this(), place] { awaited->await(place); });
    return SUCCESS;
}

DRIVER cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* argument) {
    REQUIRE_CONTEXT
    return give(stream, [=] { function(argument); });
}

DRIVER cuEventCreate(CapturableEvent** event, unsigned) {
    REQUIRE_CONTEXT
    auto made = std::make_shared<CapturableEvent>(bound);
    made->ofProgram = made;
    *event = made.get();
    return SUCCESS;
}

DRIVER cuEventDestroy_v2(CapturableEvent* event) {
    auto last = std::move(event->ofProgram);
    return wrong();
}

DRIVER cuEventRecord(CapturableEvent* event, Stream* stream) {
    REQUIRE_CONTEXT
    if (event->owner != stream->owner) {
        return INVALID_HANDLE;
    }
    if (!recordInCapture(stream, event->inCapture)) {
        event->record(*stream);
    }
    return SUCCESS;
}

DRIVER cuEventSynchronize(CapturableEvent* event) {
    REQUIRE_CONTEXT
    if (!event->inCapture.capture.expired()) {
        return CAPTURED_EVENT;
    }
    waits++;
    event->await(event->place());
    return event->owner->failed;
}

DRIVER cuEventQuery(CapturableEvent* event) {
    REQUIRE_CONTEXT_TO_ASK(event)
    if (event->owner->failed) {
        return event->owner->failed;
    }
    if (!event->inCapture.capture.expired()) {
        return CAPTURED_EVENT;
    }
    return event->isReached() ? SUCCESS : NOT_READY;
}

DRIVER cuEventElapsedTime(float* milliseconds, CapturableEvent* from, CapturableEvent* to) {
    *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return SUCCESS;
}

// ---- modules and launches ----------------------------------------------------------------------------------------

DRIVER cuModuleLoadData(Module** module, const void* image) {
    REQUIRE_CONTEXT
    REQUIRE_NO_CAPTURE
    std::string problem;
    const char* bytes = static_cast<const char*>(image);
    if (number("REFUSE_PTX", 0) || number("DRIVER", 13000) < 11000) {
        return INVALID_PTX;
    }
    if (isCubin(bytes) && number("DRIVER", 13000) < 13000) {
        return NO_BINARY_FOR_GPU;  // made by a compiler of CUDA 13
    }
    auto read = isCubin(bytes) ? readCubin(bytes, static_cast<int>(number("CAPABILITY", 8)), problem) : readPtx(bytes, problem);
    if (!read) {
        fprintf(stderr, "emulator: %s\n", problem.c_str());
        return isCubin(bytes) ? NO_BINARY_FOR_GPU : INVALID_PTX;
    }
    *module = read.release();
    return SUCCESS;
}

DRIVER cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
    return cuModuleLoadData(module, image);
}

DRIVER cuModuleUnload(Module* module) {
    delete module;
    return wrong();
}

DRIVER cuModuleGetFunction(Function** function, Module* module, const char* name) {
    REQUIRE_CONTEXT
    auto found = module->functions.find(name);
    if (found == module->functions.end() || setting("MISSING", "") == name) {
        return NOT_FOUND;
    }
    *function = &found->second;
    return SUCCESS;
}

DRIVER cuFuncSetAttribute(Function* function, int attribute, int value) {
    REQUIRE_CONTEXT
    if (attribute != 8 || value > 163 << 10) {
        return INVALID_VALUE;
    }
    function->dynamicSharedLimit = value;
    return SUCCESS;
}

DRIVER cuLaunchKernel(Function* function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned x, unsigned y, unsigned z,
                      unsigned dynamicSharedBytes, Stream* stream, void** parameters, void** extra) {
    REQUIRE_CONTEXT
    if (extra) {
        return NOT_SUPPORTED;
    }
    dim3 blocks{gridX, gridY, gridZ}, threads{x, y, z};
    if (blocks.volume() == 0 || gridX > 2147483647u || gridY > 65535 || gridZ > 65535 || threads.volume() == 0 ||
        threads.volume() > 1024 || z > 64 || dynamicSharedBytes > function->dynamicSharedLimit) {
        return INVALID_VALUE;
    }
    if (stream && stream->owner != bound) {
        return INVALID_HANDLE;
    }
    auto grid = std::make_shared<Grid>(Grid{bound->device, asWatched(function->kernel), blocks, threads, dynamicSharedBytes, {}});
    // the caller may reuse the memory of its parameters at once
    for (size_t i = 0; i < function->kernel->parameterBytes.size(); i++) {
        const char* bytes = static_cast<const char*>(parameters[i]);
        grid->parameters.emplace_back(bytes, bytes + function->kernel->parameterBytes[i]);
    }
    Context* context = bound;
    bool hangs = bound->hangsAtLaunch();
    auto work = [grid, context, hangs] {
        if (context->failed) {
            return;
        }
        while (hangs) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
        std::string failure = run(*grid);
        if (!failure.empty()) {
            fprintf(stderr, "emulator: %s\n", failure.c_str());
            lastFailure(&failure);
            context->failed = LAUNCH_FAILED;
        }
    };
    return give(stream, work, Kind::KERNEL);
}

// ---- graphs ------------------------------------------------------------------------------------------------------

DRIVER cuStreamBeginCapture_v2(Stream* stream, int mode) {
    REQUIRE_CONTEXT
    return beginCapture(stream, bound, mode);
}

DRIVER cuStreamEndCapture(Stream* stream, Graph** graph) {
    int status = wrong();
    int ended = endCapture(stream, graph);
    if (status) {
        delete *graph;
        *graph = nullptr;
    }
    return status ? status : ended;
}

DRIVER cuGraphInstantiateWithFlags(ExecutableGraph** executable, Graph* graph, unsigned long long flags) {
    REQUIRE_CONTEXT
    if (flags != 0) {
        return NOT_SUPPORTED;
    }
    *executable = new ExecutableGraph();
    (*executable)->context = bound;
    (*executable)->nodes = graph->nodes;
    return SUCCESS;
}

DRIVER cuGraphLaunch(ExecutableGraph* executable, Stream* stream) {
    REQUIRE_CONTEXT
    if (executable->context != bound || stream->owner != bound || captureOf(stream)) {
        return INVALID_VALUE;
    }
    launches++;
    for (const Node& node : executable->nodes) {
        if (int refused = start(stream, node)) {
            return refused;
        }
    }
    return SUCCESS;
}

DRIVER cuGraphDestroy(Graph* graph) {
    delete graph;
    return wrong();
}

// What runs goes on.
DRIVER cuGraphExecDestroy(ExecutableGraph* executable) {
    delete executable;
    return wrong();
}

// ---- tests ---------------------------------------------------------------------------------------------------------

// Memory, streams, events, modules and graphs that were made and not given back.
extern "C" __attribute__((visibility("default"))) long penstockEmulatorLive() {
    return Counted::live + Memory::ofAll().live();
}

// How often devices were given something: a graph counts once, what is recorded does not.
extern "C" __attribute__((visibility("default"))) long penstockEmulatorLaunches() { return launches; }

static long tell(const std::string& text, char* to, long bytes) {
    snprintf(to, bytes, "%s", text.c_str());
    return static_cast<long>(text.size());
}

// The calls that LOSE_AT_CALL counts, of all devices.
extern "C" __attribute__((visibility("default"))) long penstockEmulatorCalls() { return Context::calls; }

// How often the program waited for a device.
extern "C" __attribute__((visibility("default"))) long penstockEmulatorWaits() { return waits; }

// What check.h counts; returns how many bytes of text there are.
extern "C" __attribute__((visibility("default"))) long penstockEmulatorCounted(char* to, long bytes) {
    return tell(counted(), to, bytes);
}

extern "C" __attribute__((visibility("default"))) long penstockEmulatorFailure(char* to, long bytes) {
    return tell(lastFailure(), to, bytes);
}

// ---- libraries beside the driver -----------------------------------------------------------------------------------

#define FOR_LIBRARIES extern "C" __attribute__((visibility("default")))

FOR_LIBRARIES int penstockEmulatorDevice() { return bound ? bound->device : -1; }

FOR_LIBRARIES bool penstockEmulatorHolds(uint64_t address, size_t bytes) { return Memory::ofAll().contains(address, bytes); }

FOR_LIBRARIES int penstockEmulatorLaunch(void* stream, std::function<void()> work) {
    REQUIRE_CONTEXT
    Context* context = bound;
    auto guarded = [work = std::move(work), context] {
        if (!context->failed) {
            work();
        }
    };
    return give(static_cast<Stream*>(stream), guarded, Kind::KERNEL);
}

FOR_LIBRARIES void penstockEmulatorCount(const char* name, long read, long written, double operations) {
    count(name, read, written, operations);
}

static const std::map<int, const char*>& names() {
    static const std::map<int, const char*> all = {{SUCCESS, "CUDA_SUCCESS"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                                                   {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
    return all;
}

DRIVER cuGetErrorName(int status, const char** name) {
    auto found = names().find(status);
    *name = found == names().end() ? "CUDA_ERROR" : found->second;
    return SUCCESS;
}

DRIVER cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }
