package dev.penstock.cuda;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.NativeLibrary;
import dev.penstock.cuda.onednn.OneDnn;
import java.nio.file.Path;

/**
 * What devices this machine offers, for {@code doctor}.
 *
 * @param products who multiplies matrices on the CPU with {@code gemm = auto}, and why
 * @param gpuProducts who would on its GPUs, and why; empty if there are none
 * @param gpuCollectives by what its GPUs sum and gather among themselves, or why by nothing; empty
 *     if there are none
 * @param automatic what {@code kind = auto} opens, and why
 */
public record DeviceSurvey(
        String products, Gpus gpus, String gpuProducts, String gpuCollectives, String automatic) {

    static DeviceSurvey ofThisMachine() {
        Gpus gpus = Devices.probeGpus();
        return new DeviceSurvey(
                whoMultiplies(),
                gpus,
                whoMultipliesOn(gpus),
                gpus instanceof Gpus.None ? "" : whatTheySumBy(),
                whatAutoOpens(gpus));
    }

    private static String whoMultiplies() {
        return switch (OneDnn.probe()) {
            case OneDnn.Probe.Found(OneDnn library) ->
                    "oneDNN %s, BF16 %s"
                            .formatted(
                                    library.version(),
                                    library.multipliesBFloat16()
                                            ? "in hardware"
                                            : "by our own code, slower");
            case OneDnn.Probe.Missing(String reason) -> "our own (" + reason + ")";
        };
    }

    private static String whoMultipliesOn(Gpus gpus) {
        if (gpus instanceof Gpus.None) {
            return "";
        }
        return switch (Cublas.probe()) {
            case Cublas.Probe.Found(var libraries) ->
                    "cuBLAS %s in %s"
                            .formatted(libraries.getFirst().version(), libraries.getFirst().file());
            case Cublas.Probe.Missing(String reason) -> "our own (" + reason + ")";
        };
    }

    private static String whatTheySumBy() {
        return switch (Devices.nccl()) {
            case NativeLibrary.Found(String version, Path file) ->
                    "NCCL %s in %s".formatted(version, file);
            case NativeLibrary.Missing(String reason) -> "no NCCL (" + reason + ")";
        };
    }

    private static String whatAutoOpens(Gpus gpus) {
        return switch (gpus) {
            case Gpus.Found(var found) ->
                    "cpu: %s is there, but is used only when asked for; try device.kind = cuda"
                            .formatted(found.getFirst().name());
            case Gpus.None(String reason) -> "cpu: " + reason;
        };
    }
}
