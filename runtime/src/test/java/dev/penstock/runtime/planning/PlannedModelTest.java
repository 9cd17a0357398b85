package dev.penstock.runtime.planning;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.plan.work.TrainedShape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlannedModelTest {
    @TempDir Path folder;

    private final List<String> problems = new ArrayList<>();

    /** As runs count both; a stage that runs a step of a planned model does that work. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "llama",
                "llama3",
                "mistral",
                "qwen2",
                "qwen3",
                "gpt2-variants",
                "gpt3",
                "retnet",
                "bert-post-ln",
                "bert-pre-ln"
            })
    void aFoldersModelHasTheParametersAndTheFlopsOfARun(String golden) {
        var model = new GoldenFamily(golden);
        ModelShape shape = model.shape();

        var planned =
                new PlannedModel(problems)
                        .read(model.folder().toString())
                        .orElseThrow()
                        .withSequence(shape.context());

        assertThat(problems).isEmpty();
        assertThat(planned.parameters()).isEqualTo(shape.parameters());
        assertThat(planned.blockParameters()).isEqualTo(shape.layerParameters(0));
        boolean retains = shape.block().heads().retention() != null;
        int before = retains ? shape.context() : 0; // a full window: a state is never smaller
        double attention =
                12 * planned.queryColumns() * planned.meanContext(before, shape.context());
        assertThat(6 * planned.blockMatrixParameters() + attention)
                .isCloseTo(
                        IntStream.range(0, shape.layers())
                                .mapToLong(shape::layerFlopsPerToken)
                                .average()
                                .orElseThrow(),
                        withinPercentage(0.01));
    }

    /** As many parameters and FLOPs as all layers have together: each counts as a mean one. */
    @Test
    void unlikeLayersCountAsMeanOnesWithAWindowEach() throws Exception {
        Path run =
                Files.writeString(
                        folder.resolve("run.conf"),
                        """
                        data { source = "%s" }
                        model { family = retnet, width = 768, heads = 4, context = 1024, tied = false
                                layers = ["2 x (retention, local(128))", "2 x dense"] }
                        """
                                .formatted(Files.writeString(folder.resolve("a.txt"), "words")));
        ModelShape shape = ConfigLoader.load(run, List.of()).model().shape(256);

        var planned = new PlannedModel(problems).read(run.toString()).orElseThrow();

        assertThat(problems).isEmpty();
        assertThat((double) planned.parameters())
                .isCloseTo(shape.parameters(), withinPercentage(0.5));
        List<Integer> windows = planned.block().windows();
        for (int layer = 0; layer < shape.layers(); layer++) {
            double window = windows.get(layer);
            double seen = window - window * window / 2048;
            double attention = 12 * planned.queryColumns() * seen;
            double own = shape.layerFlopsPerToken(layer) - 6.0 * shape.layerMatrixParameters(layer);
            // of a retention the window is full: the first tokens of a sequence cost as much
            double expected = shape.block().retains(layer) ? own * seen / window : own;
            assertThat(attention).as("layer %d", layer).isCloseTo(expected, withinPercentage(2));
        }
    }

    @Test
    void aRunsConfigurationIsReadWhateverItsFamily() throws Exception {
        Path run =
                Files.writeString(
                        folder.resolve("run.conf"),
                        """
                        data { source = "%s" }
                        model { family = mistral, layers = 3, width = 64, heads = 4, key-heads = 2
                                hidden = 100, context = 128, tied = false
                                attention = ["local(16)"] }
                        """
                                .formatted(Files.writeString(folder.resolve("a.txt"), "words")));

        var planned = new PlannedModel(problems).read(run.toString()).orElseThrow();

        assertThat(problems).isEmpty();
        assertThat(planned.block().keyHeads()).isEqualTo(2);
        assertThat(planned.block().hidden()).isEqualTo(100);
        assertThat(planned.block().windows()).containsExactly(16, 16, 16);
        assertThat(planned.places()).isZero();
        assertThat(planned.blockMatrixParameters())
                .isEqualTo(64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 100);
    }

    @Test
    void ofARunThatTrainsAdaptersOnlyTheseAreTrained() throws Exception {
        Path run =
                Files.writeString(
                        folder.resolve("run.conf"),
                        """
                        data { source = "%s" }
                        model { layers = 4, width = 64, heads = 4, context = 128 }
                        fine-tune { method = lora, rank = 2, targets = [c_attn], freeze = ["h.0.*"] }
                        """
                                .formatted(Files.writeString(folder.resolve("a.txt"), "words")));

        var planned = new PlannedModel(problems).read(run.toString()).orElseThrow();

        assertThat(problems).isEmpty();
        long adapter = 2 * (64 + 3 * 64);
        assertThat(planned.blockParameters()).isEqualTo(12 * 64 * 64 + 13 * 64 + adapter);
        // three of four blocks
        assertThat(planned.tuning())
                .contains(new TrainedShape(adapter, adapter * 3 / 4, adapter * 3 / 4, 0, 0, false));
    }

    @Test
    void aFolderWithoutAModelIsAProblem() {
        assertThat(new PlannedModel(problems).read(folder.toString())).isEmpty();

        assertThat(problems).singleElement().asString().startsWith("--model: ").contains("config");
    }
}
