package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.family.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole runs of heads that classify. */
class ClassifierTrainingTest {
    @TempDir Path folder;

    @Test
    void layoutsAndResumingDoNotChangeABitAndAnExportClassifiesAlike() throws IOException {
        Trained whole = onPairs("whole").complete();
        Trained one = onPairs("one").set("pipeline.stages=1").complete();
        Training begun = onPairs("begun");
        begun.copy().set("run.steps=8").complete();
        Trained resumed = begun.resume().complete();

        assertThat(whole.lossBits()).hasSize(12);
        assertThat(one.lossBits()).isEqualTo(whole.lossBits());
        assertThat(one.validationBits()).isEqualTo(whole.validationBits());
        assertThat(resumed.lossBits()).isEqualTo(whole.lossBits());
        assertThat(Files.readString(whole.directory().resolve("metrics.jsonl")))
                .contains("\"validationAccuracy\":");
        assertThat(whole.out()).contains("accuracy");
        Path exported = folder.resolve("exported");
        Cli export =
                Cli.run(
                        "checkpoint",
                        "export",
                        whole.directory().toString(),
                        "--output=" + exported.resolve("model.safetensors"));
        assertThat(export.exitCode()).as(export.err()).isZero();
        assertThat(ModelConfig.read(exported.resolve("config.json")).toJson())
                .contains("MegatronBertForSequenceClassification", "\"0\" : \"no\"");
        String lines = folder.resolve("whole").resolve("text.txt").toString();
        Cli ofRun = evaluate(whole.directory(), lines);
        Cli ofExport = evaluate(exported, lines, "--tokenizer=bytes");
        assertThat(ofRun.exitCode()).as(ofRun.err()).isZero();
        assertThat(ofRun.out()).contains("accuracy ").contains("60:  ");
        assertThat(ofExport.out()).as(ofExport.err()).isEqualTo(ofRun.out());
    }

    private static Cli evaluate(Path model, String lines, String... more) {
        String[] words = {
            "evaluate", model.toString(), "--data=" + lines, "--texts=a,b", "--device=cpu"
        };
        String[] all = Arrays.copyOf(words, words.length + more.length);
        System.arraycopy(more, 0, all, words.length, more.length);
        return Cli.run(all);
    }

    @Test
    void aHeadLearnsTheLetterThatDecides() throws IOException {
        Trained trained =
                onPairs("learns")
                        .set("run.steps=120", "evaluation.every=120", "checkpoint.every=0")
                        .complete();

        assertThat(trained.losses().getFirst()).isBetween(0.5, 1.0);
        assertThat(trained.losses().getLast()).isLessThan(0.2);
    }

    /** From a run's checkpoint, and from its export; prepared pairs are the lines. */
    @Test
    void anEncoderThatPredictsWordsStartsOneWithANewHead() throws IOException {
        Trained words =
                Training.onText(folder.resolve("words"))
                        .set(
                                "model.family=megatron-bert",
                                "model.vocabulary=258",
                                "data.loss=masked",
                                "run.steps=4")
                        .complete();
        Path exported = folder.resolve("exported").resolve("model.safetensors");
        Cli export =
                Cli.run(
                        "checkpoint",
                        "export",
                        words.directory().toString(),
                        "--output=" + exported);
        assertThat(export.exitCode()).as(export.err()).isZero();
        Path prepared = prepared();

        Trained fresh = onPairs("fresh").set("run.steps=2").complete();
        Trained ofRun = onPairs("of-run").set("run.steps=2").init(words.directory()).complete();
        Trained ofExport =
                onPairs("of-export")
                        .set("run.steps=2", "data.format=tokens")
                        .set("data.source=\"" + prepared + "\"")
                        .init(exported)
                        .complete();

        assertThat(ofRun.lossBits()).isNotEqualTo(fresh.lossBits());
        assertThat(ofExport.lossBits()).isEqualTo(ofRun.lossBits());
    }

    /** What a configuration cannot mean is refused with every reason. */
    @Test
    void classesThatDoNotFitAreRefused() throws IOException {
        Trained refused =
                onPairs("refused")
                        .set("model.labels=[no]", "batch.last=smaller", "parallel.tensor=4")
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("model.labels: expected the names of two classes or more")
                .contains("every tensor shard has a class")
                .contains("batch.last: expected full where data.loss = labels");
    }

    private Path prepared() throws IOException {
        Path lines = Files.writeString(folder.resolve("more.jsonl"), pairs());
        Path output = folder.resolve("pairs.safetensors");
        Cli prepare =
                Cli.run(
                        "data",
                        "prepare",
                        "--tokenizer=bytes",
                        "--label=label",
                        "--texts=a,b",
                        "--context=16",
                        "--output=" + output,
                        lines.toString());
        assertThat(prepare.exitCode()).as(prepare.err()).isZero();
        assertThat(prepare.out()).contains("60 texts, labels [no, yes]", "vocabulary = 258");
        return output;
    }

    private static String pairs() {
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 60; i++) {
            char a = (char) ('a' + i % 3);
            char b = (char) ('a' + i / 3 % 3);
            lines.append(
                    "{\"a\": \"%s%s\", \"b\": \"%s\", \"label\": \"%s\"}\n"
                            .formatted(
                                    a,
                                    "xyz".substring(i % 4 == 3 ? 1 : 0),
                                    b,
                                    b == 'b' ? "yes" : "no"));
        }
        return lines.toString();
    }

    private Training onPairs(String name) throws IOException {
        Path own = folder.resolve(name);
        Training training =
                Training.onText(own)
                        .set(
                                "model.family=megatron-bert",
                                "model.labels=[no, yes]",
                                "model.vocabulary=258",
                                "data.format=jsonl",
                                "data.field=\"a, b\"",
                                "data.loss=labels",
                                "optimizer.schedule=constant",
                                "data.validation-fraction=0.2");
        Files.writeString(own.resolve("text.txt"), pairs());
        return training;
    }
}
