package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.planning.HardwareModel;
import dev.penstock.runtime.planning.PredictedTime;
import dev.penstock.schedules.generate.base.SliceBalance;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.slices.BatchSlicePlan;
import dev.penstock.schedules.plan.slices.BatchSlicePlanner;
import dev.penstock.schedules.plan.slices.SliceCost;
import dev.penstock.schedules.plan.slices.SlicePlan;
import dev.penstock.schedules.plan.slices.SlicePlanner;
import dev.penstock.schedules.plan.work.ModelShape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Cuts a batch and its sequences together (TeraPipe, arXiv 2102.07988, section 3.3). */
@Command(
        name = "slices",
        description = {
            "Cuts a batch into micro-batches and their token slices (TeraPipe's joint programme).",
            "An order of Penstock has equal micro-batches, cut alike: the best of those is said too."
        },
        footer = {
            "  penstock schedule slices --ranks 4 --batch 8 \\",
            "    --hardware sample-configs/hardware/4-laptops.conf --model gpt2-124m",
        })
final class ScheduleSlicesCommand extends PenstockCommand {
    /** The programme looks at every micro-batch size for every length of a slice. */
    private static final long MOST_SLICES = 20_000_000;

    /** A micro-batch for programs. */
    public record Part(int sequences, List<Integer> sliceLengths) {}

    /** The answer for programs. */
    record Answer(
            List<Part> microBatches,
            long stepNanos,
            int equalMicroBatches,
            List<Integer> equalSliceLengths,
            long equalStepNanos) {}

    @Option(
            names = "--hardware",
            paramLabel = "FILE",
            required = true,
            description = "A hardware file, such as those of sample-configs/hardware.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path hardware;

    @Option(
            names = "--model",
            paramLabel = "NAME|FILE|KEY=VALUE,..",
            defaultValue = "gpt2-124m",
            description = "The model, as in penstock plan (default: ${DEFAULT-VALUE}).")
    private String model = "";

    @Option(
            names = "--ranks",
            defaultValue = "4",
            description = "Ranks of the pipeline (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--batch",
            paramLabel = "N",
            defaultValue = "8",
            description = "Sequences of a step (default: ${DEFAULT-VALUE}).")
    private int batch;

    @Option(
            names = "--tokens",
            paramLabel = "L",
            description = "Tokens of a sequence (default: the model's).")
    private @Nullable Integer tokens;

    @Option(
            names = "--slice-grid",
            paramLabel = "N",
            defaultValue = "" + SliceBalance.GRID,
            description = "Lengths are multiples of so many tokens (default: ${DEFAULT-VALUE}).")
    private int grid;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        requireGoodOptions();
        ModelShape trained = HardwareModel.shape(model, tokens);
        requireFits(trained.sequence());
        PipelineShape shape = new PipelineShape(ranks, 1, batch, List.of(1));
        List<SliceCost> costs = new ArrayList<>();
        for (int sequences = 1; sequences <= batch; sequences++) {
            costs.add(HardwareModel.sliceTimes(hardware, trained, shape, sequences).cost());
        }
        IntFunction<SliceCost> costOf = sequences -> costs.get(sequences - 1);
        long whole = costOf.apply(1).nanos(trained.sequence(), 0);
        long epsilon = Math.min(SlicePlanner.PAPER_EPSILON_NANOS, whole / 1_000);
        Equal equal = Equal.best(costOf, batch, trained.sequence(), grid, ranks, epsilon);
        BatchSlicePlan joint =
                better(
                        BatchSlicePlanner.plan(
                                costOf, batch, trained.sequence(), grid, ranks, epsilon),
                        equal.asPlan());
        if (json) {
            printJson(answer(joint, equal));
        } else {
            print(joint, equal);
        }
        return ExitCode.OK;
    }

    /** Both programmes are exact but for epsilon, so either may be ahead by a little. */
    private static BatchSlicePlan better(BatchSlicePlan joint, BatchSlicePlan equal) {
        return joint.makespanNanos() <= equal.makespanNanos() ? joint : equal;
    }

    private void requireGoodOptions() {
        var problems = new OptionProblems();
        problems.count("--ranks", ranks, 1, OptionProblems.MOST);
        problems.count("--batch", batch, 1, OptionProblems.MOST);
        problems.count("--tokens", tokens, 1, OptionProblems.MOST);
        problems.count("--slice-grid", grid, 1, OptionProblems.MOST);
        problems.orThrow();
        if ((long) ranks * batch > OptionProblems.MOST) {
            throw new BadInputException(
                    "--ranks and --batch: expected at most %d ranks times sequences, got %d x %d"
                            .formatted(OptionProblems.MOST, ranks, batch));
        }
    }

    private void requireFits(int sequence) {
        if (sequence % grid != 0) {
            throw new BadInputException(
                    "--slice-grid: expected a divisor of %d tokens, got %d"
                            .formatted(sequence, grid));
        }
        long points = sequence / grid;
        if (points * points > MOST_SLICES / batch) {
            throw new BadInputException(
                    "--slice-grid: expected at most %d slices to look at, got %d sequences of %d x %d; try --slice-grid %d"
                            .formatted(MOST_SLICES, batch, points, points, grid * 4L));
        }
    }

    private static Answer answer(BatchSlicePlan joint, Equal equal) {
        return new Answer(
                joint.parts().stream()
                        .map(part -> new Part(part.sequences(), part.slices().lengths()))
                        .toList(),
                joint.makespanNanos(),
                equal.microBatches(),
                equal.slices().lengths(),
                equal.stepNanos());
    }

    private void print(BatchSlicePlan joint, Equal equal) {
        out().printf(
                        "predicted step of terapipe: %s on %d stages%n",
                        PredictedTime.text(joint.makespanNanos()), joint.stages());
        Map<BatchSlicePlan.Part, Integer> counts = new LinkedHashMap<>();
        joint.parts().forEach(part -> counts.merge(part, 1, Integer::sum));
        counts.forEach(
                (part, count) ->
                        out().printf(
                                        "  %d x %d %s, in slices of %s tokens%n",
                                        count,
                                        part.sequences(),
                                        part.sequences() == 1 ? "sequence" : "sequences",
                                        part.slices().lengths()));
        out().printf(
                        "with equal micro-batches: %s; to run it:%n"
                                + "batch { sequences = %d, micro-batches = %d }%n"
                                + "schedule { kind = terapipe, slice-lengths = %s }%n",
                        PredictedTime.text(equal.stepNanos()),
                        batch,
                        equal.microBatches(),
                        equal.slices().lengths());
        out().flush();
    }

    /** The best cut into equal micro-batches with the same slices. */
    private record Equal(int microBatches, int sequences, SlicePlan slices) {
        static Equal best(
                IntFunction<SliceCost> costOf,
                int batch,
                int tokens,
                int grid,
                int ranks,
                long epsilon) {
            @Nullable Equal best = null;
            for (int sequences = 1; sequences <= batch; sequences++) {
                if (batch % sequences == 0) {
                    int count = batch / sequences;
                    var plan =
                            SlicePlanner.plan(
                                    costOf.apply(sequences), tokens, grid, ranks, count, epsilon);
                    var equal = new Equal(count, sequences, plan);
                    if (best == null || equal.stepNanos() < best.stepNanos()) {
                        best = equal;
                    }
                }
            }
            return Objects.requireNonNull(best);
        }

        long stepNanos() {
            return slices.makespanNanos(microBatches);
        }

        BatchSlicePlan asPlan() {
            return new BatchSlicePlan(
                    Collections.nCopies(microBatches, new BatchSlicePlan.Part(sequences, slices)),
                    slices.stages());
        }
    }
}
