package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.reading.Worded;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.generate.base.SliceBalance;
import dev.penstock.schedules.generate.wired.WiredOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Section {@code schedule}: the order in which ranks work.
 *
 * @param backward order of the backward passes (gpipe)
 * @param slices how many token slices a sequence is cut into, for a kind that can; empty: 4 for a
 *     kind that lives on them, else 1
 * @param sliceLengths how long they are; given lengths also say how many
 * @param activations whether recompute and offload are chosen for a memory limit
 * @param recompute what backwards compute a second time instead of keeping it from the forward
 * @param offload whose activations leave the device in between
 * @param reloadAhead how many computations before its backward a unit comes back
 * @param file an order written by hand; it takes the place of {@code kind} and its options
 * @param candidates kinds that may take the place of {@code kind} while the run goes on
 * @param costs three for each rank: of a forward, a backward for the input and one for the weights;
 *     empty: all ops take as long
 * @param wiring of wired kinds, who does what while everybody is there
 * @param wiringSeed of a wiring that is drawn
 * @param without ranks that take no part in a wired order
 * @param holdMore micro-batches that a rank of a wired order may hold beside those of 1F1B; empty:
 *     none where every replica does its own, else as many as a pipeline has ranks
 * @param pairsAtOnce whether one op of a pair computes while the other waits for a sum of tensor
 *     shards, where stages can
 */
