package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.cluster.RunRefusedException;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SubmissionTest {
    @Test
    void arrivesAsItWas() {
        var submission =
                new Submission(
                        "quick",
                        "run.steps = 3\nmodel { width = 4 } # ü \\ \"x\"\n",
                        Optional.of("rank 0: 0F0\n\trank 1: 1F0\n"),
                        "mine.csv",
                        Optional.of(Path.of("/weights/a b.safetensors")),
                        true);

        assertThat(Submission.parse(submission.text())).isEqualTo(submission);
        var ofRun = submission.withModelOfRun();
        assertThat(Submission.parse(ofRun.text())).isEqualTo(ofRun).isNotEqualTo(submission);
    }

    @Test
    void whatIsNoneIsRefused() {
        assertThatThrownBy(() -> Submission.parse("hello")).isInstanceOf(RunRefusedException.class);
        assertThatThrownBy(() -> Submission.parse("a=\\u00zz"))
                .isInstanceOf(RunRefusedException.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"order-file=/", "order-file=..", "order-file=a/.", "init=\\u0000"})
    void pathsThatAreNoneAreRefused(String line) {
        assertThatThrownBy(() -> Submission.parse("name=n\nconfiguration=c\n" + line))
                .isInstanceOf(RunRefusedException.class);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "include \"other.conf\"",
                "include file(\"/etc/passwd\")",
                "include url(\"http://127.0.0.1:1/\")",
                "include classpath(\"reference.conf\")",
                "include required(file(\"/etc/passwd\"))",
                "run { name = ${HOME} }",
                "run.name = ${?HOME}",
                "run.name = a, run.directory = ${run.name}"
            })
    void aConfigurationThatWouldReadTheSeedsFilesOrEnvironmentIsRefused(String configuration) {
        var submission =
                new Submission("n", configuration, Optional.empty(), "o", Optional.empty(), false);

        assertThatThrownBy(() -> Submission.parse(submission.text()))
                .isInstanceOf(RunRefusedException.class)
                .hasMessageContaining("include or ${..}");
    }

    /** It becomes part of a path on the seed. */
    @Test
    void anOrdersFileNameIsOnlyAName() {
        var submission =
                new Submission(
                        "quick", "x", Optional.of(""), "../../etc/passwd", Optional.empty(), false);

        assertThat(Submission.parse(submission.text()).orderFile()).isEqualTo("passwd");
    }
}
