package dev.penstock.runtime.cli.command;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.metrics.RunDirectory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Parameters;

/** A run to look at: nothing is written there. */
public final class RunDirectoryArgument {
    @Parameters(paramLabel = "RUN_DIR", description = "Directory of a run.")
    private Path runDirectory = Path.of("");

    /**
     * The directory, which has an event log.
     *
     * @throws ConfigException if it has none
     */
    public RunDirectory withEvents() {
        var directory = new RunDirectory(runDirectory);
        if (!Files.isReadable(directory.events())) {
            String found =
                    Files.isDirectory(directory.path()) ? " without one" : ", which does not exist";
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "RUN_DIR",
                                    "the directory of a run, with "
                                            + directory.events().getFileName(),
                                    directory.path() + found,
                                    "use the directory that the run printed when it began")));
        }
        return directory;
    }
}
