package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.report.MemoryPlan;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a run becomes when it follows another plan. */
class LaterPlansTest {
    @TempDir Path folder;

    private RunAssembly first(String... settings) throws IOException {
        Training.onText(folder);
        List<String> all = new ArrayList<>(List.of("model.layers=4"));
        all.addAll(List.of(settings));
        return RunAssembly.of(
                ConfigLoader.loadWithOrigins(folder.resolve("tiny.conf"), all),
                new RunOptions(
                        "run",
                        folder.resolve("run"),
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false));
    }

    private static PlanRevision revision(int number, String setting, String hash) {
        return new PlanRevision(number, List.of(setting), hash, "a test");
    }

    /** The hash that another process must find. */
    private static String hash(RunAssembly run, String setting) {
        return run.revisedBy(revision(1, setting, "")).plan().revision().hash();
    }

    @Test
    void aLaterPlanStartsFromTheFirstWhateverCameBetween() throws IOException {
        try (RunAssembly first = first()) {
            String layers = "pipeline.partition=[3,1]";
            String order = "schedule.kind=zb-h1";

            RunAssembly second = first.following(revision(1, layers, hash(first, layers)));
            RunAssembly third = second.following(revision(2, order, hash(first, order)));

            assertThat(second.model().partition().layersPerStage()).containsExactly(3, 1);
            assertThat(third.model().partition().layersPerStage()).containsExactly(2, 2);
            assertThat(third.plan().training().name()).isEqualTo("zb-h1");
            assertThat(third.plan().hash()).isEqualTo(first.plan().hash());
            assertThat(third.following(PlanRevision.NONE)).isSameAs(first);
        }
    }

    @Test
    void aRankThatIsAbsentForNowNeedsRoomToComeBack() throws IOException {
        try (RunAssembly first =
                first(
                        "parallel.data=2",
                        "schedule.kind=wired-1f1b",
                        "optimizer.gradient-sum=fixed-point")) {
            String absent = "schedule.without=[3]";
            RunAssembly later = first.following(revision(1, absent, hash(first, absent)));
            List<Integer> apart = List.of(0, 1, 2, 3);

            assertThat(later.plannedMemory(false, apart).get(3).total()).isZero();
            assertThat(later.plannedBytes(false, apart).get(3))
                    .isPositive()
                    .isEqualTo(first.plannedBytes(false, apart).get(3));
        }
    }

    @Test
    void aPlanFitsWhereTheMachineHasRoomForAllRanks() throws IOException {
        Training.onText(folder);
        var draft =
                ConfigLoader.draft(
                        folder.resolve("tiny.conf"),
                        List.of("model.layers=4", "schedule.candidates=[gpipe]"));
        var options =
                new RunOptions(
                        "run",
                        folder.resolve("run"),
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        PlanRevision gpipe = revision(1, "schedule.kind=gpipe", "");
        long needed;
        try (RunAssembly first = assembly(draft, OptionalLong.empty(), options)) {
            RunAssembly later = first.revisedBy(gpipe);
            assertThat(later.fits()).as("nobody knows the machine").isTrue();
            needed = later.plannedMemory().stream().mapToLong(MemoryPlan::total).sum();
        }

        try (RunAssembly first = assembly(draft, OptionalLong.of(needed), options)) {
            assertThat(first.revisedBy(gpipe).fits()).isTrue();
        }
        try (RunAssembly first = assembly(draft, OptionalLong.of(needed - 1), options)) {
            assertThat(first.fits()).as("1f1b holds fewer micro-batches").isTrue();
            assertThat(first.revisedBy(gpipe).fits()).isFalse();
        }
    }

    private static RunAssembly assembly(
            DraftConfig draft, OptionalLong machineBytes, RunOptions options) {
        return new RunAssembly(
                new PartChecks(draft, RunStart.fresh(), List.of(), machineBytes).partsOrThrow(),
                options);
    }

    @Test
    void aProcessThatFindsAnotherPlanSaysSo() throws IOException {
        try (RunAssembly first = first()) {
            assertThatThrownBy(
                            () ->
                                    first.following(
                                            revision(1, "pipeline.partition=[3,1]", "c0ffee")))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("pipeline.partition=[3,1] (a test)")
                    .hasMessageContaining("expected hash c0ffee");
        }
    }
}
