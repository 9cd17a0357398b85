package dev.penstock.runtime.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The unit file as systemd itself reads it. */
class SystemdUnitTest {
    private static final Path UNIT = Path.of("..", "deploy", "systemd", "penstock-node.service");
    private static final Path ANALYZE = Path.of("/usr/bin/systemd-analyze");

    @TempDir Path folder;

    @Test
    void systemdHasNothingAgainstIt() throws Exception {
        assertThat(verify(Files.readString(UNIT))).isEmpty();
    }

    @Test
    void aMisspeltKeyIsNoticed() throws Exception {
        assertThat(verify(Files.readString(UNIT).replace("RestartSec=", "RestartSecs=")))
                .contains("RestartSecs");
    }

    /** With a program that is there in place of Penstock's. */
    private String verify(String unit) throws Exception {
        assumeTrue(Files.isExecutable(ANALYZE), "skipped: needs systemd-analyze");
        assertThat(unit).contains("ExecStart=/opt/penstock/bin/penstock node ");
        Path copy = folder.resolve(UNIT.getFileName());
        Files.writeString(copy, unit.replace("/opt/penstock/bin/penstock", "/bin/sh"));
        Process process =
                new ProcessBuilder(ANALYZE.toString(), "verify", "--man=no", copy.toString())
                        .redirectErrorStream(true)
                        .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return said;
    }
}
