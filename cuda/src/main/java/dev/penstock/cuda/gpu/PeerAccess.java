package dev.penstock.cuda.gpu;

import java.util.List;
import java.util.stream.IntStream;
import jcuda.CudaException;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/** Which GPUs of this process copy to each other without the host. */
final class PeerAccess {
    private static final String ALREADY_ENABLED =
            CUresult.stringFor(CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);

    /** Answers of a driver whose GPUs do not see each other, or not so many. */
    private static final List<String> REFUSALS =
            IntStream.of(
                            CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                            CUresult.CUDA_ERROR_TOO_MANY_PEERS)
                    .mapToObj(CUresult::stringFor)
                    .toList();

    private PeerAccess() {}

    /**
     * Lets copies of one GPU go to the memory of another, if the machine's wiring allows it.
     * Without it the driver would take them through pageable memory of the host, and say nothing.
     *
     * @return whether they do; also if they did before
     */
    static boolean enable(GpuContext from, GpuContext to) {
        if (from.index() == to.index()) {
            return true;
        }
        try {
            int[] can = new int[1];
            JCudaDriver.cuDeviceCanAccessPeer(can, from.device(), to.device());
            if (can[0] == 0) {
                return false;
            }
            from.bind();
            JCudaDriver.cuCtxEnablePeerAccess(to.handle(), 0);
            return true;
        } catch (CudaException e) {
            String answer = String.valueOf(e.getMessage());
            if (answer.contains(ALREADY_ENABLED)) {
                return true;
            }
            if (REFUSALS.stream().anyMatch(answer::contains)) {
                return false;
            }
            throw GpuFailure.of(
                    "enabling copies from GPU %d to GPU %d".formatted(from.index(), to.index()), e);
        }
    }
}
