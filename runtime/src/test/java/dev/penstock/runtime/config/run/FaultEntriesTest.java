package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.runtime.config.page.ConfigReference;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FaultEntriesTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    private static final String EVERY_KIND =
            """
            pipeline { stages = 2, processes = per-stage }
            fault = [
              { kill-rank = 1, step = 7, op = "1F3" }
              { kill-rank = 0, step = 7, at = optimizer }
              { pause-rank = 1, for = 4s, step = 3 }
              { drop-frames = 0.01, seed = 5, from-step = 3, to-step = 9 }
              { delay-frames = 0.5, for = 20 ms }
              { duplicate-frames = 0.25 }
              { corrupt-frames = 1e-3 }
              { fail-disk = 64 KiB, step = 100 }
              { tear-checkpoint = manifest-written, step = 1000 }
              { inject-nan = 1, replica = 0, micro-batch = 2, step = 4 }
              { slow-stage = 1, factor = 3, from-step = 10 }
              { slow-stage = 1, replica = 0, at-least = 20 ms }
            ]
            """;

    @Test
    void everyKindIsRead() throws IOException {
        assertThat(load(EVERY_KIND).fault())
                .containsExactly(
                        new FaultEntry.KillRank(1, 7, Optional.of("1F3"), FaultEntry.Moment.BEGIN),
                        new FaultEntry.KillRank(
                                0, 7, Optional.empty(), FaultEntry.Moment.OPTIMIZER),
                        new FaultEntry.PauseRank(
                                1,
                                Duration.ofSeconds(4),
                                3,
                                Optional.empty(),
                                FaultEntry.Moment.BEGIN),
                        new FaultEntry.DropFrames(0.01, 5, 3, Optional.of(9)),
                        new FaultEntry.DelayFrames(
                                0.5, Duration.ofMillis(20), 1, 1, Optional.empty()),
                        new FaultEntry.DuplicateFrames(0.25, 1, 1, Optional.empty()),
                        new FaultEntry.CorruptFrames(1e-3, 1, 1, Optional.empty()),
                        new FaultEntry.FailDisk(new Bytes(65536), 100),
                        new FaultEntry.TearCheckpoint(FaultEntry.SavePoint.MANIFEST_WRITTEN, 1000),
                        new FaultEntry.InjectNan(1, 0, 2, 4),
                        new FaultEntry.SlowStage(
                                1, Optional.empty(), 3, Optional.empty(), 10, Optional.empty()),
                        new FaultEntry.SlowStage(
                                1,
                                Optional.of(0),
                                1,
                                Optional.of(Duration.ofMillis(20)),
                                1,
                                Optional.empty()));
    }

    @Test
    void everyKindIsInTheTestAbove() throws IOException {
        List<Class<?>> read =
                load(EVERY_KIND).fault().stream().<Class<?>>map(Object::getClass).toList();

        assertThat(read).containsAll(FaultEntry.KINDS);
        assertThat(FaultEntry.KINDS)
                .hasSameElementsAs(
                        List.of(FaultEntry.class.getPermittedSubclasses()).stream()
                                .<Class<? extends Record>>map(kind -> kind.asSubclass(Record.class))
                                .toList());
    }

    @Test
    void theResolvedTextReadsBackToTheSameFaults() throws IOException {
        RunConfig config = load(EVERY_KIND);
        Path again = folder.resolve("again.conf");
        Files.writeString(again, config.resolved());

        assertThat(ConfigLoader.load(again, List.of())).isEqualTo(config);
    }

    @Test
    void theReferenceNamesEveryKindAndReadsAsNoFaults() throws IOException {
        assertThat(ConfigReference.text())
                .contains(FaultEntry.KINDS.stream().map(FaultEntries::word).toList())
                .contains("{ pause-rank = 1, for = 4 s, step = 1 }", "fault = []");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
"""
# written                                              | key                    | expected                              | got                    | advice
fault = 5                                              | fault                  | a list of faults                      | 5                      | kill-rank
fault = [5]                                            | fault[0]               | a fault { .. }                        | 5                      | kill-rank
faults = []                                            | faults                 | one of the sections                   | an unknown key         | did you mean fault?
fault = [{ kil-rank = 1, step = 2 }]                   | fault[0]               | one of kill-rank, pause-rank          | none of them           | did you mean kill-rank?
fault = [{ kill-rank = 1, fail-disk = 1, step = 2 }]   | fault[0]               | one of kill-rank                      | kill-rank and fail-disk | an entry of each
fault = [{ pause-rank = 1, for = 1 s, stp = 2, step = 3 }] | fault[0].stp       | one of pause-rank, for, step, op, at  | an unknown key         | did you mean step?
fault = [{ pause-rank = 1, for = 1 s }]                | fault[0].step          | an integer, at least 1                | nothing                | add it: step in which
fault = [{ pause-rank = 1, for = 4, step = 3 }]        | fault[0].for           | a duration such as 5 s                | 4 without a unit       | write ms
fault = [{ pause-rank = 2, for = 1 s, step = 3 }]      | fault[0].pause-rank    | below pipeline.stages = 2             | 2                      | first rank is 0
fault = [{ pause-rank = 1, for = 1 s, step = 1001 }]   | fault[0].step          | at most run.steps = 1000              | 1001                   | raise run.steps
fault = [{ pause-rank = 1, for = 1 s, step = 3, op = "1G3" }] | fault[0].op     | an op such as 1F3                     | "1G3"                  | schedule show
fault = [{ pause-rank = 1, for = 1 s, step = 3, op = "1F3", at = ready }] | fault[0].at | one place                      | op = 1F3 and at = ready | leave one out
fault = [{ pause-rank = 1, for = 1 s, step = 3, at = redy }] | fault[0].at      | one of begin, gathering, reducing, ready                   | "redy"                 | did you mean ready?
fault = [{ pause-rank = 1, for = 1 s, step = 3, at = saved }] | fault[0].step   | a checkpoint is saved                 | 3                      | try 100
fault = [{ kill-rank = 1, step = 3 }]                  | fault[0].kill-rank     | a process of its own                  | ends the whole run     | pipeline.processes = per-stage
fault = [{ drop-frames = 1.5 }]                        | fault[0].drop-frames   | above 0 and at most 1                 | 1.5                    | share of the frames
fault = [{ drop-frames = 1, from-step = 5, to-step = 4 }] | fault[0].to-step    | at least from-step = 5                | 4                      | later step
fault = [{ fail-disk = 1 MiB, step = 150 }]            | fault[0].step          | a step after which a checkpoint is saved | 150                 | try 100
fault = [{ inject-nan = 2, step = 1 }]                 | fault[0].inject-nan    | a stage below 2                       | 2                      | first stage is 0
fault = [{ inject-nan = 1, micro-batch = 8, step = 1 }] | fault[0].micro-batch  | below batch.micro-batches = 8         | 8                      | first micro-batch is 0
fault = [{ inject-nan = 1, replica = 1, step = 1 }]    | fault[0].replica       | below parallel.data = 1               | 1                      | first replica is 0
fault = [{ slow-stage = 1, replica = 1, factor = 2 }]  | fault[0].replica       | below parallel.data = 1               | 1                      | first replica is 0
fault = [{ slow-stage = 1, factor = 0.5 }]             | fault[0].factor        | a number, at least 1                  | 0.5                    | times as long
fault = [{ slow-stage = 1 }]                           | fault[0].factor        | more than 1, or at-least beside it    | 1                      | nothing becomes slower
""")
    void aBadEntryIsOneProblemThatSaysWhatToTry(
            String written, String key, String expected, String got, String advice)
            throws IOException {
        List<Problem> problems = problems("\n" + written);

        assertThat(problems).hasSize(1);
        Problem problem = problems.getFirst();
        assertThat(problem.key()).isEqualTo(key);
        assertThat(problem.line()).isEqualTo(3);
        assertThat(problem.expected()).contains(expected);
        assertThat(problem.got()).contains(got);
        assertThat(problem.advice()).contains(advice);
    }

    @Test
    void allEntriesAreLookedAtAndWhatTheyAreComparedWithStays() throws IOException {
        assertThat(
                        problems(
                                """
                                model.width = 250
                                fault = [
                                  { pause-rank = 9, for = 1 s, step = 3 }
                                  { pause-rank = 1, for = 1, step = 3 }
                                  { inject-nan = 7, step = 2000 }
                                ]
                                """))
                .extracting(Problem::key)
                .containsExactlyInAnyOrder(
                        "model.width",
                        "fault[0].pause-rank",
                        "fault[1].for",
                        "fault[2].inject-nan",
                        "fault[2].step");
    }

    private List<Problem> problems(String text) throws IOException {
        Path file = write(text);
        return catchThrowableOfType(ConfigException.class, () -> ConfigLoader.load(file, List.of()))
                .problems();
    }

    private RunConfig load(String text) throws IOException {
        return ConfigLoader.load(write(text), List.of());
    }

    private Path write(String text) throws IOException {
        Path file = folder.resolve("my-run.conf");
        Files.writeString(file, "data.source = corpus.txt\n" + text);
        return file;
    }
}
