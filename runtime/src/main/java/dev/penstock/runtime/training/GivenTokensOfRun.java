package dev.penstock.runtime.training;

import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** Which tokens a program gave to a run when it last trained it. */
public final class GivenTokensOfRun {
    private static final String FILE = "token-source.txt";

    private GivenTokensOfRun() {}

    /** Returns their identity; empty if files have the run's tokens. */
    public static Optional<String> in(RunDirectory directory) {
        try {
            Path file = file(directory);
            return Files.exists(file)
                    ? Optional.of(Files.readString(file).strip()).filter(text -> !text.isEmpty())
                    : Optional.empty();
        } catch (IOException e) {
            return Optional.empty(); // what it was is not known then
        }
    }

    /** Leaves behind what a later start compares with. */
    static void write(RunDirectory directory, GivenTokens tokens) throws IOException {
        DurableFiles.write(file(directory), tokens.identity() + "\n");
    }

    private static Path file(RunDirectory directory) {
        return directory.path().resolve(FILE);
    }
}
