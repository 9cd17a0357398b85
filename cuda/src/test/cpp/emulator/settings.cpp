#include "settings.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace emulator {

static std::mutex lock;

static std::map<std::string, std::string>& changed() {
    static std::map<std::string, std::string> settings;
    return settings;
}

std::string setting(const char* name, const char* otherwise) {
    std::lock_guard guard(lock);
    auto found = changed().find(name);
    if (found != changed().end()) {
        return found->second.empty() ? otherwise : found->second;
    }
    const char* value = getenv((std::string("PENSTOCK_EMULATOR_") + name).c_str());
    return value ? value : otherwise;
}

std::string settingOf(int device, const char* name, const char* otherwise) {
    std::string list = setting(name, otherwise);
    size_t start = 0;
    for (int i = 0; i < device && list.find(',', start) != std::string::npos; i++) {
        start = list.find(',', start) + 1;
    }
    return list.substr(start, list.find(',', start) - start);
}

long number(const char* name, long otherwise) {
    return std::stol(setting(name, std::to_string(otherwise).c_str()));
}

}  // namespace emulator

// An empty value goes back to what holds without the setting.
extern "C" __attribute__((visibility("default"))) void penstockEmulatorSet(const char* name, const char* value) {
    std::lock_guard guard(emulator::lock);
    emulator::changed()[name] = value;
}

extern "C" __attribute__((visibility("default"))) long penstockEmulatorNumber(const char* name, long otherwise) {
    return emulator::number(name, otherwise);
}
