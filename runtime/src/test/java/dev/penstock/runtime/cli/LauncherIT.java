package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the launcher as a user does. What it starts was packaged by the build that runs this. */
class LauncherIT {
    private static final Path LAUNCHER = Path.of("..", "penstock").toAbsolutePath().normalize();
    private static final String JDK = System.getProperty("java.home", "");

    @TempDir Path folder;

    @Test
    void startsFromAnyFolderAndThroughALink() throws Exception {
        Path link = linkTo(LAUNCHER);

        Outcome outcome = run(link, Map.of(), "--version");

        assertThat(outcome.output()).contains("penstock 0.");
        assertThat(outcome.exitCode()).isZero();
    }

    @Test
    void handsOverArgumentsAndExitCode() throws Exception {
        Outcome outcome = run(LAUNCHER, Map.of(), "config", "check", "two words.conf");

        assertThat(outcome.output()).contains("two words.conf");
        assertThat(outcome.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    @Test
    void withoutAJdkOneSentenceSaysWhatToInstall() throws Exception {
        Path launcher = copyThatFindsNothing();

        Outcome outcome = run(launcher, Map.of("JAVA_HOME", "/nowhere"), "--version");

        assertThat(outcome.output().lines()).singleElement().asString().contains("install", "25");
        assertThat(outcome.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    @Test
    void withoutMavenOneSentenceSaysWhatToInstall() throws Exception {
        Path launcher = copyThatFindsNothing();

        Outcome outcome = run(launcher, Map.of("PENSTOCK_JAVA_HOME", JDK), "--version");

        assertThat(outcome.output().lines()).singleElement().asString().contains("Maven", "mvn");
        assertThat(outcome.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    /** Without the places where a machine may have a JDK, in a folder where nothing is built. */
    private Path copyThatFindsNothing() throws IOException {
        String text = Files.readString(LAUNCHER).replaceAll(" /(usr|opt|Library)/", " /nowhere/");
        Path copy = Files.writeString(folder.resolve("penstock"), text);
        assertThat(copy.toFile().setExecutable(true)).isTrue();
        Path tools = Files.createDirectory(folder.resolve("tools"));
        for (String tool : List.of("dirname", "readlink", "grep", "find", "head", "sed")) {
            Path script = tools.resolve(tool);
            Files.writeString(script, "#!/bin/sh\nexec " + where(tool) + " \"$@\"\n");
            assertThat(script.toFile().setExecutable(true)).isTrue();
        }
        return copy;
    }

    private static Path linkTo(Path target) throws IOException {
        Path link = Path.of("target", "penstock-link").toAbsolutePath();
        Files.deleteIfExists(link);
        return Files.createSymbolicLink(link, target);
    }

    private static Path where(String tool) {
        return Stream.of("/usr/bin", "/bin")
                .map(bin -> Path.of(bin, tool))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow();
    }

    private Outcome run(Path launcher, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        List<String> command =
                Stream.concat(Stream.of("/bin/sh", launcher.toString()), Stream.of(arguments))
                        .toList();
        ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
        builder.redirectErrorStream(true);
        builder.environment().putAll(environment);
        if (!launcher.equals(LAUNCHER) && !Files.isSymbolicLink(launcher)) {
            builder.environment().put("PATH", folder.resolve("tools").toString());
            builder.environment().put("HOME", folder.toString());
        }
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Outcome(process.waitFor(), output);
    }

    private record Outcome(int exitCode, String output) {}
}
