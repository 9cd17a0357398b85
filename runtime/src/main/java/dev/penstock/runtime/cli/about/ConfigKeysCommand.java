package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.page.ConfigPage;
import dev.penstock.runtime.config.page.ConfigReference;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.Key;
import dev.penstock.runtime.config.run.Keys;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Lists every key of the configuration. */
@Command(
        name = "keys",
        description = "Lists every key with its meaning, what it takes and its default.",
        footer = {
            "  penstock config keys | less",
            "  penstock config keys --markdown",
            "  penstock config keys --json"
        })
final class ConfigKeysCommand extends PenstockCommand {
    /**
     * A key, for programs.
     *
     * @param standard what it is unless given; empty where it has to be given
     */
    record KeyAnswer(String key, String takes, String standard, String meaning) {
        static KeyAnswer of(Key key) {
            return new KeyAnswer(key.path(), key.takes(), key.standard(), key.doc());
        }
    }

    /** The answer for programs. */
    record Answer(List<KeyAnswer> keys) {}

    @Option(
            names = "--markdown",
            description = "As a page, with the keys of nodes and of clusters to plan for.")
    private boolean markdown;

    @Option(names = "--json", description = "Print one JSON document with the keys of a run.")
    private boolean json;

    @Override
    public Integer call() {
        if (json && markdown) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "--json and --markdown",
                                    "one of them",
                                    "both",
                                    "leave one out")));
        }
        if (json) {
            printJson(
                    new Answer(
                            Keys.bySection().values().stream()
                                    .flatMap(List::stream)
                                    .map(KeyAnswer::of)
                                    .toList()));
            return ExitCode.OK;
        }
        out().print(markdown ? ConfigPage.markdown() : ConfigReference.text());
        out().flush();
        return ExitCode.OK;
    }
}
