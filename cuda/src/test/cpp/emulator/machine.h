// The emulated machine: devices with their memory, contexts, streams, events and modules.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grid.h"

namespace emulator {

// Of CUresult.
enum Status {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEVICE_UNAVAILABLE = 46,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_MERGE = 902,
    STREAM_CAPTURE_UNMATCHED = 903,
    STREAM_CAPTURE_UNJOINED = 904,
    STREAM_CAPTURE_ISOLATION = 905,
    STREAM_CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    STREAM_CAPTURE_WRONG_THREAD = 908,
};

class Context;

// What a program makes and has to give back; tests count it.
struct Counted {
    static std::atomic<long> live;

    Counted() { live++; }
    ~Counted() { live--; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
};

enum class Kind { KERNEL, COPY, OTHER };

// Runs work in the order in which it was given, on a thread of its own; when, STREAMS says.
class Stream : Counted {
  public:
    explicit Stream(Context* owner);
    ~Stream();

    Context* const owner;

    // Which piece of work of this stream it is.
    uint64_t submit(std::function<void()> work, Kind kind = Kind::OTHER);
    // Lets it do everything up to this piece.
    void demand(uint64_t piece);
    // Waits for everything given so far.
    void synchronize();
    bool idle();

  private:
    void loop();
    void complete(uint64_t piece);

    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    uint64_t submitted = 0;
    uint64_t demanded = 0;
    uint64_t completed = 0;
    bool ending = false;
    std::thread worker;
};

// Of a device; what goes wrong in it stays wrong.
class Context {
  public:
    explicit Context(int device) : device(device) {}

    // Of all contexts.
    static std::atomic<long> calls;

    const int device;
    std::atomic<int> failed{SUCCESS};

    Stream* addStream();
    // After all that it was given.
    void remove(Stream* stream);
    void synchronize();

    // The status of a launch: SUCCESS, or what the settings want to happen at this one.
    int countLaunch();

    // What is wrong after this call, at which the settings may want the device to be lost. Asked again and again whether one
    // thing is done, it counts once: how often depends on time.
    int countCall(const void* asked = nullptr);

    // Whether this launch is to run for ever.
    bool hangsAtLaunch();

    // Whether the device is to be lost while this copy runs.
    bool isLostAtCopy(bool withHost);

    // Lets work of this context touch the peer's memory; one way.
    int enablePeer(Context* peer);
    int disablePeer(Context* peer);
    bool touches(Context* peer);
    void forgetPeers();

  private:
    bool isDue(const char* setting, long& seen, std::string& last);

    std::mutex lock;
    std::map<Stream*, std::shared_ptr<Stream>> streams;
    std::set<Context*> peers;
    long towardsFailure = 0, towardsLoss = 0, towardsLostCopy = 0, towardsLostHostCopy = 0, towardsLostCall = 0, towardsHang = 0;
    const void* lastAsked = nullptr;
    std::string failureSetting, lossSetting, lostCopySetting, lostHostCopySetting, lostCallSetting, hangSetting;
};

// Streams that have it before them share it with the program, which may give it back before they are there.
struct Event : Counted, std::enable_shared_from_this<Event> {
    explicit Event(Context* owner) : owner(owner) {}
    virtual ~Event() = default;

    Context* const owner;
    std::shared_ptr<Event> ofProgram;
    std::mutex lock;
    std::condition_variable changed;
    uint64_t reached = 0;
    std::chrono::steady_clock::time_point at;

    // Where an event stands in a stream.
    struct Place {
        uint64_t record = 0;
        Stream* stream = nullptr;
        uint64_t piece = 0;
    };

    void record(Stream& stream);
    void await(const Place& place);
    bool isReached();
    Place place();

  private:
    bool isReached(const Place& place);

    Place last;
};

struct Function {
    const Kernel* kernel;
    size_t dynamicSharedLimit = 48 << 10;
};

struct Module : Counted {
    std::map<std::string, Function> functions;
};

// Checks shipped PTX against the kernels that g++ compiled from the sources; a null module says why in the log.
std::unique_ptr<Module> readPtx(const std::string& text, std::string& problem);

// Whether a module's image is machine code.
bool isCubin(const char* image);

// The same of machine code, for devices of this major capability.
std::unique_ptr<Module> readCubin(const char* image, int capability, std::string& problem);

// Memory of all devices and pinned memory of the host.
class Memory {
  public:
    static Memory& ofAll();

    // SUCCESS or OUT_OF_MEMORY. Fresh memory is NaN; a guard page lies behind it.
    int allocate(int device, size_t bytes, uint64_t& address);
    int free(uint64_t address);
    // What is read after it was freed, or while it is, is NaN.
    void spoil(uint64_t address);
    size_t used(int device);
    bool contains(uint64_t address, size_t bytes);
    // Whether one allocation of this device has all of them.
    bool isOn(int device, uint64_t address, size_t bytes);

    void* pin(size_t bytes);
    bool unpin(void* address);
    bool isPinned(const void* address, size_t bytes);

    // Where blocks of all devices and pinned ones lie, in order.
    std::vector<std::pair<uint64_t, uint64_t>> ranges();

    // Blocks that nobody has freed.
    long live();

  private:
    struct Allocation {
        size_t bytes;
        char* mapping;
        size_t mappingBytes;
        int device;
    };
    std::mutex lock;
    std::map<uint64_t, Allocation> allocations;
    std::map<uint64_t, size_t> pinned;
    std::map<int, size_t> usedBytes;
};

size_t memoryOfDevice();

// Whether the machine's wiring lets a device see another's memory.
bool arePeers(int device, int peer);

}  // namespace emulator
