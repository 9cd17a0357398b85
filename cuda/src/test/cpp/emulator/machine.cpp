#include "machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "settings.h"

namespace emulator {

std::atomic<long> Counted::live{0};
std::atomic<long> Context::calls{0};

// ---- streams, events, contexts --------------------------------------------------------------------------------

Stream::Stream(Context* owner) : owner(owner), worker([this] { loop(); }) {}

Stream::~Stream() {
    {
        std::lock_guard guard(lock);
        ending = true;
        changed.notify_all();
    }
    worker.join();
}

uint64_t Stream::submit(std::function<void()> work, Kind kind) {
    std::string early = setting("STREAMS", "");
    uint64_t piece;
    {
        std::lock_guard guard(lock);
        queue.push_back(std::move(work));
        piece = ++submitted;
    }
    if (early.empty()) {
        demand(piece);
    } else if ((early == "copies" && kind == Kind::COPY) || (early == "kernels" && kind == Kind::KERNEL)) {
        complete(piece);
    }
    return piece;
}

void Stream::demand(uint64_t piece) {
    std::lock_guard guard(lock);
    demanded = std::max(demanded, piece);
    changed.notify_all();
}

void Stream::complete(uint64_t piece) {
    demand(piece);
    std::unique_lock guard(lock);
    changed.wait(guard, [&] { return completed >= piece; });
}

void Stream::synchronize() {
    uint64_t all;
    {
        std::lock_guard guard(lock);
        all = submitted;
    }
    complete(all);
}

bool Stream::idle() {
    std::lock_guard guard(lock);
    demanded = submitted;
    changed.notify_all();
    return completed == submitted;
}

void Stream::loop() {
    for (;;) {
        std::function<void()> work;
        {
            std::unique_lock guard(lock);
            changed.wait(guard, [&] { return ending || completed < demanded; });
            if (queue.empty()) {
                return;
            }
            work = std::move(queue.front());
            queue.pop_front();
        }
        work();
        work = nullptr; // and what it held
        std::lock_guard guard(lock);
        completed++;
        changed.notify_all();
    }
}

void Event::record(Stream& stream) {
    std::lock_guard guard(lock);
    uint64_t mine = last.record + 1;
    uint64_t piece = stream.submit([event = shared_from_this(), mine] {
        std::lock_guard guard(event->lock);
        event->reached = mine;
        event->at = std::chrono::steady_clock::now();
        event->changed.notify_all();
    });
    last = {mine, &stream, piece};
}

// A stream that has not come to the event yet is still there.
bool Event::isReached(const Place& place) {
    if (reached < place.record) {
        place.stream->demand(place.piece);
    }
    return reached >= place.record;
}

void Event::await(const Place& place) {
    std::unique_lock guard(lock);
    changed.wait(guard, [&] { return isReached(place); });
}

bool Event::isReached() {
    std::lock_guard guard(lock);
    return isReached(last);
}

Event::Place Event::place() {
    std::lock_guard guard(lock);
    return last;
}

Stream* Context::addStream() {
    auto stream = std::make_shared<Stream>(this);
    std::lock_guard guard(lock);
    streams[stream.get()] = stream;
    return stream.get();
}

void Context::remove(Stream* stream) {
    std::shared_ptr<Stream> last;
    {
        std::lock_guard guard(lock);
        last = std::move(streams[stream]);
        streams.erase(stream);
    }
    if (last) {
        last->synchronize();
    }
}

// Another thread may give a stream back meanwhile.
void Context::synchronize() {
    std::vector<std::shared_ptr<Stream>> all;
    {
        std::lock_guard guard(lock);
        for (auto& each : streams) {
            all.push_back(each.second);
        }
    }
    for (auto& stream : all) {
        stream->synchronize();
    }
}

int Context::countLaunch() {
    std::lock_guard guard(lock);
    if (isDue("LOSE_DEVICE", towardsLoss, lossSetting)) {
        failed = DEVICE_UNAVAILABLE;
    } else if (isDue("FAIL_LAUNCH", towardsFailure, failureSetting)) {
        failed = LAUNCH_FAILED;
    }
    return failed;
}

int Context::countCall(const void* asked) {
    std::lock_guard guard(lock);
    if (!asked || asked != lastAsked) {
        calls++;
        if (isDue("LOSE_AT_CALL", towardsLostCall, lostCallSetting)) {
            failed = DEVICE_UNAVAILABLE;
        }
    }
    lastAsked = asked;
    return failed;
}

bool Context::hangsAtLaunch() {
    std::lock_guard guard(lock);
    return isDue("HANG", towardsHang, hangSetting);
}

bool Context::isLostAtCopy(bool withHost) {
    std::lock_guard guard(lock);
    return withHost ? isDue("LOSE_AT_HOST_COPY", towardsLostHostCopy, lostHostCopySetting)
                    : isDue("LOSE_AT_COPY", towardsLostCopy, lostCopySetting);
}

int Context::enablePeer(Context* peer) {
    if (peer->device == device || !arePeers(device, peer->device)) {
        return peer->device == device ? INVALID_DEVICE : PEER_ACCESS_UNSUPPORTED;
    }
    std::lock_guard guard(lock);
    return peers.insert(peer).second ? SUCCESS : PEER_ACCESS_ALREADY_ENABLED;
}

int Context::disablePeer(Context* peer) {
    std::lock_guard guard(lock);
    return peers.erase(peer) ? SUCCESS : PEER_ACCESS_NOT_ENABLED;
}

bool Context::touches(Context* peer) {
    std::lock_guard guard(lock);
    return peer == this || peers.count(peer);
}

void Context::forgetPeers() {
    std::lock_guard guard(lock);
    peers.clear();
}

bool arePeers(int device, int peer) { return device != peer && number("NO_PEERS", 0) == 0; }

// Counts from when the setting changed.
bool Context::isDue(const char* name, long& seen, std::string& last) {
    std::string wanted = setting(name, "");
    if (wanted != last) {
        last = wanted;
        seen = 0;
    }
    size_t colon = wanted.find(':');
    if (colon == std::string::npos || std::stoi(wanted) != device) {
        return false;
    }
    return ++seen == std::stol(wanted.substr(colon + 1));
}

// ---- memory -----------------------------------------------------------------------------------------------------

static constexpr size_t PAGE = 4096;

static size_t roundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t memoryOfDevice() { return static_cast<size_t>(number("MEMORY_MIB", 4096)) << 20; }

Memory& Memory::ofAll() {
    static Memory memory;
    return memory;
}

int Memory::allocate(int device, size_t bytes, uint64_t& address) {
    std::lock_guard guard(lock);
    if (usedBytes[device] + bytes > memoryOfDevice()) {
        return OUT_OF_MEMORY;
    }
    size_t payload = roundUp(bytes, 256);
    size_t mappingBytes = roundUp(payload, PAGE) + 2 * PAGE;
    void* mapping = mmap(nullptr, mappingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return OUT_OF_MEMORY;
    }
    // at the end of its pages: what runs over the end is a fault
    char* start = static_cast<char*>(mapping);
    mprotect(start, PAGE, PROT_NONE);
    mprotect(start + mappingBytes - PAGE, PAGE, PROT_NONE);
    char* payloadAt = start + mappingBytes - PAGE - payload;
    memset(payloadAt, 0xff, payload);
    usedBytes[device] += bytes;
    address = reinterpret_cast<uint64_t>(payloadAt);
    allocations[address] = {bytes, start, mappingBytes, device};
    return SUCCESS;
}

void Memory::spoil(uint64_t address) {
    std::lock_guard guard(lock);
    auto found = allocations.find(address);
    if (found != allocations.end()) {
        memset(reinterpret_cast<void*>(address), 0xff, found->second.bytes);
    }
}

int Memory::free(uint64_t address) {
    std::lock_guard guard(lock);
    auto found = allocations.find(address);
    if (found == allocations.end()) {
        return INVALID_VALUE;
    }
    usedBytes[found->second.device] -= found->second.bytes;
    munmap(found->second.mapping, found->second.mappingBytes);
    allocations.erase(found);
    return SUCCESS;
}

size_t Memory::used(int device) {
    std::lock_guard guard(lock);
    return usedBytes[device];
}

bool Memory::contains(uint64_t address, size_t bytes) {
    std::lock_guard guard(lock);
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) {
        return false;
    }
    --next;
    return address + bytes <= next->first + next->second.bytes;
}

