package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Chooses for every stage what becomes of its activations: all kept, its first blocks run again, on
 * the host, or on the host with all blocks run again. Of the choices whose ranks prove to fit into
 * {@code device.memory-limit} it takes the one of the shortest simulated step, and of equal ones
 * the one that changes least.
 *
 * <p>What a rank holds depends on its own stages alone, so that each rank's choices are proved
 * apart, those of all ranks at the same time. Nothing is gained by recomputing or moving more than
 * is needed: what another choice of the rank that fits stays below in every stage is left out. Of
 * the rest all combinations are simulated, up to {@value #MOST_COMBINATIONS}; where there are more,
 * rank after rank is improved until nothing helps.
 */
public final class ActivationFit {
    private static final int MOST_COMBINATIONS = 1_000;

    /** Of a rank's choices: each costs a proof. */
    private static final int MOST_CHOICES = 256;

    /**
     * What becomes of one stage's.
     *
     * @param blocks the first of them, that run again
     */
    private record OfStage(int blocks, boolean offloaded) {
        static final OfStage KEPT = new OfStage(0, false);

        /**
         * Whether it computes and moves no more than another one. Of what leaves the device, blocks
         * that run again move less.
         */
        boolean isBelow(OfStage other) {
            return equals(other) || (!offloaded && blocks <= other.blocks);
        }
    }

    private final LoadedConfig loaded;
    private final Function<LoadedConfig, MemoryProof> prover;
    private final Rates rates;
    private final long limit;
    private final StagePartition partition;
    private final List<List<Integer>> stagesOf;
    private final Map<List<List<OfStage>>, Long> times = new HashMap<>();

    private ActivationFit(
            LoadedConfig loaded,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit,
            MemoryProof kept) {
        this.loaded = loaded;
        this.prover = prover;
        this.rates = rates;
        this.limit = limit;
        this.partition = kept.sizes().partition();
        this.stagesOf =
                IntStream.range(0, kept.order().shape().ranks())
                        .mapToObj(kept.order().placement()::stagesOf)
                        .toList();
    }

    /**
     * Chooses for a configuration, whatever it says of activations itself.
     *
     * @param prover proves a configuration as its run would
     * @param limit bytes of every rank
     */
    public static ActivationChoice of(
            LoadedConfig loaded,
            Function<LoadedConfig, MemoryProof> prover,
            Rates rates,
            long limit) {
        MemoryProof kept = prover.apply(loaded.withActivations(List.of(), List.of()));
        return new ActivationFit(loaded, prover, rates, limit, kept).choose(kept);
    }

    /**
     * What the largest rank holds at least, whatever is chosen: on each rank the least of keeping
     * all, running all blocks again, moving all, and both.
     */
    static long leastBytes(LoadedConfig loaded, Function<LoadedConfig, MemoryProof> prover) {
        MemoryProof kept = prover.apply(loaded.withActivations(List.of(), List.of()));
        List<Integer> blocks = IntStream.range(0, kept.sizes().shape().layers()).boxed().toList();
        List<Integer> stages = IntStream.range(0, kept.order().shape().stages()).boxed().toList();
        List<Long> least = new ArrayList<>(kept.mostOfPrograms());
        for (List<Integer> again : List.of(blocks, List.<Integer>of())) {
            for (List<Integer> away : List.of(stages, List.<Integer>of())) {
                List<Long> held =
                        prover.apply(loaded.withActivations(again, away)).mostOfPrograms();
                for (int rank = 0; rank < held.size(); rank++) {
                    least.set(rank, Math.min(least.get(rank), held.get(rank)));
                }
            }
        }
        return least.stream().mapToLong(bytes -> bytes).max().orElse(0);
    }

    private ActivationChoice choose(MemoryProof kept) {
        List<List<OfStage>> best =
                kept.held().largest() <= limit ? allKept() : shortest(fittingChoices());
        MemoryProof proof = kept.held().largest() <= limit ? kept : proof(best);
        return new ActivationChoice(
                blocks(best),
                offloaded(best),
                proof.held().largest(),
                kept.held().largest(),
                limit,
                StepCosts.stepNanos(proof, rates),
                StepCosts.stepNanos(kept, rates));
    }

    private List<List<OfStage>> allKept() {
        return stagesOf.stream().map(own -> own.stream().map(_ -> OfStage.KEPT).toList()).toList();
    }

    /** By rank, those that fit; where none does, the one that needs least. */
    private List<List<List<OfStage>>> fittingChoices() {
        List<List<List<OfStage>>> all = stagesOf.stream().map(this::choicesOfRank).toList();
        int most = all.stream().mapToInt(List::size).max().orElse(0);
        List<Map<List<OfStage>, Long>> held = new ArrayList<>();
        all.forEach(_ -> held.add(new HashMap<>()));
        for (int i = 0; i < most; i++) {
            int at = i;
            List<List<OfStage>> together =
                    all.stream().map(own -> own.get(Math.min(at, own.size() - 1))).toList();
            List<Long> bytes = proof(together).mostOfPrograms();
            for (int rank = 0; rank < all.size(); rank++) {
                held.get(rank).put(together.get(rank), bytes.get(rank));
            }
        }
        List<List<List<OfStage>>> fitting = new ArrayList<>();
        for (int rank = 0; rank < all.size(); rank++) {
            fitting.add(fitting(all.get(rank), held.get(rank)));
        }
        return fitting;
    }

    private List<List<OfStage>> fitting(
            List<List<OfStage>> choices, Map<List<OfStage>, Long> held) {
        List<List<OfStage>> fitting =
                choices.stream().filter(each -> held.getOrDefault(each, 0L) <= limit).toList();
        if (fitting.isEmpty()) {
            return choices.stream()
                    .min((a, b) -> Long.compare(held.getOrDefault(a, 0L), held.getOrDefault(b, 0L)))
                    .stream()
                    .toList();
        }
        return fitting.stream()
                .filter(
                        each ->
                                fitting.stream()
                                        .noneMatch(o -> !o.equals(each) && isBelow(o, each)))
                .toList();
    }

    private static boolean isBelow(List<OfStage> choice, List<OfStage> other) {
        return IntStream.range(0, choice.size()).allMatch(i -> choice.get(i).isBelow(other.get(i)));
    }

    /** Every combination, with fewer numbers of blocks where there would be too many. */
    private List<List<OfStage>> choicesOfRank(List<Integer> stages) {
        List<List<OfStage>> every =
                product(stages.stream().map(stage -> choicesOf(stage, true)).toList());
        if (every.size() <= MOST_CHOICES) {
            return every;
        }
        List<List<OfStage>> whole =
                product(stages.stream().map(stage -> choicesOf(stage, false)).toList());
        return whole.size() <= MOST_CHOICES ? whole : earlyOnes(stages);
    }

    private List<OfStage> choicesOf(int stage, boolean eachBlock) {
        int layers = partition.role(stage).layers();
        List<OfStage> choices = new ArrayList<>(List.of(OfStage.KEPT));
        for (int blocks = eachBlock ? 1 : Math.max(1, layers); blocks <= layers; blocks++) {
            choices.add(new OfStage(blocks, false));
        }
        choices.add(new OfStage(0, true));
        if (layers > 0) {
            choices.add(new OfStage(layers, true));
        }
        return choices;
    }

    /** Empty where there are more than anybody looks at. */
    private static List<List<OfStage>> product(List<List<OfStage>> choices) {
        long count =
                choices.stream()
                        .mapToLong(List::size)
                        .reduce(1, (a, b) -> Math.min(a * b, MOST_CHOICES + 1L));
        if (count > MOST_CHOICES) {
            return Collections.nCopies(MOST_CHOICES + 1, List.of());
        }
        List<List<OfStage>> product = List.of(List.of());
        for (List<OfStage> next : choices) {
            List<List<OfStage>> longer = new ArrayList<>();
            for (List<OfStage> begun : product) {
                for (OfStage each : next) {
                    List<OfStage> more = new ArrayList<>(begun);
                    more.add(each);
                    longer.add(List.copyOf(more));
                }
            }
            product = List.copyOf(longer);
        }
        return product;
    }

    /** The first stages of a rank wait longest: so many leave, so many more run again. */
    private List<List<OfStage>> earlyOnes(List<Integer> stages) {
        List<List<OfStage>> choices = new ArrayList<>();
        for (int away = 0; away <= stages.size(); away++) {
            for (int again = 0; again <= stages.size() - away; again++) {
                List<OfStage> choice = new ArrayList<>();
                for (int i = 0; i < stages.size(); i++) {
                    int layers = partition.role(stages.get(i)).layers();
                    choice.add(
                            i < away
                                    ? new OfStage(0, true)
                                    : new OfStage(i < away + again ? layers : 0, false));
                }
                choices.add(choice);
            }
        }
        choices.add(
                stages.stream()
                        .map(stage -> new OfStage(partition.role(stage).layers(), true))
                        .toList());
        return choices;
    }

    private List<List<OfStage>> shortest(List<List<List<OfStage>>> ofRanks) {
        long combinations = 1;
        for (List<?> own : ofRanks) {
            combinations = Math.min(Long.MAX_VALUE / 1_000, combinations * own.size());
        }
        List<List<OfStage>> best =
                new ArrayList<>(ofRanks.stream().map(own -> own.getFirst()).toList());
        if (combinations <= MOST_COMBINATIONS) {
            List<List<OfStage>> tried = new ArrayList<>(best);
            return combined(ofRanks, 0, tried, best);
        }
        for (boolean better = true; better; ) {
            better = false;
            for (int rank = 0; rank < ofRanks.size(); rank++) {
                for (List<OfStage> own : ofRanks.get(rank)) {
                    List<List<OfStage>> tried = new ArrayList<>(best);
                    tried.set(rank, own);
                    if (time(tried) < time(best)) {
                        best = tried;
                        better = true;
                    }
                }
            }
        }
        return best;
    }

    private List<List<OfStage>> combined(
            List<List<List<OfStage>>> ofRanks,
            int rank,
            List<List<OfStage>> tried,
            List<List<OfStage>> best) {
        if (rank == ofRanks.size()) {
            return time(tried) < time(best) ? List.copyOf(tried) : best;
        }
        List<List<OfStage>> found = best;
        for (List<OfStage> own : ofRanks.get(rank)) {
            tried.set(rank, own);
            found = combined(ofRanks, rank + 1, tried, found);
        }
        return found;
    }

    private long time(List<List<OfStage>> choice) {
        return times.computeIfAbsent(
                List.copyOf(choice), made -> StepCosts.stepNanos(proof(made), rates));
    }

    private MemoryProof proof(List<List<OfStage>> choice) {
        return prover.apply(loaded.withActivations(blocks(choice), offloaded(choice)));
    }

    private List<Integer> blocks(List<List<OfStage>> choice) {
        return byStage(choice).entrySet().stream()
                .flatMap(
                        stage -> {
                            StageRole role = partition.role(stage.getKey());
                            int first = role.firstLayer();
                            return IntStream.range(first, first + stage.getValue().blocks).boxed();
                        })
                .sorted()
                .toList();
    }

    private List<Integer> offloaded(List<List<OfStage>> choice) {
        return byStage(choice).entrySet().stream()
                .filter(stage -> stage.getValue().offloaded)
                .map(Map.Entry::getKey)
                .sorted()
                .toList();
    }

    private Map<Integer, OfStage> byStage(List<List<OfStage>> choice) {
        Map<Integer, OfStage> stages = new HashMap<>();
        for (int rank = 0; rank < choice.size(); rank++) {
            for (int i = 0; i < choice.get(rank).size(); i++) {
                stages.put(stagesOf.get(rank).get(i), choice.get(rank).get(i));
            }
        }
        return stages;
    }
}
