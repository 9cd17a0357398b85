package dev.penstock.runtime.cli.about;

import com.sun.management.OperatingSystemMXBean;
import dev.penstock.cuda.DeviceSurvey;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.runtime.launch.BuiltVersion;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.incubator.vector.FloatVector;

/**
 * What this machine offers to a run.
 *
 * @param products who multiplies matrices on the CPU, and why
 * @param device what a run opens unless its configuration says otherwise, and why
 */
record MachineReport(
        String penstock,
        Java java,
        Cpu cpu,
        String products,
        GpuAnswer gpus,
        String device,
        Memory memory) {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    /** The Java machine that runs this. */
    record Java(String version, String vendor, String home) {}

    /**
     * @param cores that this process may use
     * @param vectorBits width of vectors that Java prefers
     */
    record Cpu(String model, String architecture, int cores, int vectorBits) {}

    /**
     * The machine's GPUs.
     *
     * @param reason why there are none, empty if there are
     * @param products who multiplies matrices on them, and why
     * @param collectives by what they sum and gather among themselves
     */
    record GpuAnswer(List<Gpus.Gpu> found, String reason, String products, String collectives) {
        String text() {
            return found.isEmpty()
                    ? "none: " + reason
                    : found.stream()
                            .map(
                                    gpu ->
                                            "%s, %s, compute capability %s"
                                                    .formatted(
                                                            gpu.name(),
                                                            gib(gpu.memoryBytes()),
                                                            gpu.computeCapability()))
                            .collect(
                                    Collectors.joining(
                                            "; ",
                                            "",
                                            "; products: %s; collectives: %s"
                                                    .formatted(products, collectives)));
        }
    }

    /**
     * @param sharedFreeBytes free space in /dev/shm, where tensors travel; -1 where there is none
     */
    record Memory(long machineBytes, long freeBytes, long heapLimitBytes, long sharedFreeBytes) {}

    static MachineReport ofThisMachine() {
        DeviceSurvey survey = Devices.survey();
        return new MachineReport(
                BuiltVersion.text(),
                thisJava(),
                thisCpu(),
                survey.products(),
                gpusOf(survey),
                survey.automatic(),
                memoryNow());
    }

    private static Java thisJava() {
        return new Java(
                System.getProperty("java.version", "?"),
                System.getProperty("java.vendor", "?"),
                System.getProperty("java.home", "?"));
    }

    private static Cpu thisCpu() {
        return new Cpu(
                cpuModel(),
                System.getProperty("os.arch", "?"),
                Runtime.getRuntime().availableProcessors(),
                FloatVector.SPECIES_PREFERRED.vectorBitSize());
    }

    private static String cpuModel() {
        Path file = Path.of("/proc/cpuinfo");
        if (!Files.isReadable(file)) {
            return "unknown";
        }
        try (Stream<String> lines = Files.lines(file)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .orElse("unknown");
        } catch (IOException e) {
            return "unknown";
        }
    }

    private static GpuAnswer gpusOf(DeviceSurvey survey) {
        return switch (survey.gpus()) {
            case Gpus.Found(List<Gpus.Gpu> found) ->
                    new GpuAnswer(found, "", survey.gpuProducts(), survey.gpuCollectives());
            case Gpus.None(String reason) -> new GpuAnswer(List.of(), reason, "", "");
        };
    }

    private static Memory memoryNow() {
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new Memory(
                system.getTotalMemorySize(),
                system.getFreeMemorySize(),
                Runtime.getRuntime().maxMemory(),
                sharedFreeBytes());
    }

    private static long sharedFreeBytes() {
        try {
            return Files.isDirectory(SHARED_MEMORY)
                    ? Files.getFileStore(SHARED_MEMORY).getUsableSpace()
                    : -1;
        } catch (IOException e) {
            return -1;
        }
    }

    /** For people: one line per topic. */
    String text() {
        return """
        Penstock  %s
        Java      %s, %s, %s
        CPU       %s (%s), %d cores, vectors of %d bits
        Products  %s
        GPUs      %s
        Device    %s
        Memory    %s, %s of it free; Java heap up to %s
        /dev/shm  %s
        """
                .formatted(
                        penstock,
                        java.version,
                        java.vendor,
                        java.home,
                        cpu.model,
                        cpu.architecture,
                        cpu.cores,
                        cpu.vectorBits,
                        products,
                        gpus.text(),
                        device,
                        gib(memory.machineBytes),
                        gib(memory.freeBytes),
                        gib(memory.heapLimitBytes),
                        memory.sharedFreeBytes < 0
                                ? "none: tensors travel through files in the temporary folder"
                                : gib(memory.sharedFreeBytes) + " free for tensors on their way");
    }

    private static String gib(long bytes) {
        return "%.1f GiB".formatted(bytes / (double) (1L << 30));
    }
}
