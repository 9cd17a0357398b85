package dev.penstock.runtime.cli.plan;

import dev.penstock.runtime.cli.command.ConfigArguments;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.hardware.HardwareLoader;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.memory.MeasuredRates;
import dev.penstock.runtime.memory.MemoryChoices;
import dev.penstock.runtime.memory.MemoryChoices.Impossible;
import dev.penstock.runtime.memory.MemoryChoices.MemoryChoice;
import dev.penstock.runtime.memory.MemoryChoices.Possible;
import dev.penstock.runtime.memory.Rates;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.planning.ProfileFile;
import dev.penstock.schedules.plan.work.DeviceSpec;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Says what fits into memory, and what it costs. */
@Command(
        name = "memory",
        description = {
            "Says what a run holds when it keeps activations, recomputes them, sends them to the"
                    + " host, swaps, divides its state or computes in fewer bits: proved bytes,"
                    + " simulated tokens/s, and the largest model that trains within the limit.",
            "The limit is device.memory-limit, else this machine's memory shared by the ranks."
                    + " Larger models have more layers of the same width."
        },
        footer = {
            "  penstock memory sample-configs/quickstart.conf \\",
            "    --set device.memory-limit=40MiB",
            "  penstock memory sample-configs/gpt2-124m.conf --profile runs/gpt2-124m-1",
        })
public final class MemoryCommand extends PenstockCommand {
    @Mixin private ConfigArguments config = new ConfigArguments();

    @Option(
            names = "--profile",
            paramLabel = "RUN_DIR",
            description = "A run whose times say how fast ranks compute.")
    private @Nullable Path profile;

    @Option(
            names = "--hardware",
            paramLabel = "FILE",
            description =
                    "A hardware file, such as sample-configs/hardware/4-laptops.conf: its first"
                            + " nodes say how fast a rank is.")
    private @Nullable Path hardware;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    /**
     * The answer for programs.
     *
     * @param rates that times follow from, and where they are from
     */
    record Answer(MemoryChoices memory, Rates rates, String ratesFrom, List<String> explanation) {}

    @Override
    public Integer call() {
        if (profile != null && hardware != null) {
            throw new BadInputException("expected one of --profile and --hardware, got both");
        }
        RunConfig run = config.draft().orThrow().config();
        long limit =
                run.device().memoryLimit().map(Bytes::bytes).orElseGet(() -> shareOfMachine(run));
        Rates rates = rates(run);
        MemoryChoices choices = MemoryChoices.of(this::read, RunParts::proof, rates, limit);
        List<String> explanation = explanation(choices);
        if (json) {
            printJson(new Answer(choices, rates, ratesFrom(), explanation));
        } else {
            print(choices, rates, explanation);
        }
        return ExitCode.OK;
    }

    private LoadedConfig read(List<String> settings) {
        List<String> all = new ArrayList<>(config.overrides());
        all.addAll(settings);
        return config.draft(all).orThrow();
    }

    private static long shareOfMachine(RunConfig run) {
        return RunParts.memoryOfThisMachine() / run.grid().ranks();
    }

    private Rates rates(RunConfig run) {
        Rates nominal = Rates.nominal(run.device());
        if (hardware != null) {
            DeviceSpec device =
                    HardwareLoader.load(hardware).cluster().groups().getFirst().device();
            return new Rates(
                    device.flopsPerSecond(),
                    device.hostBytesPerSecond(),
                    device.diskBytesPerSecond());
        }
        if (profile != null) {
            LoadedConfig measured =
                    ConfigLoader.loadOfRun(profile.resolve("resolved.conf"), List.of());
            return MeasuredRates.of(measured, ProfileFile.read(profile), RunParts::proof, nominal);
        }
        return nominal;
    }

    private String ratesFrom() {
        return hardware != null
                ? hardware.toString()
                : profile != null
                        ? profile.toString()
                        : "nominal: shares count, give --profile or --hardware for this machine's";
    }

    private static List<String> explanation(MemoryChoices choices) {
        List<String> lines = new ArrayList<>();
        Optional<Possible> fastest = choices.fastest();
        if (fastest.isPresent()) {
            lines.add("Fastest that fits: " + fastest.get().name() + ".");
        } else {
            choices.least()
                    .ifPresent(
                            least ->
                                    lines.add(
                                            "Nothing fits into %s: least needs %s, %s more (%s). Try more stages, replicas with ZeRO 3, smaller micro-batches (more batch.micro-batches) or fewer layers."
                                                    .formatted(
                                                            Quantities.bytes(choices.limitBytes()),
                                                            Quantities.bytes(least.heldBytes()),
                                                            Quantities.bytes(
                                                                    least.heldBytes()
                                                                            - choices.limitBytes()),
                                                            least.name())));
        }
        choices.possible()
                .filter(each -> each.largestLayers() > 0)
                .max((a, b) -> Integer.compare(a.largestLayers(), b.largestLayers()))
                .ifPresent(
                        best ->
                                lines.add(
                                        "Largest that trains: %s parameters (%d layers), with %s."
                                                .formatted(
                                                        Quantities.count(best.largestParameters()),
                                                        best.largestLayers(),
                                                        best.name())));
        return lines;
    }

    private void print(MemoryChoices choices, Rates rates, List<String> explanation) {
        out().printf(
                        "%s parameters in %d layers, at most %s for each rank%n",
                        Quantities.count(choices.parameters()),
                        choices.layers(),
                        Quantities.bytes(choices.limitBytes()));
        out().printf(
                        Locale.ROOT,
                        "rates of a rank: %.3g FLOP/s, %s/s to the host, %s/s to disk (%s)%n%n",
                        rates.flops(),
                        Quantities.bytes(rates.hostBytes()),
                        Quantities.bytes(rates.diskBytes()),
                        ratesFrom());
        out().printf(
                        "%-30s %10s %10s %10s %9s %6s  %s%n",
                        "",
                        "rank holds",
                        "on host",
                        "on disk",
                        "tokens/s",
                        "",
                        "largest that fits");
        double all = choices.possible().findFirst().map(Possible::tokensPerSecond).orElse(0.0);
        for (MemoryChoice choice : choices.choices()) {
            switch (choice) {
                case Impossible(String name, _, String reason) ->
                        out().printf("%-30s - %s%n", name, reason);
                case Possible possible -> print(possible, all, choices);
            }
        }
        out().println("! more than the limit");
        out().println();
        explanation.forEach(out()::println);
        out().flush();
    }

    private void print(Possible choice, double all, MemoryChoices choices) {
        out().printf(
                        Locale.ROOT,
                        "%-30s %10s%s%10s %10s %9.4g %5.0f%%  %s%n",
                        choice.name(),
                        Quantities.bytes(choice.heldBytes()),
                        choice.fits() ? " " : "!",
                        size(choice.hostBytes()),
                        size(choice.diskBytes()),
                        choice.tokensPerSecond(),
                        100 * choice.tokensPerSecond() / all,
                        choice.largestLayers() == 0
                                ? "none"
                                : "%s (%d layers%s)"
                                        .formatted(
                                                Quantities.count(choice.largestParameters()),
                                                choice.largestLayers(),
                                                choices.isLargestTried(choice) ? " or more" : ""));
        if (!choice.note().isEmpty()) {
            out().println("    " + choice.note());
        }
    }

    private static String size(long bytes) {
        return bytes == 0 ? "-" : Quantities.bytes(bytes);
    }
}
