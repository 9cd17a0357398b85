package dev.penstock.cuda.gpu;

import jcuda.driver.CUdeviceptr;

/** Device memory whose address can be told. */
final class DevicePointer extends CUdeviceptr {

    /** The address; under unified addressing no other memory of the process has it. */
    long address() {
        return getNativePointer() + getByteOffset();
    }
}
