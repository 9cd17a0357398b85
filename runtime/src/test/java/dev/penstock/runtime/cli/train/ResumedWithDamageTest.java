package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A run goes on whatever became of the files that only tell how it was started. */
class ResumedWithDamageTest {
    @TempDir private Path folder;

    private Training begun() {
        Training.onText(folder).set("run.steps=2").complete();
        return Training.onText(folder).set("run.steps=4").resume();
    }

    @ParameterizedTest
    @ValueSource(ints = {0x80, 0x0c})
    void aDamagedConfigurationIsToldAndWrittenAnew(int flipped) throws IOException {
        Training training = begun();
        Path resolved = training.directory().resolve("resolved.conf");
        byte[] bytes = Files.readAllBytes(resolved);
        int brace = new String(bytes, StandardCharsets.ISO_8859_1).indexOf('{');
        bytes[brace] ^= (byte) flipped;
        Files.write(resolved, bytes);

        Trained resumed = training.complete();

        assertThat(resumed.err()).contains(resolved + ": ", "is not known");
        assertThat(resumed.lossBits()).hasSize(4);
        assertThat(resolved).content().contains("steps = 4");
    }

    /** As on a full disk. */
    @Test
    void whereItsFilesCannotBeWrittenTheOldOnesStay() throws IOException {
        Training training = begun();
        Path resolved = training.directory().resolve("resolved.conf");
        String before = Files.readString(resolved);
        Files.createDirectory(resolved.resolveSibling("resolved.conf.incomplete"));

        Trained resumed = training.run();

        assertThat(resumed.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(resumed.err())
                .contains("cannot write into " + training.directory())
                .doesNotContain("unexpected");
        assertThat(resolved).content().isEqualTo(before);
    }

    @Test
    void aDamagedFingerprintOfATokenizerIsNamed() throws IOException {
        Training training = begun();
        Path fingerprint = training.directory().resolve("tokenizer.sha256");
        Files.writeString(fingerprint, "0" + Files.readString(fingerprint).substring(1));

        Trained resumed = training.run();

        assertThat(resumed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(resumed.err()).contains(fingerprint + " is damaged: delete it");
        Files.delete(fingerprint);
        assertThat(training.complete().lossBits()).hasSize(4);
    }
}
