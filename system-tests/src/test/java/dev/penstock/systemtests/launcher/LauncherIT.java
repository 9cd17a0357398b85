package dev.penstock.systemtests.launcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.penstock.runtime.cli.command.ExitCode;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the launcher as a user does. The program that it starts was packaged by the build that runs
 * this test.
 */
class LauncherIT {
    private static final Path LAUNCHER = Path.of("..", "penstock").toAbsolutePath().normalize();
    private static final Duration SOON = Duration.ofSeconds(30);
    private static final String JDK = System.getProperty("java.home", "");

    @TempDir Path folder;

    @Test
    void itStartsFromAnyFolderAndThroughALink() throws Exception {
        Path link = linkTo(LAUNCHER);

        Outcome outcome = run(link, Map.of(), "--version");

        assertThat(outcome.output()).contains("penstock 0.");
        assertThat(outcome.exitCode()).isZero();
    }

    @Test
    void itPassesOnArgumentsAndExitCode() throws Exception {
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

    @Test
    void twoSimultaneousFirstUsesBuildOnce() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/flock")), "skipped: needs flock");
        Path launcher = copyWithToolsThatWait();

        Process first = start(launcher);
        await().atMost(SOON).until(() -> Files.exists(folder.resolve("building")));
        Process second = start(launcher);
        BufferedReader said = second.inputReader();
        String waits = said.readLine();
        Files.createFile(folder.resolve("go"));

        assertThat(waits).contains("waiting for another build");
        assertThat(said.lines()).containsExactly("started");
        assertThat(first.inputReader().lines()).last().isEqualTo("started");
        assertThat(first.waitFor()).isZero();
        assertThat(second.waitFor()).isZero();
        assertThat(Files.readAllLines(folder.resolve("building"))).hasSize(1);
    }

    /**
     * A cache of classes fits only one jar: that of the newest build, by Maven or by the launcher.
     */
    @Test
    void theCacheIsMadeOnceForEveryBuild() throws Exception {
        Path launcher = copyWithToolsThatWait();
        Files.createFile(folder.resolve("go"));
        String notes = "preparing a cache for faster starts (once per build) ...";

        List<String> first = start(launcher).inputReader().lines().toList();
        List<String> second = start(launcher).inputReader().lines().toList();
        Path jar = folder.resolve("runtime/target/penstock-runtime.jar");
        Files.setLastModifiedTime(jar, FileTime.from(Instant.now().plusSeconds(5)));
        List<String> builtByMaven = start(launcher).inputReader().lines().toList();

        assertThat(first).contains(notes).last().isEqualTo("started");
        assertThat(second).containsExactly("started");
        assertThat(builtByMaven).containsExactly(notes, "started");
    }

    /** Java prints a warning at every start with the vector module. */
    @Test
    void onlyCommandsThatComputeStartWithTheVectorModule() throws Exception {
        String vectors = "--add-modules jdk.incubator.vector";
        Path launcher = copyWithToolsThatWait();
        Files.createFile(folder.resolve("go"));
        Files.writeString(
                folder.resolve("pom.xml"), "<jvm.flags>-Done " + vectors + " -Dtwo</jvm.flags>");
        script(folder.resolve("jdk/bin/java"), "echo \"$@\"");
        assertThat(start(launcher).waitFor()).isZero();

        for (String plain : List.of("--version", "schedule simulate my.conf", "train --help")) {
            assertThat(start(launcher, plain.split(" ")).inputReader().readLine())
                    .as(plain)
                    .startsWith("-Done -Dtwo ")
                    .endsWith(plain);
        }
        for (String computes :
                List.of("train my.conf", "generate runs/one", "serve runs/one", "doctor")) {
            assertThat(start(launcher, computes.split(" ")).inputReader().readLine())
                    .as(computes)
                    .startsWith("-Done " + vectors + " -Dtwo ")
                    .endsWith(computes);
        }
    }

    /** Sets up a folder without a build, with a JDK that only prints and a Maven that waits. */
    private Path copyWithToolsThatWait() throws IOException {
        for (String part : List.of("schedules", "cuda", "actors", "runtime", "tools", "jdk/bin")) {
            Files.createDirectories(folder.resolve(part));
        }
        Files.writeString(folder.resolve("pom.xml"), "");
        Files.writeString(folder.resolve("jdk/release"), "JAVA_VERSION=\"25.0.1\"\n");
        script(folder.resolve("jdk/bin/javac"), "exit 0");
        script(folder.resolve("jdk/bin/java"), "echo started");
        script(
                folder.resolve("tools/mvn"),
                """
                echo build >>building
                until [ -e go ]; do sleep 0.05; done
                mkdir -p runtime/target/lib
                touch runtime/target/penstock-runtime.jar
                """);
        return Files.copy(LAUNCHER, folder.resolve("penstock"));
    }

    private static void script(Path file, String text) throws IOException {
        Files.writeString(file, "#!/bin/sh\n" + text + "\n");
        assertThat(file.toFile().setExecutable(true)).isTrue();
    }

    private Process start(Path launcher) throws IOException {
        return start(launcher, "--version");
    }

    private Process start(Path launcher, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("/bin/sh", launcher.toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("PENSTOCK_JAVA_HOME", folder.resolve("jdk").toString());
        builder.environment()
                .merge("PATH", folder.resolve("tools") + ":", (old, tools) -> tools + old);
        return builder.start();
    }

    /**
     * Sets up the launcher without the places where a machine may have a JDK, in a folder without a
     * build.
     */
    private Path copyThatFindsNothing() throws IOException {
        String text = Files.readString(LAUNCHER).replaceAll(" /(usr|opt|Library)/", " /nowhere/");
        Path copy = Files.writeString(folder.resolve("penstock"), text);
        assertThat(copy.toFile().setExecutable(true)).isTrue();
        Path tools = Files.createDirectory(folder.resolve("tools"));
        for (String tool : List.of("dirname", "readlink", "grep", "find", "head", "sed")) {
            script(tools.resolve(tool), "exec " + where(tool) + " \"$@\"");
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
        builder.environment().put("PENSTOCK_CACHE", "off"); // nothing here starts often
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
