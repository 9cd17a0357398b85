package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.Keys;
import dev.penstock.runtime.config.run.RunConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;
import java.util.stream.Stream;

/**
 * A way to spend less memory, as settings on top of a configuration.
 *
 * @param name in words
 * @param settings for a model of so many layers
 */
record MemoryWay(String name, IntFunction<List<String>> settings) {
    /** What is chosen among the others. */
    private static final String FIT = "fit: chosen stage by stage";

    private static final String PRECISION = "precision ";

    private static final String KEEP = "schedule.activations=as-set";

    /** All that may suit a run, in the order in which they are shown. */
    static List<MemoryWay> of(RunConfig run) {
        List<MemoryWay> ways = new ArrayList<>();
        ways.add(activations("keep all activations", "none", "none"));
        ways.add(activations("recompute block by block", "blocks", "none"));
        ways.add(activations("recompute whole units", "full", "none"));
        ways.add(activations("offload half of the stages", "none", "half"));
        ways.add(activations("offload all activations", "none", "all"));
        ways.add(activations("offload all, recompute blocks", "blocks", "all"));
        ways.add(
                new MemoryWay(
                        FIT,
                        _ ->
                                List.of(
                                        "schedule.activations=fit",
                                        "schedule.recompute=none",
                                        "schedule.offload=none")));
        if (run.grid().data() * run.grid().context() > 1) {
            for (int stage = 0; stage <= 3; stage++) {
                String set = "parallel.zero.stage=" + stage;
                ways.add(new MemoryWay("ZeRO " + stage, _ -> List.of(set)));
            }
        }
        ways.add(
                new MemoryWay(
                        "ZeRO 3, state on disk",
                        _ -> List.of("parallel.zero.stage=3", "parallel.zero.offload=offloaded")));
        if (run.pipeline().stages() == 1) {
            ways.add(
                    new MemoryWay(
                            "swap everything",
                            layers ->
                                    List.of(
                                            "device.swap=swap",
                                            "schedule.kind=breadth-first",
                                            "pipeline.chunks=" + (layers + 2),
                                            KEEP,
                                            "schedule.recompute=full",
                                            "schedule.offload=none")));
        }
        Stream.of("bf16", "fp16")
                .filter(precision -> !precision.equals(word(run)))
                .forEach(
                        precision ->
                                ways.add(
                                        new MemoryWay(
                                                PRECISION + precision, _ -> precision(precision))));
        if (Keys.bySection().getOrDefault("optimizer", List.of()).stream()
                .anyMatch(key -> key.name().equals("state"))) {
            ways.add(
                    new MemoryWay(
                            "optimizer state in 8 bits", _ -> List.of("optimizer.state=int8")));
        }
        return ways;
    }

    /** What the times of the way do not know; empty if that is nothing. */
    String note() {
        return name.startsWith(PRECISION)
                ? "its bytes alone: computing as fast as the run's own precision; --profile of a run with it knows better"
                : "";
    }

    boolean isFit() {
        return name.equals(FIT);
    }

    private static String word(RunConfig run) {
        return run.device().precision().name().toLowerCase(Locale.ROOT);
    }

    private static List<String> precision(String word) {
        return word.equals("fp16")
                ? List.of("device.precision=fp16", "optimizer.loss-scale=dynamic")
                : List.of("device.precision=" + word);
    }

    private static MemoryWay activations(String name, String recompute, String offload) {
        return new MemoryWay(
                name,
                _ ->
                        List.of(
                                KEEP,
                                "schedule.recompute=" + recompute,
                                "schedule.offload=" + offload));
    }
}
