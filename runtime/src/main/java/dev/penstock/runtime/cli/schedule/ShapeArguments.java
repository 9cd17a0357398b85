package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.Meant;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/** The shape of a generated order, and what its kind can be told. */
final class ShapeArguments {
    @Option(
            names = "--ranks",
            defaultValue = "4",
            description = "Ranks of a generated order (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--micro-batches",
            defaultValue = "8",
            description = "Micro-batches of a generated order (default: ${DEFAULT-VALUE}).")
    private int microBatches;

    @Option(
            names = "--chunks",
            paramLabel = "V",
            description = "Stages per rank of a generated order (default: what the kind needs).")
    private @Nullable Integer chunks;

    @Option(
            names = "--slices",
            split = ",",
            paramLabel = "S|L1,L2,..",
            defaultValue = "1",
            description =
                    "Token slices of a sequence: their number, or their lengths (default:"
                            + " ${DEFAULT-VALUE}).")
    private List<Integer> slices = List.of(1);

    @Option(
            names = "--backward",
            defaultValue = "FIFO",
            description = "Order of gpipe's backward passes: fifo or reverse.")
    private BackwardOrder backward = BackwardOrder.FIFO;

    @Option(
            names = "--group",
            paramLabel = "N",
            description = "Micro-batches that interleaved kinds send through a chunk in a row.")
    private @Nullable Integer group;

    @Option(
            names = "--memory-limit",
            paramLabel = "A",
            description = {
                "Most activations that a rank of a searched kind may hold, counted in",
                "micro-batches of all its layers."
            })
    private @Nullable Double memoryLimit;

    @Mixin private WiredArguments wired = new WiredArguments();

    /** The names of these options. */
    static List<String> options() {
        return CommandSpec.forAnnotatedObject(new ShapeArguments()).options().stream()
                .map(OptionSpec::longestName)
                .toList();
    }

    /** Lengths of the slices: given ones, or equal ones of length 1. */
    List<Integer> sliceLengths() {
        return sliceLengths(slices);
    }

    /** The same of an option that stands elsewhere. */
    static List<Integer> sliceLengths(List<Integer> slices) {
        if (slices.size() > 1) {
            return slices;
        }
        if (slices.getFirst() < 1) {
            throw new BadInputException("expected 1 or more --slices, got " + slices.getFirst());
        }
        return Collections.nCopies(slices.getFirst(), 1);
    }

    /**
     * @throws BadInputException if there is no such kind, or it cannot run in this shape
     */
    Schedule generate(String kind) {
        PipelineShape shape = shape(kind);
        GenerateOptions options = options(kind);
        return WiredArguments.isWired(kind)
                ? wired.generate(kind, shape)
                : generate(kind, shape, options);
    }

    /**
     * A wired order for ranks of these costs.
     *
     * @throws BadInputException as of {@link #generate(String)}
     */
    Schedule generateWired(String kind, List<OpCosts> costs) {
        return wired.generate(kind, shape(kind), costs);
    }

    /** The same in a shape that was worked out. */
    static Schedule generate(String kind, PipelineShape shape, GenerateOptions options) {
        try {
            return Generators.generate(kind, shape, options);
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    /**
     * @throws BadInputException if there is no such kind or no such shape, with all options that
     *     are wrong
     */
    PipelineShape shape(String kind) {
        var problems = new OptionProblems();
        check(problems);
        problems.orThrow();
        try {
            if (WiredArguments.isWired(kind)) {
                int given = chunks == null ? 1 : chunks;
                return wired.shape(new PipelineShape(ranks, given, microBatches, sliceLengths()));
            }
            ScheduleKind known = known(kind);
            int stagesPerRank = chunks == null ? usualChunks(known) : chunks;
            return new PipelineShape(ranks, stagesPerRank, microBatches, sliceLengths());
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    /** The names of all kinds that can be generated. */
    static List<String> kinds() {
        return Stream.of(Generators.kinds(), WiredArguments.kinds()).flatMap(List::stream).toList();
    }

    /**
     * @throws BadInputException if there is no such kind, with what was probably meant
     */
    private static ScheduleKind known(String kind) {
        List<String> kinds = kinds();
        if (!kinds.contains(kind)) {
            throw new BadInputException(
                    "unknown kind of schedule '%s', expected one of %s%s"
                            .formatted(kind, String.join(", ", kinds), Meant.hint(kinds, kind)));
        }
        return Generators.kind(kind);
    }

    /** What is wrong with the options, whatever the kind. */
    void check(OptionProblems problems) {
        check(problems, ranks, microBatches, chunks, slices);
        problems.count("--group", group, "micro-batch", "micro-batches");
        wired.check(problems, ranks, microBatches);
        if (memoryLimit != null && !(memoryLimit > 0 && memoryLimit <= OptionProblems.MOST)) {
            problems.add(
                    "--memory-limit: expected more than 0 and at most %d micro-batches, got %s"
                            .formatted(OptionProblems.MOST, memoryLimit));
        }
    }

    /** The same of options of a shape that stand elsewhere. */
    static void check(
            OptionProblems problems,
            int ranks,
            int microBatches,
            @Nullable Integer chunks,
            List<Integer> slices) {
        problems.count("--ranks", ranks, "rank", "ranks");
        problems.count("--micro-batches", microBatches, "micro-batch", "micro-batches");
        problems.count("--chunks", chunks, "chunk", "chunks");
        for (int slice : slices) {
            problems.count("--slices", slice, "slice or token", "of them");
        }
    }

    /** Two where a kind is about more than one. */
    static int usualChunks(ScheduleKind kind) {
        return switch (kind.chunks()) {
            case ONE -> 1;
            case TWO, ANY -> 2;
        };
    }

    /** Why the options do not fit a kind: one that it would ignore is a mistake. */
    List<String> misfits(String kind) {
        List<String> misfits = new ArrayList<>(wired.misfits(kind));
        boolean limited =
                !WiredArguments.isWired(kind) && Generators.kind(kind).search().usesMemoryLimit();
        if (memoryLimit != null && !limited) {
            misfits.add(
                    ignored(
                            "--memory-limit",
                            kind,
                            ScheduleKind.Search::usesMemoryLimit,
                            "leave it out; schedule validate --memory checks any order"));
        }
        return misfits;
    }

    /** That a kind has no use for an option, and which kinds have. */
    static String ignored(
            String option, String kind, Predicate<ScheduleKind.Search> takes, String advice) {
        return "%s: expected a kind that is searched for it (%s), got %s; %s"
                .formatted(option, String.join(", ", Generators.kindsThat(takes)), kind, advice);
    }

    /**
     * @throws BadInputException if the kind would ignore one of them
     */
    GenerateOptions options(String kind) {
        List<String> misfits = misfits(kind);
        if (!misfits.isEmpty()) {
            throw new BadInputException(String.join("\n", misfits));
        }
        GenerateOptions options = GenerateOptions.defaults().withBackwardOrder(backward);
        if (group != null) {
            options = options.withGroupSize(group);
        }
        return memoryLimit == null ? options : options.withMemoryLimit(memoryLimit);
    }
}
