// Streams whose work is recorded instead of done, and the graphs that come of it: the rules of cuStreamBeginCapture.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "machine.h"

namespace emulator {

struct Node {
    std::function<void()> work;
    // a kernel's start is what settings may want to fail
    Kind kind;
};

// A capture under way. Nodes stand in the order of the calls, which no dependency contradicts.
struct Capture {
    Stream* origin;
    Context* context;
    int mode;
    std::thread::id thread;
    bool invalid = false;
    std::vector<Node> nodes;
    // of each stream: nodes so far, and how many of each other stream it has waited for
    std::map<Stream*, long> done;
    std::map<Stream*, std::map<Stream*, long>> seen;

    // Whether the origin waited for all that other streams did.
    bool isJoined();
};

// What an event that was recorded in a capture stands for.
struct CapturedMoment {
    std::weak_ptr<Capture> capture;
    std::map<Stream*, long> seen;
};

struct Graph : Counted {
    std::vector<Node> nodes;
};

// A graph that can be launched in a context.
struct ExecutableGraph : Counted {
    Context* context;
    std::vector<Node> nodes;
};

// The capture that records this stream, or null.
std::shared_ptr<Capture> captureOf(Stream* stream);

// SUCCESS, or why a call that waits, allocates or frees is refused on this thread; it ends what is being captured.
int refuseWhileCapturing(Context* context);
// SUCCESS, or why this stream cannot be waited for or asked.
int refuseCaptured(Stream* stream);

int beginCapture(Stream* stream, Context* context, int mode);
int endCapture(Stream* stream, Graph** graph);

// Of events of captured streams; false if neither stream nor event has to do with a capture.
bool recordInCapture(Stream* stream, CapturedMoment& moment);
bool waitInCapture(Stream* stream, const CapturedMoment& moment, bool wasRecorded, int& status);

}  // namespace emulator
