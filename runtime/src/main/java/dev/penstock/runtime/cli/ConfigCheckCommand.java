package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigException;
import dev.penstock.runtime.config.ConfiguredSchedule;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.config.Problem;
import dev.penstock.runtime.config.ScheduleFaults;
import java.util.List;
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
            "  penstock config check sample-configs/quickstart.conf --set schedule.kind=terapipe",
        })
final class ConfigCheckCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(boolean ok, List<Problem> problems, String resolved) {}

    @Mixin private ConfigArguments config = new ConfigArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        try {
            LoadedConfig loaded = config.load();
            requireRunnable(loaded);
            String resolved = loaded.config().resolved();
            if (json) {
                printJson(new Answer(true, List.of(), resolved));
            } else {
                out().print(resolved);
                out().flush();
                err().println(config.file() + ": no problems");
            }
            return ExitCode.OK;
        } catch (ConfigException e) {
            if (!json) {
                throw e;
            }
            printJson(new Answer(false, e.problems(), ""));
            return ExitCode.BAD_INPUT;
        }
    }

    private static void requireRunnable(LoadedConfig loaded) {
        List<Problem> faults = ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded));
        if (!faults.isEmpty()) {
            throw new ConfigException(faults);
        }
    }
}
