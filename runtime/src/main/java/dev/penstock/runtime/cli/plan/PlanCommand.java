package dev.penstock.runtime.cli.plan;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.hardware.HardwareConfig;
import dev.penstock.runtime.config.hardware.HardwareLoader;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.planning.FittingWays;
import dev.penstock.runtime.planning.FittingWays.Way;
import dev.penstock.runtime.planning.MeasuredHardware;
import dev.penstock.runtime.planning.PlanTraffic;
import dev.penstock.runtime.planning.PlannedCodec;
import dev.penstock.runtime.planning.PlannedModel;
import dev.penstock.runtime.planning.PredictedTime;
import dev.penstock.runtime.planning.SentBytes;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.PlanExplanation;
import dev.penstock.schedules.plan.PlanReport;
import dev.penstock.schedules.plan.Planner;
import dev.penstock.schedules.plan.Ranking;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.TensorMeshes;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Says how to train a model on given hardware. */
@Command(
        name = "plan",
        description = {
            "Says how to train a model on given hardware: stages, shards, replicas, order and"
                    + " layers, proved and simulated, fastest first.",
            "Of plans that differ by 2 %% or less in time, the one that needs least memory comes"
                    + " first, then the simplest.",
            "Where a model does not fit with all activations kept, the ways of penstock memory in"
                    + " which it does follow, with their settings."
        },
        footer = {
            "  penstock plan --hardware sample-configs/hardware/4-laptops.conf \\",
            "    --model gpt2-124m --batch 16",
            "  penstock plan --hardware sample-configs/hardware/4-laptops.conf \\",
            "    --model gpt2-124m --batch 16 --profile runs/quickstart-1",
            "  penstock plan --hardware sample-configs/hardware/3072-a100.conf \\",
            "    --model gpt-1t --batch 3072",
            "  penstock plan --hardware sample-configs/hardware/48x8-v100.conf \\",
            "    --model layers=40,width=5120,heads=40,sequence=2048 --batch 64",
            "  penstock plan --hardware sample-configs/hardware/48x8-v100.conf \\",
            "    --model Llama-3-8B --sequence 8192 --batch 64",
            "  penstock plan --hardware sample-configs/hardware/4-laptops.conf \\",
            "    --model gpt2-124m --batch 16 --meshes",
        })
