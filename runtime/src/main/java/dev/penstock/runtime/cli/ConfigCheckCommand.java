package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigException;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.config.Problem;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
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

    /** Reads the order and the data and plans the memory, as a run would before it starts. */
    private static void requireRunnable(LoadedConfig loaded) {
        Path nowhere = loaded.config().run().directory().toAbsolutePath();
        RunOptions options =
                new RunOptions(
                        "check",
                        nowhere,
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        RunAssembly.of(loaded, options).close();
    }
}
