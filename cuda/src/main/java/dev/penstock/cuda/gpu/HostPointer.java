package dev.penstock.cuda.gpu;

import jcuda.Pointer;

/** Pinned host memory whose address can be told. */
final class HostPointer extends Pointer {
    long address() {
        return getNativePointer() + getByteOffset();
    }
}