bool Memory::isOn(int device, uint64_t address, size_t bytes) {
    std::lock_guard guard(lock);
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) {
        return false;
    }
    --next;
    return next->second.device == device && address + bytes <= next->first + next->second.bytes;
}

void* Memory::pin(size_t bytes) {
    void* address = aligned_alloc(PAGE, roundUp(bytes, PAGE));
    if (address) {
        memset(address, 0xff, bytes);
        std::lock_guard guard(lock);
        pinned[reinterpret_cast<uint64_t>(address)] = bytes;
    }
    return address;
}

bool Memory::unpin(void* address) {
    std::lock_guard guard(lock);
    if (!pinned.erase(reinterpret_cast<uint64_t>(address))) {
        return false;
    }
    ::free(address);
    return true;
}

std::vector<std::pair<uint64_t, uint64_t>> Memory::ranges() {
    std::lock_guard guard(lock);
    std::vector<std::pair<uint64_t, uint64_t>> all;
    for (auto& [address, allocation] : allocations) {
        all.emplace_back(address, address + allocation.bytes);
    }
    for (auto& [address, bytes] : pinned) {
        all.emplace_back(address, address + bytes);
    }
    std::sort(all.begin(), all.end());
    return all;
}

long Memory::live() {
    std::lock_guard guard(lock);
    return static_cast<long>(allocations.size() + pinned.size());
}

bool Memory::isPinned(const void* address, size_t bytes) {
    std::lock_guard guard(lock);
    auto at = reinterpret_cast<uint64_t>(address);
    auto next = pinned.upper_bound(at);
    if (next == pinned.begin()) {
        return false;
    }
    --next;
    return at + bytes <= next->first + next->second;
}

}  // namespace emulator
