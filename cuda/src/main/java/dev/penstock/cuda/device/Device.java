package dev.penstock.cuda.device;

import java.util.Optional;

/**
 * Something that computes: memory and the op table over it. Owned by one shard actor; kernels are
 * called from that actor's thread only (a device may use further threads inside). Closing frees
 * everything and ends the device's threads.
 */
public interface Device extends AutoCloseable {
    /** The scope below {@link #memory} with what kernels hold for themselves, if they do. */
    String KERNELS = "kernels";

    /** For people, such as {@code cpu (2 threads, AVX-512, oneDNN 3.11)}. */
    String name();

    /**
     * What the bits of results depend on: library, instruction set, device, GEMM. Equal
     * fingerprints give equal bits for equal calls, whatever the number of threads.
     */
    String fingerprint();

    /** The root of this device's memory. */
    DeviceScope memory();

    /** The op table. */
    Kernels kernels();

    /**
     * Returns kernels that may add and copy on another thread while this device computes, with the
     * bits of {@link #kernels}: for sums that go on beside an op. Adding and copying tensors of one
     * type is all that they are for, from one thread at a time.
     *
     * @return empty if the device does one thing at a time
     */
    default Optional<Kernels> sumsBesideOps() {
        return Optional.empty();
    }

    /**
     * Looks for the library by which devices of this kind sum and gather among themselves. The
     * answer is closed by the caller, before this device.
     *
     * @throws DeviceException if there is none, saying why
     */
    default DeviceCollectives openCollectives() {
        throw new DeviceException(
                "%s: expected a GPU with NCCL, devices of this kind have no library of collectives"
                        .formatted(name()));
    }

    @Override
    void close();
}
