package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * A short training in four processes.
 *
 * @param stepsPerSecond of the median step of the second half
 * @param losses of all steps, in bits
 */
record UdpLossMeasurement(double stepsPerSecond, double tokensPerSecond, List<Long> losses) {
    private static final int STEPS = 40;
    private static final String SUPPLIER = "io.aeron.driver.ext.Debug%sChannelEndpointSupplier";

    /**
     * @param loss the share of the datagrams that is lost; empty for shared memory
     */
    static UdpLossMeasurement of(OptionalDouble loss) {
        Map<String, String> settings = loss.isPresent() ? lossy(loss.getAsDouble()) : Map.of();
        settings.forEach(
                System::setProperty); // the driver's process receives all of Aeron's own settings
        try {
            Path directory = Files.createTempDirectory("penstock-udp-loss-");
            try {
                return measure(directory, loss.isPresent() ? "udp" : "ipc");
            } finally {
                ShortRun.delete(directory);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            settings.keySet().forEach(System::clearProperty);
        }
    }

    private static Map<String, String> lossy(double rate) {
        return Map.of(
                "aeron.SendChannelEndpoint.supplier",
                SUPPLIER.formatted("Send"),
                "aeron.ReceiveChannelEndpoint.supplier",
                SUPPLIER.formatted("Receive"),
                "aeron.debug.send.data.loss.rate",
                "" + rate,
                "aeron.debug.send.data.loss.seed",
                "17",
                "aeron.debug.receive.control.loss.rate",
                "" + rate,
                "aeron.debug.receive.control.loss.seed",
                "18");
    }

    private static UdpLossMeasurement measure(Path directory, String transport) throws IOException {
        LoadedConfig loaded =
                ConfigLoader.loadWithOrigins(configuration(directory, transport), List.of());
        var options =
                new RunOptions(
                        RunOptions.newRunId("udp-loss"),
                        directory,
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        List<StepReport> steps = new ArrayList<>();
        var listener =
                new RunListener() {
                    @Override
                    public void onStep(StepReport report) {
                        steps.add(report);
                    }
                };
        try (RunAssembly assembly = RunAssembly.of(loaded, options)) {
            RunOutcome outcome = new PipelineRun(assembly, listener, _ -> {}).run();
            if (!(outcome instanceof RunOutcome.Completed)) {
                throw new IllegalStateException(transport + ": " + outcome);
            }
            double seconds = medianSeconds(steps.subList(STEPS / 2, STEPS));
            return new UdpLossMeasurement(
                    1 / seconds,
                    assembly.model().batch().tokensPerStep() / seconds,
                    steps.stream().map(step -> Double.doubleToLongBits(step.loss())).toList());
        }
    }

    private static double medianSeconds(List<StepReport> steps) {
        long[] nanos =
                steps.stream().mapToLong(s -> s.endNanos() - s.startNanos()).sorted().toArray();
        return nanos[nanos.length / 2] / 1e9;
    }

    private static Path configuration(Path directory, String transport) throws IOException {
        Files.writeString(
                directory.resolve("text.txt"), "turbines turn and valves open. ".repeat(3000));
        String text =
                """
                run { name = udp-loss, steps = %d, directory = runs }
                model { context = 128, width = 128, layers = 4, heads = 4 }
                data { source = "text.txt" }
                batch { sequences = 8, micro-batches = 8 }
                pipeline { stages = 4, processes = per-stage }
                evaluation { every = 0 }
                checkpoint { every = 0 }
                data-plane { transport = %s, udp-mtu = 1408 }
                """
                        .formatted(STEPS, transport);
        return Files.writeString(directory.resolve("udp-loss.conf"), text);
    }
}
