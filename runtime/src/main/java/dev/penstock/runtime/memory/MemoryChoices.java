package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.LayerList;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.report.MemoryPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;

/**
 * What ways to spend less memory make of a run: what they hold, what they cost, and the largest
 * model of the same shape, with more layers, that trains within the limit.
 *
 * @param limitBytes of every rank
 * @param parameters of the model as it is
 * @param layers of it
 * @param choices the ways that were looked at
 */
public record MemoryChoices(
        long limitBytes, long parameters, int layers, List<MemoryChoice> choices) {
    /** No larger models are looked at. */
    private static final int MOST_LAYERS = 512;

    /** Nor larger ones than so many times the model's own layers. */
    private static final int MOST_TIMES = 16;

    public MemoryChoices {
        choices = List.copyOf(choices);
    }

    /** What one way makes of the run. */
    public sealed interface MemoryChoice {
        /** Of the way. */
        String name();

        /** What takes it. */
        List<String> settings();
    }

    /**
     * There is no such run.
     *
     * @param reason why not
     */
    public record Impossible(String name, List<String> settings, String reason)
            implements MemoryChoice {
        public Impossible {
            settings = List.copyOf(settings);
        }
    }

    /**
     * There is such a run, whatever it holds.
     *
     * @param name of the way
     * @param settings that take it
     * @param heldBytes the most that a rank holds of its device
     * @param hostBytes the most activations of a rank on its host, or in its folder
     * @param diskBytes the most that a rank has in files of {@code device.swap} or {@code
     *     parallel.zero.offload}
     * @param fits whether every rank keeps within the limit
     * @param stepNanos a simulated step
     * @param tokensPerSecond of all replicas
     * @param largestLayers of the largest model that fits; 0 if none does, or none was looked for
     * @param largestParameters of that model
     * @param note what was chosen, or what its time does not know; else empty
     */
    public record Possible(
            String name,
            List<String> settings,
            long heldBytes,
            long hostBytes,
            long diskBytes,
            boolean fits,
            long stepNanos,
            double tokensPerSecond,
            int largestLayers,
            long largestParameters,
            String note)
            implements MemoryChoice {
        public Possible {
            settings = List.copyOf(settings);
        }
    }

    /** Reads, proves and times runs. */
    private record Work(
            Function<List<String>, LoadedConfig> reader,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit,
            boolean larger,
            LayerList layers) {
        MemoryProof proof(List<String> settings) {
            return prover.apply(reader.apply(settings));
        }
    }

    /**
     * Looks at all ways that suit a run, and at larger models.
     *
     * @param reader reads the configuration under settings
     * @param prover proves a configuration as its run would
     * @param limit bytes of every rank
     */
    public static MemoryChoices of(
            Function<List<String>, LoadedConfig> reader,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit) {
        return of(work(reader, prover, rates, limit, true));
    }

    /** Returns the ways in which the model as it is fits, the fastest first. */
    public static List<Possible> fitting(
            Function<List<String>, LoadedConfig> reader,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit) {
        return of(work(reader, prover, rates, limit, false))
                .possible()
                .filter(Possible::fits)
                .sorted((a, b) -> Long.compare(a.stepNanos(), b.stepNanos()))
                .toList();
    }

    private static Work work(
            Function<List<String>, LoadedConfig> reader,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit,
            boolean larger) {
        LayerList layers = reader.apply(List.of()).config().model().layers();
        return new Work(reader, prover, rates, limit, larger, layers);
    }

    private static MemoryChoices of(Work work) {
        LoadedConfig asIs = work.reader.apply(List.of());
        ModelShape shape = shape(asIs.config());
        List<MemoryChoice> choices = new ArrayList<>();
        for (MemoryWay way : MemoryWay.of(asIs.config())) {
            choices.add(choice(work, way, shape.layers()));
        }
        return new MemoryChoices(work.limit, shape.parameters(), shape.layers(), choices);
    }

    /** The fastest that fits; empty if none does. */
    public Optional<Possible> fastest() {
        return possible()
                .filter(Possible::fits)
                .min((a, b) -> Long.compare(a.stepNanos(), b.stepNanos()));
    }

    /** The ways that there are. */
    public Stream<Possible> possible() {
        return choices.stream().filter(Possible.class::isInstance).map(Possible.class::cast);
    }

    /** Whether no larger model was tried. */
    public boolean isLargestTried(Possible choice) {
        return choice.largestLayers() == most(layers);
    }

    private static int most(int layers) {
        return (int) Math.min(MOST_LAYERS, (long) MOST_TIMES * layers);
    }

    /** The one that holds least; empty if none is possible. */
    public Optional<Possible> least() {
        return possible().min((a, b) -> Long.compare(a.heldBytes(), b.heldBytes()));
    }

    private static ModelShape shape(RunConfig config) {
        return config.model().shape(config.data().tokenizer().vocabulary());
    }

    private static MemoryChoice choice(Work work, MemoryWay way, int layers) {
        List<String> settings = way.settings().apply(layers);
        try {
            LoadedConfig loaded = work.reader.apply(settings);
            String note = way.note();
            if (way.isFit()) {
                ActivationChoice chosen =
                        ActivationFit.of(loaded, work.prover, work.rates, work.limit);
                loaded = chosen.in(loaded);
                note = chosen.reason();
            }
            MemoryProof proof = work.prover.apply(loaded);
            int largest = work.larger ? largest(work, way, layers, proof.held().largest()) : 0;
            long nanos = StepCosts.stepNanos(proof, work.rates);
            RunConfig config = proof.config();
            long tokens = (long) config.batch().sequences() * config.model().context();
            return new Possible(
                    way.name(),
                    settings,
                    proof.held().largest(),
                    most(proof, MemoryPlan::activationsOnHost),
                    most(proof, MemoryPlan::offloaded),
                    proof.held().largest() <= work.limit,
                    nanos,
                    1e9 * tokens / nanos,
                    largest,
                    largest == 0 ? 0 : parameters(proof, largest),
                    note);
        } catch (ConfigException e) {
            Problem first = e.problems().getFirst();
            return new Impossible(
                    way.name(),
                    settings,
                    "%s: expected %s".formatted(first.key(), first.expected()));
        }
    }

    private static long most(MemoryProof proof, ToLongFunction<MemoryPlan> bytes) {
        return proof.held().ranks().stream().mapToLong(bytes).max().orElse(0);
    }

    private static long parameters(MemoryProof proof, int layers) {
        ModelShape shape = proof.sizes().shape();
        long block = shape.layerParameters(0, shape.layers()) / shape.layers();
        return shape.parameters() + (layers - shape.layers()) * block;
    }

    /**
     * The most layers that fit: what is held grows with every layer, nearly in a straight line, so
     * that the answer follows from two models and is proved.
     */
    private static int largest(Work work, MemoryWay way, int layers, long asItIs) {
        long held = way.isFit() ? heldBytes(work, way, layers) : asItIs;
        if (held > work.limit) {
            return fewer(work, way, layers);
        }
        double ofLayer = Math.max(1, heldBytes(work, way, 2 * layers) - held) / (double) layers;
        long guess = layers + (long) ((work.limit - held) / ofLayer);
        int at = (int) Math.min(most(layers), guess);
        while (at > layers) {
            long excess = heldBytes(work, way, at) - work.limit;
            if (excess <= 0) {
                return at;
            }
            at -= (int) Math.max(1, Math.min(at, excess / ofLayer));
        }
        return layers;
    }

    /** The most layers below the model's own that fit; 0 if none do. */
    private static int fewer(Work work, MemoryWay way, int layers) {
        int found = 0;
        int low = 0;
        int high = layers;
        while (high - low > 1) {
            int middle = (low + high) / 2;
            try {
                if (heldBytes(work, way, middle) <= work.limit) {
                    found = middle;
                    low = middle;
                } else {
                    high = middle;
                }
            } catch (ConfigException e) {
                low = middle; // fewer than stages
            }
        }
        return found;
    }

    private static long heldBytes(Work work, MemoryWay way, int layers) {
        List<String> settings = new ArrayList<>(way.settings().apply(layers));
        settings.add("model.layers=" + work.layers.ofCount(layers).setting());
        return way.isFit()
                ? ActivationFit.leastBytes(work.reader.apply(settings), work.prover)
                : work.proof(settings).held().largest();
    }
}
