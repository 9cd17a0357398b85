// Shipped machine code says which kernels it has and what their parameters are; the code that runs is the one of g++.
#include <elf.h>

#include <cstring>

#include "machine.h"

namespace emulator {

static const int CUDA_MACHINE = 190, FLAGS_OF_ABI_8 = 8;

// Of a section .nv.info.KERNEL: format, attribute, and a number of 16 bits or that many bytes.
static const int SIZED = 4, PARAMETER = 0x17;

bool isCubin(const char* image) { return memcmp(image, ELFMAG, SELFMAG) == 0; }

// A record of a parameter: a number, its position (16 bits), its offset (16 bits), flags with the size from bit 18 on.
static std::vector<size_t> parameterBytes(const char* info, size_t size) {
    std::map<int, size_t> byPosition;
    for (size_t at = 0; at + 4 <= size;) {
        uint16_t number;
        memcpy(&number, info + at + 2, 2);
        bool sized = info[at] == SIZED;
        if (sized && info[at + 1] == PARAMETER) {
            uint16_t position;
            uint32_t flags;
            memcpy(&position, info + at + 8, 2);
            memcpy(&flags, info + at + 12, 4);
            byPosition[position] = flags >> 18;
        }
        at += 4 + (sized ? number : 0);
    }
    std::vector<size_t> bytes;
    for (auto& [position, each] : byPosition) {
        bytes.push_back(each);
    }
    return bytes;
}

std::unique_ptr<Module> readCubin(const char* image, int capability, std::string& problem) {
    static const std::string INFO = ".nv.info.";
    auto header = reinterpret_cast<const Elf64_Ehdr*>(image);
    int architecture = header->e_ident[EI_ABIVERSION] >= FLAGS_OF_ABI_8 ? header->e_flags >> 8 & 0xff : header->e_flags & 0xff;
    if (header->e_machine != CUDA_MACHINE || architecture / 10 != capability) {
        problem = "this is no machine code for a GPU of capability " + std::to_string(capability);
        return nullptr;
    }
    auto sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
    const char* names = image + sections[header->e_shstrndx].sh_offset;
    auto module = std::make_unique<Module>();
    for (int i = 0; i < header->e_shnum; i++) {
        std::string section = names + sections[i].sh_name;
        if (section.compare(0, INFO.size(), INFO) != 0) {
            continue;
        }
        std::string name = section.substr(INFO.size());
        const Kernel* kernel = findKernel(name);
        if (!kernel) {
            problem = "the sources have no kernel " + name;
            return nullptr;
        }
        if (kernel->parameterBytes != parameterBytes(image + sections[i].sh_offset, sections[i].sh_size)) {
            problem = "the parameters of " + name + " differ between machine code and sources";
            return nullptr;
        }
        module->functions[name].kernel = kernel;
    }
    return module;
}

}  // namespace emulator
