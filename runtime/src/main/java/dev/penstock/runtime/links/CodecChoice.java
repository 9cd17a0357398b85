package dev.penstock.runtime.links;

import dev.penstock.actors.dataplane.emulated.EmulatedLink;
import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.runtime.config.run.DataPlaneSection.Codec;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;

/**
 * The codec whose simulated step is fastest. Of those that are about as fast the one is taken that
 * changes tensors least; int4, which changes them much, is never taken.
 *
 * @param nanos the simulated step with each codec that was compared
 */
public record CodecChoice(Codec codec, Map<Codec, Long> nanos) {
    /** Those that are compared, the most faithful first. */
    private static final List<Codec> COMPARED = List.of(Codec.NONE, Codec.FP16, Codec.INT8);

    /** What a codec has to save of the time with a more faithful one. */
    private static final double WORTH = 0.03;

    public CodecChoice {
        nanos = Map.copyOf(nanos);
    }

    /**
     * Compares codecs.
     *
     * @param step how long a step takes with a codec, in nanoseconds
     */
    public static CodecChoice of(ToLongFunction<Codec> step) {
        Map<Codec, Long> nanos = new EnumMap<>(Codec.class);
        COMPARED.forEach(codec -> nanos.put(codec, step.applyAsLong(codec)));
        long best = nanos.values().stream().mapToLong(each -> each).min().orElseThrow();
        Codec chosen =
                COMPARED.stream()
                        .filter(codec -> nanos.getOrDefault(codec, 0L) * (1 - WORTH) <= best)
                        .findFirst()
                        .orElse(Codec.NONE);
        return new CodecChoice(chosen, nanos);
    }

    /**
     * Compares codecs for a run before anything is measured: over its emulated links, and at a rate
     * of computing that is the same on every machine. Links that are not emulated take no time.
     *
     * @param order that the run executes
     */
    public static CodecChoice ofRun(
            RunConfig run, Schedule order, InFlight inFlight, GptSettings sizes) {
        var computing = new NominalCosts(order, sizes);
        return of(
                codec ->
                        ScheduleSimulator.simulate(
                                        order,
                                        LinkCosts.of(computing, order, run.withCodec(codec)),
                                        inFlight)
                                .makespanNanos());
    }

    /**
     * Explains the choice for a run in a line: {@code int8: over 100 Mbit/s a step takes 1.20 s
     * instead of 4.40 s}.
     */
    public String reason(RunConfig run) {
        EmulatedLinks links = run.dataPlane().emulated();
        return reason(
                links.areEmulated() && !links.usual().equals(EmulatedLink.NONE)
                        ? Optional.of(links.usual().toString())
                        : Optional.empty());
    }

    /**
     * Explains the choice in a line.
     *
     * @param links in words; empty: nothing is known of them
     */
    public String reason(Optional<String> links) {
        String over = links.map(words -> "over " + words + " ").orElse("");
        if (codec != Codec.NONE) {
            return "%s: %sa step takes %s instead of %s"
                    .formatted(word(codec), over, time(codec), time(Codec.NONE));
        }
        String others =
                COMPARED.stream()
                        .filter(other -> other != Codec.NONE)
                        .map(other -> "%s with %s".formatted(time(other), word(other)))
                        .collect(Collectors.joining(", "));
        return "none: %sa step takes %s, and %s".formatted(over, time(Codec.NONE), others);
    }

    private String time(Codec of) {
        double seconds = nanos.getOrDefault(of, 0L) / 1e9;
        return seconds >= 1
                ? String.format(Locale.ROOT, "%.2f s", seconds)
                : String.format(Locale.ROOT, "%.1f ms", seconds * 1e3);
    }

    private static String word(Codec codec) {
        return codec.name().toLowerCase(Locale.ROOT);
    }
}
