package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StartingPointTest {
    @TempDir Path checkpoints;

    @Test
    void whoJoinsALongRunDoesWithoutTheCheckpointThatItBeganWith() {
        Path gone = checkpoints.resolve("step-000040");

        try (StartingPoint start = StartingPoint.of(resume(gone, false))) {
            assertThat(start.completedSteps()).isEqualTo(40);
            assertThatThrownBy(
                            () ->
                                    start.parameters()
                                            .fill(
                                                    "ln_f.weight",
                                                    TensorPiece.all(List.of(8)),
                                                    MemorySegment.NULL))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("step-000040");
        }
    }

    @Test
    void whatIsToBeMeasuredMustBeThere() {
        Path gone = checkpoints.resolve("step-000040");

        assertThatThrownBy(() -> StartingPoint.of(resume(gone, true)))
                .isInstanceOf(StoredFileException.class);
    }

    private static RunStart resume(Path checkpoint, boolean evaluateOnly) {
        return new RunStart(
                Optional.of(checkpoint), Optional.empty(), Optional.empty(), evaluateOnly);
    }
}
