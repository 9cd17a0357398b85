package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NotFiniteStartTest {
    private static final String WEIGHTS = "untied.init.safetensors";

    @TempDir Path folder;

    /** Whatever the run does about steps that are not finite. */
    @ParameterizedTest
    @ValueSource(strings = {"halt", "skip", "rollback"})
    void theFirstTensorOfGivenWeightsThatIsNotFiniteIsNamed(String nonFinite) throws IOException {
        Path broken = weights(Float.NaN);

        Trained run =
                Training.golden(folder, false)
                        .init(broken)
                        .set("recovery.non-finite=" + nonFinite)
                        .run();

        assertThat(run.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(run.err())
                .contains("not finite")
                .contains("began with the weights of " + broken)
                .contains("h.1.mlp.c_fc.weight: expected finite numbers, got NaN")
                .doesNotContain("learning rate");
        assertThat(Files.readString(run.directory().resolve("summary.json")))
                .contains("h.1.mlp.c_fc.weight")
                .doesNotContain("learning rate");
    }

    @Test
    void weightsThatAreFiniteButTooLargeAreToldAsSuch() throws IOException {
        Trained run = Training.golden(folder, false).init(weights(3e38f)).run();

        assertThat(run.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(run.err())
                .contains("its weights are finite, so numbers grow too large")
                .doesNotContain("learning rate");
    }

    /** A copy of the golden weights of which one tensor is this number. */
    private Path weights(float value) throws IOException {
        ByteBuffer file =
                ByteBuffer.wrap(Files.readAllBytes(Training.golden(WEIGHTS)))
                        .order(ByteOrder.LITTLE_ENDIAN);
        int header = (int) file.getLong(0);
        String json = new String(file.array(), 8, header, StandardCharsets.UTF_8);
        String entry = json.substring(json.indexOf("\"h.1.mlp.c_fc.weight\""));
        String offsets = entry.substring(entry.indexOf("\"data_offsets\""));
        String[] bounds =
                offsets.substring(offsets.indexOf('[') + 1, offsets.indexOf(']')).split(",");
        int end = Integer.parseInt(bounds[1].strip());
        for (int at = Integer.parseInt(bounds[0].strip()); at < end; at += Float.BYTES) {
            file.putFloat(8 + header + at, value);
        }
        return Files.write(folder.resolve("broken.safetensors"), file.array());
    }
}
