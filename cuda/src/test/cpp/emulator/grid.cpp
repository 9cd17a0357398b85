#include "grid.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "check.h"
#include "settings.h"

namespace emulator {

thread_local Thread* current = nullptr;

static std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

void enlist(const Kernel& kernel) { kernels()[kernel.name] = kernel; }

const Kernel* findKernel(const std::string& name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

// The order in which blocks, and threads between two barriers, run: right kernels do not care.
class Order {
  public:
    explicit Order(int device) {
        std::string text = settingOf(device, "THREAD_ORDER", "forward");
        reversed = text == "reverse";
        shuffled = text.starts_with("shuffled");
        if (shuffled) {
            size_t colon = text.find(':');
            random.seed(colon == std::string::npos ? 1 : std::stoul(text.substr(colon + 1)));
        }
    }

    void arrange(std::vector<int>& indices) {
        std::iota(indices.begin(), indices.end(), 0);
        if (reversed) {
            std::reverse(indices.begin(), indices.end());
        }
        if (shuffled) {
            std::shuffle(indices.begin(), indices.end(), random);
        }
    }

  private:
    bool reversed, shuffled;
    std::mt19937 random;
};

// What an OS thread needs to run blocks; kept from launch to launch.
class BlockRunner {
  public:
    static constexpr int THREADS = 1024;

    // Before its blocks.
    void begin(const Grid& g) {
        parameters.clear();
        for (auto& parameter : g.parameters) {
            parameters.push_back(const_cast<char*>(parameter.data()));
        }
        watchGrid(g, stacks.range(), {warps.data(), warps.size() * sizeof(Warp)}, {threads.data(), threads.size() * sizeof(Thread)});
    }

    int numberOf(const Warp& warp) const { return static_cast<int>(&warp - warps.data()); }

    std::string run(const Grid& g, uint3 blockIndex, Order& order) {
        grid = &g;
        failure.clear();
        int count = static_cast<int>(g.threads.volume());
        prepare(blockIndex, count);
        turn.resize(count);
        order.arrange(turn);
        for (int left = count; left > 0 && failure.empty();) {
            int ran = 0;
            for (int i : turn) {
                Thread& thread = threads[i];
                if (thread.done || (thread.waitsFor && *thread.waitsFor == thread.generation)) {
                    continue;
                }
                thread.waitsFor = nullptr;
                current = &thread;
                switchTo(scheduler, thread.resume);
                ran++;
                left -= thread.done;
                if (!failure.empty()) {
                    break;
                }
            }
            if (ran == 0) {
                failure = "deadlock: " + std::to_string(left) + " threads of block " + std::to_string(blockIndex.x) +
                          " wait at barriers that others never reach";
            }
        }
        current = nullptr;
        return failure;
    }

    void suspend() { switchTo(current->resume, scheduler); }

    void fail(const std::string& why) {
        failure = why;
        current->done = true;
        suspend();
    }

    static BlockRunner& mine() {
        static thread_local std::unique_ptr<BlockRunner> runner;
        if (!runner) {
            runner = std::make_unique<BlockRunner>();
        }
        return *runner;
    }

  private:
    void prepare(uint3 blockIndex, int count) {
        shared.assign(grid->dynamicSharedBytes + 16, static_cast<char>(0xff));
        auto aligned = (reinterpret_cast<uintptr_t>(shared.data()) + 15) & ~uintptr_t{15};
        block = {grid->blocks, grid->threads, blockIndex, reinterpret_cast<char*>(aligned), count, 0, 0};
        watchBlock(blockIndex.x + static_cast<unsigned long>(grid->blocks.x) * (blockIndex.y + grid->blocks.y * blockIndex.z),
                   {shared.data(), shared.size()});
        for (int i = 0; i * 32 < count; i++) {
            warps[i].barriers = 0;
            warps[i].alive = count - i * 32 >= 32 ? ~0u : (1u << (count - i * 32)) - 1;
        }
        unsigned width = grid->threads.x, height = grid->threads.y;
        for (int i = 0; i < count; i++) {
            Thread& t = threads[i];
            t.resume = stacks.begin(i, &BlockRunner::entry);
            t.block = &block;
            t.warp = &warps[i / 32];
            t.index = {i % width, i / width % height, i / (width * height)};
            t.lane = i % 32;
            t.done = false;
            t.waitsFor = nullptr;
            t.copies.clear();
        }
    }

    static void entry();

    const Grid* grid = nullptr;
    std::vector<void*> parameters;
    std::string failure;
    Resume scheduler;
    Stacks stacks{THREADS};
    Block block{};
    std::vector<Thread> threads = std::vector<Thread>(THREADS);
    std::vector<Warp> warps = std::vector<Warp>(THREADS / 32);
    std::vector<int> turn;
    std::vector<char> shared;
};

static void moveOnIfAllArrived(Barrier& barrier, const Warp& warp) {
    if (barrier.arrived > 0 && barrier.arrived >= __builtin_popcount(barrier.mask & warp.alive)) {
        if (barrier.ordersMemory) {
            watchMeeting(BlockRunner::mine().numberOf(warp), barrier.mask & warp.alive);
        }
        barrier.arrived = 0;
        barrier.generation++;
    }
}

void BlockRunner::entry() {
    BlockRunner& runner = mine();
    runner.grid->kernel->call(runner.parameters.data());
    Thread& thread = *current;
    thread.done = true;
    Block& block = *thread.block;
    block.alive--;
    thread.warp->alive &= ~(1u << thread.lane);
    if (block.arrived > 0 && block.arrived == block.alive) {
        block.arrived = 0;
        block.generation++;
    }
    for (int i = 0; i < thread.warp->barriers; i++) {
        moveOnIfAllArrived(thread.warp->barrier[i], *thread.warp);
    }
    runner.suspend();
}

void synchronizeBlock() {
    Block& block = *current->block;
    if (++block.arrived == block.alive) {
        block.arrived = 0;
        block.generation++;
        return;
    }
    current->waitsFor = &block.generation;
    current->generation = block.generation;
    BlockRunner::mine().suspend();
}

Barrier& warpBarrier(unsigned mask) {
    Warp& warp = *current->warp;
    if (!(mask >> current->lane & 1)) {
        trap("a lane calls a warp operation whose mask leaves it out");
    }
    for (int i = 0; i < warp.barriers; i++) {
        if (warp.barrier[i].mask == mask) {
            return warp.barrier[i];
        }
    }
    if (warp.barriers == Warp::MASKS) {
        trap("a warp uses more than 8 masks");
    }
    Barrier& fresh = warp.barrier[warp.barriers++];
    fresh.mask = mask;
    fresh.arrived = 0;
    fresh.generation = 0;
    return fresh;
}

void synchronizeWarp(Barrier& barrier, bool ordersMemory) {
    unsigned generation = barrier.generation;
    barrier.ordersMemory = ordersMemory;
    barrier.arrived++;
    moveOnIfAllArrived(barrier, *current->warp);
    if (barrier.generation == generation) {
        current->waitsFor = &barrier.generation;
        current->generation = generation;
        BlockRunner::mine().suspend();
    }
}

static constexpr size_t COPY_BYTES = 16;

// What lies there is lost at once, and what comes instead arrives when the thread waits.
void beginCopyOf16(void* to, const void* from, bool isThere) {
    requireAligned(to, COPY_BYTES);
    requireAligned(from, COPY_BYTES);
    watchAccess(to, COPY_BYTES, true);
    memset(to, 0xff, COPY_BYTES);
    current->copies.push_back({to, from, isThere});
}

void finishCopiesOf16() {
    for (const Copy& copy : current->copies) {
        watchAccess(copy.to, COPY_BYTES, true);
        if (copy.isThere) {
            watchAccess(copy.from, COPY_BYTES, false);
            memcpy(copy.to, copy.from, COPY_BYTES);
        } else {
            memset(copy.to, 0, COPY_BYTES);
        }
    }
    current->copies.clear();
}

static std::string misaligned(const void* address, size_t bytes) {
    return "an address that is " + std::to_string(reinterpret_cast<uintptr_t>(address) % bytes) + " bytes past a multiple of " +
           std::to_string(bytes);
}

void requireAligned(const void* address, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(address) % bytes) {
        trap(misaligned(address, bytes));
    }
}

void trap(const std::string& why) {
    BlockRunner::mine().fail(why);
    __builtin_unreachable();
}

std::string run(const Grid& grid) {
    Order order(grid.device);
    std::vector<int> blocks(grid.blocks.volume());
    order.arrange(blocks);
    BlockRunner::mine().begin(grid);
    std::chrono::milliseconds pause(number("BLOCK_MILLIS", 0));
    for (int i : blocks) {
        if (pause.count()) {
            std::this_thread::sleep_for(pause);
        }
        unsigned index = static_cast<unsigned>(i), x = grid.blocks.x, y = grid.blocks.y;
        std::string failure = BlockRunner::mine().run(grid, {index % x, index / x % y, index / x / y}, order);
        if (!failure.empty()) {
            endWatch();
            return "kernel " + grid.kernel->name + ": " + failure;
        }
    }
    endWatch();
    return "";
}

}  // namespace emulator

// What kernels call with -fsanitize=alignment: where in the sources, of which type, and the address.
struct Type {
    uint16_t kind, info;
    char name[];
};
struct Mismatch {
    const char* file;
    uint32_t line, column;
    const Type* type;
    unsigned char logAlignment, kind;
};

extern "C" FOR_KERNELS void __ubsan_handle_type_mismatch_v1_abort(const Mismatch* where, const void* address) {
    emulator::trap(std::string(where->file) + ":" + std::to_string(where->line) + ": " + where->type->name + ": " +
                   emulator::misaligned(address, size_t{1} << where->logAlignment));
}
