#include "check.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "machine.h"
#include "settings.h"

namespace emulator {

static constexpr int LANES = 32, WARPS = 32, WORD = 4, WORDS_OF_PAGE = 1024, REMEMBERED = 4;

// ---- the kernels' other compilation ---------------------------------------------------------------------------------

static std::map<std::string, Kernel>& watchedKernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

void enlistWatched(const Kernel& kernel) { watchedKernels()[kernel.name] = kernel; }

const Kernel* asWatched(const Kernel* kernel) {
    static std::mutex lock;
    std::lock_guard guard(lock);
    std::string library = setting("CHECKED", "");
    if (library.empty()) {
        return kernel;
    }
    if (watchedKernels().empty() && !dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "emulator: %s\n", dlerror());
    }
    auto found = watchedKernels().find(kernel->name);
    return found == watchedKernels().end() ? kernel : &found->second;
}

// ---- counts ---------------------------------------------------------------------------------------------------------

struct Count {
    long launches = 0, read = 0, written = 0;
    double operations = 0;
};

static std::mutex countsLock;
static std::map<std::string, Count>& counts() {
    static std::map<std::string, Count> all;
    return all;
}

void count(const std::string& name, long read, long written, double operations) {
    std::lock_guard guard(countsLock);
    Count& of = counts()[name];
    of.launches++;
    of.read += read;
    of.written += written;
    of.operations += operations;
}

std::string counted() {
    std::lock_guard guard(countsLock);
    std::string lines;
    for (auto& [name, of] : counts()) {
        char line[200];
        snprintf(line, sizeof line, "%s\t%ld\t%ld\t%ld\t%.0f\n", name.c_str(), of.launches, of.read, of.written, of.operations);
        lines += line;
    }
    counts().clear();
    return lines;
}

// ---- races ----------------------------------------------------------------------------------------------------------

// Who touched bytes of a word, and when: its block barriers, and its own count of warp barriers.
struct Access {
    unsigned grid = 0, block = 0, warpTime = 0;
    unsigned short blockTime = 0;
    unsigned short thread : 10 = 0, bytes : 4 = 0, writes : 1 = 0, isAtomic : 1 = 0;
};

struct Word {
    std::array<Access, REMEMBERED> last;
    unsigned char next = 0;
    unsigned readIn = 0, writtenIn = 0;  // the grid that counted it
};

using Page = std::array<Word, WORDS_OF_PAGE>;

// Of an OS thread, so of a stream: grids of one stream run one after the other.
struct Watch {
    bool on = false;
    unsigned grid = 0, block = 0;
    const Kernel* kernel = nullptr;
    const std::vector<std::vector<char>>* parameters = nullptr;
    Range stacks{}, warps{}, threads{}, shared{};
    std::vector<std::pair<uint64_t, uint64_t>> global;
    size_t lastGlobal = 0;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
    uint64_t lastPage = 0;
    Page* page = nullptr;
    // known[w][a][b]: up to which of b's times lane a of warp w knows what b did
    std::vector<std::array<std::array<unsigned, LANES>, LANES>> known{WARPS};
    long read = 0, written = 0;
    double operations = 0;
};

static thread_local Watch watch;

void watchGrid(const Grid& grid, Range stacks, Range warps, Range threads) {
    watch.on = grid.kernel->isWatched;
    watch.kernel = grid.kernel;
    watch.parameters = &grid.parameters;
    watch.read = watch.written = 0;
    watch.operations = 0;
    if (!watch.on) {
        return;
    }
    watch.grid++;
    watch.stacks = stacks;
    watch.warps = warps;
    watch.threads = threads;
    watch.global = Memory::ofAll().ranges();
    watch.lastGlobal = 0;
}

void watchBlock(unsigned long block, Range dynamicShared) {
    if (watch.on) {
        watch.block = static_cast<unsigned>(block);
        watch.shared = dynamicShared;
        for (auto& warp : watch.known) {
            for (int lane = 0; lane < LANES; lane++) {
                warp[lane].fill(0);
                warp[lane][lane] = 1;
            }
        }
    }
}

void endWatch() {
    count(watch.kernel->name, watch.read, watch.written, watch.operations);
    watch.on = false;
}

