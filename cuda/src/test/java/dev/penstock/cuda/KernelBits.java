package dev.penstock.cuda;

import dev.penstock.cuda.SlicedStep.Sizes;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Prints the bits of all kernels, one line per device and kind of product; run in JVMs that compile
 * differently. A line shows every outcome that occurred: more than one is an error in itself.
 */
final class KernelBits {
    private static final Sizes SIZES = new Sizes(1, 20, 36, 2, 30, 8);

    private KernelBits() {}

    /** Our own products, and the library's where it is used. */
    private static List<Gemm> products(DeviceSettings cpu) {
        return fingerprint(cpu, Gemm.JAVA).equals(fingerprint(cpu, Gemm.AUTO))
                ? List.of(Gemm.JAVA)
                : List.of(Gemm.JAVA, Gemm.AUTO);
    }

    private static String fingerprint(DeviceSettings cpu, Gemm gemm) {
        try (Device device = Devices.open(cpu.withGemm(gemm))) {
            return device.fingerprint();
        }
    }

    /**
     * Prints a checksum of what each step computes.
     *
     * @param arguments how often to run each step, and the bits of a vector
     */
    public static void main(String[] arguments) {
        int runs = Integer.parseInt(arguments[0]);
        DeviceSettings cpu =
                DeviceSettings.DEFAULTS
                        .withKind(Kind.CPU)
                        .withThreads(1)
                        .withVectorBits(Integer.parseInt(arguments[1]));
        for (Gemm gemm : products(cpu)) {
            for (DType multiply : List.of(DType.F32, DType.BF16)) {
                Set<String> outcomes = new LinkedHashSet<>();
                Set<String> ofLlama = new LinkedHashSet<>();
                for (int i = 0; i < runs; i++) {
                    try (Device device = Devices.open(cpu.withGemm(gemm))) {
                        outcomes.add(new SlicedStep(device, SIZES, multiply).run(20).toString());
                        ofLlama.add(
                                new SlicedLlamaStep(device, 20, 8, multiply).run(20).toString());
                    }
                }
                System.out.println(gemm + " " + multiply + " " + outcomes);
                System.out.println(gemm + " " + multiply + " llama " + ofLlama);
            }
        }
    }
}
