package dev.penstock;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.inference.TrainingTasks;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunRecord;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.training.ModelOfRun;
import dev.penstock.runtime.training.ModelOfWeights;
import dev.penstock.runtime.training.NotFiniteStart;
import dev.penstock.runtime.training.RunFailedException;
import dev.penstock.runtime.training.TrainingStart;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * One training, from what was asked for to its end: what {@code penstock train} does, without a
 * terminal.
 *
 * @param resumes whether an earlier run continues
 */
record TrainingCall(
        Settings settings,
        Optional<TokenSource> tokens,
        Optional<Path> weights,
        Optional<Path> directory,
        boolean resumes) {

    /** What is wrong with the call itself. */
    List<Problem> problems() {
        List<Problem> problems = new ArrayList<>();
        if (resumes && weights.isPresent()) {
            problems.add(
                    Problem.atOption(
                            "--resume and --init",
                            "one of them",
                            "both",
                            "a checkpoint has its own weights"));
        }
        if (tokens.isPresent() && settings.draft().draft().writtenIn("data").contains("source")) {
            problems.add(
                    Problem.atOption(
                            "withTokens(source) and data.source",
                            "one of them",
                            "both",
                            "leave data.source out"));
        }
        return problems;
    }

    /** How a new run is to begin. */
    RunStart start() {
        return new RunStart(Optional.empty(), weights, Optional.empty(), false, given());
    }

    private Optional<GivenTokens> given() {
        return tokens.map(OwnTokens::of);
    }

    /**
     * The configuration. Where nothing is said of the model, weights to start from say it, and a
     * run that continues says it itself.
     */
    DraftConfig draft() {
        List<String> overrides = overrides();
        DraftConfig draft = settings.draft(overrides);
        boolean unsaid = ModelOfWeights.isUnsaid(draft);
        Optional<Path> ofWeights = weights.filter(_ -> unsaid).flatMap(ModelOfWeights::configOf);
        if (ofWeights.isPresent()) {
            return settings.draft(ModelOfWeights.settings(ofWeights.get(), overrides));
        }
        return resumes && (unsaid || draft.problemsBesideMissingModel().isPresent())
                ? settings.draft(ModelOfRun.settings(draft, directory, overrides))
                : draft;
    }

    /** A program has no screen: a page and a sample are for those who ask for them. */
    private List<String> overrides() {
        List<String> first = new ArrayList<>();
        var written = settings.draft().draft().writtenIn("report");
        for (String key : List.of("dashboard", "sample")) {
            if (!written.contains(key)) {
                first.add("report." + key + "=false");
            }
        }
        first.addAll(settings.overrides());
        if (tokens.isPresent()) {
            first.addAll(OwnTokens.SETTINGS);
        }
        return first;
    }

    /**
     * Trains.
     *
     * @throws RunFailedException if it fails; other exceptions if it cannot begin
     */
    TrainingEnd train(Training training, ToldListeners told) {
        var request =
                new TrainingStart.Request(
                        draft(), directory, resumes, weights, Optional.empty(), given());
        return new TrainingStart(request, problems(), told::onNote)
                .call(
                        new TrainingStart.Trainer<TrainingEnd>() {
                            @Override
                            public void onLost(RunDirectory lost) {
                                told.onNote(
                                        "another process continued the run in %s while this one stood still; this one stops"
                                                .formatted(lost.path()));
                                training.stop();
                            }

                            @Override
                            public TrainingEnd train(RunDirectory place, RunAssembly assembly) {
                                return TrainingCall.this.train(place, assembly, training, told);
                            }
                        });
    }

    private TrainingEnd train(
            RunDirectory place, RunAssembly assembly, Training training, ToldListeners told) {
        long began = System.nanoTime();
        try (var record = new RunRecord(assembly, place, false)) {
            told.onBegin();
            assembly.sweepCheckpoints();
            var tasks = new TrainingTasks(assembly, record::onTask);
            var listeners = new ListenerFanOut(List.of(told.of(assembly), tasks));
            RunOutcome outcome =
                    new PipelineRun(assembly, record.listener(listeners), training::onStop).run();
            training.onStop(() -> {});
            assembly.close();
            RunOutcome explained =
                    weights.map(init -> NotFiniteStart.explained(outcome, init, assembly.config()))
                            .orElse(outcome);
            var took = Duration.ofNanos(System.nanoTime() - began);
            record.report(explained, took, Optional.empty());
            record.unsaved()
                    .ifPresent(
                            reason -> {
                                throw new RunFailedException("not saved: " + reason);
                            });
            return end(explained, place, told);
        }
    }

    private static TrainingEnd end(RunOutcome outcome, RunDirectory place, ToldListeners told) {
        return switch (outcome) {
            case RunOutcome.Completed(long step) -> end(true, step, place, told);
            case RunOutcome.Interrupted(long step) -> end(false, step, place, told);
            case RunOutcome.Failed(_, String reason) -> throw new RunFailedException(reason);
        };
    }

    private static TrainingEnd end(
            boolean completed, long step, RunDirectory place, ToldListeners told) {
        return new TrainingEnd(
                completed,
                step,
                place.path(),
                told.loss(step),
                told.heldOutLoss(),
                CheckpointFolders.newestOf(place.path(), _ -> {}).map(SavedCheckpoint::path),
                place.report());
    }
}