void watchMeeting(int warp, unsigned mask) {
    if (!watch.on) {
        return;
    }
    auto& known = watch.known[warp];
    std::array<unsigned, LANES> all{};
    for (int lane = 0; lane < LANES; lane++) {
        if (mask >> lane & 1) {
            for (int of = 0; of < LANES; of++) {
                all[of] = std::max(all[of], known[lane][of]);
            }
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        if (mask >> lane & 1) {
            known[lane] = all;
            known[lane][lane]++;
        }
    }
}

void watchOperations(double operations) { watch.operations += operations; }

static bool isGlobal(uint64_t address) {
    auto holds = [&](size_t i) { return watch.global[i].first <= address && address < watch.global[i].second; };
    if (watch.lastGlobal < watch.global.size() && holds(watch.lastGlobal)) {
        return true;
    }
    auto after = std::upper_bound(watch.global.begin(), watch.global.end(), std::pair{address, ~uint64_t{0}});
    if (after == watch.global.begin()) {
        return false;
    }
    watch.lastGlobal = static_cast<size_t>(after - watch.global.begin()) - 1;
    return holds(watch.lastGlobal);
}

static Word& wordAt(uint64_t address) {
    uint64_t number = address / WORD / WORDS_OF_PAGE;
    if (!watch.page || watch.lastPage != number) {
        auto& page = watch.pages[number];
        if (!page) {
            page = std::make_unique<Page>();
        }
        watch.lastPage = number;
        watch.page = page.get();
    }
    return (*watch.page)[address / WORD % WORDS_OF_PAGE];
}

static int numberOf(const Thread& thread) {
    const dim3& threads = thread.block->threads;
    return static_cast<int>(thread.index.x + threads.x * (thread.index.y + threads.y * thread.index.z));
}

// Whether every access of the earlier kind is over, as the later thread can know.
static bool isBefore(const Access& earlier, const Access& later, bool inGlobal) {
    if (earlier.grid != later.grid) {
        return true;
    }
    if (earlier.block != later.block) {
        return !inGlobal;  // shared memory of blocks is not the same
    }
    if (earlier.thread == later.thread || earlier.blockTime < later.blockTime) {
        return true;
    }
    int warp = later.thread / LANES;
    return earlier.thread / LANES == warp &&
           earlier.warpTime <= watch.known[warp][later.thread % LANES][earlier.thread % LANES];
}

// A View of kernels: rows of F32, or of halves.
struct Rows {
    uint64_t data;
    long long stride;
};

// Whether an address is among the last four columns of a row of one of the kernel's views; its last parameter says how many
// columns there are.
static bool isAtEndOfRow(uint64_t address) {
    int columns = 0;
    if (watch.parameters->back().size() == sizeof columns) {
        memcpy(&columns, watch.parameters->back().data(), sizeof columns);
    }
    for (const std::vector<char>& parameter : *watch.parameters) {
        Rows rows;
        if (parameter.size() != sizeof rows) {
            continue;
        }
        memcpy(&rows, parameter.data(), sizeof rows);
        for (int bytes : {2, 4}) {
            long long at = static_cast<long long>(address - rows.data) / bytes;
            // a tensor without gaps comes as one row
            long long column = rows.stride >= columns ? at % rows.stride : at;
            if (address >= rows.data && column >= columns - 4 && column < columns) {
                return true;
            }
        }
    }
    return false;
}

// Races that change nothing: flags that threads set without asking each other, all to the same number; and what a thread
// without columns loads in place of them and does not use, the last ones of a row or the first four, while their thread goes on.
static bool isHarmless(const Access& earlier, const Access& now, bool inGlobal, uint64_t address) {
    const std::string& kernel = watch.kernel->name;
    if (kernel.starts_with("findNonFinite") || kernel == "foldGradient") {
        return earlier.writes && now.writes;
    }
    if (!inGlobal || earlier.writes == now.writes) {
        return false;
    }
    if (kernel.starts_with("crossEntropyOfRows")) {
        Rows logits;
        memcpy(&logits, watch.parameters->front().data(), sizeof logits);
        return address - (logits.data + now.block * logits.stride * sizeof(float)) < 4 * sizeof(float);
    }
    if (kernel.starts_with("layerNormBackward")) {
        return earlier.block == now.block && earlier.thread / LANES == now.thread / LANES;
    }
    return isAtEndOfRow(address);
}

[[noreturn]] static void report(const Access& now, const Access& earlier, bool inGlobal, uint64_t address) {
    auto who = [](const Access& of) {
        return "thread " + std::to_string(of.thread) + " of block " + std::to_string(of.block) +
               (of.isAtomic ? " changes" : of.writes ? " writes" : " reads");
    };
    watch.on = false;
    trap("race: " + who(now) + " what " + who(earlier) + " with no barrier between, in " +
         (inGlobal ? "global" : "shared") + " memory at " + std::to_string(address));
}

static void touch(Word& word, const Access& now, bool inGlobal, uint64_t address) {
    int place = -1;
    for (int i = 0; i < REMEMBERED; i++) {
        const Access& earlier = word.last[i];
        if (earlier.grid != now.grid || (!inGlobal && earlier.block != now.block)) {
            place = i;
            continue;
        }
        bool before = isBefore(earlier, now, inGlobal);
        bool meets = (earlier.bytes & now.bytes) && (earlier.writes || now.writes) && !(earlier.isAtomic && now.isAtomic);
        if (!before && meets && !isHarmless(earlier, now, inGlobal, address)) {
            report(now, earlier, inGlobal, address);
        }
        // whoever meets the earlier access unawares meets this one too
        bool covers = (earlier.bytes & ~now.bytes) == 0 && (now.writes || !earlier.writes);
        if (covers && (earlier.thread == now.thread ? earlier.block == now.block : before && now.writes)) {
            place = i;
        }
    }
    word.last[place < 0 ? word.next++ % REMEMBERED : place] = now;
}

static void access(uint64_t address, size_t bytes, bool writes, bool isAtomic) {
    if (!watch.on || !current || watch.stacks.holds(address) || watch.warps.holds(address) || watch.threads.holds(address)) {
        return;
    }
    bool inGlobal = isGlobal(address);
    Access now;
    now.grid = watch.grid;
    now.block = watch.block;
    now.thread = static_cast<unsigned short>(numberOf(*current));
    now.blockTime = static_cast<unsigned short>(current->block->generation);
    now.warpTime = watch.known[now.thread / LANES][now.thread % LANES][now.thread % LANES];
    now.writes = writes;
    now.isAtomic = isAtomic;
    for (uint64_t end = address + bytes; address < end;) {
        uint64_t wordEnd = std::min(address / WORD * WORD + WORD, end);
        now.bytes = 0;
        for (uint64_t byte = address; byte < wordEnd; byte++) {
            now.bytes |= 1 << byte % WORD;
        }
        Word& word = wordAt(address);
        if (inGlobal && (!writes || isAtomic) && word.readIn != watch.grid && word.writtenIn != watch.grid) {
            word.readIn = watch.grid;
            watch.read += WORD;
        }
        if (inGlobal && writes && word.writtenIn != watch.grid) {
            word.writtenIn = watch.grid;
            watch.written += WORD;
        }
        touch(word, now, inGlobal, address);
        address = wordEnd;
    }
}

void watchAccess(const void* at, size_t bytes, bool writes) { access(reinterpret_cast<uint64_t>(at), bytes, writes, false); }

}  // namespace emulator

