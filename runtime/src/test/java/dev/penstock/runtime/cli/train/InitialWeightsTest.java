package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Weights with a config.json say of which shape a model is that a configuration says nothing of.
 */
class InitialWeightsTest {
    @TempDir Path folder;
    private Path weights;

    @BeforeEach
    void weightsOfATinyModel() {
        Path run =
                Training.onText(folder.resolve("first")).set("run.steps=1").complete().directory();
        weights = folder.resolve("gpt");
        Cli converted =
                Cli.run(
                        "checkpoint",
                        "convert",
                        run.toString(),
                        weights.toString(),
                        "--format",
                        "huggingface");
        assertThat(converted.exitCode()).as(converted.err()).isEqualTo(ExitCode.OK);
    }

    @Test
    void theirShapeIsTakenAndTheRunGoesOnWithIt() throws IOException {
        Training said = Training.onText(folder.resolve("said")).set("run.steps=3");
        Training unsaid =
                withoutShape(Training.onText(folder.resolve("unsaid")).set("run.steps=3"));

        Trained expected = said.copy().init(weights).complete();
        Trained begun = unsaid.copy().init(weights).complete();

        assertThat(begun.out())
                .contains("starts with the weights of " + weights + ": 34.7k parameters");
        assertThat(begun.lossBits()).isEqualTo(expected.lossBits());

        Trained expectedLater = said.copy().resume().set("run.steps=5").complete();
        Trained later = unsaid.copy().resume().set("run.steps=5").complete();

        assertThat(later.out()).contains("resumes after step 3 of 5, from ", "step-000003");
        assertThat(later.lossBits()).isEqualTo(expectedLater.lossBits());

        Trained idle = unsaid.copy().resume().set("run.steps=5").complete();

        assertThat(idle.out())
                .contains("nothing left to do: 5 of 5 steps; --set run.steps=10 goes on");
    }

    @Test
    void aFileHasTheConfigurationBesideIt() throws IOException {
        Trained begun =
                withoutShape(Training.onText(folder.resolve("unsaid")).set("run.steps=1"))
                        .init(weights.resolve("model.safetensors"))
                        .complete();

        assertThat(begun.out()).contains("34.7k parameters (2 layers, width 32, 2 heads");
    }

    @Test
    void aShapeThatIsSaidIsNotChanged() {
        Trained refused =
                Training.onText(folder.resolve("said"))
                        .set("run.steps=1", "model.layers=3")
                        .init(weights)
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("does not match the model of this run");
    }

    @Test
    void aTokenizerThatComesWithThemAndIsNotUsedIsTold() throws IOException {
        Files.writeString(weights.resolve("tokenizer.json"), "{}");
        Training unsaid =
                withoutShape(Training.onText(folder.resolve("unsaid")).set("run.steps=1"));

        Trained begun = unsaid.copy().init(weights).complete();

        assertThat(begun.err())
                .contains("data.tokenizer is not said, so it is bytes")
                .contains("--set data.tokenizer=" + weights);
    }

    private static Training withoutShape(Training training) throws IOException {
        Path file = training.configuration();
        String text = Files.readString(file);
        Files.writeString(file, text.replaceFirst("model \\{.*\\}", "model.context = 32"));
        return training;
    }
}
