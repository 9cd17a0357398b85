package dev.penstock.cuda.gpu;

import jcuda.Pointer;

/** Pinned host memory whose address can be told. */
final class HostPointer extends Pointer {
    /** For the driver to fill in. */
    HostPointer() {}

    /** Within memory that the driver gave. */
    HostPointer(long address) {
        super(address);
    }

    long address() {
        return getNativePointer() + getByteOffset();
    }
}
