// The shipped PTX says which kernels exist and what their parameters are; the code is the one of g++.
#include <algorithm>

#include "machine.h"

namespace emulator {

// Bytes of declarations such as ".param .u64 name" and ".param .align 8 .b8 name[16]".
static std::vector<size_t> parameterBytes(const std::string& declarations) {
    static const std::string PARAMETER = ".param ", ALIGN = ".align ";
    std::vector<size_t> bytes;
    for (size_t at = declarations.find(PARAMETER); at != std::string::npos; at = declarations.find(PARAMETER, at + 1)) {
        size_t end = std::min(declarations.find(',', at), declarations.size());
        size_t type = at + PARAMETER.size();
        if (declarations.compare(type, ALIGN.size(), ALIGN) == 0) {
            type = declarations.find('.', type + 1);
        }
        size_t bits = std::stoul(declarations.substr(type + 2));
        size_t bracket = declarations.find('[', at);
        size_t count = bracket < end ? std::stoul(declarations.substr(bracket + 1)) : 1;
        bytes.push_back(bits / 8 * count);
    }
    return bytes;
}

std::unique_ptr<Module> readPtx(const std::string& text, std::string& problem) {
    static const std::string ENTRY = ".visible .entry ";
    if (text.find(".version") == std::string::npos) {
        problem = "this is no PTX";
        return nullptr;
    }
    auto module = std::make_unique<Module>();
    for (size_t at = text.find(ENTRY); at != std::string::npos; at = text.find(ENTRY, at + 1)) {
        size_t open = text.find('(', at), close = text.find(')', at);
        std::string name = text.substr(at + ENTRY.size(), open - at - ENTRY.size());
        const Kernel* kernel = findKernel(name);
        if (!kernel) {
            problem = "the sources have no kernel " + name;
            return nullptr;
        }
        if (kernel->parameterBytes != parameterBytes(text.substr(open, close - open))) {
            problem = "the parameters of " + name + " differ between PTX and sources";
            return nullptr;
        }
        module->functions[name].kernel = kernel;
    }
    return module;
}

}  // namespace emulator
