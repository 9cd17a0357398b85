package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.GoldenFamily;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whole runs on rows that several documents share. */
class PackedTrainingTest {
    @TempDir Path folder;

    @Test
    void aRunOnPackedTokensFollowsTheGoldenOne() {
        var golden = new GoldenFamily("packed-gpt2");
        Trained trained =
                Training.golden(folder, true)
                        .set("run.steps=12", "data.packing=documents")
                        .set("data.source=\"" + golden.path("tokens.safetensors") + "\"")
                        .init(golden.folder())
                        .complete();

        List<Double> expected = golden.numbers("loss_fp64");
        assertThat(trained.losses()).hasSameSizeAs(expected);
        for (int i = 0; i < expected.size(); i++) {
            assertThat(trained.losses().get(i)).isCloseTo(expected.get(i), within(2e-4));
        }
    }

    @Test
    void layoutsAndResumingDoNotChangeABit() throws IOException {
        String packed = "data.packing=documents";
        Trained plain = onLines("plain").complete();
        Trained whole = onLines("whole").set(packed).complete();
        Trained one = onLines("one").set(packed, "pipeline.stages=1").complete();
        Trained sliced =
                onLines("sliced")
                        .set(packed, "schedule.kind=seq1f1b", "schedule.slices=2")
                        .complete();
        Training begun = onLines("begun").set(packed);
        begun.copy().set("run.steps=8").complete();
        Trained resumed = begun.resume().complete();

        assertThat(whole.lossBits()).hasSize(12).isNotEqualTo(plain.lossBits());
        assertThat(one.lossBits()).isEqualTo(whole.lossBits());
        assertThat(one.validationBits()).isEqualTo(whole.validationBits());
        assertThat(sliced.lossBits()).isEqualTo(whole.lossBits());
        assertThat(sliced.validationBits()).isEqualTo(whole.validationBits());
        assertThat(resumed.lossBits()).isEqualTo(whole.lossBits());
    }

    /** Every sentence is a document. */
    private Training onLines(String name) throws IOException {
        Path own = folder.resolve(name);
        Training training =
                Training.onText(own).set("data.format=jsonl", "optimizer.schedule=constant");
        StringBuilder lines = new StringBuilder();
        for (String line : Training.text(20_000).split("\n")) {
            lines.append("{\"text\": \"").append(line).append("\"}\n");
        }
        Files.writeString(own.resolve("text.txt"), lines);
        return training;
    }

    /** A model that is only told answers, which are all the same, soon has no loss left. */
    @Test
    void aRunOnChatsLearnsTheAnswers() throws IOException {
        Path own = folder.resolve("chats");
        Training training =
                Training.onText(own)
                        .set("data.format=chat", "data.template=plain", "data.packing=documents")
                        .set("run.steps=30", "optimizer.learning-rate=1e-2", "checkpoint.every=0");
        StringBuilder lines = new StringBuilder();
        for (String line : Training.text(20_000).split("\n")) {
            lines.append("{\"messages\": [{\"role\": \"user\", \"content\": \"")
                    .append(line)
                    .append("\"}, {\"role\": \"assistant\", \"content\": \"aaaaaaaa\"}]}\n");
        }
        Files.writeString(own.resolve("text.txt"), lines);

        List<Double> losses = training.copy().set("data.loss=answers").complete().losses();

        assertThat(losses.getFirst()).isGreaterThan(4);
        assertThat(losses.getLast()).isLessThan(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "user | 3 | none in the whole text to train on: 300 of 300 chats have no message",
                "assistant | 5000 | but none in the rows of run.steps = 2"
            })
    void chatsWithNothingToLearnAreRefusedBeforeTheRun(String role, int letters, String message)
            throws IOException {
        Trained refused = onChats("refused", role, letters).set("run.steps=2").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("data.loss: expected text with targets", message);
        assertThat(refused.out()).isEmpty();
    }

    /** A step that has no answer has loss 0; an evaluation leaves such batches out. */
    @Test
    void stepsWithoutAnAnswerAreLegalWhereOthersHaveOne() throws IOException {
        Trained trained = onChats("rare", "assistant", 90).complete();

        assertThat(trained.losses()).contains(0.0).anyMatch(loss -> loss > 4);
        assertThat(trained.out())
                .contains("300 chats, ")
                .contains("rows have no target that counts: a step that has only such rows");
    }

    private Training onChats(String name, String role, int letters) throws IOException {
        Path own = folder.resolve(name);
        Training training =
                Training.onText(own)
                        .set("data.format=chat", "data.template=plain", "data.loss=answers")
                        .set("batch.sequences=1", "batch.micro-batches=1", "evaluation.batches=100")
                        .set("checkpoint.every=0");
        String line =
                "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}, {\"role\": \"%s\", \"content\": \"b\"}]}\n"
                        .formatted("a".repeat(letters), role);
        Files.writeString(own.resolve("text.txt"), line.repeat(300));
        return training;
    }

    @Test
    void contextPartsAndUnknownAnswersAreRefused() throws IOException {
        Trained refused =
                onLines("refused")
                        .set("data.packing=documents", "parallel.context=2", "data.loss=answers")
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("context parts do not know their borders")
                .contains("unless data.format is chat")
                .doesNotContain("\tat ");
    }
}
