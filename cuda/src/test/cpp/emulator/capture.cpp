#include "capture.h"

namespace emulator {

static constexpr int GLOBAL_MODE = 0, RELAXED_MODE = 2;

static std::mutex lock;

static std::map<Stream*, std::shared_ptr<Capture>>& captured() {
    static std::map<Stream*, std::shared_ptr<Capture>> streams;
    return streams;
}

static std::shared_ptr<Capture> find(Stream* stream) {
    auto found = captured().find(stream);
    return found == captured().end() ? nullptr : found->second;
}

bool Capture::isJoined() {
    for (auto& [stream, nodesOfIt] : done) {
        if (stream != origin && seen[origin][stream] < nodesOfIt) {
            return false;
        }
    }
    return true;
}

std::shared_ptr<Capture> captureOf(Stream* stream) {
    std::lock_guard guard(lock);
    return find(stream);
}

// Unsafe calls: in global mode of any thread, in thread-local mode of the thread that captures.
int refuseWhileCapturing(Context* context) {
    std::lock_guard guard(lock);
    int status = SUCCESS;
    for (auto& [stream, capture] : captured()) {
        bool here = capture->thread == std::this_thread::get_id();
        if (capture->context == context && capture->mode != RELAXED_MODE && (here || capture->mode == GLOBAL_MODE)) {
            capture->invalid = true;
            status = STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

int refuseCaptured(Stream* stream) {
    std::lock_guard guard(lock);
    auto capture = find(stream);
    if (!capture) {
        return SUCCESS;
    }
    capture->invalid = true;
    return STREAM_CAPTURE_UNSUPPORTED;
}

int beginCapture(Stream* stream, Context* context, int mode) {
    std::lock_guard guard(lock);
    if (!stream) {
        return STREAM_CAPTURE_UNSUPPORTED;  // the legacy stream
    }
    if (find(stream)) {
        return ILLEGAL_STATE;
    }
    captured()[stream] = std::make_shared<Capture>(Capture{stream, context, mode, std::this_thread::get_id()});
    return SUCCESS;
}

int endCapture(Stream* stream, Graph** graph) {
    std::lock_guard guard(lock);
    *graph = nullptr;
    auto capture = find(stream);
    if (!capture) {
        return ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        return STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != RELAXED_MODE && capture->thread != std::this_thread::get_id()) {
        return STREAM_CAPTURE_WRONG_THREAD;
    }
    std::erase_if(captured(), [&](auto& entry) { return entry.second == capture; });
    if (capture->invalid) {
        return STREAM_CAPTURE_INVALIDATED;
    }
    if (!capture->isJoined()) {
        return STREAM_CAPTURE_UNJOINED;
    }
    *graph = new Graph();
    (*graph)->nodes = std::move(capture->nodes);
    return SUCCESS;
}

bool recordInCapture(Stream* stream, CapturedMoment& moment) {
    std::lock_guard guard(lock);
    auto capture = find(stream);
    moment.capture = capture;
    if (!capture) {
        return false;
    }
    moment.seen = capture->seen[stream];
    moment.seen[stream] = capture->done[stream];
    return true;
}

// A stream that waits for an event of a capture is captured from then on; a captured one waits for no other events.
bool waitInCapture(Stream* stream, const CapturedMoment& moment, bool wasRecorded, int& status) {
    std::lock_guard guard(lock);
    auto own = find(stream);
    auto other = moment.capture.lock();
    status = SUCCESS;
    if (!other) {
        if (own && wasRecorded) {
            own->invalid = true;
            status = STREAM_CAPTURE_ISOLATION;
        }
        return own != nullptr;
    }
    if (own && own != other) {
        own->invalid = other->invalid = true;
        status = STREAM_CAPTURE_MERGE;
        return true;
    }
    captured()[stream] = other;
    for (auto& [each, count] : moment.seen) {
        long& seen = other->seen[stream][each];
        seen = std::max(seen, count);
    }
    return true;
}

}  // namespace emulator
