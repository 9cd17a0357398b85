package dev.penstock.runtime.cli.init;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.ShellWord;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.starter.Machine;
import dev.penstock.runtime.starter.StarterFolder;
import dev.penstock.runtime.starter.StarterSize;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes a first configuration for one's own text. */
@Command(
        name = "init",
        description = {
            "Writes a commented configuration for your own text, ready to train.",
            "A folder that has text (.txt, .md, or .gz of them) is used as it is; a new or empty"
                    + " one gets a sample to begin with. The model's size fits the length of the"
                    + " text and this machine. Nothing that exists is overwritten."
        },
        footer = {
            "  penstock init my-model",
            "  penstock init my-books --size small",
        })
public final class InitCommand extends PenstockCommand {
    /**
     * The answer for programs.
     *
     * @param parameters of the model
     * @param files of text
     * @param bytes of text
     * @param sample whether the text is a sample that was written, too
     * @param next commands to go on with
     */
    record Answer(
            String configuration,
            String size,
            long parameters,
            int steps,
            int files,
            long bytes,
            boolean sample,
            List<String> next) {}

    @Parameters(paramLabel = "DIR", description = "A folder: new, empty, or with text in it.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path folder;

    @Option(
            names = "--size",
            paramLabel = "NAME",
            description = "${COMPLETION-CANDIDATES} (default: as text and machine suggest).")
    private @Nullable StarterSize size;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        try {
            print(new StarterFolder(folder, Machine.here()).write(size));
            return ExitCode.OK;
        } catch (IOException e) {
            throw new BadInputException(
                    "DIR: cannot read or write %s: %s".formatted(folder, e.getMessage()));
        }
    }

    private void print(StarterFolder.Written written) {
        List<String> next = next(written);
        if (json) {
            printJson(
                    new Answer(
                            written.configuration().toString(),
                            written.size().toString(),
                            written.size().parameters(),
                            written.steps(),
                            written.files(),
                            written.bytes(),
                            written.sample(),
                            next));
            return;
        }
        out().printf(
                        "%s: a %s model of %s parameters, %,d steps on %s in %s%n",
                        written.configuration(),
                        written.size(),
                        Quantities.count(written.size().parameters()),
                        written.steps(),
                        Quantities.bytes(written.bytes()),
                        written.sample()
                                ? "a sample: put your own text into %s"
                                        .formatted(folder.resolve("text"))
                                : "%d text %s"
                                        .formatted(
                                                written.files(),
                                                written.files() == 1 ? "file" : "files"));
        out().println();
        out().println("next:");
        next.forEach(command -> out().println("  " + command));
        out().flush();
    }

    private static List<String> next(StarterFolder.Written written) {
        String run = "runs/%s-1".formatted(written.run());
        return List.of(
                "penstock train " + ShellWord.quoted(written.configuration().toString()),
                "penstock generate %s --prompt \"The \"".formatted(run),
                "penstock serve " + run);
    }
}
