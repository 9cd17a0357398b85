package dev.penstock.runtime.cli.data;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.data.PreparedTokens;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Checks prepared tokens. */
@Command(
        name = "verify",
        description = {
            "Checks that prepared tokens are those that were written.",
            "A run that opens them looks at headers and sizes alone; this reads everything."
        },
        footer = "  penstock data verify tokens")
final class DataVerifyCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(
            String directory,
            String tokenizer,
            int vocabulary,
            long tokens,
            long documents,
            int shards) {}

    @Parameters(paramLabel = "DIR", description = "A folder that data prepare made.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path directory;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        PreparedTokens tokens = PreparedTokens.open(directory);
        tokens.verify();
        var answer =
                new Answer(
                        directory.toString(),
                        tokens.tokenizer(),
                        tokens.vocabulary(),
                        tokens.size(),
                        tokens.documents(),
                        tokens.shards());
        if (json) {
            printJson(answer);
        } else {
            out().printf(
                            "%s: whole; %,d tokens (%s, %,d different) of %,d documents in %d %s%n",
                            answer.directory(),
                            answer.tokens(),
                            answer.tokenizer(),
                            answer.vocabulary(),
                            answer.documents(),
                            answer.shards(),
                            answer.shards() == 1 ? "file" : "files");
        }
        return ExitCode.OK;
    }
}
