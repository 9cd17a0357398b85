package dev.penstock.runtime.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

class PenstockCliTest {
    static Stream<String> everyCommand() {
        return below(Main.commandLine()).map(command -> command.getCommandSpec().qualifiedName());
    }

    private static Stream<CommandLine> below(CommandLine command) {
        return command.getSubcommands().values().stream()
                .distinct()
                .flatMap(child -> Stream.concat(Stream.of(child), below(child)));
    }

    @ParameterizedTest
    @MethodSource("everyCommand")
    void hasHelpWithAnExample(String qualifiedName) {
        List<String> words = List.of(qualifiedName.split(" "));
        String[] arguments =
                Stream.concat(words.stream().skip(1), Stream.of("--help")).toArray(String[]::new);

        Cli help = Cli.run(arguments);

        assertThat(help.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(help.out())
                .startsWith("Usage: " + qualifiedName)
                .containsPattern("Example:\\s+[^\\n]*penstock ");
    }

    /** Longer lines would break in the middle of a name; sentences are wrapped as a whole. */
    @Test
    void helpFitsATerminalOfEightyColumns() {
        assertThat(below(Main.commandLine()).map(CommandLine::getCommandSpec))
                .allSatisfy(
                        command -> {
                            var usage = command.usageMessage();
                            assertThat(usage.description()).allMatch(text -> text.endsWith("."));
                            assertThat(usage.footer()).allMatch(line -> line.length() < 80);
                        });
    }

    @Test
    void helpListsTheCommands() {
        Cli help = Cli.run("--help");

        assertThat(help.out()).contains("config", "doctor", "completion");
    }

    @Test
    void versionIsFilledInByTheBuild() {
        Cli version = Cli.run("--version");

        assertThat(version.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(version.out()).matches("(?s)penstock \\d+\\.\\d+\\.\\d+.*").doesNotContain("$");
    }

    @Test
    void anUnknownCommandIsAnsweredWithTheNearest() {
        Cli wrong = Cli.run("docter");

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err()).contains("docter", "penstock doctor", "--help");
    }

    @Test
    void anUnknownOptionIsAnsweredWithTheNearest() {
        Cli wrong = Cli.run("doctor", "--jsn");

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err()).contains("--jsn", "--json", "try penstock doctor --help");
    }

    @Test
    void aMissingArgumentIsNamed() {
        Cli wrong = Cli.run("config", "check");

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err()).contains("CONFIG", "try penstock config check --help");
    }

    @Test
    void aGroupAloneAsksForItsCommand() {
        Cli wrong = Cli.run("config");

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err()).contains("subcommand");
    }

    @Test
    void completionIsAScriptThatKnowsTheCommands() {
        Cli completion = Cli.run("completion");

        assertThat(completion.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(completion.out()).contains("complete -F", "doctor", "--set");
    }

    @Test
    void everyCommandHasAManualPage(@TempDir Path folder) throws IOException {
        Cli man = Cli.run("man", "--output", folder.toString());

        assertThat(man.exitCode()).as(man.err()).isEqualTo(ExitCode.OK);
        assertThat(pages(folder))
                .map(page -> page.getFileName().toString())
                .containsExactlyInAnyOrderElementsOf(
                        Stream.concat(Stream.of("penstock"), everyCommand())
                                .map(name -> name.replace(' ', '-') + ".1")
                                .toList());
        assertThat(folder.resolve("penstock-config-check.1"))
                .content()
                .contains(
                        "penstock\\-config\\-check \\- Says everything that is wrong",
                        "\\fB\\-\\-set\\fR=\\fIKEY=VALUE\\fR\nOverrides a key",
                        "penstock config check sample\\-configs/quickstart.conf",
                        ".BR penstock\\-config (1)");
    }

    @Test
    void troffTakesAllManualPages(@TempDir Path folder) throws Exception {
        assumeThat(Path.of("/usr/bin/groff")).as("skipped: needs groff").isExecutable();
        Cli.run("man", "--output", folder.toString());
        List<String> command =
                new ArrayList<>(List.of("/usr/bin/groff", "-man", "-ww", "-z", "-Tutf8"));
        pages(folder).forEach(page -> command.add(page.toString()));

        Process groff = new ProcessBuilder(command).redirectErrorStream(true).start();

        assertThat(new String(groff.getInputStream().readAllBytes(), UTF_8)).isEmpty();
        assertThat(groff.waitFor()).isZero();
    }

    private static List<Path> pages(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.sorted().toList();
        }
    }

    @Test
    void theFormerNameOfTheClusterOptionIsUnderstoodAndNotShown() {
        Cli former = Cli.run("runs", "--seed", "nowhere");

        assertThat(former.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(former.err()).contains("--cluster", "\"nowhere\"");
        assertThat(Cli.run("runs", "--help").out()).contains("--cluster").doesNotContain("--seed");
        assertThat(Cli.run("node", "--help").out()).contains("--cluster").doesNotContain("--seed");
    }
}
