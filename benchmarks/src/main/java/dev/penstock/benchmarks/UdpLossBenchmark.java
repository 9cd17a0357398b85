package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/**
 * A training in four stage processes whose tensors travel over UDP, while Aeron's own generators
 * lose a share of all datagrams: measures how much of its throughput is left, and checks that its
 * losses are those of shared memory, bit for bit.
 *
 * <p>Arguments: losses in percent, such as {@code 0 5}; without any, 0, 1, 5 and 20.
 */
public final class UdpLossBenchmark {
    private static final List<String> PERCENTS = List.of("0", "1", "5", "20");

    private UdpLossBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        List<String> percents = arguments.length == 0 ? PERCENTS : Arrays.asList(arguments);
        out.printf(
                "4 stage processes on %d cores, datagrams of 1408 bytes on loopback%n%n",
                Runtime.getRuntime().availableProcessors());
        out.printf(
                "%-14s %7s %9s %9s %11s %10s%n",
                "tensors over", "loss", "ms/step", "tokens/s", "of memory's", "same bits");
        UdpLossMeasurement memory = UdpLossMeasurement.of(OptionalDouble.empty());
        print(out, "shared memory", "-", memory, memory);
        for (String percent : percents) {
            double loss = Double.parseDouble(percent) / 100;
            print(
                    out,
                    "UDP",
                    percent + " %",
                    UdpLossMeasurement.of(OptionalDouble.of(loss)),
                    memory);
        }
        out.printf(
                """

                loss: of both data and control messages, chosen by a seed; ms/step: median of the second half
                of memory's: tokens per second over those of the first row
                """);
    }

    private static void print(
            PrintStream out,
            String way,
            String loss,
            UdpLossMeasurement found,
            UdpLossMeasurement memory) {
        out.printf(
                Locale.ROOT,
                "%-14s %7s %9.1f %9.0f %11.2f %10s%n",
                way,
                loss,
                1e3 / found.stepsPerSecond(),
                found.tokensPerSecond(),
                found.tokensPerSecond() / memory.tokensPerSecond(),
                found.losses().equals(memory.losses()) ? "yes" : "NO");
        out.flush();
    }
}
