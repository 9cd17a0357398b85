package dev.penstock.runtime.cli.command;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Main;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/** A slip of the pen in a word of an option is answered with the word that is nearest. */
class MeantTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    schedule show --kind 1f1bx                    | 1f1b
                    schedule show --kind zbv                      | zb-v
                    schedule generate gpip                        | gpipe
                    schedule draw --kind 1f1b --as svgg           | svg
                    schedule show --kind gpipe --format torch-cvs | torch-csv
                    schedule generate gpipe --backward revers     | reverse
                    export run --as tensorbord                    | tensorboard
                    checkpoint convert a b --format hugingface    | huggingface
                    checkpoint export a --output b --type bf61    | bf16
                    plan --model gpt2-124n --batch 8 --hardware x | gpt2-124m
                    data prepare --tokenizer bytes --output x --format jsonll y | jsonl
                    """)
    void theNearestWordIsNamed(String arguments, String meant) {
        Cli refused = Cli.run(arguments.split(" "));

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("expected", "did you mean " + meant + "?");
    }

    @Test
    void aWordThatIsLikeNoneIsAnsweredWithAll() {
        Cli refused = Cli.run("export", "run", "--as", "xyzzy");

        assertThat(refused.err())
                .contains("--as: expected csv or tensorboard, got xyzzy")
                .doesNotContain("did you mean");
    }

    static Stream<String> optionsOfOneOfSomeWords() {
        return below(Main.commandLine())
                .flatMap(
                        command ->
                                command.getCommandSpec().options().stream()
                                        .filter(option -> option.type().isEnum())
                                        .map(
                                                option ->
                                                        command.getCommandSpec().qualifiedName()
                                                                + " "
                                                                + option.longestName()));
    }

    /** Whatever options are added later: all that take one of some words answer alike. */
    @ParameterizedTest
    @MethodSource("optionsOfOneOfSomeWords")
    void everyOptionOfSomeWordsIsAnsweredAlike(String option) {
        List<String> words = List.of(option.split(" "));
        CommandLine command = Main.commandLine();
        for (String word : words.subList(1, words.size() - 1)) {
            command = requireNonNull(command.getSubcommands().get(word));
        }
        OptionSpec spec = command.getCommandSpec().findOption(words.getLast());
        String known = spec.completionCandidates().iterator().next().toLowerCase(Locale.ROOT);
        String[] arguments =
                Stream.concat(words.subList(1, words.size()).stream(), Stream.of(known + "x"))
                        .toArray(String[]::new);

        assertThat(Cli.run(arguments).err())
                .contains(words.getLast() + ": expected ", "did you mean ");
    }

    private static Stream<CommandLine> below(CommandLine command) {
        return command.getSubcommands().values().stream()
                .distinct()
                .flatMap(child -> Stream.concat(Stream.of(child), below(child)));
    }
}