public final class PlanCommand extends PenstockCommand {
    @Option(
            names = "--hardware",
            required = true,
            paramLabel = "FILE",
            description = "A hardware file, such as sample-configs/hardware/4-laptops.conf.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path hardware;

    @Option(
            names = "--model",
            required = true,
            paramLabel = "NAME|FILE|KEY=VALUE,..",
            description = {
                "gpt2-124m, -355m, -774m, -1558m, gpt3-13b, -175b, gpt-530b, gpt-1t, a run's",
                "configuration, a Hugging Face folder, or sizes of a GPT-2: layers, width, heads,",
                "vocabulary, sequence, tied.",
            })
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private String model;

    @Option(
            names = "--batch",
            required = true,
            paramLabel = "N",
            description = "Sequences of a step, over all replicas.")
    private int batch;

    @Option(
            names = "--sequence",
            paramLabel = "L",
            description = "Tokens of a sequence (default: the model's).")
    private @Nullable Integer sequence;

    @Option(
            names = "--profile",
            paramLabel = "[NODE=]RUN_DIR",
            description = {
                "A run on such a node (or on all): the times of its computations say how fast",
                "the devices are; may be repeated.",
            })
    private List<String> profiles = new ArrayList<>();

    @Option(
            names = "--top",
            paramLabel = "K",
            defaultValue = "5",
            description = "How many plans to show (default: ${DEFAULT-VALUE}).")
    private int top;

    @Option(
            names = "--all",
            description =
                    "Show all plans with the same kind of schedule and number of stages, not only"
                            + " the first two.")
    private boolean all;

    @Option(
            names = "--meshes",
            description = {
                "Show instead what tensor shards of a block send and hold, 4, 16 and 64 of them,",
                "on a line and on meshes; --batch is then a micro-batch.",
            })
    private boolean meshes;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    /** How fast devices were found to be. */
    private List<String> measured = List.of();

    /** What the plan does not know of a run. */
    private List<String> leftOut = List.of();

    private Optional<ModelShape> design = Optional.empty();

    private FineTuning tuning = FineTuning.FULL;

    @Override
    public Integer call() {
        PlanRequest request = request();
        if (meshes) {
            return meshes(request);
        }
        PlanReport report =
                Planner.plan(request, top, all ? Ranking.FOR_PEOPLE.withAll() : Ranking.FOR_PEOPLE);
        List<String> explanation = new ArrayList<>(measured);
        explanation.addAll(PlanExplanation.of(report));
        report.plans().stream()
                .findFirst()
                .flatMap(best -> PlannedCodec.of(request, best))
                .ifPresent(explanation::add);
        explanation.addAll(leftOut);
        List<Way> ways = fitsAsItIs(report) ? List.of() : ways(request);
        if (report.plans().isEmpty() && ways.isEmpty()) {
            throw new BadInputException(
                    String.join("\n", explanation)
                            + "; try more or larger devices, or a smaller model");
        }
        List<StepTraffic> traffic = traffic(report, explanation);
        if (json) {
            printJson(PlanAnswer.of(report, ways, explanation, traffic));
            return ExitCode.OK;
        }
        if (!report.plans().isEmpty()) {
            print(report, explanation, traffic);
        } else {
            explanation.forEach(out()::println);
        }
        if (!ways.isEmpty()) {
            print(ways, report.plans().isEmpty());
        }
        out().flush();
        return ExitCode.OK;
    }

    /** Whether the best plan keeps all activations in memory. */
    private static boolean fitsAsItIs(PlanReport report) {
        return report.plans().stream().findFirst().stream()
                .anyMatch(best -> !best.choice().recompute());
    }

    private List<Way> ways(PlanRequest request) {
        return FittingWays.of(request, model, design.orElseThrow(), hardware).stream()
                .limit(top)
                .toList();
    }

    /**
     * @param none whether there is no plan
     */
    private void print(List<Way> ways, boolean none) {
        out().println();
        out().println(
                        "Ways in which it fits that plans do not know, each device as the smallest and slowest (penstock memory):");
        out().println("      step    tokens/s  rank holds     on host     on disk  way");
        for (Way way : ways) {
            out().printf(
                            "   %9s %9.4g  %10s  %10s  %10s  %s, %s%n",
                            PredictedTime.text(way.stepNanos()),
                            way.tokensPerSecond(),
                            Quantities.bytes(way.heldBytes()),
                            size(way.hostBytes()),
                            size(way.diskBytes()),
                            way.layout(),
                            way.name());
        }
        if (none) {
            out().println();
            out().print(PlanSnippet.of(ways.getFirst()));
        } else {
            out().println("--json has the settings of each.");
        }
    }

    private static String size(long bytes) {
        return bytes == 0 ? "-" : Quantities.bytes(bytes);
    }

    private int meshes(PlanRequest request) {
        List<TensorMeshes.Layout> layouts =
                TensorMeshes.of(request.model(), request.bytes(), request.batch());
        if (json) {
            printJson(layouts);
            return ExitCode.OK;
        }
        long rows = (long) request.batch() * request.model().sequence();
        out().printf(
                        "a shard of a block of width %d, with a micro-batch of %d sequences of %d tokens%n%n",
                        request.model().width(), request.batch(), request.model().sequence());
        out().println("shards  layout            sends       keeps       weights and state");
        for (TensorMeshes.Layout each : layouts) {
            out().printf(
                            "%6d  %-16s  %-10s  %-10s  %s%n",
                            each.ranks(),
                            each.name(),
                            Quantities.bytes(each.sentBytes()),
                            Quantities.bytes(each.keptBytes()),
                            Quantities.bytes(each.stateBytes()));
        }
        out().println();
        for (int ranks : TensorMeshes.RANKS) {
            OptionalDouble from = TensorMeshes.rowsFrom(ranks);
            double least = from.orElse(0) * request.model().width();
            out().println(
                            from.isEmpty()
                                    ? "%d shards: a line is faster, whatever the micro-batch"
                                            .formatted(ranks)
                                    : "%d shards: 2d is faster from %.1f tokens for each column of the width on, %,.0f tokens (here %,d: %s)"
                                            .formatted(
                                                    ranks,
                                                    from.getAsDouble(),
                                                    Math.ceil(least),
                                                    rows,
                                                    rows >= least ? "2d" : "a line"));
        }
        out().println(
                        "Faster: where links bound a forward, with broadcasts in trees and sums in rings (Optimus, table 1).");
        out().println(
                        "Plans have lines alone: parallel.tensor-mesh is for what does not fit otherwise.");
        out().flush();
        return ExitCode.OK;
    }

    /**
     * @param explanation takes why nothing is known
     */
    private List<StepTraffic> traffic(PlanReport report, List<String> explanation) {
        if (report.plans().isEmpty()) {
            return List.of();
        }
        try {
            return PlanTraffic.of(
                    report.request(), report.plans().getFirst(), design.orElseThrow(), tuning);
        } catch (IllegalArgumentException e) {
            explanation.add("What its ranks send is not known: " + e.getMessage());
            return List.of();
        }
    }

    private PlanRequest request() {
        List<String> problems = new ArrayList<>();
        Optional<HardwareConfig> config = Optional.empty();
        try {
            config = Optional.of(HardwareLoader.load(hardware));
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
        }
        var named = new PlannedModel(problems);
        design = named.design(model);
        tuning = named.tuning();
        leftOut = named.notes();
        require(problems, "--batch", batch, 1 << 20);
        require(problems, "--top", top, 100);
        require(problems, "--sequence", sequence == null ? 1 : sequence, 1 << 24);
        Optional<Hardware> devices = config.map(found -> measured(found, problems));
        if (!problems.isEmpty()) {
            throw new BadInputException(
                    problems.size() == 1
                            ? problems.getFirst()
                            : problems.size() + " problems\n  " + String.join("\n  ", problems));
        }
        var planned = named.sizes(design.orElseThrow());
        return new PlanRequest(
                sequence == null ? planned : planned.withSequence(sequence),
                config.orElseThrow().trainingBytes(),
                named.overLinks(devices.orElseThrow()),
                batch);
    }

    private Hardware measured(HardwareConfig config, List<String> problems) {
        var runs = new MeasuredHardware(config.trainingBytes(), problems);
        Hardware cluster = runs.of(config.cluster(), profiles);
        measured = runs.notes();
        return cluster;
    }

    private static void require(List<String> problems, String option, int value, int most) {
        if (value < 1 || value > most) {
            problems.add("%s: expected 1 to %d, got %d".formatted(option, most, value));
        }
    }

    private void print(PlanReport report, List<String> explanation, List<StepTraffic> traffic) {
        PlanRequest request = report.request();
        out().printf(
                        "%.3g parameters on %s (%d devices), %d sequences of %d tokens a step; %d"
                                + " choices bounded, %d proved and simulated%n%n",
                        (double) request.model().parameters(),
                        request.cluster().name(),
                        request.cluster().devices(),
                        request.batch(),
                        request.model().sequence(),
                        report.bounded(),
                        report.proved());
        out().println("      step    tokens/s  bubble  memory      plan");
        int place = 1;
        for (Plan plan : report.plans()) {
            out().printf(
                            "%2d %9s %9.4g  %5.1f %%  %-10s  %s%n",
                            place++,
                            PredictedTime.text(plan.stepNanos()),
                            plan.tokensPerSecond(request),
                            100 * plan.bubbleShare(),
                            PlanAnswer.size(plan.peakBytes()),
                            plan.choice().describe());
        }
        out().println();
        explanation.forEach(out()::println);
        out().println();
        out().print(PlanSnippet.of(request, report.plans().getFirst()));
        SentBytes.lines(traffic).forEach(line -> out().println("# " + line));
    }
}
