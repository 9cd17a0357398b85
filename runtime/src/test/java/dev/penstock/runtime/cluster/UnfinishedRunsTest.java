package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.RunMaker;
import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.GoldenFamily;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs whose seed is gone, as another seed finds them in their directories. */
class UnfinishedRunsTest {
    private static final String PROCESS = "worker/1/4711";

    @TempDir Path folder;

    private final List<ClusterRun> found = new ArrayList<>();
    private SubmittedRuns runs = new SubmittedRuns(Path.of(""), false, "cluster");

    @BeforeEach
    void layOut() {
        runs = new SubmittedRuns(folder, false, "cluster");
    }

    /** The lock of a host that died may be kept for minutes by a file server. */
    @Test
    void aRunThatIsLockedIsNamedAndFoundOnceItsLockIsFree() {
        ClusterRun kept = afterTwoSteps();

        assertThat(runs.unfinished(_ -> true, found::add))
                .isEqualTo(Map.of(kept.name(), Set.of(PROCESS)));
        assertThat(found).isEmpty();
        kept.close();
        assertThat(runs.unfinished(kept.name()::equals, found::add)).isEmpty();

        assertThat(found).hasSize(1);
        try (ClusterRun again = found.getFirst()) {
            assertThat(again.completed()).isEqualTo(2);
            assertThat(again.beginning())
                    .isInstanceOfSatisfying(
                            RunBeginning.TakenUp.class,
                            taken ->
                                    assertThat(taken.run().placed()).isEqualTo(Map.of(0, PROCESS)));
        }
    }

    /** For those who ask for such a run. */
    @Test
    void theFinderIsToldWhoHasARunAndWhatCannotBeOpened() throws IOException {
        ClusterRun kept = afterTwoSteps();
        List<String> told = new ArrayList<>();
        var finder =
                new RunMaker.Finder() {
                    @Override
                    public void opens(String run) {
                        told.add("opens " + run);
                    }

                    @Override
                    public void opened(ClusterRun run) {
                        told.add("opened " + run.name());
                        run.close();
                    }

                    @Override
                    public void cannotOpen(String run, String reason) {
                        told.add("cannot open %s: %s".formatted(run, reason));
                    }

                    @Override
                    public void held(String run, String holder) {
                        told.add(run + holder);
                    }
                };

        runs.unfinished(_ -> true, finder);
        kept.close();
        runs.unfinished(_ -> true, finder);
        Files.delete(kept.directory().resolve("launch.conf"));
        runs.unfinished(_ -> true, finder);

        assertThat(told).hasSize(5);
        assertThat(told.get(0))
                .startsWith(
                        kept.name() + " (process %d on ".formatted(ProcessHandle.current().pid()));
        assertThat(told.subList(1, 4))
                .containsExactly(
                        "opens " + kept.name(), "opened " + kept.name(), "opens " + kept.name());
        assertThat(told.get(4))
                .startsWith("cannot open %s: ".formatted(kept.name()))
                .contains("launch.conf");
    }

    @Test
    void onlyRunsThatAreLookedForAreOpened() {
        afterTwoSteps().close();

        assertThat(runs.unfinished(_ -> false, found::add)).isEmpty();
        assertThat(found).isEmpty();
    }

    /** Stopped while its shares were looked for, or of a plan that nobody can supervise. */
    @Test
    void aRunThatEndsWithoutItsSupervisorIsNotTakenUpAgain() {
        afterTwoSteps().close();
        runs.unfinished(_ -> true, found::add);
        try (ClusterRun stopped = found.removeFirst()) {
            stopped.finish(new RunOutcome.Interrupted(2), Duration.ZERO);
        }

        assertThat(runs.unfinished(_ -> true, found::add)).isEmpty();

        assertThat(found).isEmpty();
    }

    /** One that stood still for so long that another seed took its run up. */
    @Test
    void aSeedThatWasReplacedDoesNotEndTheRunOfItsSuccessor() {
        ClusterRun kept = afterTwoSteps();
        Path journal = kept.directory().resolve(JournalFile.NAME);
        try (JournalFile successor = JournalFile.open(journal)) {
            successor.append(new JournalRecord.EpochRaised(2, "the supervisor was gone"));

            String said = kept.finish(new RunOutcome.Failed(2, "superseded"), Duration.ZERO);
            successor.append(new JournalRecord.Committed(2, 3, 1, 3, 1));

            assertThat(said).isEqualTo("another supervisor goes on with quickstart-1");
            assertThat(JournalFile.read(journal))
                    .endsWith(new JournalRecord.Committed(2, 3, 1, 3, 1));
            assertThat(kept.directory().resolve("summary.json")).doesNotExist();
        }
        kept.close();
    }

    /** It may read the run's data for minutes before it writes into the journal. */
    @Test
    void aSeedWhoseLeaseAnotherHasDoesNotEndTheRunThatTheOtherOpens() throws IOException {
        ClusterRun kept = afterTwoSteps();
        Path lease = kept.directory().resolve("run.lease");
        String others = Files.readString(lease).replaceFirst("held by .{8}", "held by 00000000");
        Files.writeString(lease, others);

        String said = kept.finish(new RunOutcome.Failed(2, "superseded"), Duration.ZERO);

        assertThat(said).isEqualTo("another supervisor goes on with quickstart-1");
        assertThat(JournalFile.read(kept.directory().resolve(JournalFile.NAME)))
                .noneMatch(JournalRecord.Failed.class::isInstance);
        assertThat(kept.directory().resolve("summary.json")).doesNotExist();
        kept.close();
        assertThat(lease).content().isEqualTo(others);
    }