// ---- what g++ calls -------------------------------------------------------------------------------------------------

#define HOOK extern "C" __attribute__((visibility("default")))

#define HOOKS(bytes)                                                                                                 \
    HOOK void __tsan_read##bytes(void* at) { emulator::access(reinterpret_cast<uint64_t>(at), bytes, false, false); } \
    HOOK void __tsan_write##bytes(void* at) { emulator::access(reinterpret_cast<uint64_t>(at), bytes, true, false); } \
    HOOK void __tsan_unaligned_read##bytes(void* at) { __tsan_read##bytes(at); }                                      \
    HOOK void __tsan_unaligned_write##bytes(void* at) { __tsan_write##bytes(at); }

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

HOOK void __tsan_read_range(void* at, size_t bytes) { emulator::access(reinterpret_cast<uint64_t>(at), bytes, false, false); }
HOOK void __tsan_write_range(void* at, size_t bytes) { emulator::access(reinterpret_cast<uint64_t>(at), bytes, true, false); }
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}

HOOK int __tsan_atomic32_fetch_add(int* at, int more, int) {
    emulator::access(reinterpret_cast<uint64_t>(at), 4, true, true);
    return __atomic_fetch_add(at, more, __ATOMIC_SEQ_CST);
}
HOOK int __tsan_atomic32_fetch_or(int* at, int bits, int) {
    emulator::access(reinterpret_cast<uint64_t>(at), 4, true, true);
    return __atomic_fetch_or(at, bits, __ATOMIC_SEQ_CST);
}
