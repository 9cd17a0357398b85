package dev.penstock.runtime.inference;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HeldCheckpoint;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.run.EvaluationTask;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.evaluation.PreparedTask;
import dev.penstock.runtime.evaluation.TaskData;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.TaskMetrics;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Measures a run's tasks with the checkpoints that it saves when it evaluates. A checkpoint is the
 * same whatever layout trains, and so are its figures. Works on the listener's thread, so that
 * lines stay in the order of steps: meanwhile the training goes on.
 */
public final class TrainingTasks implements RunListener {
    private static final Logger LOG = LoggerFactory.getLogger(TrainingTasks.class);

    private final RunAssembly assembly;
    private final Consumer<TaskMetrics> results;
    private final InstantSource clock = InstantSource.system();
    private @Nullable List<PreparedTask> prepared;

    /**
     * @param assembly stays the caller's
     * @param results receives the figures of each task
     */
    public TrainingTasks(RunAssembly assembly, Consumer<TaskMetrics> results) {
        this.assembly = assembly;
        this.results = results;
    }

    /**
     * Reads the tasks' files.
     *
     * @param context of the model
     * @throws DataException with everything that is wrong
     */
    public static List<PreparedTask> prepare(
            List<EvaluationTask> tasks, Tokenizer tokenizer, int context) {
        List<PreparedTask> prepared = new ArrayList<>();
        List<DataProblem> problems = new ArrayList<>();
        for (EvaluationTask task : tasks) {
            try {
                prepared.add(
                        TaskData.of(task.data(), false)
                                .prepare(task.request(), tokenizer, context));
            } catch (DataException e) {
                problems.addAll(e.problems());
            }
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return prepared;
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        List<EvaluationTask> tasks = assembly.config().evaluation().tasks();
        if (tasks.isEmpty() || !assembly.plan().steps().evaluatesAfter(step)) {
            return;
        }
        try {
            measure(step, tasks);
        } catch (RuntimeException e) {
            LOG.warn("tasks could not be measured after step {}", step, e);
        }
    }

    private void measure(long step, List<EvaluationTask> tasks) {
        Path root = assembly.options().directory().resolve(CheckpointFolders.FOLDER);
        List<PreparedTask> all = prepared;
        if (all == null) {
            all = prepare(tasks, assembly.tokenizer(), assembly.model().shape().context());
            prepared = all;
        }
        try (HeldCheckpoint held =
                        HeldCheckpoint.of(SavedCheckpoint.open(CheckpointFolders.of(root, step)));
                ModelTensors weights = SavedCheckpoint.open(held.path()).readMerged()) {
            var pipeline = PipelineInference.of(assembly, weights);
            for (int i = 0; i < all.size(); i++) {
                Optional<TaskMetrics> result =
                        measure(step, all.get(i), tasks.get(i).data(), pipeline);
                result.ifPresent(results);
            }
        }
    }

    private Optional<TaskMetrics> measure(
            long step, PreparedTask task, Path data, PipelineInference pipeline) {
        PipelineInference.Scores scores = pipeline.score(task.windows(), _ -> {}, _ -> {});
        if (scores.outcome() instanceof RunOutcome.Failed(_, String reason)) {
            LOG.warn("{} was not measured after step {}: {}", data, step, reason);
            return Optional.empty();
        }
        return Optional.of(
                new TaskMetrics(
                        step,
                        clock.instant(),
                        task.request().task().word(),
                        task.request().protocol().word(),
                        assembly.model().shape().context(),
                        String.valueOf(data.getFileName()),
                        task.total(scores.scores()).measures()));
    }
}
