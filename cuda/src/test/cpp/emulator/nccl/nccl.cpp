// The functions of libnccl.so.2 that the product calls, on emulated GPUs, with the manual's rules: one GPU for each member,
// which its thread has; calls between group start and end begin with the end; work runs on streams and waits there for the
// same of all members; sums go round a ring that begins at another member for every part, so they are not those in rank order.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../library.h"

#define NCCL extern "C" __attribute__((visibility("default"))) int

namespace {

// Of ncclResult_t.
enum Result { SUCCESS = 0, CUDA_ERROR = 1, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

// Of ncclDataType_t and ncclRedOp_t.
constexpr int INT32 = 2, INT64 = 4, FLOAT32 = 7, BFLOAT16 = 9, SUM = 0;

struct UniqueId {
    char internal[128];
};

enum class Kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, REDUCE, BROADCAST };

struct Op {
    Kind kind;
    const char* send;
    char* receive;
    size_t count;
    int type;
    int root;

    bool isLike(const Op& other) const {
        return kind == other.kind && count == other.count && type == other.type && root == other.root;
    }
};

size_t bytesOf(int type) { return type == BFLOAT16 ? 2 : type == INT64 ? 8 : 4; }

// One op of all members.
struct Meeting {
    std::map<int, Op> ops;
    bool done = false;
};

// The members that joined with one id.
struct World {
    std::mutex lock;
    std::condition_variable changed;
    int size = 0;
    std::map<int, int> devices;
    int left = 0;
    std::map<uint64_t, Meeting> meetings;
    int failure = SUCCESS;

    // Adds what the members have for `count` elements behind `offset`, the member after `last` first, itself last.
    std::vector<char> ring(Meeting& meeting, int last, size_t offset, size_t count) {
        return meeting.ops[0].type == INT64 ? ringOf<int64_t>(meeting, last, offset, count)
                                            : ringOf<float>(meeting, last, offset, count);
    }

    template <class T>
    std::vector<char> ringOf(Meeting& meeting, int last, size_t offset, size_t count) {
        std::vector<char> bytes(count * sizeof(T));
        T* sum = reinterpret_cast<T*>(bytes.data());
        for (int hop = 1; hop <= size; hop++) {
            const T* addend = reinterpret_cast<const T*>(meeting.ops[(last + hop) % size].send) + offset;
            for (size_t i = 0; i < count; i++) {
                sum[i] = hop == 1 ? addend[i] : sum[i] + addend[i];
            }
        }
        return bytes;
    }

    void perform(Meeting& meeting) {
        const Op first = meeting.ops[0];
        size_t count = first.count, bytes = count * bytesOf(first.type);
        switch (first.kind) {
            case Kind::ALL_REDUCE: {
                std::vector<char> all;
                size_t length = (count + size - 1) / size;
                for (int part = 0; part < size; part++) {
                    size_t from = std::min(count, part * length), to = std::min(count, from + length);
                    std::vector<char> sum = ring(meeting, part, from, to - from);
                    all.insert(all.end(), sum.begin(), sum.end());
                }
                for (auto& [member, op] : meeting.ops) {
                    memcpy(op.receive, all.data(), bytes);
                }
                break;
            }
            case Kind::REDUCE_SCATTER: {
                std::vector<std::vector<char>> sums;
                for (int part = 0; part < size; part++) {
                    sums.push_back(ring(meeting, part, part * count, count));
                }
                for (auto& [member, op] : meeting.ops) {
                    memcpy(op.receive, sums[member].data(), bytes);
                }
                break;
            }
            case Kind::REDUCE:
                memcpy(meeting.ops[first.root].receive, ring(meeting, first.root, 0, count).data(), bytes);
                break;
            case Kind::ALL_GATHER:
                for (auto& [member, op] : meeting.ops) {
                    for (auto& [from, other] : meeting.ops) {
                        memmove(op.receive + from * bytes, other.send, bytes);
                    }
                }
                break;
            case Kind::BROADCAST:
                for (auto& [member, op] : meeting.ops) {
                    memmove(op.receive, meeting.ops[first.root].send, bytes);
                }
                break;
        }
    }
};

struct Communicator {
    std::shared_ptr<World> world;
    int rank;
    int device;
    uint64_t next = 0;
    bool aborted = false;

    void meet(uint64_t number, const Op& op) {
        std::unique_lock guard(world->lock);
        Meeting& meeting = world->meetings[number];
        meeting.ops[rank] = op;
        if (static_cast<int>(meeting.ops.size()) < world->size) {
            world->changed.wait(guard, [&] { return meeting.done || aborted; });
            return;
        }
        for (auto& [member, other] : meeting.ops) {
            if (!op.isLike(other)) {
                world->failure = INVALID_USAGE; // the real one hangs or mixes them up
            }
        }
        if (world->failure == SUCCESS) {
            world->perform(meeting);
        }
        meeting.done = true;
        world->changed.notify_all();
    }
};

std::mutex lock;

std::map<std::string, std::shared_ptr<World>>& worlds() {
    static std::map<std::string, std::shared_ptr<World>> all;
    return all;
}

struct Begun {
    std::shared_ptr<Communicator> communicator;
    Op op;
    void* stream;
};

thread_local int groupDepth = 0;
thread_local std::vector<Begun> group;

int begin(const Begun& begun) {
    auto communicator = begun.communicator;
    uint64_t number = communicator->next++;
    Op op = begun.op;
    int launched = penstockEmulatorLaunch(begun.stream, [=] { communicator->meet(number, op); });
    return launched == 0 ? SUCCESS : CUDA_ERROR;
}

// Handles are pointers to owners, which work on streams shares.
using Handle = std::shared_ptr<Communicator>;

int call(Handle* handle, const Op& op, size_t sendParts, size_t receiveParts, void* stream) {
    if (!handle || !op.send || !op.receive) {
        return INVALID_ARGUMENT;
    }
    Communicator& communicator = **handle;
    bool sums = op.kind != Kind::ALL_GATHER && op.kind != Kind::BROADCAST;
    bool knownType = op.type == FLOAT32 || op.type == INT64 || (!sums && (op.type == INT32 || op.type == BFLOAT16));
    size_t bytes = op.count * bytesOf(op.type);
    if (!knownType || op.root < 0 || op.root >= communicator.world->size ||
        !penstockEmulatorHolds(reinterpret_cast<uint64_t>(op.send), sendParts * bytes) ||
        !penstockEmulatorHolds(reinterpret_cast<uint64_t>(op.receive), receiveParts * bytes)) {
        return INVALID_ARGUMENT;
    }
    if (penstockEmulatorDevice() != communicator.device) {
        return INVALID_USAGE;
    }
    Begun begun{*handle, op, stream};
    if (groupDepth > 0) {
        group.push_back(begun);
        return SUCCESS;
    }
    return begin(begun);
}

}  // namespace

