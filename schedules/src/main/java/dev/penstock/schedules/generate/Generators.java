package dev.penstock.schedules.generate;

import static dev.penstock.schedules.generate.base.ScheduleKind.Chunks.ANY;
import static dev.penstock.schedules.generate.base.ScheduleKind.Chunks.ONE;
import static dev.penstock.schedules.generate.base.ScheduleKind.Chunks.TWO;
import static dev.penstock.schedules.generate.base.ScheduleKind.Search.COSTS;
import static dev.penstock.schedules.generate.base.ScheduleKind.Search.COSTS_AND_MEMORY;
import static dev.penstock.schedules.generate.base.ScheduleKind.Search.NONE;

import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.generate.vshaped.DualPipeV;
import dev.penstock.schedules.generate.vshaped.SynergisticTensorPipeline;
import dev.penstock.schedules.generate.vshaped.VHalf;
import dev.penstock.schedules.generate.vshaped.VMin;
import dev.penstock.schedules.generate.vshaped.ZeroBubbleV;
import dev.penstock.schedules.generate.zerobubble.InterleavedZeroBubble;
import dev.penstock.schedules.generate.zerobubble.SearchedZeroBubble;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH1;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH2;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.function.Predicate;

/** The kinds of schedule by the names that configurations and the command line use. */
public final class Generators {
    private interface Generator {
        Schedule schedule(PipelineShape shape, GenerateOptions options);
    }

    private record Entry(ScheduleKind kind, Generator generator) {}

    private static final List<Entry> ENTRIES =
            List.of(
                    whole("gpipe", ONE, (s, o) -> GPipe.schedule(s, o.backwardOrder())),
                    whole("1f1b", ONE, (s, _) -> OneForwardOneBackward.schedule(s)),
                    whole(
                            "interleaved-1f1b",
                            ANY,
                            (s, o) -> Interleaved.schedule(s, o.groupSize())),
                    whole("gis", ANY, (s, o) -> GeneralizedInterleaved.schedule(s, o.groupSize())),
                    sliced("breadth-first", ANY, (s, _) -> BreadthFirst.schedule(s)),
                    sliced("zb-h1", ONE, (s, _) -> ZeroBubbleH1.schedule(s)),
                    sliced("zb-h2", ONE, (s, _) -> ZeroBubbleH2.schedule(s)),
                    searched("zb-1p", ONE, COSTS_AND_MEMORY, SearchedZeroBubble::onePerRank),
                    searched("zb-2p", ONE, COSTS_AND_MEMORY, SearchedZeroBubble::twoPerRank),
                    whole(
                            "interleaved-zb",
                            ANY,
                            (s, o) -> InterleavedZeroBubble.schedule(s, o.groupSize())),
                    whole("zb-v", TWO, (s, _) -> ZeroBubbleV.schedule(s)),
                    searched(
                            "v-half",
                            TWO,
                            COSTS,
                            (s, o) -> VHalf.schedule(s, o.costsOf(s.ranks()))),
                    searched("v-min", TWO, COSTS, (s, o) -> VMin.schedule(s, o.costsOf(s.ranks()))),
                    whole("dualpipe-v", TWO, (s, _) -> DualPipeV.schedule(s)),
                    whole("stp", TWO, (s, _) -> SynergisticTensorPipeline.schedule(s)),
                    sliced("seq1f1b", ONE, (s, _) -> Seq1F1B.schedule(s)),
                    sliced(
                            "seq1f1b-interleaved",
                            ANY,
                            (s, o) -> Seq1F1BInterleaved.schedule(s, o.groupSize())),
                    sliced("terapipe", ONE, (s, _) -> TeraPipe.schedule(s)),
                    sliced("terapipe-1f1b", ONE, (s, _) -> TeraPipe1F1B.schedule(s)));

    private Generators() {}

    private static Entry whole(String name, ScheduleKind.Chunks chunks, Generator generator) {
        return new Entry(new ScheduleKind(name, chunks, false, NONE), generator);
    }

    private static Entry sliced(String name, ScheduleKind.Chunks chunks, Generator generator) {
        return new Entry(new ScheduleKind(name, chunks, true, NONE), generator);
    }

    private static Entry searched(
            String name,
            ScheduleKind.Chunks chunks,
            ScheduleKind.Search search,
            Generator generator) {
        return new Entry(new ScheduleKind(name, chunks, false, search), generator);
    }

    /** The names of all kinds. */
    public static List<String> kinds() {
        return ENTRIES.stream().map(entry -> entry.kind().name()).toList();
    }

    /** The names of the kinds whose search is so. */
    public static List<String> kindsThat(Predicate<ScheduleKind.Search> search) {
        return ENTRIES.stream()
                .map(Entry::kind)
                .filter(kind -> search.test(kind.search()))
                .map(ScheduleKind::name)
                .toList();
    }

    /**
     * What is known of a kind.
     *
     * @throws IllegalArgumentException if there is no such kind
     */
    public static ScheduleKind kind(String name) {
        return entry(name).kind();
    }

    /** A schedule of this kind with the default options. */
    public static Schedule generate(String kind, PipelineShape shape) {
        return generate(kind, shape, GenerateOptions.defaults());
    }

    /**
     * A schedule of this kind, compute ops only.
     *
     * @throws IllegalArgumentException if there is no such kind, or it cannot run in this shape;
     *     the text says which numbers would do
     */
    public static Schedule generate(String kind, PipelineShape shape, GenerateOptions options) {
        return entry(kind).generator().schedule(shape, options);
    }

    private static Entry entry(String name) {
        return ENTRIES.stream()
                .filter(entry -> entry.kind().name().equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "unknown kind of schedule '%s', expected one of %s"
                                                .formatted(name, String.join(", ", kinds()))));
    }
}
