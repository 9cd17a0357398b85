package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.memory.MemoryChoices;
import dev.penstock.runtime.memory.MemoryChoices.Possible;
import dev.penstock.runtime.memory.Rates;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PlanRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * The ways in which a model fits into a cluster that a plan does not know, as {@code penstock
 * memory} proves them: activations chosen stage by stage or offloaded, moments in 8 bits, swapping.
 * They are looked at for a pipeline over all devices, for replicas of one device each, and for one
 * device, which all count as equal: as small and as slow as the worst.
 */
public final class FittingWays {
    /** For more devices the proofs would take too long. */
    private static final int MOST_DEVICES = 16;

    private final PlanRequest request;
    private final String model;
    private final ModelShape design;
    private final Path file;

    /**
     * One way.
     *
     * @param layout how it uses the devices
     * @param settings for a run's configuration
     */
    public record Way(
            String name,
            String layout,
            List<String> settings,
            double tokensPerSecond,
            long stepNanos,
            long heldBytes,
            long hostBytes,
            long diskBytes) {
        public Way {
            settings = List.copyOf(settings);
        }
    }

    private record Layout(String words, List<String> settings) {}

    private FittingWays(PlanRequest request, String model, ModelShape design, Path file) {
        this.request = request;
        this.model = model;
        this.design = design;
        this.file = file;
    }

    /**
     * Looks at all ways.
     *
     * @param model as {@code --model} has it
     * @param design what it was read as
     * @param hardware the file that describes the cluster
     * @return the fastest first; none where there is no such run or too many devices
     */
    public static List<Way> of(
            PlanRequest request, String model, ModelShape design, Path hardware) {
        if (request.cluster().devices() > MOST_DEVICES) {
            return List.of();
        }
        var ways = new FittingWays(request, model, design, hardware);
        return ways.layouts().stream()
                .flatMap(layout -> ways.of(layout).stream())
                .sorted(Comparator.comparingLong(Way::stepNanos))
                .toList();
    }

    private List<Layout> layouts() {
        List<Layout> layouts = new ArrayList<>();
        int devices = request.cluster().devices();
        int stages = Math.min(devices, design.layers());
        if (stages > 1) {
            layouts.add(
                    new Layout(
                            "a pipeline of " + stages,
                            settings(stages, 1, Math.max(stages, request.batch()))));
        }
        if (devices > 1 && request.batch() % devices == 0) {
            layouts.add(new Layout(devices + " replicas", settings(1, devices, request.batch())));
        }
        layouts.add(new Layout("one device", settings(1, 1, request.batch())));
        return layouts;
    }

    private List<String> settings(int stages, int replicas, int microBatches) {
        int divides = request.batch() % microBatches == 0 ? microBatches : request.batch();
        return List.of(
                "pipeline.stages=" + stages,
                "pipeline.chunks=1",
                "pipeline.partition=flops",
                "parallel.tensor=1",
                "parallel.data=" + replicas,
                "schedule.kind=1f1b",
                "batch.sequences=" + request.batch(),
                "batch.micro-batches=" + divides,
                "model.context=" + request.model().sequence());
    }

    private List<Way> of(Layout layout) {
        try {
            return MemoryChoices.fitting(
                            settings -> read(layout, settings), RunParts::proof, rates(), limit())
                    .stream()
                    .map(choice -> way(layout, choice))
                    .toList();
        } catch (ConfigException e) {
            return List.of(); // no run can have this layout
        }
    }

    private Way way(Layout layout, Possible choice) {
        List<String> settings = new ArrayList<>(layout.settings());
        settings.removeIf(
                own -> choice.settings().stream().anyMatch(other -> key(other).equals(key(own))));
        settings.addAll(choice.settings());
        settings.add("device.memory-limit=%d B".formatted(limit()));
        return new Way(
                choice.name(),
                layout.words(),
                settings,
                choice.tokensPerSecond(),
                choice.stepNanos(),
                choice.heldBytes(),
                choice.hostBytes(),
                choice.diskBytes());
    }

    private static String key(String setting) {
        return setting.substring(0, setting.indexOf('='));
    }

    /** No proof looks at data, but a configuration names some: any file that is there. */
    private LoadedConfig read(Layout layout, List<String> settings) {
        List<String> all = new ArrayList<>(layout.settings());
        all.addAll(settings);
        if (model.endsWith(".conf")) {
            return ConfigLoader.loadOfRun(Path.of(model), all);
        }
        String data = "data { source = \"%s\", tokenizer = bytes }%n".formatted(file);
        String shape =
                Files.isDirectory(Path.of(model))
                        ? "model.from = \"%s\"".formatted(model)
                        : "model { context = %d, width = %d, layers = %d, heads = %d, vocabulary = %d, tied = %b }"
                                .formatted(
                                        design.context(),
                                        design.width(),
                                        design.layers(),
                                        design.heads(),
                                        design.vocabulary(),
                                        design.tied());
        return ConfigLoader.draftOfText("plan", data + shape, all).orThrow();
    }

    private Stream<DeviceSpec> devices() {
        Hardware cluster = request.cluster();
        return cluster.groups().stream().map(NodeGroup::device);
    }

    private long limit() {
        return devices().mapToLong(DeviceSpec::memoryBytes).min().orElseThrow();
    }

    private Rates rates() {
        return new Rates(
                devices().mapToDouble(DeviceSpec::flopsPerSecond).min().orElseThrow(),
                devices().mapToDouble(DeviceSpec::hostBytesPerSecond).min().orElseThrow(),
                devices().mapToDouble(DeviceSpec::diskBytesPerSecond).min().orElseThrow());
    }
}