public record ScheduleSection(
        @Setting(is = "1f1b", doc = "the order's family") Kind kind,
        @Setting(is = "fifo", doc = "order of gpipe's backward passes") Backward backward,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, 65536]",
                        doc = "token slices; auto: 4 where the kind lives on them, else 1")
                Optional<Integer> slices,
        @Setting(
                        is = "equal",
                        range = "[1, )",
                        doc = "of equal tokens, balanced FLOPs, or tokens such as [96, 88, 72]")
                SliceLengths sliceLengths,
        @Setting(
                        is = "as-set",
                        doc =
                                "as-set: recompute and offload as they stand; fit: for each stage"
                                        + " and its blocks what makes the step shortest within"
                                        + " device.memory-limit")
                Activations activations,
        @Setting(
                        is = "none",
                        range = "[0, )",
                        doc =
                                "activations computed again in the backward, of units (full),"
                                        + " blocks, or blocks such as [0, 1]")
                Recompute recompute,
        @Setting(
                        is = "none",
                        range = "[0, )",
                        doc =
                                "activations that leave the device between forward and backward:"
                                        + " of the first half of the stages, of all, or of stages"
                                        + " such as [0, 1]")
                Offload offload,
        @Setting(
                        is = "1",
                        range = "[0, 65536]",
                        doc =
                                "computations before its backward that a unit is brought back; 0:"
                                        + " right before")
                int reloadAhead,
        @Setting(
                        is = "none",
                        word = "none",
                        doc = "an order written by hand, in place of schedule.kind")
                Optional<Path> file,
        @Setting(
                        is = "[]",
                        doc =
                                "kinds that take the place of schedule.kind when a step would be"
                                        + " faster by what the ranks took")
                List<Kind> candidates,
        @Setting(
                        is = "[]",
                        range = "[0, )",
                        doc =
                                "for kinds that are searched or wired, what a forward, a backward"
                                        + " for the input and one for the weights take on each"
                                        + " rank, one rank after the other; empty: all the same")
                List<Integer> costs,
        @Setting(
                        is = "straight",
                        doc =
                                "for wired kinds, which replica does which micro-batch at which"
                                        + " stage: each its own (straight), as many as ranks are"
                                        + " fast by schedule.costs (balanced), the same and anew"
                                        + " by what the ranks took (measured), or drawn (random)")
                Wiring wiring,
        @Setting(is = "0", doc = "of schedule.wiring = random") long wiringSeed,
        @Setting(
                        is = "[]",
                        range = "[0, )",
                        doc =
                                "ranks of a wired order that take no part: those that hold the same"
                                        + " stage do their micro-batches")
                List<Integer> without,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[0, 65536]",
                        doc =
                                "micro-batches that a rank of a wired order may hold beside those"
                                        + " of 1f1b; auto: 0 for a straight wiring, else"
                                        + " pipeline.stages")
                Optional<Integer> holdMore,
        @Setting(
                        is = "true",
                        doc =
                                "for pairs of ops (stp, dualpipe-v) with parallel.tensor above 1:"
                                        + " one op computes while the other waits for a sum, in"
                                        + " scratch of its own; false: one after the other")
                boolean pairsAtOnce) {

    static final int COSTS_OF_RANK = 3;

    /** A family of orders that is generated. */
    public enum Kind implements Worded {
        ONE_FORWARD_ONE_BACKWARD("1f1b"),
        GPIPE("gpipe"),
        INTERLEAVED("interleaved-1f1b"),
        GIS("gis"),
        BREADTH_FIRST("breadth-first"),
        ZB_H1("zb-h1"),
        ZB_H2("zb-h2"),
        ZB_1P("zb-1p"),
        ZB_2P("zb-2p"),
        INTERLEAVED_ZB("interleaved-zb"),
        ZB_V("zb-v"),
        V_HALF("v-half"),
        V_MIN("v-min"),
        DUALPIPE_V("dualpipe-v"),
        STP("stp"),
        SEQ1F1B("seq1f1b"),
        SEQ1F1B_INTERLEAVED("seq1f1b-interleaved"),
        TERAPIPE("terapipe"),
        TERAPIPE_1F1B("terapipe-1f1b"),
        WIRED_1F1B(WiredOrder.Backwards.FULL.kind()),
        WIRED_ZB(WiredOrder.Backwards.SPLIT.kind());

        private final String word;

        Kind(String word) {
            this.word = word;
        }

        @Override
        public String word() {
            return word;
        }

        /** Whether the order can work on token slices. */
        public boolean sliced() {
            return isWired() || Generators.kind(word).sliced();
        }

        /** Whether replicas do each other's micro-batches, as {@link Wiring} says. */
        public boolean isWired() {
            return this == WIRED_1F1B || this == WIRED_ZB;
        }

        /** Whether the order is made for what ops cost. */
        boolean searched() {
            return isWired() || Generators.kind(word).search() != ScheduleKind.Search.NONE;
        }

        /** Into how many slices sequences are cut unless the configuration says it. */
        public int usualSlices() {
            return switch (this) {
                case TERAPIPE, TERAPIPE_1F1B, SEQ1F1B, SEQ1F1B_INTERLEAVED -> 4;
                case ONE_FORWARD_ONE_BACKWARD,
                        GPIPE,
                        INTERLEAVED,
                        GIS,
                        BREADTH_FIRST,
                        ZB_H1,
                        ZB_H2,
                        ZB_1P,
                        ZB_2P,
                        INTERLEAVED_ZB,
                        ZB_V,
                        V_HALF,
                        V_MIN,
                        DUALPIPE_V,
                        STP,
                        WIRED_1F1B,
                        WIRED_ZB ->
                        1;
            };
        }

        /** How many stages a rank holds unless the configuration says it. */
        int usualChunks() {
            if (isWired()) {
                return 1;
            }
            return switch (Generators.kind(word).chunks()) {
                case ONE, ANY -> 1;
                case TWO -> 2;
            };
        }
    }

    /** What a rank's ops cost that searched orders are made for; empty: all the same. */
    public List<OpCosts> costsOfRanks() {
        return IntStream.range(0, costs.size() / COSTS_OF_RANK)
                .mapToObj(
                        rank ->
                                new OpCosts(
                                        costs.get(COSTS_OF_RANK * rank),
                                        costs.get(COSTS_OF_RANK * rank + 1),
                                        costs.get(COSTS_OF_RANK * rank + 2),
                                        0))
                .toList();
    }

    /**
     * Returns what is said here of an order's family and has no effect, for people.
     *
     * @param replicas of the run
     */
    List<String> unusedNotes(int replicas) {
        List<String> notes = new ArrayList<>();
        if (measured() && replicas == 1) {
            notes.add(
                    "schedule.wiring = measured has no effect: there is only one replica to have micro-batches");
        }
        if (!costs.isEmpty() && !someKind(Kind::searched)) {
            notes.add(unused("costs", costs, "is neither searched nor wired"));
        }
        if (slices.isPresent() && !someKind(Kind::sliced)) {
            notes.add(unused("slices", slices.get(), "works on whole sequences"));
        }
        if (backward != Backward.FIFO && !someKind(kind -> kind == Kind.GPIPE)) {
            notes.add(unused("backward", "reverse", "has an order of its own"));
        }
        return notes;
    }

    private boolean someKind(Predicate<Kind> wanted) {
        return file.isEmpty()
                && Stream.concat(Stream.of(kind), candidates.stream()).anyMatch(wanted);
    }

    private String unused(String key, Object value, String why) {
        return "schedule.%s = %s has no effect: %s"
                .formatted(
                        key,
                        value,
                        file.isPresent()
                                ? "the order is that of schedule.file"
                                : "schedule.kind = %s %s".formatted(kind.word(), why));
    }

    /** Who does what in a wired order. */
    public enum Wiring {
        /** Every replica does its own micro-batches. */
        STRAIGHT,
        /** As many as the speeds of the ranks say. */
        BALANCED,
        /** The same at first, and by speeds that are measured while the run goes on. */
        MEASURED,
        /** Drawn by a seed. */
        RANDOM
    }

    /** Whether micro-batches may go to other replicas while the run goes on. */
    public boolean measured() {
        return isWiredKind() && wiring == Wiring.MEASURED;
    }

    /** Whether an order is generated in which replicas do each other's micro-batches. */
    public boolean isWiredKind() {
        return file.isEmpty() && kind.isWired();
    }

    /**
     * How many micro-batches ranks of a wired order may hold beside those of 1F1B, whoever is
     * absent.
     *
     * @param stages of the pipeline
     */
    public int heldMore(int stages) {
        return holdMore.orElse(wiring == Wiring.STRAIGHT ? 0 : stages);
    }

    /** Who says what becomes of activations between forward and backward. */
    public enum Activations implements Worded {
        /** The keys recompute and offload. */
        AS_SET("as-set"),
        /** The memory limit, by proof and simulation. */
        FIT("fit");

        private final String word;

        Activations(String word) {
            this.word = word;
        }

        @Override
        public String word() {
            return word;
        }
    }

    /** In which order GPipe runs its backward passes. */
    public enum Backward {
        FIFO,
        REVERSE
    }

    /**
     * Tokens of every slice of the model's sequences, first slice first: one entry for a kind that
     * does not cut sequences. Lengths that are not given are multiples of the parts; equal ones
     * differ by at most that.
     *
     * @param parts of every slice ({@code parallel.context}); divides the context
     */
    public List<Integer> tokensPerSlice(ModelSection model, int parts) {
        int context = model.context();
        if (!kind.sliced()) {
            return List.of(context);
        }
        int count = sliceCount();
        int each = context / parts;
        return switch (sliceLengths) {
            case SliceLengths.Given(List<Integer> tokens) -> tokens;
            case SliceLengths.Rule.EQUAL ->
                    IntStream.range(0, count)
                            .mapToObj(i -> (each / count + (i < each % count ? 1 : 0)) * parts)
                            .toList();
            case SliceLengths.Rule.BALANCED -> work(model).lengthsInParts(context, count, parts);
        };
    }

    /** The work of a token; values that make no model are refused whatever slices there are. */
    private static SliceBalance work(ModelSection model) {
        try {
            ModelShape shape = model.shape(1);
            BlockDesign block = shape.block();
            long perPair = 4L * block.heads().queryColumns();
            if (!block.isMixed()) {
                return new SliceBalance(
                        2 * shape.layerMatrixParameters(0),
                        block.retains() ? 0 : perPair,
                        block.windows().stream().map(window -> Math.max(window, 0)).toList());
            }
            long fixed = 0; // of products with weights and states, in all layers
            List<Integer> windows = new ArrayList<>();
            for (int layer = 0; layer < shape.layers(); layer++) {
                fixed += 2 * shape.layerMatrixParameters(layer);
                if (block.retains(layer)) {
                    fixed += 4L * block.heads().stateColumns();
                } else {
                    windows.add(block.window(layer));
                }
            }
            return new SliceBalance(fixed / windows.size(), perPair, windows);
        } catch (IllegalArgumentException e) {
            return SliceBalance.ofWidth(model.width());
        }
    }

    /** How many slices a kind that can cut sequences cuts them into, unless they are given. */
    int sliceCount() {
        return slices.orElse(kind.usualSlices());
    }
}
