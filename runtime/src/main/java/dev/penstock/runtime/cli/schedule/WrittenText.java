package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.FileCause;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where a command writes a text. A file that is there may have been edited by hand: it stays. */
class WrittenText {
    private static final OpenOption[] NEW = {
        StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW
    };
    private static final OpenOption[] ANY = {
        StandardOpenOption.WRITE, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING
    };

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "Where to write (default: the standard output).")
    private @Nullable Path output;

    @Option(names = "--force", description = "Replace a file that is there.")
    private boolean force;

    /** The file; empty: the standard output. */
    Optional<Path> output() {
        return Optional.ofNullable(output);
    }

    /**
     * Writes to the file, and says so, or to {@code out} where there is none.
     *
     * @throws BadInputException if the file is there, or cannot be written
     */
    void write(String text, PrintWriter out) {
        if (output == null) {
            out.print(text);
        } else {
            try {
                Files.writeString(output, text, force ? ANY : NEW);
            } catch (FileAlreadyExistsException e) {
                throw new BadInputException(
                        "--output: %s is there already; try another name, or --force to replace it"
                                .formatted(output));
            } catch (IOException e) {
                throw new BadInputException(
                        "cannot write %s: %s; check the path".formatted(output, FileCause.of(e)));
            }
            out.println("wrote " + output);
        }
        out.flush();
    }
}
