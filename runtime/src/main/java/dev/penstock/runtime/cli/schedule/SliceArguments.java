package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.launch.SliceNote;
import dev.penstock.runtime.planning.PlannedSlices;
import dev.penstock.runtime.planning.SliceTimes;
import dev.penstock.schedules.generate.base.SliceBalance;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.work.ModelShape;
import java.io.PrintWriter;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Token slices whose lengths are worked out: of equal work, or with the least makespan. */
final class SliceArguments {
    /** How lengths are found. */
    enum Rule {
        /** As the shape has them. */
        EQUAL,
        /** Equal FLOPs. */
        BALANCED,
        /** TeraPipe's dynamic programme. */
        PLANNED
    }

    @Option(
            names = "--slice-lengths",
            paramLabel = "RULE",
            defaultValue = "EQUAL",
            description = {
                "equal; balanced: --slices of equal FLOPs; planned: as many and as long as",
                "makes terapipe's step shortest, with the times of --hardware or of several",
                "--profile (default: ${DEFAULT-VALUE})."
            })
    private Rule rule = Rule.EQUAL;

    @Option(
            names = "--tokens",
            paramLabel = "L",
            description = "Tokens of a sequence (default: the model's, or the measured runs').")
    private @Nullable Integer tokens;

    @Option(
            names = "--slice-grid",
            paramLabel = "N",
            defaultValue = "8",
            description =
                    "Lengths found are multiples of so many tokens (default: ${DEFAULT-VALUE}).")
    private int grid = SliceBalance.GRID;

    /** Whether lengths are as the shape has them. */
    boolean areGiven() {
        return rule == Rule.EQUAL;
    }

    /** Whether times of the cost options are used to find lengths. */
    boolean planned() {
        return rule == Rule.PLANNED;
    }

    /** What is wrong with the options. */
    void check(OptionProblems problems) {
        problems.count("--tokens", tokens, 1, OptionProblems.MOST);
        problems.count("--slice-grid", grid, 1, OptionProblems.MOST);
    }

    /**
     * The shape with the lengths that were asked for; what was chosen is told.
     *
     * @throws BadInputException if there are none
     */
    PipelineShape cut(PipelineShape shape, CostArguments costs, PrintWriter err) {
        try {
            return switch (rule) {
                case EQUAL -> shape;
                case BALANCED -> with(shape, balanced(shape, costs.shapeOfModel(tokens)), err);
                case PLANNED -> planned(shape, costs, err);
            };
        } catch (IllegalArgumentException e) {
            throw new BadInputException("--slice-lengths: " + e.getMessage());
        }
    }

    private List<Integer> balanced(PipelineShape shape, ModelShape model) {
        return model.sliceBalance().lengths(model.sequence(), shape.slices(), grid);
    }

    private PipelineShape planned(PipelineShape shape, CostArguments costs, PrintWriter err) {
        SliceTimes times = costs.sliceTimes(shape, tokens);
        var planned = PlannedSlices.of(times, shape, grid);
        PipelineShape cut = with(shape, planned.lengths(), err);
        planned.describe(times).forEach(err::println);
        err.flush();
        return cut;
    }

    private static PipelineShape with(PipelineShape shape, List<Integer> lengths, PrintWriter err) {
        err.println("schedule.slice-lengths = " + lengths);
        SliceNote.of(lengths, SliceNote.USUAL_BLOCK)
                .ifPresent(note -> err.println("note: " + note));
        err.flush();
        return new PipelineShape(shape.ranks(), shape.chunks(), shape.microBatches(), lengths);
    }
}