    /** Else another seed would take it up as what was refused. */
    @Test
    void aRefusedResumeLeavesWhatTheRunIsStartedFrom() throws IOException {
        afterTwoSteps().close();
        Path launched = folder.resolve("quickstart-1/launch.conf");
        String before = Files.readString(launched);
        var refused =
                new Submission(
                        "quickstart",
                        "run.name = quickstart, model.heads = 5, data.source = nowhere.txt",
                        Optional.empty(),
                        "order.txt",
                        Optional.empty(),
                        true);

        assertThatThrownBy(() -> runs.make(refused.text())).isInstanceOf(RunRefusedException.class);

        assertThat(launched).content().isEqualTo(before);
        assertThat(folder.resolve("quickstart-1/submitted.conf")).doesNotExist();
    }

    @Test
    void aResumeWithAnotherOrderReplacesTheOrderOnlyWhereItIsAccepted() throws IOException {
        Path order =
                Files.writeString(
                        folder.resolve("mine.txt"),
                        """
                        ranks: 2
                        micro-batches: 8
                        shared: 0 1
                        rank 0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7
                        rank 1: 1F0 1F1 1F2 1F3 1F4 1F5 1F6 1F7 1B0 1B1 1B2 1B3 1B4 1B5 1B6 1B7
                        """);
        afterTwoSteps("schedule.file=" + order).close();
        Path first = folder.resolve("quickstart-1/order-mine.txt");
        String before = Files.readString(first);
        Submission resumed =
                Submission.of(quickstart("schedule.file=" + order), Optional.empty(), true);

        assertThatThrownBy(() -> runs.make(ordered(resumed, "rank 0: nonsense").text()))
                .isInstanceOf(RunRefusedException.class);
        assertThat(first).content().isEqualTo(before);
        assertThat(folder.resolve("quickstart-1/order-2-mine.txt")).doesNotExist();

        try (ClusterRun _ = runs.make(ordered(resumed, before + "# again\n").text())) {
            assertThat(first).content().isEqualTo(before);
            assertThat(folder.resolve("quickstart-1/order-2-mine.txt"))
                    .content()
                    .endsWith("# again\n");
            assertThat(folder.resolve("quickstart-1/launch.conf"))
                    .content()
                    .contains("order-2-mine.txt");
        }
    }

    /** Its folder may be gone here, and never have been on the seed's machine. */
    @Test
    void aRunGoesOnWithItsModelWhereTheModelsFolderHasMovedOrIsGone() throws IOException {
        Path first = Files.createDirectory(folder.resolve("llama"));
        String model = Files.readString(new GoldenFamily("llama").path("config.json"));
        Files.writeString(
                first.resolve("config.json"),
                model.replace("\"vocab_size\": 64", "\"vocab_size\": 256"));
        String data = folder.resolve("text.txt").toString();
        Files.writeString(Path.of(data), "valves open ".repeat(4_000));
        Path file =
                Files.writeString(
                        folder.resolve("llama.conf"),
                        """
                        run { name = llama, steps = 3 }
                        model { context = 16, from = "%s" }
                        data { source = "%s", tokenizer = bytes }
                        report.dashboard = false
                        """
                                .formatted(first, data));
        RunConfig config = ConfigLoader.load(file, List.of());
        runs.make(Submission.of(config, Optional.empty(), false).text()).close();
        Path resolved = folder.resolve("llama-1/resolved.conf");
        Path moved = Files.move(first, folder.resolve("moved"));

        DraftConfig gone = ConfigLoader.draft(file, List.of("run.steps=5"));
        assertThat(gone.problemsBesideMissingModel()).hasValue(List.of());
        Submission without =
                Submission.of(gone.draft().config(), Optional.empty(), true).withModelOfRun();
        Submission elsewhere =
                Submission.of(
                        ConfigLoader.load(file, List.of("model.from=" + moved)),
                        Optional.empty(),
                        true);
        Files.delete(moved.resolve("config.json"));

        for (Submission submission : List.of(without, elsewhere)) {
            runs.make(submission.text()).close();
            assertThat(ConfigLoader.loadOfRun(resolved, List.of()).config().model().config(256))
                    .isEqualTo(config.model().config(256));
        }
    }

    private static Submission ordered(Submission submission, String order) {
        return new Submission(
                submission.name(),
                submission.configuration(),
                Optional.of(order),
                submission.orderFile(),
                submission.init(),
                submission.resume());
    }

    private static RunConfig quickstart(String... settings) {
        List<String> all = new ArrayList<>(List.of(settings));
        all.add("report.dashboard=false");
        return ConfigLoader.load(Path.of("../sample-configs/quickstart.conf"), all);
    }

    private ClusterRun afterTwoSteps(String... settings) {
        RunConfig config = quickstart(settings);
        ClusterRun run = runs.make(Submission.of(config, Optional.empty(), false).text());
        RunPlan plan = run.plan();
        RunJournal journal = run.services(ProcessSupply.NONE).journal();
        journal.append(new JournalRecord.Began(plan.runId(), plan.hash(), plan.ranks(), 1, 0));
        journal.append(new JournalRecord.Placed(0, PROCESS));
        journal.append(new JournalRecord.Committed(1, 1, 1, 3, 1));
        journal.append(new JournalRecord.Committed(1, 2, 1, 3, 1));
        return run;
    }
}
