package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Runs a main class of the tests in a JVM of its own. */
final class OtherJvm {
    private OtherJvm() {}

    /**
     * Runs it to its end.
     *
     * @param flags for the JVM
     * @return what it printed
     */
    static List<String> run(List<String> flags, Class<?> main, Object... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(flags);
        command.addAll(List.of("--add-modules", "jdk.incubator.vector"));
        command.add("--enable-native-access=ALL-UNNAMED");
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        for (Object argument : arguments) {
            command.add(argument.toString());
        }
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var out = process.inputReader(StandardCharsets.UTF_8)) {
            List<String> lines = out.readAllLines();
            assertThat(process.waitFor()).isZero();
            return lines;
        }
    }
}
