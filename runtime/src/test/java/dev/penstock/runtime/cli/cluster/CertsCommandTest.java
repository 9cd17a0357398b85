package dev.penstock.runtime.cli.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CertsCommandTest {
    @TempDir Path folder;

    @Test
    void initMakesAnAuthorityAndACertificateForEachNodeAndAddOneMore() throws IOException {
        String directory = folder.resolve("certs").toString();

        Cli init = Cli.run("certs", "init", directory, "--nodes", "a.example.org,10.0.0.2");
        Cli add = Cli.run("certs", "add", directory, "node-3", "--also", "10.0.0.3");
        Cli again = Cli.run("certs", "init", directory);

        assertThat(init.err()).isEmpty();
        assertThat(init.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(init.out())
                .contains("a.example.org.pem", "10.0.0.2.key", "ca.key signs: keep it off");
        assertThat(add.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(add.out()).startsWith("tls { certificate = ").contains("node-3.pem");
        assertThat(again.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(again.err()).contains("ca.pem", "nothing is overwritten");
        try (Stream<Path> files = Files.list(Path.of(directory))) {
            assertThat(files.map(file -> file.getFileName().toString()))
                    .containsExactlyInAnyOrder(
                            "ca.pem",
                            "ca.key",
                            "a.example.org.pem",
                            "a.example.org.key",
                            "10.0.0.2.pem",
                            "10.0.0.2.key",
                            "node-3.pem",
                            "node-3.key");
        }
    }

    @Test
    void whatIsNoHostIsSaidBeforeAnythingIsMade() {
        Cli init =
                Cli.run("certs", "init", folder.resolve("x").toString(), "--nodes", "good,b/d,c d");

        assertThat(init.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(init.err()).contains("[b/d, c d]");
        assertThat(folder.resolve("x")).doesNotExist();
    }

    @Test
    void validityHasBounds() {
        Cli init = Cli.run("certs", "init", folder.toString(), "--days", "0");

        assertThat(init.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(init.err()).contains("--days: expected 1 to 3650, got 0");
    }
}