NCCL ncclGetVersion(int* version) {
    *version = 22703;
    return SUCCESS;
}

NCCL ncclGetUniqueId(UniqueId* id) {
    static int made = 0;
    std::lock_guard guard(lock);
    memset(id->internal, 0, sizeof id->internal);
    // at both ends, so that half an id is none
    std::string text = "world " + std::to_string(made++);
    memcpy(id->internal, text.data(), text.size());
    memcpy(id->internal + 100, text.data(), text.size());
    worlds()[std::string(id->internal, sizeof id->internal)] = std::make_shared<World>();
    return SUCCESS;
}

NCCL ncclCommInitRank(Handle** joined, int members, UniqueId id, int rank) {
    int device = penstockEmulatorDevice();
    if (device < 0) {
        return CUDA_ERROR;
    }
    std::shared_ptr<World> world;
    {
        std::lock_guard guard(lock);
        auto found = worlds().find(std::string(id.internal, sizeof id.internal));
        if (found == worlds().end() || members < 1 || rank < 0 || rank >= members) {
            return INVALID_ARGUMENT;
        }
        world = found->second;
    }
    std::unique_lock guard(world->lock);
    if ((world->size && world->size != members) || world->devices.count(rank)) {
        return INVALID_USAGE;
    }
    world->size = members;
    world->devices[rank] = device;
    world->changed.notify_all();
    world->changed.wait(guard, [&] { return static_cast<int>(world->devices.size()) == members; });
    std::set<int> different;
    for (auto& [member, each] : world->devices) {
        different.insert(each);
    }
    if (static_cast<int>(different.size()) < members) {
        return INVALID_USAGE;
    }
    *joined = new Handle(new Communicator{world, rank, device});
    return SUCCESS;
}

// Both ways of leaving wait for all members, says the manual: who calls this for one that never comes waits for good.
static int leave(Handle* handle, bool aborts) {
    if (!handle) {
        return INVALID_ARGUMENT;
    }
    std::shared_ptr<World> world = (*handle)->world;
    std::unique_lock guard(world->lock);
    (*handle)->aborted |= aborts;
    world->left++;
    world->changed.notify_all();
    world->changed.wait(guard, [&] { return world->left >= world->size; });
    delete handle;
    return SUCCESS;
}

NCCL ncclCommDestroy(Handle* handle) { return leave(handle, false); }

NCCL ncclCommAbort(Handle* handle) { return leave(handle, true); }

NCCL ncclCommGetAsyncError(Handle* handle, int* error) {
    if (!handle) {
        return INVALID_ARGUMENT;
    }
    std::lock_guard guard((*handle)->world->lock);
    *error = (*handle)->world->failure;
    return SUCCESS;
}

NCCL ncclGroupStart() {
    groupDepth++;
    return SUCCESS;
}

NCCL ncclGroupEnd() {
    if (groupDepth == 0) {
        return INVALID_USAGE;
    }
    if (--groupDepth > 0) {
        return SUCCESS;
    }
    int result = SUCCESS;
    for (const Begun& begun : group) {
        result = result == SUCCESS ? begin(begun) : result;
    }
    group.clear();
    return result;
}

NCCL ncclAllReduce(const char* send, char* receive, size_t count, int type, int op, Handle* handle, void* stream) {
    return op == SUM ? call(handle, {Kind::ALL_REDUCE, send, receive, count, type, 0}, 1, 1, stream) : INVALID_ARGUMENT;
}

NCCL ncclReduceScatter(const char* send, char* receive, size_t count, int type, int op, Handle* handle, void* stream) {
    size_t parts = handle ? (*handle)->world->size : 0;
    return op == SUM ? call(handle, {Kind::REDUCE_SCATTER, send, receive, count, type, 0}, parts, 1, stream) : INVALID_ARGUMENT;
}

NCCL ncclAllGather(const char* send, char* receive, size_t count, int type, Handle* handle, void* stream) {
    size_t parts = handle ? (*handle)->world->size : 0;
    return call(handle, {Kind::ALL_GATHER, send, receive, count, type, 0}, 1, parts, stream);
}

NCCL ncclReduce(const char* send, char* receive, size_t count, int type, int op, int root, Handle* handle, void* stream) {
    return op == SUM ? call(handle, {Kind::REDUCE, send, receive, count, type, root}, 1, 1, stream) : INVALID_ARGUMENT;
}

NCCL ncclBroadcast(const char* send, char* receive, size_t count, int type, int root, Handle* handle, void* stream) {
    return call(handle, {Kind::BROADCAST, send, receive, count, type, root}, 1, 1, stream);
}
