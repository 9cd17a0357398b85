package dev.penstock.runtime.cli.about;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.cli.command.ConfigArguments;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.launch.ConfiguredRecovery;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.launch.SliceNote;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.planning.SentBytes;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Says everything that is wrong with a configuration, or how it is understood. */
@Command(
        name = "check",
        description =
                "Says everything that is wrong with a configuration, or prints it with every key"
                        + " written out.",
        footer = {
            "  penstock config check sample-configs/quickstart.conf",
            "  penstock config check sample-configs/quickstart.conf \\",
            "      --set schedule.kind=terapipe",
        })
final class ConfigCheckCommand extends PenstockCommand {
    /**
     * The answer for programs.
     *
     * @param sentBytes by rank, what it will send to others in a training step, by use
     */
    record Answer(
            boolean ok,
            List<Problem> problems,
            String resolved,
            List<Map<String, Long>> sentBytes) {}

    @Mixin private ConfigArguments config = new ConfigArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        try {
            RunParts parts = RunParts.prepare(config.draft(), RunStart.fresh(), List.of());
            parts.start().close();
            String resolved = parts.config().resolved();
            List<StepTraffic> traffic = parts.plannedTraffic();
            if (json) {
                printJson(new Answer(true, List.of(), resolved, SentBytes.byUse(traffic)));
            } else {
                out().print(resolved);
                out().flush();
                SliceNote.of(
                                parts.schedule().sliceTokens(),
                                parts.config().device().reductionBlock())
                        .ifPresent(note -> err().println("note: " + note));
                parts.activations()
                        .ifPresent(
                                chosen ->
                                        err().println(
                                                        "note: chosen for the memory limit: "
                                                                + chosen.reason()));
                parts.notes().forEach(note -> err().println("note: " + note));
                parts.data().counted().stream()
                        .flatMap(counted -> counted.notes().stream())
                        .forEach(note -> err().println("note: " + note));
                ConfiguredRecovery.mirrorNote(parts.config())
                        .ifPresent(note -> err().println("note: " + note));
                long most = traffic.stream().mapToLong(StepTraffic::mostBytes).max().orElse(0);
                if (most > 0) {
                    err().println(
                                    "note: peak traffic per rank: %s/step"
                                            .formatted(Quantities.bytes(most)));
                }
                err().println(config.file() + ": no problems");
            }
            return ExitCode.OK;
        } catch (ConfigException e) {
            if (!json) {
                throw e;
            }
            printJson(new Answer(false, e.problems(), "", List.of()));
            return ExitCode.BAD_INPUT;
        }
    }
}
