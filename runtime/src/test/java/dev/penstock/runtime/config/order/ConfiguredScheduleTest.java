package dev.penstock.runtime.config.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.ScheduleSection;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ConfiguredScheduleTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    @Test
    void theKindsOfConfigurationsAreThoseOfTheGenerators() {
        List<String> words =
                Arrays.stream(ScheduleSection.Kind.values())
                        .map(ScheduleSection.Kind::word)
                        .toList();
        List<String> kinds = new ArrayList<>(Generators.kinds());
        for (WiredOrder.Backwards each : WiredOrder.Backwards.values()) {
            kinds.add(each.kind());
        }

        assertThat(words).containsExactlyInAnyOrderElementsOf(kinds);
    }

    @ParameterizedTest
    @EnumSource
    void everyKindCanRun(ScheduleSection.Kind kind) throws IOException {
        Schedule order = configured("schedule.kind=" + kind.word()).order();

        assertThat(ScheduleValidator.validate(order).violations()).isEmpty();
        List<Integer> lengths = kind.usualSlices() == 1 ? List.of(256) : List.of(64, 64, 64, 64);
        assertThat(order.shape().sliceLengths()).isEqualTo(lengths);
    }

    @Test
    void aRankHoldsAsManyStagesAsItIsTold() throws IOException {
        assertThat(configured("schedule.kind=zb-v").order().shape().chunks()).isEqualTo(2);
        assertThat(configured("schedule.kind=breadth-first").order().shape().chunks()).isEqualTo(1);
        assertThat(
                        configured("schedule.kind=breadth-first", "pipeline.chunks=3")
                                .order()
                                .shape()
                                .stages())
                .isEqualTo(6);
    }

    @Test
    void aKindThatCannotRunSoManyChunksIsRefused() {
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> configured("schedule.kind=zb-v", "pipeline.chunks=3"))
                .withMessageContaining("zb-v runs 2 stages per rank, got 3 chunks; try 2");
    }

    @Test
    void tiedStagesShareTheirEmbedding() throws IOException {
        assertThat(configured().sharedGroups()).containsExactly(List.of(0, 1));
        assertThat(configured("model.tied=false").sharedGroups()).isEmpty();
        assertThat(configured("pipeline.stages=1").sharedGroups()).isEmpty();
    }

    @Test
    void lengthsInAFileMayBeProportions() throws IOException {
        order("ranks: 1\nmicro-batches: 1\nslice-lengths: 3 1\nrank 0: 0F0s0 0F0s1 0B0s1 0B0s0\n");

        ConfiguredSchedule configured =
                configured(
                        "schedule.file=" + folder.resolve("order.txt"),
                        "pipeline.stages=1",
                        "batch.micro-batches=1");

        assertThat(configured.order().shape().sliceLengths()).containsExactly(192, 64);
        assertThat(configured.file()).isPresent();
    }

    @Test
    void anOrderOfAnotherShapeIsRefusedWithBothShapes() throws IOException {
        order("ranks: 1\nmicro-batches: 1\nslice-lengths: 3 2\nrank 0: 0F0s0 0F0s1 0B0s1 0B0s0\n");

        List<Problem> problems = problems("schedule.file=" + folder.resolve("order.txt"));

        assertThat(problems)
                .extracting(Problem::expected)
                .containsExactly(
                        "an order for pipeline.stages = 2",
                        "an order for batch.micro-batches = 8",
                        "slice lengths whose sum divides model.context = 256");
    }

    @Test
    void aWiredOrderNeedsReplicasThatHoldTheSameAndExactSums() throws IOException {
        List<Problem> problems =
                problems(
                        "schedule.kind=wired-1f1b",
                        "parallel.data=2",
                        "parallel.context=2",
                        "parallel.zero.stage=1");

        assertThat(problems)
                .extracting(Problem::key)
                .containsExactly(
                        "optimizer.gradient-sum", "parallel.context", "parallel.zero.stage");
        assertThat(problems)
                .first()
                .asString()
                .contains("fixed-point", "float32", "set optimizer.gradient-sum = fixed-point");
    }

    @Test
    void aWiredFileIsOfAllReplicas() throws IOException {
        order(
                """
                ranks: 4
                peers: 2
                micro-batches: 2

                rank 0: 0F0 0B0 0F1 0B1
                rank 1: 1F0 1B0
                rank 2:
                rank 3: 1F1 1B1
                """);
        String file = "schedule.file=" + folder.resolve("order.txt");
        String exact = "optimizer.gradient-sum=fixed-point";

        ConfiguredSchedule configured =
                configured(file, exact, "parallel.data=2", "batch.micro-batches=2");

        assertThat(configured.order().shape().peers()).isEqualTo(2);
        assertThat(configured.order().shape().sliceLengths()).containsExactly(256);
        assertThat(problems(file, exact, "parallel.data=4"))
                .extracting(Problem::expected)
                .containsExactly(
                        "an order for parallel.data = 4", "an order for batch.micro-batches = 8");
    }

    @Test
    void everyFaultOfAnOrderFileIsReportedAtItsLine() throws IOException {
        order("ranks: 1\nmicro-batches: 1\nrank 0: 0F0 0Q0\nrank 0: 0B\n");

        List<Problem> problems = problems("schedule.file=" + folder.resolve("order.txt"));

        assertThat(problems).extracting(Problem::line).contains(3, 4);
        assertThat(problems).first().asString().contains("order.txt:3: ", "0Q0");
    }

    @Test
    void aFileInDoubtAboutItsShapeIsJudgedAsWell() throws IOException {
        Path csv =
                Files.writeString(
                        folder.resolve("order.csv"),
                        "0F0,0SEND_F0,0RECV_B0,0B0,0F5\n1F0,1B0,1SEND_B0\n");

        List<Problem> problems = problems("schedule.file=" + csv);

        assertThat(problems).extracting(Problem::line).containsExactly(1, 2);
        assertThat(problems)
                .extracting(Problem::got)
                .containsExactly(
                        "column 27: micro-batch 5 leaves a gap: nobody computes micro-batches 1 to"
                                + " 4",
                        "column 17: rank 1 has no 1RECV_F0");
    }

    @Test
    void anOrderInAFileSaysHowManyStagesARankHas() throws IOException {
        Path file =
                Files.writeString(
                        folder.resolve("zb-v.txt"),
                        ScheduleText.print(
                                Generators.generate(
                                        "zb-v", new PipelineShape(2, 2, 8, List.of(1)))));

        LoadedConfig loaded = loaded("schedule.file=" + file);

        assertThat(loaded.config().stages()).isEqualTo(4);
        assertThat(loaded.config().resolved()).contains("  chunks = 2\n");
        assertThat(ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded))).isEmpty();
        assertThat(problems("schedule.file=" + file, "pipeline.chunks=1"))
                .extracting(Problem::expected)
                .containsExactly("an order for pipeline.chunks = 1");
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> loaded("schedule.file=" + file, "pipeline.partition=[2, 2]"))
                .withMessageContaining("4 entries (pipeline.stages x pipeline.chunks = 2 x 2)");
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> loaded("schedule.file=" + file, "model.layers=1"))
                .withMessageContaining("4 (pipeline.stages = 2 x pipeline.chunks = 2)");
    }

    @Test
    void anOrderThatCannotRunIsReportedAtItsLines() throws IOException {
        order("ranks: 1\nmicro-batches: 1\nrank 0: 0B0\n        0F0 0F0\n");
        LoadedConfig loaded =
                loaded(
                        "schedule.file=" + folder.resolve("order.txt"),
                        "pipeline.stages=1",
                        "batch.micro-batches=1");

        List<Problem> faults = ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded));

        assertThat(faults).extracting(Problem::line).contains(3, 4);
        assertThat(faults).allSatisfy(fault -> assertThat(fault.got()).contains("0F0"));
    }

    @Test
    void anOrderOfPyTorchsFormRuns() throws IOException {
        Path csv = Files.writeString(folder.resolve("order.csv"), "0F0,0F1,0B0,0B1\n");
        LoadedConfig loaded =
                loaded("schedule.file=" + csv, "pipeline.stages=1", "batch.micro-batches=2");

        ConfiguredSchedule configured = ConfiguredSchedule.of(loaded);

        assertThat(configured.order().shape().sliceLengths()).containsExactly(256);
        assertThat(ScheduleFaults.of(loaded, configured)).isEmpty();
    }

    @Test
    void whatStagesCannotRunIsSaid() throws IOException {
        order("ranks: 1\nmicro-batches: 1\nrank 0: 0UNSHARD 0F0 0R0 0B0 0RESHARD\n");
        LoadedConfig loaded =
                loaded(
                        "schedule.file=" + folder.resolve("order.txt"),
                        "pipeline.stages=1",
                        "batch.micro-batches=1");

        assertThat(ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded)))
                .extracting(Problem::got)
                .containsExactly("0UNSHARD, and parallel.zero.stage = 0");
    }

    @Test
    void anOrderThatCanRunHasNoFaults() throws IOException {
        LoadedConfig loaded = loaded("data-plane.in-flight=1");

        assertThat(ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded))).isEmpty();
    }

    @Test
    void anOrderThatWouldHangWithItsReceivesLateTakesThemEarlyWhereOneTensorFits()
            throws IOException {
        for (String capacity : List.of("1", "2", "auto")) {
            LoadedConfig loaded =
                    loaded(
                            "schedule={kind=breadth-first, slices=2}",
                            "pipeline={stages=2, chunks=2}",
                            "batch.micro-batches=4",
                            "model.layers=4",
                            "data-plane.in-flight=" + capacity);
            ConfiguredSchedule configured = ConfiguredSchedule.of(loaded);

            assertThat(ScheduleFaults.of(loaded, configured)).isEmpty();
            Schedule late = Lowering.lower(configured.order(), configured.sharedGroups());
            assertThat(configured.training(loaded).equals(late))
                    .as(capacity)
                    .isEqualTo(capacity.equals("auto"));
        }
    }

    private void order(String text) throws IOException {
        Files.writeString(folder.resolve("order.txt"), text);
    }

    private List<Problem> problems(String... overrides) {
        return catchThrowableOfType(ConfigException.class, () -> configured(overrides)).problems();
    }

    private ConfiguredSchedule configured(String... overrides) throws IOException {
        return ConfiguredSchedule.of(loaded(overrides));
    }

    private LoadedConfig loaded(String... overrides) throws IOException {
        Path file = Files.writeString(folder.resolve("run.conf"), "data.source = corpus.txt");
        return ConfigLoader.loadWithOrigins(file, List.of(overrides));
    }
}
