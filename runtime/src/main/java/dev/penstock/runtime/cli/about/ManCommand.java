package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Prints the manual page, or writes the pages of all commands. */
@Command(
        name = "man",
        description = "Prints the manual page, or writes one for every command into a folder.",
        footer = {
            "  penstock man | man -l -",
            "  penstock man --output ~/.local/share/man/man1",
        })
public final class ManCommand extends PenstockCommand {
    @Option(
            names = {"-o", "--output"},
            paramLabel = "FOLDER",
            description = "Where to write penstock.1, penstock-train.1 and the others.")
    private @Nullable Path output;

    @Override
    public Integer call() throws IOException {
        List<ManPage> pages = ManPage.all(spec().root());
        if (output == null) {
            out().print(pages.getFirst().text());
            out().flush();
            return ExitCode.OK;
        }
        Files.createDirectories(output);
        for (ManPage page : pages) {
            Files.writeString(output.resolve(page.name() + ".1"), page.text());
        }
        out().println(pages.size() + " pages in " + output);
        return ExitCode.OK;
    }
}
