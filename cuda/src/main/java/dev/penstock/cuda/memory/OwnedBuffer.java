package dev.penstock.cuda.memory;

import dev.penstock.cuda.device.DeviceBuffer;

/** A buffer as its scope sees it. */
public interface OwnedBuffer extends DeviceBuffer {
    /** Gives the memory back; every later use throws. Called once, by the scope. */
    void free();
}
